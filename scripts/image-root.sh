#!/usr/bin/env bash
# Fills a folder with what programs need to run in an image that holds nothing else: the libraries that they are linked with,
# these packages' licences and what scanners look for, users, and the folders of berthd.
#   usage: scripts/image-root.sh FOLDER PROGRAM...       (programs outside of the folder are copied to where they lie)
set -euo pipefail
root=$1
shift

# A file of the system with the record of its Debian package.
take() {
  local file=$1 package
  install -D "$file" "$root$file"
  # Since /lib is /usr/lib, packages know a file by either name.
  package=$({ dpkg-query --search "$file" || dpkg-query --search "${file#/usr}" || dpkg-query --search "/usr$file"; } 2>/dev/null | head -n 1)
  package=${package%%: *}
  [ -n "$package" ] || { echo "image-root: no package has $file" >&2; exit 1; }
  install -D -m 644 "/usr/share/doc/${package%%:*}/copyright" -t "$root/usr/share/doc/${package%%:*}"
  install -d "$root/var/lib/dpkg/status.d"
  dpkg-query --status "$package" >"$root/var/lib/dpkg/status.d/${package%%:*}"
}

for program; do
  # Symbolic links stay behind: each library comes under the name that it is looked for by.
  case $program in "$root"/*) ;; *) take "$program" ;; esac
  ldd "$program" | awk '$2 == "=>" { print $3 } $1 ~ /^\// { print $1 }' | while read -r library; do
    [ -e "$root$library" ] || take "$library"
  done
done

install -d -m 755 "$root/etc"
printf 'root:x:0:0:root:/:/sbin/nologin\nberth:x:65532:65532:Berth:/:/sbin/nologin\n' >"$root/etc/passwd"
printf 'root:x:0:\nberth:x:65532:\n' >"$root/etc/group"
install -d -m 755 -o 65532 -g 65532 "$root/run/berth"
install -d -m 700 -o 65532 -g 65532 "$root/var/lib/berth"
install -d -m 1777 "$root/tmp"
