//! Who balances: each group of each domain, by one of its CPUs.

use super::floor::Floor;
use crate::{
    cpuset::{Cpu, CpuSet},
    domains::{Domains, View},
};
use std::collections::HashMap;

/// One group as it balances at one level.
#[derive(Debug)]
pub(super) struct Unit<'a> {
    pub(super) view: View<'a>,
    /// The CPUs that may balance for it: those to which this group is their own.
    pub(super) members: CpuSet,
    /// The child level prefers that groups have equally many tasks.
    pub(super) prefers_siblings: bool,
    /// So many passes may fail before a running task is moved.
    pub(super) patience: u32,
    /// There is a level above, whose group this domain is.
    pub(super) has_parent: bool,
    pub(super) interval_ms: u64,
    /// CPUs of a core in this domain's lowest level, to tell idle cores.
    pub(super) core_of: Vec<(Cpu, u32)>,
}

impl Unit<'_> {
    /// The CPU that balances now, and whether it is idle: the first of an idle core, else the first idle one, else the
    /// first.
    #[doc(alias = "should_we_balance")]
    pub(super) fn designated(&self, floor: &Floor<'_>) -> Option<(Cpu, bool)> {
        let mut idle = None;
        for &(cpu, core) in &self.core_of {
            if floor.tasks(cpu) == 0 {
                if floor.is_idle_core(core, cpu) {
                    return Some((cpu, true));
                }
                idle = idle.or(Some(cpu));
            }
        }
        idle.map(|cpu| (cpu, true)).or_else(|| self.members.first().map(|cpu| (cpu, false)))
    }
}

/// Every group that balances.
#[derive(Debug)]
pub(super) struct Units<'a> {
    all: Vec<Unit<'a>>,
    /// For each CPU the units whose domain spans it.
    around: Vec<Vec<usize>>,
    /// For each group the units that read its mark.
    readers: HashMap<u32, Vec<usize>>,
}

impl<'a> Units<'a> {
    pub(super) fn new(domains: &'a Domains) -> Self {
        let mut all: Vec<Unit<'a>> = Vec::new();
        let mut known: HashMap<(u32, u32), usize> = HashMap::new();
        let cpus = (0..=u16::MAX).map(Cpu::from).take(domains.cpu_limit());
        for cpu in cpus {
            let chain = domains.chain(cpu);
            let core = chain
                .first()
                .map(|&id| domains.view(id))
                .filter(|view| view.weight > 1 && view.is_smt)
                .map_or(u32::MAX, |view| view.span);
            for (level, &id) in chain.iter().enumerate() {
                let view = domains.view(id);
                let Some(&own) = view.ring.first().filter(|_| view.ring.len() > 1) else { continue };
                let index = *known.entry((view.span, own)).or_insert_with(|| {
                    let child = level.checked_sub(1).map(|below| domains.view(chain[below]));
                    all.push(Unit {
                        view,
                        members: CpuSet::new(),
                        prefers_siblings: child.is_some_and(|child| child.prefer_sibling),
                        patience: nice_tries(view) + 2,
                        has_parent: level + 1 < chain.len(),
                        interval_ms: u64::from(view.weight),
                        core_of: Vec::new(),
                    });
                    all.len() - 1
                });
                all[index].members.insert(cpu);
                all[index].core_of.push((cpu, core));
            }
        }
        let mut around = vec![Vec::new(); domains.cpu_limit()];
        let mut readers: HashMap<u32, Vec<usize>> = HashMap::new();
        for (index, unit) in all.iter().enumerate() {
            for cpu in &domains.groups()[unit.view.span as usize] {
                around[cpu.index()].push(index);
            }
            for &group in unit.view.ring {
                readers.entry(group).or_default().push(index);
            }
        }
        Self { all, around, readers }
    }

    pub(super) fn len(&self) -> usize {
        self.all.len()
    }

    pub(super) fn of(&self, unit: usize) -> &Unit<'a> {
        &self.all[unit]
    }

    /// Whether the CPU that balances runs something, so that its passes come more rarely.
    pub(super) fn is_busy(&self, unit: usize, floor: &Floor<'_>) -> bool {
        self.all[unit].designated(floor).is_some_and(|(_, idle)| !idle)
    }

    /// The units whose domain spans the CPU.
    pub(super) fn around(&self, cpu: Cpu) -> &[usize] {
        self.around.get(cpu.index()).map_or(&[], Vec::as_slice)
    }

    /// The units to which this is one of the groups.
    pub(super) fn reading(&self, group: u32) -> &[usize] {
        self.readers.get(&group).map_or(&[], Vec::as_slice)
    }
}

/// How many passes a waiting task may refuse because its cache is warm.
#[doc(alias = "cache_nice_tries")]
fn nice_tries(view: View<'_>) -> u32 {
    if view.is_smt {
        0
    } else if view.numa {
        2
    } else {
        1
    }
}
