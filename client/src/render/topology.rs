//! `berth topology`.

use berth_proto::v1::{GetTopologyResponse, Topology};

use super::{distances, hardware};
use crate::text::{Column, Page, Table, Text, Tone, cpus, numbers};

/// Cores that have a row of their own before they are only counted.
const CORES: usize = 64;

/// The whole answer. `host` says in words which host was asked about.
pub(crate) fn topology(host: &str, response: &GetTopologyResponse, page: Page) -> String {
    let none = Topology::default();
    let topology = response.topology.as_ref().unwrap_or(&none);
    let mut text = Text::new(page);
    text.heading("Host");
    head(&mut text, host, topology);
    text.heading("Places");
    hardware::table(&mut text, topology);
    cores(&mut text, topology);
    devices(&mut text, topology);
    distances::block(&mut text, topology);
    text.finish()
}

fn head(text: &mut Text, host: &str, topology: &Topology) {
    let whole = text.page().verbose;
    let plain = |label, words| (label, Tone::Plain, words);
    let listed = |list: &str| if list.is_empty() { String::new() } else { cpus::counted(list, whole) };
    let kinds =
        topology.core_kinds.iter().map(|kind| format!("{}: {}", kind.name, cpus::short(&kind.cpus, whole)));
    let partitions = topology.partitions.iter().map(|part| {
        let isolated = if part.isolated { " (isolated)" } else { "" };
        format!("{}{isolated}", part.cpus)
    });
    text.fields([
        plain("host", host.to_owned()),
        plain("model", topology.model.clone()),
        plain("vendor", vendor(topology)),
        plain("online", listed(&topology.online)),
        plain("offline", listed(&topology.offline)),
        plain("not allowed", listed(&topology.disallowed)),
        plain("isolated", listed(&topology.isolated)),
        plain("nohz_full", listed(&topology.nohz_full)),
        plain("partitions", partitions.collect::<Vec<_>>().join("; ")),
        plain("core kinds", kinds.collect::<Vec<_>>().join("; ")),
        plain("made of", made_of(topology)),
    ]);
}

fn vendor(topology: &Topology) -> String {
    match (topology.cpu_vendor.as_str(), topology.cpu_family) {
        ("", _) => String::new(),
        (vendor, 0) => vendor.to_owned(),
        (vendor, family) => format!("{vendor} family {family}"),
    }
}

fn made_of(topology: &Topology) -> String {
    let n = |count: usize, noun: &str| numbers::count(u64::try_from(count).unwrap_or(u64::MAX), noun);
    let (with_cpus, memory_only): (Vec<_>, Vec<_>) =
        topology.nodes.iter().partition(|node| !node.cpus.is_empty());
    let mut parts = vec![n(topology.packages.len(), "package"), n(with_cpus.len(), "NUMA node")];
    if !memory_only.is_empty() {
        parts.push(format!("{} with memory only", n(memory_only.len(), "NUMA node")));
    }
    parts.push(n(topology.llcs.len(), "LLC"));
    if !topology.cores.is_empty() {
        parts.push(n(topology.cores.len(), "core"));
    }
    let threads = match topology.threads_per_core {
        0 => String::new(),
        threads => format!("; {} per core", numbers::count(threads, "thread")),
    };
    format!("{}{threads}", parts.join(", "))
}

fn cores(text: &mut Text, topology: &Topology) {
    if topology.cores.is_empty() {
        return;
    }
    text.heading("Cores");
    let mut table = Table::new([
        Column::numbers("CORE"),
        Column::words("CPUS"),
        Column::numbers("LLC"),
        Column::numbers("NODE"),
        Column::numbers("PACKAGE"),
        Column::words("KIND"),
    ]);
    let shown = if text.page().verbose { topology.cores.len() } else { CORES };
    for core in topology.cores.iter().take(shown) {
        table.row([
            core.id.to_string(),
            core.cpus.clone(),
            core.llc.to_string(),
            core.node.map(|node| node.to_string()).unwrap_or_default(),
            core.package.to_string(),
            core.kind.clone(),
        ]);
    }
    text.table(&table);
    if topology.cores.len() > shown {
        text.sentence(&format!("{} more with --verbose.", topology.cores.len() - shown));
    }
}

