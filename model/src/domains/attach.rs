//! From raw chains to the domains that a kernel attaches: groups in ring order, `imb_numa_nr`, and without the
//! levels that have no effect.

use super::{Domains, Flags, Kind, Ring, Shared, explain::Vanishes, imb_numa::imb_numa_nr, raw::RawChains};
use crate::{
    cpuset::{Cpu, CpuSet},
    profile::Profile,
    topology::{Level, Topology},
};
use std::{collections::HashMap, hash::Hash, ops::Range, rc::Rc};

impl Domains {
    /// Builds the domains of every CPU that is online and not isolated.
    #[doc(alias = "build_sched_domains")]
    #[doc(alias = "cpu_attach_domain")]
    pub fn build(topology: &Topology, profile: &Profile) -> Self {
        let raw = RawChains::build(topology, profile);
        let online_nodes = topology.nodes().len();
        let mut sets = Sets::default();
        let mut shared: Interner<Shared> = Interner::default();
        let mut rings = Rings::new();
        let mut links = Vec::new();
        let mut chains = vec![0..0; topology.cpu_limit()];

        for cpu in raw.partitions.iter().flatten() {
            let chain = raw.of(cpu);
            let imb_numa = imb_numa_nr(chain, profile.imb_numa, online_nodes);
            let mut attached: Vec<Shared> = Vec::with_capacity(chain.len());
            for (index, level) in chain.iter().enumerate() {
                let weight = u32::try_from(level.span.len()).unwrap_or(u32::MAX);
                if Vanishes::by_span(weight, attached.last().map(|child| child.weight)).is_some() {
                    continue;
                }
                let ring = rings.of(&raw, &mut sets, cpu, index);
                if Vanishes::by_groups(ring.len, level.flags).is_some() {
                    continue;
                }
                attached.push(Shared {
                    kind: level.kind,
                    flags: level.flags,
                    imbalance_pct: imbalance_pct(level.kind, level.flags, profile),
                    weight,
                    imb_numa_nr: imb_numa[index],
                    span: sets.intern(&level.span),
                    ring,
                });
            }
            chains[cpu.index()] =
                append(&mut links, attached.into_iter().map(|domain| shared.intern(domain)));
        }

        let groups: Vec<CpuSet> = sets.items.iter().map(|set| CpuSet::clone(set)).collect();
        let (member_of, memberships) = memberships(&groups, &rings.pool, topology.cpu_limit());
        let node = |index: usize| {
            let cpu = u32::try_from(index).ok().and_then(Cpu::try_new)?;
            topology.unit_of(Level::Node, cpu).and_then(|unit| u32::try_from(unit).ok())
        };
        let mut prefers_siblings = vec![false; groups.len()];
        for domain in &shared.items {
            prefers_siblings[domain.span as usize] |= domain.flags.prefer_sibling;
        }
        Self {
            weights: sets.weights,
            prefers_siblings,
            groups,
            shared: shared.items,
            rings: rings.pool,
            numa_groups_divide: rings.is_partition,
            links,
            chains,
            member_of,
            memberships,
            node_of: (0..topology.cpu_limit()).map(node).collect(),
            nodes: topology.units(Level::Node).iter().map(|unit| unit.cpus.clone()).collect(),
        }
    }
}

pub(super) fn imbalance_pct(kind: Kind, flags: Flags, profile: &Profile) -> u32 {
    match kind {
        Kind::Smt => 110,
        _ if flags.share_llc => 117,
        _ => profile.imbalance_pct,
    }
}

/// For each CPU the groups that some domain tries and that hold it.
fn memberships(groups: &[CpuSet], rings: &[u32], cpu_limit: usize) -> (Vec<Range<u32>>, Vec<u32>) {
    let mut tried = vec![false; groups.len()];
    for &id in rings {
        tried[id as usize] = true;
    }
    let mut of_cpu = vec![Vec::new(); cpu_limit];
    for (id, group) in (0u32..).zip(groups).filter(|(id, _)| tried[*id as usize]) {
        for cpu in group {
            of_cpu[cpu.index()].push(id);
        }
    }
    let mut flat = Vec::new();
    let ranges = of_cpu.into_iter().map(|ids| append(&mut flat, ids.into_iter())).collect();
    (ranges, flat)
}

fn append(pool: &mut Vec<u32>, items: impl Iterator<Item = u32>) -> Range<u32> {
    let end = |pool: &Vec<u32>| u32::try_from(pool.len()).unwrap_or(u32::MAX);
    let start = end(pool);
    pool.extend(items);
    start..end(pool)
}

/// Gives equal items the same index.
struct Interner<T> {
    items: Vec<T>,
    known: HashMap<T, u32>,
}

impl<T> Default for Interner<T> {
    fn default() -> Self {
        Self { items: Vec::new(), known: HashMap::new() }
    }
}

impl<T: Eq + Hash + Clone> Interner<T> {
    fn intern(&mut self, item: T) -> u32 {
        if let Some(&id) = self.known.get(&item) {
            return id;
        }
        let id = u32::try_from(self.items.len()).unwrap_or(u32::MAX);
        self.items.push(item.clone());
        self.known.insert(item, id);
        id
    }
}

