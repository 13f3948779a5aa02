#!/usr/bin/env bash
# A Debian of this machine's release, from this machine's package source, by debootstrap.
#   usage: scripts/debian-root.sh FOLDER          (must not be there)
set -euo pipefail

folder=$1
codename=$(. /etc/os-release && echo "$VERSION_CODENAME")
mirror=$(apt-get indextargets --format '$(REPO_URI)' 'Created-By: Packages' | head -n 1)
debootstrap --variant=minbase --include=ca-certificates "$codename" "$folder" "$mirror" >"$folder.log" 2>&1 ||
  { tail -n 20 "$folder.log" >&2; echo 'debian-root: debootstrap failed: see above' >&2; exit 1; }
