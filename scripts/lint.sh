#!/usr/bin/env bash
# What a change must pass besides its tests.
set -euo pipefail
cd "$(dirname "$0")/.."

step() { printf '\n== %s\n' "$*"; "$@"; }

step cargo fmt --all --check
step cargo clippy --workspace --all-targets --locked -- -D warnings
step env RUSTDOCFLAGS='-D warnings' cargo doc --workspace --no-deps --locked
if command -v cargo-deny >/dev/null; then
  # Not `advisories`: that one needs the network.
  step cargo deny --locked check bans licenses sources
else
  printf '\n== cargo deny: skipped, cargo-deny is not installed (deny.toml says what it would check)\n'
fi
