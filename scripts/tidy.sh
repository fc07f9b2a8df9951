#!/usr/bin/env bash
# Runs clang-tidy with the compile commands of build/clang. Takes seconds a file, so by default only over the sources
# that changed since TIDY_BASE (default: where this branch left origin/main, else the last commit); a changed header
# brings the source of its name along. --all takes every source.
set -euo pipefail

cd "$(dirname "$0")/.."
tidy=$(command -v clang-tidy-14 || command -v clang-tidy || true)
if [[ -z $tidy ]]; then
  echo "SKIP    clang-tidy is not installed"
  exit 0
fi

list_changed() {
  local base=${TIDY_BASE:-}
  [[ -n $base ]] || base=$(git merge-base HEAD origin/main 2>/dev/null || true)
  if [[ -z $base || $base == "$(git rev-parse HEAD)" ]]; then base=HEAD~1; fi
  {
    git diff --name-only --diff-filter=d "$base" -- src tests
    git ls-files --others --exclude-standard -- src tests
  } | sed -E 's/\.h$/.cc/' | sort -u
}

list_all() { find src tests -name '*.cc' | sort; }

if [[ ${1:-} == --all ]]; then files=$(list_all); else files=$(list_changed); fi
# Sources of other processors are not in the compile commands.
files=$(for file in $files; do
  [[ $file == *.cc ]] && grep -qF "/$file\"" build/clang/compile_commands.json && echo "$file"
done || true)
if [[ -z $files ]]; then
  echo "clang-tidy: nothing changed"
  exit 0
fi
# clang-tidy counts suppressed warnings on stderr; findings go to stdout.
xargs -P "${JOBS:-$(nproc)}" -n 1 "$tidy" -p build/clang --quiet 2>/dev/null <<<"$files"
echo "clang-tidy: $(wc -l <<<"$files") files, fine"
