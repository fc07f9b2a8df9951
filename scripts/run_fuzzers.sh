#!/usr/bin/env bash
# Runs each fuzzer of a build folder for some seconds, from the seeds in tests/fuzz/seeds/<name> when there are any.
# Findings are left in the build folder.
# Usage: run_fuzzers.sh FOLDER SECONDS
set -euo pipefail

cd "$(dirname "$0")/.."
folder=$1
seconds=$2
count=0
for fuzzer in "$folder"/fuzz_*; do
  [[ -x $fuzzer && ! -d $fuzzer ]] || continue
  name=$(basename "$fuzzer")
  name=${name#fuzz_}
  corpus=$folder/corpus/$name
  mkdir -p "$corpus"
  seeds=()
  [[ -d tests/fuzz/seeds/$name ]] && seeds=("tests/fuzz/seeds/$name")
  "$fuzzer" -max_total_time="$seconds" -rss_limit_mb=2048 -timeout=10 -print_final_stats=1 \
    -artifact_prefix="$corpus-" "$corpus" "${seeds[@]}"
  count=$((count + 1))
done
echo "fuzzers: $count, no findings"
