//! Which CPUs are mirror images of each other at one moment, so that one stands for all in a proof.
//!
//! Below a NUMA node the hardware is a tree: CPUs in cores in LLCs. Two CPUs whose paths up that tree look the same,
//! with the same tasks everywhere along them, lead to the same future. Nodes stand for each other only where their
//! distances to all others are the same; packages never do.

use super::{IdleCpu, state::State};
use crate::{
    cpuset::{Cpu, CpuSet},
    domains::{Domains, Kind},
    topology::{Level, Topology},
};
use std::collections::HashMap;

/// The tree of spans below the whole host.
#[derive(Debug, Clone)]
pub struct Symmetry {
    /// For each CPU the narrowest span that holds it.
    above_cpu: Vec<u32>,
    /// What tells the CPU apart whatever runs: its package and what its domains are like.
    cpu_label: Vec<u64>,
    /// For each span the next wider one; the host, at 0, is its own.
    above: Vec<u32>,
    label: Vec<u64>,
}

/// A span of the tree.
#[derive(PartialEq, Eq, Hash)]
enum Span {
    /// A NUMA node, by unit.
    Node(usize),
    /// A domain inside a node.
    Domain(u32),
}

impl Symmetry {
    /// Finds the spans of a host.
    pub fn new(topology: &Topology, domains: &Domains) -> Self {
        let mut tree = Self { above_cpu: Vec::new(), cpu_label: Vec::new(), above: vec![0], label: vec![0] };
        let mut known: HashMap<Span, u32> = HashMap::new();
        let classes = node_classes(topology, domains.numa_groups_divide());
        tree.above_cpu = vec![0; topology.cpu_limit()];
        tree.cpu_label = vec![0; topology.cpu_limit()];
        let partitions = topology.scheduling_partitions();
        for cpu in topology.online() {
            let node = topology.unit_of(Level::Node, cpu).unwrap_or(0);
            let node_weight = topology.units(Level::Node)[node].cpus.len();
            let below_node = domains
                .of(cpu)
                .filter(|domain| !matches!(domain.kind(), Kind::Numa { .. }))
                .filter(|domain| domain.weight() as usize != node_weight);
            let spans: Vec<Span> = below_node.map(|domain| Span::Domain(domain.span_id())).collect();
            let mut above = 0;
            for span in std::iter::once(Span::Node(node)).chain(spans.into_iter().rev()) {
                let label = if let Span::Node(node) = span { classes[node] } else { 0 };
                above = *known.entry(span).or_insert_with(|| {
                    tree.above.push(above);
                    tree.label.push(mix(&[label]));
                    u32::try_from(tree.above.len() - 1).unwrap_or(u32::MAX)
                });
            }
            let package = topology.unit_of(Level::Package, cpu).unwrap_or(0);
            tree.above_cpu[cpu.index()] = above;
            // A core that fills its node is no LLC that fills it: their domains weigh tasks otherwise.
            let chain = domains.of(cpu).flat_map(|domain| {
                [
                    u64::from(domain.weight()),
                    u64::from(domain.imbalance_pct()),
                    u64::from(domain.imb_numa_nr()),
                ]
            });
            // One of two partitions in a node cannot change places with the other there alone, if both reach further.
            let partition = partitions.iter().position(|partition| partition.contains(cpu));
            let own = [package as u64, partition.map_or(u64::MAX, |index| index as u64)];
            let mut chain: Vec<u64> = own.into_iter().chain(chain).collect();
            if !domains.numa_groups_divide() {
                // Which groups a CPU sees hangs on its number.
                chain.extend(
                    domains.of(cpu).filter(|domain| domain.flags().numa).map(|domain| domain.ring_id()),
                );
            }
            tree.cpu_label[cpu.index()] = mix(&chain);
        }
        tree
    }

    /// Takes every CPU as different from every other: what a proof would cost without mirror images.
    pub fn tell_apart(&mut self) {
        for (label, number) in self.cpu_label.iter_mut().zip(1..) {
            *label = mix(&[number]);
        }
    }

    /// The picture of a state in which CPUs that look alike can be found.
    pub(super) fn picture<'a>(&'a self, state: &State<'_>, told: Told<'a>) -> Picture<'a> {
        let mut picture = Picture {
            tree: self,
            told,
            leaves: vec![0; self.above_cpu.len()],
            sums: vec![0; self.above.len()],
        };
        // Narrower spans come later: from the last on, each is complete when the wider one takes it in.
        for (span, &above) in self.above.iter().enumerate().skip(1).rev() {
            let empty = picture.of_span(span);
            picture.sums[above as usize] = picture.sums[above as usize].wrapping_add(empty);
        }
        for cpu in (0..=u16::MAX).map(Cpu::from).take(self.above_cpu.len()) {
            picture.update(state, cpu);
        }
        picture
    }
}

