//! Examples at the end of each help text.

use crate::Exit;

/// `berth --help`.
pub(super) fn berth() -> String {
    let exits = Exit::help();
    format!(
        "\
Examples:
  berth predict -n 8 --cpus 0-7     where the kernel would put eight tasks under this mask
  berth advise -n 8 --cpus 0-7      where they should go instead
  berth topology                    the host as the scheduler sees it
  berth run -n 8 -- ./job           start a job there
  berth hold -n 8 -- ./job          keep eight CPUs while a job runs
  berth verify --all                which tasks wait now although they need not
  berth predict --help              each command explains itself

Exit status:
{exits}"
    )
}

/// `berth topology --help`.
pub(super) const TOPOLOGY: &str = "\
Examples:
  berth topology
  berth topology --host-xml host.xml
  berth topology --host-synthetic \"pack:2 [numa] l3:8 core:8 pu:2\" --full";

/// `berth load --help`.
pub(super) const LOAD: &str = "\
Examples:
  berth load
  berth load --cpus 0-15 --full";

/// `berth predict --help`.
pub(super) const PREDICT: &str = "\
Examples:
  Eight tasks on this host, anywhere, then under a mask:
    berth predict -n 8
    berth predict -n 8 --cpus 0-7

  A host that is not here, under two kernels (its XML: `lstopo --of xml --export-xml-flags v2 host.xml`, typed there):
    berth predict -n 176 --cpus 0-175 --from 0 --host-xml host.xml --kernel 6.12.95
    berth predict -n 176 --cpus 0-175 --from 0 --host-xml host.xml --kernel 6.18.39

  Six tasks on four CPUs, two of which are busy:
    berth predict -n 6 --cpus 1,2,6,15 --host-load 1-2:1

  How the kernel comes to it, for who wants to check it by hand:
    berth predict -n 8 --cpus 0-7 --from 0 --trace --trace-tasks 0-2

  In a script: do not start what would pile up:
    berth predict -n 8 --cpus 0-7 --check >/dev/null && taskset -c 0-7 ./job";

/// `berth advise --help`.
pub(super) const ADVISE: &str = "\
Examples:
  berth advise -n 8
  berth advise -n 8 --cpus 0-63 --policy spread     for memory bandwidth
  berth advise -n 8 --cpus 0-63 --form mask         for a container runtime, which takes one mask
  berth advise -n 8 --cpus 0-63 --form per-task     a CPU for each task, for OpenMP and Slurm
  berth advise -n 176 --cpus 0-175 --host-xml host.xml --kernel 6.12.95

  In a script: one mask for all, or the CPUs of each task, line by line:
    cpus=$(berth advise -n 8 --form mask --check -o list) && taskset -c \"$cpus\" ./job
    mapfile -t cpus < <(berth advise -n 8 --form per-task -o list)";

/// `berth explain --help`.
pub(super) const EXPLAIN: &str = "\
Examples:
  berth explain
  berth explain --cpus 0,64 --allowed 0-63
  berth explain --host-xml host.xml --kernel 6.12.95 --verbose";

/// `berth hold --help`.
pub(super) const HOLD: &str = "\
Examples:
  While a command runs, bound to the CPUs held; or bound by the command itself:
    berth hold -n 8 --exclusive --bind -- ./job
    berth hold -n 8 -- sh -c 'taskset -c \"$BERTH_CPUS\" ./job'

  As long as a script runs, in the script; its CPUs in a variable:
    cpus=$(berth hold -n 8 --form mask --pid $$ --output list)

  For a time, by name, renewed and let go by hand:
    berth hold -n 8 --ttl 10m --name job17
    berth renew job17 && berth release job17

  CPUs that were chosen elsewhere:
    berth hold --cpus 0-7 --exclusive --ttl 8h --name reserved

  A job whose CPUs are not known yet; its parts end with it:
    berth hold --claim --name job17 --ttl 8h
    berth hold -n 4 --under job17 --ttl 1h";

/// `berth renew --help`.
pub(super) const RENEW: &str = "\
Examples:
  berth renew job17                 as long again as last time
  berth renew job17 --ttl 1h";

/// `berth release --help`.
pub(super) const RELEASE: &str = "\
Examples:
  berth release job17
  berth release --all-mine";

/// `berth holds --help`.
pub(super) const HOLDS: &str = "\
Examples:
  berth holds                       of this user
  berth holds --all                 of everybody, for root and other admins
  berth holds job17                 one, with all that is known of it
  berth holds --all --cpus 0-15     who holds these CPUs
  berth holds -o json | jq -r '.holds[] | \"\\(.id) \\(.cpus)\"'";

