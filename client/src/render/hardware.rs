//! Packages, NUMA nodes and LLCs of a host: a row each, or one for many that are alike.

use berth_proto::v1::{Llc, NumaNode, Package, Topology};

use crate::text::{Column, Table, Text, cpus, numbers};

/// LLCs that have a row of their own before equal ones share one.
const LLCS: usize = 32;

/// The table. LLCs that are the NUMA nodes over again have no rows, but their sizes stand beside the nodes'.
pub(super) fn table(text: &mut Text, topology: &Topology) {
    let whole = text.page().verbose;
    let mut table = Table::new([
        Column::words("PLACE"),
        Column::numbers("CPUS"),
        Column::numbers("MEMORY"),
        Column::numbers("FREE"),
        Column::numbers("CACHE"),
        Column::words("IN"),
        Column::lists("WHICH CPUS"),
    ]);
    for package in &topology.packages {
        table.row(package_row(package, whole));
    }
    let same = each_node_is_an_llc(topology);
    for node in &topology.nodes {
        let llc = topology.llcs.iter().find(|llc| same && llc.cpus == node.cpus);
        table.row(node_row(node, llc, whole));
    }
    let rows = if same { Vec::new() } else { alike(&topology.llcs, whole) };
    for llcs in rows {
        table.row(llc_row(&llcs, whole));
    }
    text.table(&table);
    if same {
        text.sentence("Each NUMA node with CPUs is one LLC. LLCs count from 0 by their lowest CPU.");
    }
}

fn each_node_is_an_llc(topology: &Topology) -> bool {
    let with_cpus = topology.nodes.iter().filter(|node| !node.cpus.is_empty());
    let mut nodes: Vec<&str> = with_cpus.map(|node| node.cpus.as_str()).collect();
    let mut llcs: Vec<&str> = topology.llcs.iter().map(|llc| llc.cpus.as_str()).collect();
    nodes.sort_unstable();
    llcs.sort_unstable();
    llcs.len() > 1 && nodes == llcs
}

fn package_row(package: &Package, whole: bool) -> [String; 7] {
    let nodes = match cpus::len(&package.nodes) {
        0 => String::new(),
        1 => format!("has node {}", package.nodes),
        _ => format!("has nodes {}", package.nodes),
    };
    let blank = String::new;
    let n = cpus::len(&package.cpus).to_string();
    [
        format!("package {}", package.id),
        n,
        blank(),
        blank(),
        blank(),
        nodes,
        cpus::short(&package.cpus, whole),
    ]
}

fn node_row(node: &NumaNode, llc: Option<&Llc>, whole: bool) -> [String; 7] {
    let memory = if node.memory_bytes == 0 { String::new() } else { numbers::bytes(node.memory_bytes) };
    [
        format!("node {}", node.id),
        cpus::len(&node.cpus).to_string(),
        memory,
        node.available_bytes.map(numbers::bytes).unwrap_or_default(),
        llc.map(cache).unwrap_or_default(),
        node.package.map(|package| format!("package {package}")).unwrap_or_default(),
        cpus::short(&node.cpus, whole),
    ]
}

fn llc_row(llcs: &[&Llc], whole: bool) -> [String; 7] {
    let ids = cpus::of_numbers(llcs.iter().map(|llc| llc.id));
    let list = cpus::union(llcs.iter().map(|llc| llc.cpus.as_str()));
    let (name, size, n, inside) = match llcs {
        [] => Default::default(),
        [llc] if llc.nodes.is_empty() => {
            (format!("LLC {ids}"), cache(llc), cpus::len(&llc.cpus), in_package(llc))
        }
        [llc] => (format!("LLC {ids}"), cache(llc), cpus::len(&llc.cpus), format!("node {}", llc.nodes)),
        [llc, ..] => {
            let name = format!("LLCs {}, each", cpus::short(&ids, whole));
            (name, cache(llc), cpus::len(&llc.cpus), in_package(llc))
        }
    };
    [name, n.to_string(), String::new(), String::new(), size, inside, cpus::short(&list, whole)]
}

fn in_package(llc: &Llc) -> String {
    format!("package {}", llc.package)
}

/// `32 MiB L3`, as far as it is known.
fn cache(llc: &Llc) -> String {
    let size = if llc.bytes == 0 { String::new() } else { numbers::bytes(llc.bytes) };
    let level = if llc.level == 0 { String::new() } else { format!(" L{}", llc.level) };
    format!("{size}{level}").trim().to_owned()
}

/// Each LLC by itself, or where there are many, those of one package that are equal as one.
fn alike(llcs: &[Llc], whole: bool) -> Vec<Vec<&Llc>> {
    if whole || llcs.len() <= LLCS {
        return llcs.iter().map(|llc| vec![llc]).collect();
    }
    let key = |llc: &Llc| (llc.package, llc.level, llc.bytes, cpus::len(&llc.cpus));
    let mut rows: Vec<Vec<&Llc>> = Vec::new();
    for llc in llcs {
        match rows.iter_mut().find(|row| row.first().map(|first| key(first)) == Some(key(llc))) {
            Some(row) => row.push(llc),
            None => rows.push(vec![llc]),
        }
    }
    rows
}