/// Gives spans indices; a span is known by its address, of which the raw chains have one for each.
#[derive(Default)]
pub(super) struct Sets {
    items: Vec<Rc<CpuSet>>,
    weights: Vec<u32>,
    known: HashMap<*const CpuSet, u32>,
}

impl Sets {
    fn intern(&mut self, set: &Rc<CpuSet>) -> u32 {
        *self.known.entry(Rc::as_ptr(set)).or_insert_with(|| {
            let id = u32::try_from(self.items.len()).unwrap_or(u32::MAX);
            self.items.push(Rc::clone(set));
            self.weights.push(u32::try_from(set.len()).unwrap_or(u32::MAX));
            id
        })
    }

    pub(super) fn get(&self, id: u32) -> &CpuSet {
        &self.items[id as usize]
    }
}

/// Group rings as each CPU sees them, in one pool.
pub(super) struct Rings {
    /// Indices of groups. A ring that many CPUs see, each from its own group on, stands there twice in a row.
    pool: Vec<u32>,
    /// Rings of levels below NUMA, by level and lowest CPU of the span, with the place of each group.
    common: HashMap<(usize, Cpu), (Ring, HashMap<u32, u32>)>,
    /// Rings of NUMA levels, by level, the CPU's own group, the span, and the CPU at which the walk goes on.
    private: HashMap<(usize, *const CpuSet, *const CpuSet, Option<Cpu>), Ring>,
    /// The groups of each NUMA level divide its span, none left out and none twice.
    is_partition: bool,
}

impl Rings {
    pub(super) fn new() -> Self {
        Self { pool: Vec::new(), common: HashMap::new(), private: HashMap::new(), is_partition: true }
    }

    /// The indices of a ring's groups.
    pub(super) fn groups(&self, Ring { start, len, .. }: Ring) -> impl Iterator<Item = u32> {
        self.pool[start as usize..][..len as usize].iter().copied()
    }

    /// The groups of the CPU's domain at a raw level, the group that holds the CPU first.
    pub(super) fn of(&mut self, raw: &RawChains, sets: &mut Sets, cpu: Cpu, index: usize) -> Ring {
        let level = &raw.of(cpu)[index];
        let own = raw.child_span(cpu, index);
        if level.flags.numa {
            let next = level.span.difference(&own).next_wrapping(cpu);
            let key = (index, Rc::as_ptr(&own), Rc::as_ptr(&level.span), next);
            let Self { pool, is_partition, .. } = self;
            return *self.private.entry(key).or_insert_with(|| {
                let groups = overlap_ring(raw, cpu, index);
                let members: usize = groups.iter().map(|group| group.len()).sum();
                let covered = groups.iter().fold(CpuSet::new(), |all, group| all.union(group)).len();
                *is_partition &= members == level.span.len() && covered == members;
                let overlaps = members != covered;
                Ring { overlaps, ..add_ring(pool, groups.iter().map(|group| sets.intern(group))) }
            });
        }
        let (Some(lowest), Some(highest)) = (level.span.first(), level.span.last()) else {
            return Ring::default();
        };
        let pool = &mut self.pool;
        let (ring, places) = self.common.entry((index, lowest)).or_insert_with(|| {
            // Each CPU of the span walks the groups from itself on and links them; the highest is the last to do so.
            let groups = walk(&level.span, highest, |from| Some(raw.child_span(from, index)));
            let ids: Vec<u32> = groups.iter().map(|group| sets.intern(group)).collect();
            let ring = add_ring(pool, ids.iter().copied());
            pool.extend_from_slice(&ids);
            (ring, ids.into_iter().zip(0..).collect())
        });
        let place = places.get(&sets.intern(&own)).copied().unwrap_or(0);
        Ring { start: ring.start + place, ..*ring }
    }
}

fn add_ring(pool: &mut Vec<u32>, ids: impl Iterator<Item = u32>) -> Ring {
    let Range { start, end } = append(pool, ids);
    Ring { start, len: end - start, overlaps: false }
}

/// The private ring of a NUMA level, whose groups may overlap.
#[doc(alias = "build_overlap_sched_groups")]
fn overlap_ring(raw: &RawChains, cpu: Cpu, index: usize) -> Vec<Rc<CpuSet>> {
    let span = &raw.of(cpu)[index].span;
    walk(span, cpu, |from| {
        // A CPU whose chain ended lower has no domain here.
        raw.of(from).get(index)?;
        // In a network of diameter 3 and more a neighbour's child can reach beyond this span: go down.
        let fits =
            (1..=index).rev().map(|level| raw.child_span(from, level)).find(|child| child.is_subset(span));
        fits.or_else(|| Some(raw.child_span(from, 0)))
    })
}

/// Walks the CPUs of a span from `start` on, wrapping; each that no group covers yet contributes one.
fn walk(span: &CpuSet, start: Cpu, group_of: impl Fn(Cpu) -> Option<Rc<CpuSet>>) -> Vec<Rc<CpuSet>> {
    let mut ring = Vec::new();
    let mut rest = span.clone();
    let mut at = start;
    while let Some(cpu) = rest.next_wrapping(at) {
        rest.remove(cpu);
        if let Some(group) = group_of(cpu) {
            rest.subtract(&group);
            ring.push(group);
        }
        at = cpu;
    }
    ring
}