fn devices(text: &mut Text, topology: &Topology) {
    if topology.devices.is_empty() {
        return;
    }
    text.heading("PCI devices");
    let mut table = Table::new([
        Column::words("BUS ID"),
        Column::words("CLASS"),
        Column::words("NODES"),
        Column::lists("NAME"),
    ]);
    for device in &topology.devices {
        table.row([&device.bus_id, &device.class, &device.nodes, &device.name].map(String::clone));
    }
    text.table(&table);
}

#[cfg(test)]
mod tests {
    use berth_proto::v1::{Llc, NumaNode, Package, topology::Source};

    use super::*;

    const PAGE: Page = Page { width: 100, colour: false, verbose: false };

    /// Two packages of `nodes` nodes with an LLC and 16 CPUs each.
    fn host(nodes: u32) -> GetTopologyResponse {
        let cpus = |first: u32, n: u32| format!("{}-{}", first * 16, (first + n) * 16 - 1);
        let package = |id: u32| Package {
            id,
            cpus: cpus(id * nodes, nodes),
            nodes: format!("{}-{}", id * nodes, (id + 1) * nodes - 1),
        };
        let distance = |from: u32, to: u32| match () {
            () if from == to => 10,
            () if from / nodes == to / nodes => 11,
            () => 32,
        };
        let node = |id: u32| NumaNode {
            id,
            cpus: cpus(id, 1),
            package: Some(id / nodes),
            memory_bytes: 64 << 30,
            distances: (0..2 * nodes).map(|to| distance(id, to)).collect(),
            ..NumaNode::default()
        };
        let llc = |id: u32| Llc {
            id,
            cpus: cpus(id, 1),
            level: 3,
            bytes: 32 << 20,
            nodes: id.to_string(),
            package: id / nodes,
        };
        let topology = Topology {
            source: Source::Xml.into(),
            model: "sample".to_owned(),
            online: cpus(0, 2 * nodes),
            packages: (0..2).map(package).collect(),
            nodes: (0..2 * nodes).map(node).collect(),
            llcs: (0..2 * nodes).map(llc).collect(),
            cpu_vendor: "AuthenticAMD".to_owned(),
            cpu_family: 26,
            threads_per_core: 1,
            ..Topology::default()
        };
        GetTopologyResponse { topology: Some(topology), ..GetTopologyResponse::default() }
    }

    #[test]
    fn a_small_host_shows_its_matrix() {
        insta::assert_snapshot!(topology("host.xml", &host(2), PAGE));
    }

    #[test]
    fn very_many_llcs_share_rows() {
        let mut answer = host(1);
        let halves = |llc: &Llc| {
            let first: u32 = llc.id * 16;
            (0..20)
                .map(move |i| Llc { id: i, cpus: (first + i % 16).to_string(), ..llc.clone() })
                .collect::<Vec<_>>()
        };
        if let Some(topology) = &mut answer.topology {
            topology.llcs = topology.llcs.iter().flat_map(halves).collect();
        }
        let text = topology("host.xml", &answer, PAGE);
        assert!(text.contains("  LLCs 0-19, each     1          32 MiB L3  package 1     16-31\n"), "{text}");
    }

    #[test]
    fn a_large_host_is_summed_up() {
        let text = topology("host.xml", &host(20), PAGE);
        assert!(text.lines().count() < 65, "{text}");
        assert!(text.contains("  node 39      16  64 GiB  32 MiB L3  package 1        624-639\n"), "{text}");
        assert!(text.contains("  Each NUMA node with CPUs is one LLC."), "{text}");
        assert!(text.contains("32                     -                     400"), "{text}");
    }
}
