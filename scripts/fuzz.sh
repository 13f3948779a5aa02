#!/usr/bin/env bash
# Each fuzz target, or those that are named, for FUZZ_SECONDS (600 if not given), from its corpus on. What is found is put into fuzz/artifacts/;
# once mended it belongs into fuzz/corpus/, whose files `make test` runs too.
set -euo pipefail
cd "$(dirname "$0")/../fuzz"

if ! cargo +nightly --version >/dev/null 2>&1 || ! cargo fuzz --version >/dev/null 2>&1; then
  echo 'Fuzzing needs a nightly compiler (rustup toolchain install nightly) and cargo-fuzz (cargo install cargo-fuzz).' >&2
  exit 1
fi
[ $# -gt 0 ] || set -- versions cpulists masks topologies stat tasks queues cgroups
for target in "$@"; do
  echo "== $target"
  # New inputs go into a folder of their own, so that the corpus stays small. No sanitizer: there is no unsafe code.
  found=$(mktemp -d)
  cargo +nightly fuzz run -s none --fuzz-dir . "$target" "$found" "corpus/$target" -- \
    -max_total_time="${FUZZ_SECONDS:-600}" -timeout=60 -max_len=2048
  rm -rf "$found"
done
