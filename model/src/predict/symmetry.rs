//! Which CPUs are mirror images of each other at one moment, so that one stands for all in a proof.
//!
//! Below a NUMA node the hardware is a tree: CPUs in cores in LLCs. Two CPUs whose paths up that tree look the same,
//! with the same tasks everywhere along them, lead to the same future. Nodes stand for each other only where their
//! distances to all others are the same; packages never do.

use super::{IdleCpu, queue::Queue, state::State, walk::Visitor};
use crate::{
    cpuset::{Cpu, CpuSet},
    domains::{Domains, Kind},
    topology::{Level, Topology},
};
use smallvec::SmallVec;
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
            asleep: Vec::new(),
            sums: vec![0; self.above.len()],
            keys: vec![0; self.above.len()],
        };
        for (cpu, &above) in (0..=u16::MAX).map(Cpu::from).zip(&self.above_cpu) {
            let leaf = picture.leaf(state, cpu, state.queue(cpu), 0);
            picture.leaves[cpu.index()] = leaf;
            picture.sums[above as usize] = picture.sums[above as usize].wrapping_add(leaf);
        }
        // Narrower spans come later: from the last on, each is complete when the wider one takes it in.
        for span in (0..self.above.len()).rev() {
            let key = mix(&[self.label[span], picture.sums[span]]);
            picture.keys[span] = key;
            if span > 0 {
                let above = self.above[span] as usize;
                picture.sums[above] = picture.sums[above].wrapping_add(key);
            }
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
    /// The CPUs of groups that are marked.
    pub(super) marked: &'a [CpuSet],
    /// By CPU, equal where nothing else tells CPUs apart.
    pub(super) labels: &'a [u64],
}

impl Told<'_> {
    /// Equal for CPUs of which the same is told, and on which the same runs.
    fn of(&self, state: &State<'_>, cpu: Cpu, queue: Queue) -> u64 {
        let is_origin = u64::from(self.origin == Some(cpu));
        let preferred = self.preferred_node.is_some() && state.domains.node_index(cpu) == self.preferred_node;
        let allowed = u64::from(state.allowed().contains(cpu));
        let was_crowded = u64::from(state.was_crowded(cpu));
        let marks = (0..u64::BITS - 4).zip(self.marked).filter(|(_, group)| group.contains(cpu));
        let marked = marks.fold(0, |bits, (index, _)| bits | 16 << index);
        let flags = marked | was_crowded << 3 | allowed << 2 | u64::from(preferred) << 1 | is_origin;
        let idle = self.idle.get(cpu.index()).copied().unwrap_or_default();
        let asleep = state.asleep(cpu);
        if (idle, asleep, queue) == (IdleCpu::default(), 0, Queue::default()) {
            return flags;
        }
        mix(&[
            flags,
            idle.exit_latency.map_or(0, |latency| u64::from(latency) + 1),
            idle.idle_stamp,
            u64::from(queue.tasks) << 32 | u64::from(queue.load),
            queue.util_lack.cast_unsigned(),
            queue.runnable_lack.cast_unsigned(),
            u64::from(asleep) << 32 | u64::from(queue.open_load),
        ])
    }
}

/// A state as sums of what is below each span; equal sums stand for mirror images. Two states that are none have the
/// same sums with a chance of 2^-64.
#[derive(Debug, Clone)]
pub(super) struct Picture<'a> {
    tree: &'a Symmetry,
    told: Told<'a>,
    /// Of each CPU, what it is and what runs there.
    leaves: Vec<u64>,
    /// Of each CPU, the job's tasks that went there and sleep; empty if none does.
    asleep: Vec<u64>,
    /// Of each span, the sum over what is right below it, and what that makes of the span.
    sums: Vec<u64>,
    keys: Vec<u64>,
}

