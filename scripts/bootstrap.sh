#!/usr/bin/env bash
# Installs what building and testing need and this machine lacks, by package name with apt-get (Debian 12, Ubuntu 24.04
# or newer). Does nothing when all is there, on any system.
#
# Usage: bootstrap.sh [--with-dev] [--check]
#   --with-dev  also what checking needs: clang, formatter, cross compiler, emulator, ccache
#   --check     say what is missing, install nothing; exit status 1 when something is
set -euo pipefail

# package, and what proves that it is there: a command, a header, a file, or a Python module
readonly BUILD_PACKAGES=(
  "g++ command:g++"
  "cmake command:cmake"
  "ninja-build command:ninja"
  "make command:make"
  "pkg-config command:pkg-config"
  "libfmt-dev header:fmt/core.h"
  "libcli11-dev header:CLI/CLI.hpp"
  "libpcre2-dev header:pcre2.h"
  "libxxhash-dev header:xxhash.h"
  "nlohmann-json3-dev header:nlohmann/json.hpp"
  "liburing-dev header:liburing.h"
  "libedit-dev header:histedit.h"
  "libgtest-dev header:gtest/gtest.h"
  "libbenchmark-dev header:benchmark/benchmark.h"
  "python3 command:/usr/bin/python3"
  "python3-numpy module:numpy"
)
readonly DEV_PACKAGES=(
  "clang command:clang++"
  "libclang-rt-dev sanitizer:-"
  "llvm command:llvm-symbolizer"
  "clang-tidy command:clang-tidy-14|clang-tidy"
  "clang-format command:clang-format-14|clang-format"
  "g++-aarch64-linux-gnu command:aarch64-linux-gnu-g++"
  "qemu-user command:qemu-aarch64"
  "googletest file:/usr/src/googletest/CMakeLists.txt"
  "ccache command:ccache"
  "git command:git"
)

is_there() {
  local kind=${1%%:*} what=${1#*:} name
  case $kind in
    command) for name in ${what//|/ }; do command -v "$name" >/dev/null && return 0; done; return 1 ;;
    header) [[ -e /usr/include/$what || -e /usr/local/include/$what ]] ;;
    file) [[ -e $what ]] ;;
    module) /usr/bin/python3 -c "import $what" 2>/dev/null ;;
    # The sanitizers' libraries come apart from the compiler, in a package whose name depends on the release.
    sanitizer) echo 'int main() {}' | clang++ -fsanitize=address -x c++ - -o /dev/null 2>/dev/null ;;
  esac
}

# Prints the missing ones of "package proof" pairs, one package a line.
missing_of() {
  local pair
  for pair in "$@"; do
    is_there "${pair#* }" || echo "${pair%% *}"
  done
}

install_packages() {
  local as_root=()
  if [[ $(id -u) != 0 ]]; then
    command -v sudo >/dev/null || fail_without_root "$@"
    as_root=(sudo)
  fi
  echo "bootstrap: installing $*"
  local log
  log=$(mktemp)
  # A list of some other source that cannot be fetched does not matter; the installation says what does.
  "${as_root[@]}" apt-get update -q >"$log" 2>&1 || true
  if ! "${as_root[@]}" env DEBIAN_FRONTEND=noninteractive apt-get install -y -q --no-install-recommends "$@" >>"$log" 2>&1; then
    cat "$log" >&2
    rm -f "$log"
    echo "bootstrap: apt-get failed; its output stands above" >&2
    exit 1
  fi
  rm -f "$log"
}

fail_without_root() {
  echo "bootstrap: missing packages, and neither root nor sudo to install them. Please run as root:" >&2
  echo "  apt-get install $*" >&2
  exit 1
}

fail_without_apt() {
  echo "bootstrap: this system has no apt-get. Please install what these Debian packages hold, then try again:" >&2
  echo "  $*" >&2
  exit 1
}

# Fails when the tool's version (the first number with a dot, or the first number) is below the wanted one.
require_version() {
  local tool=$1 wanted=$2 found
  found=$("$tool" --version | grep -oE '[0-9]+(\.[0-9]+)+' | head -n 1)
  if [[ $(printf '%s\n%s\n' "$wanted" "$found" | sort -V | head -n 1) != "$wanted" ]]; then
    echo "bootstrap: $tool is $found, but Headrace needs $wanted or newer (Debian 12 and Ubuntu 24.04 have it)" >&2
    exit 1
  fi
}

main() {
  local with_dev=no check_only=no argument
  for argument in "$@"; do
    case $argument in
      --with-dev) with_dev=yes ;;
      --check) check_only=yes ;;
      *) echo "bootstrap: unknown argument $argument (allowed: --with-dev, --check)" >&2; exit 2 ;;
    esac
  done
  local wanted=("${BUILD_PACKAGES[@]}")
  [[ $with_dev == yes ]] && wanted+=("${DEV_PACKAGES[@]}")
  local missing
  mapfile -t missing < <(missing_of "${wanted[@]}")
  if [[ ${#missing[@]} == 0 ]]; then
    require_version cmake 3.25
    require_version g++ 12.0
    echo "bootstrap: everything is there"
    return
  fi
  if [[ $check_only == yes ]]; then
    echo "bootstrap: missing: ${missing[*]}"
    exit 1
  fi
  command -v apt-get >/dev/null || fail_without_apt "${missing[@]}"
  install_packages "${missing[@]}"
  mapfile -t missing < <(missing_of "${wanted[@]}")
  if [[ ${#missing[@]} != 0 ]]; then
    echo "bootstrap: still missing after the installation: ${missing[*]}" >&2
    exit 1
  fi
  require_version cmake 3.25
  require_version g++ 12.0
  echo "bootstrap: done"
}

main "$@"
