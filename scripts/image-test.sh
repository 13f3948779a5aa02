#!/usr/bin/env bash
# Builds the image of the Dockerfile without a container registry, and runs it. The build stage stands on a Debian that debootstrap
# makes, with this machine's package sources, Rust and crates; the image itself has nothing of it but what the Dockerfile takes.
#   usage: scripts/image-test.sh          (what takes long is kept in image/ of the target folder)
set -euo pipefail
cd "$(dirname "$0")/.."

say() { printf '\n== %s\n' "$*"; }
stop() { printf 'image-test: %s\n' "$*" >&2; exit 1; }

store=${CARGO_TARGET_DIR:-target}/image
mkdir -p "$store"
store=$(cd "$store" && pwd)
version=$(sed -n 's/^version *= *"\(.*\)"/\1/p' Cargo.toml)
codename=$(. /etc/os-release && echo "$VERSION_CODENAME")
base=localhost/berth-build:$codename
image=localhost/berth:$version
export BUILDAH_ISOLATION=chroot
ba() { buildah --root "$store/root" --runroot "$store/run" --storage-driver overlay "$@"; }

server=
container=
clean_up() {
  local status=$?
  trap - EXIT
  [ -z "$server" ] || kill "$server" 2>/dev/null || true
  [ -z "$container" ] || ba rm "$container" >/dev/null || true
  exit "$status"
}
trap clean_up EXIT

if ! ba inspect --type image "$base" >/dev/null 2>&1; then
  say "A Debian to build on, by debootstrap ($codename)"
  rm -rf "$store/debian"
  scripts/debian-root.sh "$store/debian"
  new=$(ba from scratch)
  ba add --quiet "$new" "$store/debian" / >/dev/null
  ba config --env PATH=/rust/bin:/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin \
    --env CARGO_HOME=/cargo --env CARGO_NET_OFFLINE=true "$new"
  ba commit --quiet --rm "$new" "$base" >/dev/null
  rm -rf "$store/debian"
fi

say "The image, from the Dockerfile as it is"
cargo fetch --locked --quiet
ba bud --quiet --layers --pull-never --format docker --build-arg RUST="$base" --tag "$image" \
  --volume "$(rustc --print sysroot):/rust:ro" --volume "${CARGO_HOME:-$HOME/.cargo}/registry:/cargo/registry" \
  --volume /etc/apt:/etc/apt:ro --volume /etc/ssl/certs:/etc/ssl/certs:ro .
ba images --format '{{.Name}}:{{.Tag}} {{.Size}}' | grep "^$image "

container=$(ba from --pull-never "$image")
folder=$(ba mount "$container")
du -xb --max-depth=0 "$folder" | awk '{ printf "%.1f MB in %s\n", $1 / 1e6, "files" }'
(cd "$folder" && find . -xdev -type f -size +100k -printf '%s %p\n' | sort -rn | awk '{ printf "%8.1f MB %s\n", $1 / 1e6, $2 }')
for unwanted in bin/sh usr/bin/sh usr/bin/apt usr/bin/dpkg; do
  [ ! -e "$folder/$unwanted" ] || stop "the image has $unwanted"
done

# What the image says itself, word by word.
said() { ba inspect --type image --format "{{range .Docker.Config.$1}}{{println .}}{{end}}" "$image" | sed '/^$/d'; }
mapfile -t command < <(said Entrypoint && said Cmd)
mapfile -t health < <(said Healthcheck.Test | tail -n +2)

say "\$ ${command[*]}"
ba run "$container" -- "${command[@]}" >"$store/berthd.log" 2>&1 &
server=$!
for ((tries = 0; ; tries++)); do
  ! answer=$(ba run "$container" -- "${health[@]}" 2>&1) || break
  [ "$tries" -lt 100 ] && kill -0 "$server" 2>/dev/null || { cat "$store/berthd.log" >&2; stop "it does not serve: $answer"; }
  sleep 0.1
done
printf '$ %s\n%s\n' "${health[*]}" "$answer"
for words in '--version' 'advise --tasks 1 --output list' 'hold -n 1 --ttl 5s --output list'; do
  printf '$ berth %s\n' "$words"
  # shellcheck disable=SC2086  # words are meant
  ba run "$container" -- berth $words
done
uid=$(stat -c %u "$folder/run/berth/berthd.sock")
[ "$uid" = 65532 ] || stop "berthd runs as user $uid"

say 'What a pod runs first: folders for berthd'
ba run --user 0:0 "$container" -- install --directory --mode=0700 --owner=1000 --group=1001 /var/lib/berth
[ "$(stat -c '%u:%g:%a' "$folder/var/lib/berth")" = 1000:1001:700 ] || stop 'the folder was not given away'
echo ok