impl Picture<'_> {
    /// Says where the parent is.
    pub(super) fn set_origin(&mut self, state: &State<'_>, origin: Cpu) {
        self.told.origin = Some(origin);
        self.update(state, origin);
    }

    /// Takes in that one of the job's tasks went to the CPU and sleeps.
    pub(super) fn put_asleep(&mut self, state: &State<'_>, cpu: Cpu) {
        self.asleep.resize(self.leaves.len(), 0);
        if let Some(asleep) = self.asleep.get_mut(cpu.index()) {
            *asleep += 1;
        }
        self.update(state, cpu);
    }

    /// The job's tasks that went to the CPU and sleep.
    pub(super) fn asleep(&self, cpu: Cpu) -> u64 {
        self.asleep.get(cpu.index()).copied().unwrap_or(0)
    }

    /// Takes in what runs on the CPU now.
    pub(super) fn update(&mut self, state: &State<'_>, cpu: Cpu) {
        if cpu.index() >= self.leaves.len() {
            return;
        }
        let leaf = self.leaf(state, cpu, state.queue(cpu), self.asleep(cpu));
        let mut span = self.tree.above_cpu[cpu.index()] as usize;
        let mut before = std::mem::replace(&mut self.leaves[cpu.index()], leaf);
        let mut after = leaf;
        loop {
            self.sums[span] = self.sums[span].wrapping_sub(before).wrapping_add(after);
            let key = mix(&[self.tree.label[span], self.sums[span]]);
            (before, after) = (std::mem::replace(&mut self.keys[span], key), key);
            if span == 0 {
                break;
            }
            span = self.tree.above[span] as usize;
        }
    }

    /// What a CPU is with such a queue, and so many of the job's tasks that sleep.
    fn leaf(&self, state: &State<'_>, cpu: Cpu, queue: Queue, asleep: u64) -> u64 {
        let label = self.told.labels.get(cpu.index()).copied().unwrap_or(0);
        mix(&[self.tree.cpu_label[cpu.index()], self.told.of(state, cpu, queue), label, asleep])
    }

    /// What [`Self::key`] becomes with such a queue on the CPU, and so many of the job's tasks that sleep there.
    pub(super) fn key_with(&self, state: &State<'_>, cpu: Cpu, queue: Queue, asleep: u64) -> u64 {
        let Some(&(mut before)) = self.leaves.get(cpu.index()) else { return self.key() };
        let mut after = self.leaf(state, cpu, queue, asleep);
        let mut span = self.tree.above_cpu[cpu.index()] as usize;
        loop {
            let sum = self.sums[span].wrapping_sub(before).wrapping_add(after);
            (before, after) = (self.keys[span], mix(&[self.tree.label[span], sum]));
            if span == 0 {
                return after;
            }
            span = self.tree.above[span] as usize;
        }
    }

    /// Equal for states that are mirror images of each other.
    pub(super) fn key(&self) -> u64 {
        self.keys[0]
    }

    /// Equal for CPUs that are mirror images of each other.
    pub(super) fn class(&self, cpu: Cpu) -> u64 {
        let mut class = self.leaves[cpu.index()];
        let mut span = self.tree.above_cpu[cpu.index()] as usize;
        while span != 0 {
            class = mix(&[class, self.keys[span]]);
            span = self.tree.above[span] as usize;
        }
        class
    }

    /// Keeps the lowest CPU of each class.
    pub(super) fn narrow(&self, cpus: &mut CpuSet) {
        let mut seen: SmallVec<[u64; 16]> = SmallVec::new();
        // Neighbours mostly stand in spans that are alike too: the way up is gone once for them.
        let mut last = None;
        *cpus = cpus
            .iter()
            .filter(|&cpu| {
                let span = self.tree.above_cpu[cpu.index()] as usize;
                let near = (self.leaves[cpu.index()], self.keys[span], self.tree.above[span]);
                if last.replace(near) == Some(near) {
                    return false;
                }
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

/// Collects one CPU of each class.
pub(super) struct Narrowed<'a> {
    pub(super) picture: &'a Picture<'a>,
    pub(super) cpus: CpuSet,
}

impl Visitor for Narrowed<'_> {
    fn reach(&mut self, cpu: Cpu) {
        self.cpus.insert(cpu);
    }

    fn narrow(&self, cpus: &mut CpuSet) {
        self.picture.narrow(cpus);
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
