//! Commands and settings that bind whatever runs under them: one text for each mask.

use super::Mask;

/// `taskset` from util-linux, before the command.
pub(super) fn taskset_list(mask: &Mask) -> String {
    format!("taskset -c {}", mask.cpus)
}

pub(super) fn taskset_hex(mask: &Mask) -> String {
    format!("taskset {}", mask.cpus.to_hex())
}

/// Memory is preferred on its nodes, not bound to them: a full node must not end a task.
pub(super) fn numactl(mask: &Mask) -> String {
    let memory = match mask.memory_nodes.len() {
        0 => String::new(),
        1 => format!(" --preferred={}", mask.memory_nodes),
        _ => format!(" --preferred-many={}", mask.memory_nodes),
    };
    format!("numactl --physcpubind={}{memory}", mask.cpus)
}

/// Settings of a service. `CPUAffinity=` is the mask of its processes, which they can change; `AllowedCPUs=` is what they
/// cannot leave.
pub(super) fn systemd(mask: &Mask) -> String {
    let mut lines = vec![
        "[Service]".to_owned(),
        format!("CPUAffinity={}", mask.cpus),
        format!("AllowedCPUs={}", mask.cpus),
    ];
    match mask.memory_nodes.len() {
        0 => {}
        1 => lines.extend(["NUMAPolicy=preferred".to_owned(), format!("NUMAMask={}", mask.memory_nodes)]),
        // Preferred is a single node; local is that of the CPU, which is one of these.
        _ => lines.extend(["NUMAPolicy=local".to_owned(), format!("NUMAMask={}", mask.memory_nodes)]),
    }
    lines.join("\n")
}

/// Files of a cgroup's folder.
pub(super) fn cgroup(mask: &Mask) -> String {
    let cpus = format!("echo {} > cpuset.cpus", mask.cpus);
    if mask.memory_nodes.is_empty() {
        return cpus;
    }
    format!("{cpus}\necho {} > cpuset.mems", mask.memory_nodes)
}

/// Options of `docker run`, and of podman's.
pub(super) fn docker(mask: &Mask) -> String {
    let cpus = format!("--cpuset-cpus={}", mask.cpus);
    if mask.memory_nodes.is_empty() { cpus } else { format!("{cpus} --cpuset-mems={}", mask.memory_nodes) }
}
