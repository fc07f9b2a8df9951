#!/usr/bin/env bash
# Configures and builds one preset of CMakePresets.json in build/<preset>, with ccache when there is one.
# Usage: build.sh PRESET [TARGET...]
set -euo pipefail

cd "$(dirname "$0")/.."
preset=$1
shift
options=()
if command -v ccache >/dev/null; then
  # Relative paths, so that another clone of the project finds the results of this one.
  export CCACHE_BASEDIR=$PWD CCACHE_NOHASHDIR=1
  options+=(-DCMAKE_C_COMPILER_LAUNCHER=ccache -DCMAKE_CXX_COMPILER_LAUNCHER=ccache)
fi
cmake --preset "$preset" "${options[@]}"
targets=()
[[ $# == 0 ]] || targets=(--target "$@")
cmake --build "build/$preset" --parallel "${JOBS:-$(nproc)}" "${targets[@]}"
