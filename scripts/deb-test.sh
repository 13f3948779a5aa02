#!/usr/bin/env bash
# Installs the Debian package on a Debian that debootstrap makes, starts what its unit starts, asks it, installs it over itself, and
# takes it away again: nothing may be left.
#   usage: scripts/deb-test.sh          (what takes long is kept in deb/ of the target folder)
set -euo pipefail
cd "$(dirname "$0")/.."

say() { printf '\n== %s\n' "$*"; }
stop() { printf 'deb-test: %s\n' "$*" >&2; exit 1; }

say "The package"
package=$(scripts/deb.sh | tail -n 1)
ls -l "$package"
dpkg-deb --info "$package" | sed -n 's/^ \(Package\|Version\|Depends\|Installed-Size\)/\1/p'

store=${CARGO_TARGET_DIR:-$PWD/target}/deb-test
codename=$(. /etc/os-release && echo "$VERSION_CODENAME")
if ! [ -e "$store/debian.tar" ]; then
  say "A Debian, by debootstrap ($codename)"
  mirror=$(apt-get indextargets --format '$(REPO_URI)' 'Created-By: Packages' | head -n 1)
  rm -rf "$store"
  mkdir -p "$store"
  debootstrap --variant=minbase --include=ca-certificates "$codename" "$store/debian" "$mirror" >"$store/log" 2>&1 ||
    { tail -n 20 "$store/log" >&2; stop 'debootstrap failed: see above'; }
  tar -C "$store/debian" -cf "$store/debian.tar" .
  rm -rf "$store/debian"
fi

root=$(mktemp -d "$store/root.XXXXXX")
server=
clean_up() {
  local status=$?
  trap - EXIT
  [ -z "$server" ] || kill "$server" 2>/dev/null || true
  umount -R "$root/proc" "$root/sys" 2>/dev/null || true
  rm -rf --one-file-system "$root"
  exit "$status"
}
trap clean_up EXIT
tar -C "$root" -xf "$store/debian.tar"
rm -rf "$root/etc/apt/sources.list" "$root/etc/apt/sources.list.d"
cp -r /etc/apt/. "$root/etc/apt/"
cp /etc/resolv.conf "$root/etc/" 2>/dev/null || true
cp -r /etc/ssl/certs/. "$root/etc/ssl/certs/"
mount -t proc proc "$root/proc"
mount --rbind --make-rslave -o ro /sys "$root/sys"
there=(env -i PATH=/usr/sbin:/usr/bin:/sbin:/bin DEBIAN_FRONTEND=noninteractive LC_ALL=C chroot "$root")
in_root() { "${there[@]}" "$@"; }
apt() { in_root apt-get -qq -y -o Dpkg::Use-Pty=0 --no-install-recommends "$@" >/dev/null; }
files() { (cd "$root" && find etc usr var run -xdev \( -type f -o -type l -o -type d \) -not -path 'var/lib/apt/*' -not -path 'var/cache/*' -not -path 'var/log/*' -not -path 'var/lib/dpkg/*' | sort); }

say "Installing it, with what it needs"
cp "$package" "$root/berth.deb"
in_root apt-get update -qq 2>/dev/null
depends=$(dpkg-deb --field "$package" Depends | sed 's/([^)]*)//g; s/,/ /g')
# shellcheck disable=SC2086  # one word each is meant
apt install $depends 2>/dev/null
files >"$store/before"
apt install /berth.deb 2>&1 | grep -v '^[WN]:' >&2 || true
in_root berth --version
in_root berthd --version
for file in usr/share/man/man1/berth-advise.1.gz usr/share/man/man8/berthd.8.gz usr/share/bash-completion/completions/berth \
  usr/share/doc/berth/examples/berthd.toml; do
  [ -s "$root/$file" ] || stop "the package has no $file"
done
unit=$(cd "$root" && find usr/lib lib -name berthd.service 2>/dev/null | head -n 1)
[ -n "$unit" ] || stop "the package has no unit"

say "What its unit starts"
start=$(sed -n 's/^ExecStart=//p' "$root/$unit")
printf '$ %s\n' "$start"
"${there[@]}" /bin/sh -c "mkdir -p /run/berth && exec $start" >"$store/berthd.log" 2>&1 &
server=$!
for ((tries = 0; ; tries++)); do
  ! in_root berth --server unix:/run/berth/berthd.sock health 2>/dev/null || break
  [ "$tries" -lt 100 ] && kill -0 "$server" 2>/dev/null || { cat "$store/berthd.log" >&2; stop "it does not serve"; }
  sleep 0.1
done
in_root berth advise -n 4 --host-idle

say "Installing it over itself, and taking it away"
apt install --reinstall /berth.deb 2>/dev/null
in_root berth --server unix:/run/berth/berthd.sock health
kill "$server"
wait "$server" || true
server=
apt purge berth 2>/dev/null
rm -rf "$root/run/berth"
files >"$store/after"
diff "$store/before" "$store/after" || stop "files are left, or gone: see above"
echo "nothing is left"
