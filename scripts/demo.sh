#!/usr/bin/env bash
# Starts berthd on this host, asks it about this host and about a 640-CPU one that is not here, stops it.
# Ends with a status other than 0 as soon as a step fails.
set -euo pipefail
cd "$(dirname "$0")/.."

# ---- What this script knows about the two programs' flags ----
folder=$(mktemp -d -t berth-demo.XXXXXX)
socket=$folder/berthd.sock
programs=${CARGO_TARGET_DIR:-target}/release
berthd=("$programs/berthd" --uds "$socket" --no-tcp --state-dir "$folder/state")
berth=("$programs/berth" --server "unix:$socket")
# Ready once it serves and has measured the load, which takes two samples.
is_ready() { "${berth[@]}" load --output json 2>/dev/null | grep -q '"known": true'; }
# 176 tasks on half of the first package's PUs and a few of the second's: the report that Berth began with.
turin=(--host-xml testdata/topologies/seeds/turin-2s-l3-as-numa.xml
  --cpus 0-175 --tasks 176 --from 0)
kernels=(6.12.95 6.18.39) # the last one before the kernel's own fix in its series; one with the fix
here=(--tasks "$(nproc)")
# ---------------------------------------------------------------

server=
build=
clean_up() {
  local status=$?
  trap - EXIT
  local pid
  for pid in $build $server; do
    kill "$pid" 2>/dev/null || continue
    wait "$pid" 2>/dev/null || true # it was told to stop
  done
  rm -rf "$folder"
  exit "$status"
}
trap clean_up EXIT
trap 'exit 130' INT
trap 'exit 143' TERM

bold='' plain=''
if [ -t 1 ]; then bold=$'\e[1m' plain=$'\e[0m'; fi
title() { printf '\n%s=== %s ===%s\n' "$bold" "$*" "$plain"; }

build_release() {
  local log=$folder/build.log started=$SECONDS
  cargo build --release --locked -p berthd -p berth >"$log" 2>&1 &
  build=$!
  while sleep 1; kill -0 "$build" 2>/dev/null; do
    if [ $(((SECONDS - started) % 10)) -eq 0 ]; then
      printf 'building: %d s, %d crates compiled so far\n' $((SECONDS - started)) "$(grep -c Compiling "$log" || true)"
    fi
  done
  if ! wait "$build"; then
    build=
    tail -n 40 "$log" >&2
    echo 'demo: the build failed' >&2
    exit 1
  fi
  build=
}

start_server() {
  local log=$folder/berthd.log tries
  "${berthd[@]}" >"$log" 2>&1 &
  server=$!
  for ((tries = 0; tries < 100; tries++)); do
    is_ready && return
    kill -0 "$server" 2>/dev/null || break
    sleep 0.1
  done
  cat "$log" >&2
  echo 'demo: berthd did not come up' >&2
  exit 1
}

# The command as a user would type it, then its answer.
ask() {
  printf '\n%s$ berth %s%s\n' "$bold" "$*" "$plain"
  local status=0
  "${berth[@]}" "$@" || status=$?
  if [ "$status" -ne 0 ]; then
    echo "demo: berth ended with status $status" >&2
    exit 1
  fi
}

build_release
start_server

title 'This host'
ask topology
ask load
ask predict "${here[@]}"
ask advise "${here[@]}"

for kernel in "${kernels[@]}"; do
  title "A host that is not here: 640 CPUs, 176 tasks, kernel $kernel"
  ask predict "${turin[@]}" --kernel "$kernel"
  ask advise "${turin[@]}" --kernel "$kernel"
done

title 'Done'
echo 'berthd is stopped. To ask it yourself: make run, then the commands above in another terminal.'
