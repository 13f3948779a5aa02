//! NUMA distances: the matrix of a small host, a summary of a large one.

use std::collections::BTreeMap;

use berth_proto::v1::Topology;

use crate::text::{Column, Table, Text};

/// Nodes up to which the whole matrix is shown unasked.
const MATRIX: usize = 8;

pub(super) fn block(text: &mut Text, topology: &Topology) {
    let known = topology.nodes.len() > 1 && topology.nodes.iter().any(|node| !node.distances.is_empty());
    if !known {
        return;
    }
    let assumed = if topology.distances_assumed { " (assumed: the description has none)" } else { "" };
    text.heading(&format!("NUMA distances{assumed}"));
    // The full view has cores.
    let full = text.page().verbose || !topology.cores.is_empty();
    if topology.nodes.len() <= MATRIX || full { matrix(text, topology) } else { summary(text, topology) }
}

fn matrix(text: &mut Text, topology: &Topology) {
    let ids = || topology.nodes.iter().map(|node| node.id.to_string());
    let mut table =
        Table::new([Column::numbers("NODE")].into_iter().chain(ids().map(|id| Column::numbers(&id))));
    for (id, node) in ids().zip(&topology.nodes) {
        table.row([id].into_iter().chain(node.distances.iter().map(u32::to_string)));
    }
    text.table(&table);
}

/// How many pairs of nodes are how far apart, inside packages and between them.
fn summary(text: &mut Text, topology: &Topology) {
    let mut pairs: BTreeMap<u32, [u32; 2]> = BTreeMap::new();
    for (i, from) in topology.nodes.iter().enumerate() {
        for (to, &distance) in topology.nodes.iter().zip(&from.distances).skip(i + 1) {
            let inside = from.package.is_some() && from.package == to.package;
            pairs.entry(distance).or_default()[usize::from(!inside)] += 1;
        }
    }
    let mut table = Table::new([
        Column::numbers("DISTANCE"),
        Column::numbers("PAIRS IN ONE PACKAGE"),
        Column::numbers("PAIRS BETWEEN PACKAGES"),
    ]);
    let shown = |n: u32| if n == 0 { "-".to_owned() } else { n.to_string() };
    for (distance, [inside, between]) in pairs {
        table.row([distance.to_string(), shown(inside), shown(between)]);
    }
    text.table(&table);
    text.sentence("A node is 10 from itself. The matrix: --full.");
}
