#!/usr/bin/env bash
# Runs a command quietly: one line when it succeeds, all of its output when it fails. VERBOSE=1 shows it always.
# Usage: step.sh NAME COMMAND [ARGUMENT...]
set -uo pipefail

name=$1
shift
start=$SECONDS
if [[ ${VERBOSE:-} == 1 ]]; then
  echo "== $name: $*"
  "$@"
  status=$?
else
  log=$(mktemp)
  trap 'rm -f "$log"' EXIT
  "$@" >"$log" 2>&1
  status=$?
  [[ $status == 0 ]] || cat "$log"
fi
if [[ $status == 0 ]]; then
  echo "ok      $name ($((SECONDS - start)) s)"
else
  echo "FAILED  $name ($((SECONDS - start)) s, exit status $status): $*"
fi
exit "$status"
