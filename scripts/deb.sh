#!/usr/bin/env bash
# The Debian package of both programs, in deb/ of the target folder. What it holds is told in client/Cargo.toml.
#   usage: scripts/deb.sh          (PROFILE=dev builds quicker, for trying)
set -euo pipefail
cd "$(dirname "$0")/.."

profile=${PROFILE:-release}
target=${CARGO_TARGET_DIR:-target}
programs=$target/${profile/#dev/debug}
version=$(sed -n 's/^version *= *"\(.*\)"/\1/p' Cargo.toml)
PATH=$target/cargo-deb/bin:$PATH

# What the programs say of themselves. cargo-deb looks beside them for what was built.
made=$programs/deb
rm -rf "$made"
mkdir -p "$made" "$target/deb"
scripts/man.sh "$made/man" >/dev/null
gzip -9n "$made/man"/*
for shell in bash zsh fish; do
  "$programs/berth" completions "$shell" >"$made/berth.$shell"
done
# As Debian writes it, of the same day for the same commit.
day=$(date -uR -d "@${SOURCE_DATE_EPOCH:-$(git log -1 --format=%ct 2>/dev/null || stat -c %Y CHANGELOG.md)}")
maintainer=$(sed -n 's/^maintainer *= *"\(.*\)"/\1/p' client/Cargo.toml)
printf 'berth (%s) unstable; urgency=medium\n\n  * What changed is told in /usr/share/doc/berth/CHANGELOG.md.\n\n -- %s  %s\n' \
  "$version" "$maintainer" "$day" | gzip -9n >"$made/changelog.gz"

cargo deb --package berth --profile "$profile" --no-build --locked --quiet --output "$target/deb/"