/// `berth watch --help`.
pub(super) const WATCH: &str = "\
Examples:
  berth watch holds --all
  berth watch load --every 10s
  berth watch topology
  berth watch holds -o json | jq --unbuffered -r '.holds[].state'
  berth watch load --count 1 >/dev/null && echo 'the load is known'";

/// `berth slurm --help`.
pub(super) const SLURM: &str = "\
Examples:
  berth slurm install --write /etc/slurm/berth
  srun -n 8 sh -c 'echo $BERTH_STATUS'   what was done with each task, and why
  BERTH=verbose srun -n 8 ./job          the same on the job's stdout
  BERTH=off srun -n 8 ./job              as Slurm has it";

/// `berth slurm install --help`.
pub(super) const SLURM_INSTALL: &str = "\
Examples:
  berth slurm install                                what would be written
  berth slurm install --write /etc/slurm/berth       scripts; the lines for slurm.conf to stdout
  berth slurm install --opt-in                       only for jobs with BERTH=on";

/// `berth kube --help`.
pub(super) const KUBE: &str = "\
Examples:
  berth kube device-plugin      runs on a node, until SIGTERM
  berth kube status             what works on this node, and what does not";

/// `berth kube device-plugin --help`.
pub(super) const KUBE_DEVICE_PLUGIN: &str = "\
Examples:
  berth kube device-plugin --reserved 0-1     a device for each core, without CPUs 0 and 1
  berth kube device-plugin --devices llc      a device for each last-level cache

  In a pod, for four cores:
    resources: {limits: {berth.dev/cpu: 4}}";

/// `berth kube nri --help`.
pub(super) const KUBE_NRI: &str = "\
Examples:
  berth kube nri --metrics 127.0.0.1:9117
  berth kube status                    whether it may write cpusets here, and how many it has written

  In a pod's manifest:
    metadata: {annotations: {berth.dev/policy: spread, berth.dev/tasks.main: \"8\"}}";

/// `berth kube status --help`.
pub(super) const KUBE_STATUS: &str = "\
Examples:
  berth kube status
  berth kube status -o json | jq -e 'all(.facts[]; .ok)' >/dev/null || echo 'something does not work'";

/// `berth map --help`.
pub(super) const MAP: &str = "\
Examples:
  berth map                                       what runs where
  berth map -n 8 --cpus 0-63 --policy spread      where eight tasks would go, and where they should
  berth map -n 176 --cpus 0-175 --from 0 --host-xml host.xml --kernel 6.12.95 --svg map.svg";

/// `berth top --help`.
pub(super) const TOP: &str = "\
Examples:
  berth top
  ssh -t node7 berth top";

/// `berth run --help`.
pub(super) const RUN: &str = "\
Examples:
  berth run -n 8 -- ./stream                            eight OpenMP threads
  berth run -n 8 --policy spread -- ./stream            one to each part of the memory
  berth run -n 176 --cpus 0-175 --follow 1s -- stress-ng --cpu 176 --timeout 60s
  berth run -n 8 --cpus 0-63 --dry-run -- ./job         what would be typed without berth";

/// `berth verify --help`.
pub(super) const VERIFY: &str = "\
Examples:
  A machine is slow:
    sudo berth verify --all

  One job, and where it should be:
    berth verify --pid \"$(pgrep -d, stream)\" --expected 0-63
    berth verify --hold my-job --memory --full

  Mend what is wrong, after a look at the steps:
    berth verify --pid 4100 --fix

  In a script:
    berth verify --cgroup /system.slice/job.service --check >/dev/null || echo 'it waits'";

/// `berth health --help`.
pub(super) const HEALTH: &str = "\
Examples:
  berth health
  berth health berth.v1.HoldService
  until berth health --timeout 1s >/dev/null 2>&1; do sleep 1; done";

/// `berth info --help`.
pub(super) const INFO: &str = "\
Examples:
  berth info
  berth info --timeout 1s >/dev/null || echo 'no berthd, or not ready yet'";

/// `berth profiles --help`.
pub(super) const PROFILES: &str = "\
Examples:
  berth profiles
  berth profiles --all --verbose    with their rules, and those of patch series
  berth profiles --kernel 6.1.0-57-cloud-amd64 --kernel-version '#1 SMP Debian 6.1.192-3'";

/// `berth completions --help`.
pub(super) const COMPLETIONS: &str = "\
Examples:
  berth completions bash > ~/.local/share/bash-completion/completions/berth
  berth completions zsh > ~/.zfunc/_berth";

/// `berth man --help`.
pub(super) const MAN: &str = "\
Examples:
  berth man | man -l -
  berth man ~/.local/share/man/man1 && man berth-advise";
