#!/usr/bin/env bash
# Tries the package that scripts/deb.sh made in a Debian that has nothing of it: installs it, starts berthd as its unit does, asks it,
# upgrades it over itself, removes and purges it, and looks for what is left.
#   usage: scripts/deb-test.sh          (as root; the bare Debian is kept in deb/ of the target folder)
set -euo pipefail
cd "$(dirname "$0")/.."
# Mounts of its own, which end with it.
[ -n "${BERTH_DEB_TEST:-}" ] || BERTH_DEB_TEST=1 exec unshare --mount --propagation private scripts/deb-test.sh

say() { printf '\n== %s\n' "$*"; }
stop() { printf 'deb-test: %s\n' "$*" >&2; exit 1; }

store=${CARGO_TARGET_DIR:-target}/deb
version=$(sed -n 's/^version *= *"\(.*\)"/\1/p' Cargo.toml)
package=$(ls "$store"/berth_"$version"_*.deb)

say "lintian"
lintian --allow-root --fail-on error --tag-display-limit 0 "$package"

if [ ! -d "$store/debian" ]; then
  say "A Debian, by debootstrap"
  rm -rf "$store/new"
  scripts/debian-root.sh "$store/new"
  mv "$store/new" "$store/debian"
fi
root=$(mktemp -d -t berth-deb.XXXXXX)
server=
clean_up() {
  local status=$?
  trap - EXIT
  [ -z "$server" ] || { kill "$server" && wait "$server"; } 2>/dev/null || true
  umount "$root/proc" "$root/sys" 2>/dev/null || true
  # Nothing of the host's goes with it.
  rm -rf --one-file-system "$root"
  exit "$status"
}
trap clean_up EXIT
cp -a "$store/debian/." "$root"
cp -a /etc/apt/. "$root/etc/apt"
cp -a /etc/ssl/certs/. "$root/etc/ssl/certs"
cp "$package" "$root/root/berth.deb"
mount --bind /proc "$root/proc"
mount --bind /sys "$root/sys"
# No service is started in there.
printf '#!/bin/sh\nexit 101\n' >"$root/usr/sbin/policy-rc.d"
chmod 755 "$root/usr/sbin/policy-rc.d"
inside() { env -i PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin LC_ALL=C DEBIAN_FRONTEND=noninteractive chroot "$root" "$@"; }
apt() { inside apt-get -qq -y --no-install-recommends -o Dpkg::Use-Pty=0 "$@" >"$root/root/apt.log" 2>&1 || { cat "$root/root/apt.log" >&2; stop "apt-get $*"; }; }
# Every file but the package manager's own.
files() { (cd "$root" && find . -xdev \( -path ./proc -o -path ./sys -o -path ./tmp -o -path ./root -o -path ./var/cache -o -path ./var/log \
  -o -path ./var/lib/apt -o -path ./var/lib/dpkg \) -prune -o -print | sort); }

apt update
files >"$root/root/before"

say "Installed"
apt install /root/berth.deb
for program in berth berthd; do
  [ "$(inside "$program" --version)" = "$program $version" ] || stop "$program has another version than $version"
done
[ "$(inside dpkg-query -W -f '${Version}' berth)" = "$version" ] || stop "the package has another version than $version"
inside berthd --check-config
for page in man1/berth.1 man8/berthd.8; do
  inside zcat "/usr/share/man/$page.gz" | grep -q "^\.TH .*\"berth $version\"" || stop "$page has another version than $version"
done

# What systemd makes for the unit: a user without a name, its folders.
unit=$root/usr/lib/systemd/system/berthd.service
user=61184
start() {
  read -ra command < <(sed -n 's/^ExecStart=//p' "$unit")
  install -d -o "$user" -g "$user" "$root/run/berth" "$root/var/lib/berth"
  env -i PATH=/usr/sbin:/usr/bin:/sbin:/bin STATE_DIRECTORY=/var/lib/berth RUNTIME_DIRECTORY=/run/berth chroot "$root" \
    setpriv --reuid "$user" --regid "$user" --clear-groups --no-new-privs --bounding-set=-all "${command[@]}" >"$root/root/berthd.log" 2>&1 &
  server=$!
  local tries
  for ((tries = 0; ; tries++)); do
    ! inside berth load --output json 2>/dev/null | grep -q '"known": true' || break
    [ "$tries" -lt 300 ] && kill -0 "$server" 2>/dev/null || { cat "$root/root/berthd.log" >&2; stop 'berthd does not serve'; }
    sleep 0.1
  done
}
halt() {
  kill "$server"
  wait "$server" || stop "berthd ended with status $?"
  server=
}

say "Asked"
start
inside berth health
inside berth advise -n 4
inside berth hold -n 1 --ttl 10m --name kept --output list
halt

say "Upgraded over itself, with a hold that stays"
apt install --reinstall /root/berth.deb
for script in postinst postrm; do
  # Whatever came between: a second time is as the first.
  case $script in postinst) words=(configure "$version") ;; postrm) words=(upgrade "$version") ;; esac
  inside env DPKG_MAINTSCRIPT_PACKAGE=berth DPKG_MAINTSCRIPT_NAME="$script" "/var/lib/dpkg/info/berth.$script" "${words[@]}"
done
start
inside berth holds kept >/dev/null || stop 'the upgrade has lost a hold'
echo "the hold is there"
halt

say "Removed"
apt remove berth
[ ! -e "$root/usr/bin/berthd" ] || stop 'berthd is still there'
[ -d "$root/var/lib/berth" ] || stop 'to remove it is not to purge it: holds stay'
echo "holds are left"

say "Purged"
rmdir "$root/run/berth" 2>/dev/null || rm -r "$root/run/berth" # as systemd does when the unit stops
apt purge berth
apt autoremove --purge
files >"$root/root/after"
diff "$root/root/before" "$root/root/after" || stop 'something is left, or gone: see above'
echo "nothing is left"
