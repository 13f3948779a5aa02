#!/usr/bin/env bash
# Makes the Debian package: both programs, the unit, an example configuration, manual pages and completions.
#   usage: scripts/deb.sh          (prints where it is, as its last line)
set -euo pipefail
cd "$(dirname "$0")/.."

say() { printf 'deb: %s\n' "$*" >&2; }
# What makes the package; newer ones do as well.
wanted=3.8.0

target=${CARGO_TARGET_DIR:-$PWD/target}
export CARGO_TARGET_DIR=$target
deb=$target/tools/bin/cargo-deb
command -v cargo-deb >/dev/null && deb=$(command -v cargo-deb)
if ! [ -x "$deb" ]; then
  say "getting cargo-deb $wanted (once; two minutes)"
  cargo install --quiet --locked --root "$target/tools" --target-dir "$target/tools/build" "cargo-deb@$wanted"
  rm -rf "$target/tools/build"
fi

cargo build --release --locked -p berthd -p berth
made=target/deb
mkdir -p "$made"
"$target/release/berth" man "$made/man1" >/dev/null
"$target/release/berthd" --man >"$made/berthd.8"
"$target/release/berth" completions bash >"$made/berth.bash"
"$target/release/berth" completions zsh >"$made/_berth"
"$target/release/berth" completions fish >"$made/berth.fish"

"$deb" --no-build --locked -p berth --output "$target/debian/"
