#!/usr/bin/env bash
# Writes the manual pages, which are made of the programs' help, into a folder.
#   usage: scripts/man.sh [FOLDER]          (none named: man/ of the target folder; PROFILE=dev builds quicker)
set -euo pipefail
cd "$(dirname "$0")/.."

profile=${PROFILE:-release}
target=${CARGO_TARGET_DIR:-target}
programs=$target/${profile/#dev/debug}
folder=${1:-$target/man}
cargo build --profile "$profile" --locked --quiet -p berthd -p berth
mkdir -p "$folder"
"$programs/berth" man "$folder"
"$programs/berthd" --man >"$folder/berthd.8"
echo "manual pages in $folder"
