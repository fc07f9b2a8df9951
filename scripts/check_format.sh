#!/usr/bin/env bash
# Checks the layout of all C++ sources against .clang-format, or mends it with --fix. Versions of clang-format differ in
# details, so only version 14 counts; with any other the check is skipped, loudly.
set -euo pipefail

cd "$(dirname "$0")/.."
formatter=
for candidate in clang-format-14 clang-format; do
  if command -v "$candidate" >/dev/null && "$candidate" --version | grep -q 'version 14\.'; then
    formatter=$candidate
    break
  fi
done
if [[ -z $formatter ]]; then
  echo "SKIP    format: clang-format 14 is not installed"
  exit 0
fi
action=(--dry-run -Werror)
[[ ${1:-} == --fix ]] && action=(-i)
folders=()
for folder in src include tests bench; do
  [[ -d $folder ]] && folders+=("$folder")
done
find "${folders[@]}" \( -name '*.cc' -o -name '*.h' -o -name '*.hpp' -o -name '*.c' \) -print0 |
  xargs -0 -P "${JOBS:-$(nproc)}" -n 16 "$formatter" "${action[@]}"
