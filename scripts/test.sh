#!/usr/bin/env bash
# Format, clippy, every test. The last line is a count over all test programs: "N passed, N failed"; the one before it says how
# many of those that passed could not test here.
set -euo pipefail
cd "$(dirname "$0")/.."

step() { printf '\n== %s\n' "$*"; "$@"; }

step cargo fmt --all --check
step cargo clippy --workspace --all-targets --locked -- -D warnings

# What cargo says, but of tests that passed only why they were skipped.
brief() {
  awk '/^successes:$/ { quiet = 1 } /^(failures:$|test result: )/ { quiet = 0 } !quiet || /^skipped:/ { print; fflush() }'
}

log=$(mktemp)
trap 'rm -f "$log"' EXIT
status=0
# --no-fail-fast: one failing program does not hide what the others say.
step cargo test --workspace --locked --no-fail-fast -- --show-output 2>&1 | tee "$log" | brief || status=$?

# Each test program ends with "test result: ok. P passed; F failed; …".
read -r passed failed programs < <(awk '
  /^test result: / {
    programs++
    for (i = 2; i <= NF; i++) { if ($i == "passed;") passed += $(i - 1); if ($i == "failed;") failed += $(i - 1) }
  }
  END { print passed + 0, failed + 0, programs + 0 }' "$log")

# Such a test says why on a line of its own.
skipped=$(awk '/^---- .* stdout ----$/ { told = 0 } /^skipped:/ && !told { n++; told = 1 } END { print n + 0 }' "$log")

echo
if [ "$status" -eq 0 ] && [ "$passed" -eq 0 ]; then
  echo 'no test ran, which cannot be right'
  exit 1
fi
if [ "$status" -ne 0 ] && [ "$failed" -eq 0 ]; then
  # No count here: it would read as a success.
  echo "cargo test ended with status $status although no test says that it failed: a build error, or a program that died"
  exit "$status"
fi
echo "over $programs test programs; of the tests that passed, $skipped could not test here and were skipped:"
echo "$passed passed, $failed failed"
exit "$status"