/// For each NUMA node with CPUs, the first of those that could change places with it.
fn node_classes(topology: &Topology, groups_divide: bool) -> Vec<u64> {
    let nodes = topology.cpu_nodes();
    let distance = |a: usize, b: usize| topology.distance(nodes[a], nodes[b]);
    let others = |a: usize, b: usize| (0..nodes.len()).filter(move |&c| c != a && c != b);
    let swappable = |a: usize, b: usize| {
        groups_divide
            && distance(a, a) == distance(b, b)
            && distance(a, b) == distance(b, a)
            && others(a, b).all(|c| distance(a, c) == distance(b, c) && distance(c, a) == distance(c, b))
    };
    (0..nodes.len())
        .map(|node| (0..node).find(|&first| swappable(first, node)).unwrap_or(node) as u64)
        .collect()
}

/// What is told of a launch that tells CPUs apart.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Told<'a> {
    /// The CPU that the parent is on.
    pub(super) origin: Option<Cpu>,
    /// The index of the NUMA node that the tasks prefer.
    pub(super) preferred_node: Option<u32>,
    /// What is known of idle CPUs.
    pub(super) idle: &'a [IdleCpu],
}

impl Told<'_> {
    /// Equal for CPUs of which the same is told.
    fn of(&self, state: &State<'_>, cpu: Cpu) -> [u64; 3] {
        let is_origin = u64::from(self.origin == Some(cpu));
        let preferred = self.preferred_node.is_some() && state.domains.node_index(cpu) == self.preferred_node;
        let allowed = u64::from(state.allowed().contains(cpu));
        let idle = self.idle.get(cpu.index()).copied().unwrap_or_default();
        let latency = idle.exit_latency.map_or(0, |latency| u64::from(latency) + 1);
        [allowed << 2 | u64::from(preferred) << 1 | is_origin, latency, idle.idle_stamp]
    }
}

/// A state as sums of what is below each span; equal sums stand for mirror images. Two states that are none have the
/// same sums with a chance of 2^-64.
#[derive(Debug, Clone)]
pub(super) struct Picture<'a> {
    tree: &'a Symmetry,
    told: Told<'a>,
    leaves: Vec<u64>,
    sums: Vec<u64>,
}

impl Picture<'_> {
    /// Takes in what runs on the CPU now.
    pub(super) fn update(&mut self, state: &State<'_>, cpu: Cpu) {
        let queue = state.queue(cpu);
        let index = cpu.index();
        let [flags, latency, stamp] = self.told.of(state, cpu);
        let leaf = mix(&[
            self.tree.cpu_label[index],
            flags,
            latency,
            stamp,
            u64::from(queue.tasks) << 32 | u64::from(queue.load),
            queue.util_lack.cast_unsigned(),
            queue.runnable_lack.cast_unsigned(),
            u64::from(state.asleep(cpu)),
        ]);
        let mut span = self.tree.above_cpu[index] as usize;
        let (mut before, mut after) = (self.leaves[index], leaf);
        self.leaves[index] = leaf;
        loop {
            let old = self.of_span(span);
            self.sums[span] = self.sums[span].wrapping_sub(before).wrapping_add(after);
            if span == 0 {
                break;
            }
            (before, after) = (old, self.of_span(span));
            span = self.tree.above[span] as usize;
        }
    }

    fn of_span(&self, span: usize) -> u64 {
        mix(&[self.tree.label[span], self.sums[span]])
    }

    /// Equal for states that are mirror images of each other.
    pub(super) fn key(&self) -> u64 {
        self.of_span(0)
    }

    /// Equal for CPUs that are mirror images of each other.
    pub(super) fn class(&self, cpu: Cpu) -> u64 {
        let mut class = self.leaves[cpu.index()];
        let mut span = self.tree.above_cpu[cpu.index()] as usize;
        while span != 0 {
            class = mix(&[class, self.of_span(span)]);
            span = self.tree.above[span] as usize;
        }
        class
    }

    /// Keeps the lowest CPU of each class.
    pub(super) fn narrow(&self, cpus: &mut CpuSet) {
        let mut seen: Vec<u64> = Vec::new();
        *cpus = cpus
            .iter()
            .filter(|&cpu| {
                let class = self.class(cpu);
                let new = !seen.contains(&class);
                if new {
                    seen.push(class);
                }
                new
            })
            .collect();
    }
}

/// A hash of a few words (splitmix64's finaliser over a running value).
fn mix(words: &[u64]) -> u64 {
    words.iter().fold(0x9e37_79b9_7f4a_7c15, |hash: u64, &word| {
        let mut z = (hash ^ word).wrapping_add(0x9e37_79b9_7f4a_7c15);
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    })
}
