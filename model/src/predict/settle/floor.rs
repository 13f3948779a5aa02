//! What runs where while load balancing works: tasks per CPU and sums per group.

use super::super::{Burst, Host, Parent};
use crate::{
    cpuset::{Cpu, CpuSet},
    domains::Domains,
};

/// The sums over one group, of all its CPUs.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Sums {
    pub(super) tasks: u32,
    pub(super) idle: u32,
}

/// What runs where.
#[derive(Debug)]
pub(super) struct Floor<'a> {
    pub(super) domains: &'a Domains,
    pub(super) allowed: &'a CpuSet,
    /// The job's tasks on each CPU.
    job: Vec<u32>,
    /// What else runs there, and stays.
    others: Vec<u32>,
    sums: Vec<Sums>,
    /// Groups in which affinity has stopped balancing.
    marked: Vec<bool>,
}

impl<'a> Floor<'a> {
    pub(super) fn new(host: Host<'a>, burst: &Burst<'a>, places: &[Cpu]) -> Self {
        let limit = host.domains.cpu_limit();
        let cpus = || (0..=u16::MAX).map(Cpu::from).take(limit);
        let beside = |cpu: Cpu| u32::from(burst.parent == Parent::Runs && burst.origin == cpu);
        let mut job = vec![0; limit];
        for cpu in places {
            if let Some(tasks) = job.get_mut(cpu.index()) {
                *tasks += 1;
            }
        }
        let others: Vec<u32> = cpus().map(|cpu| host.load.runnable(cpu) + beside(cpu)).collect();
        let sum = |group: &CpuSet| {
            group.iter().fold(Sums::default(), |sums, cpu| {
                let tasks = job[cpu.index()] + others[cpu.index()];
                Sums { tasks: sums.tasks + tasks, idle: sums.idle + u32::from(tasks == 0) }
            })
        };
        let groups = host.domains.groups();
        Self {
            sums: groups.iter().map(sum).collect(),
            marked: vec![false; groups.len()],
            domains: host.domains,
            allowed: burst.allowed,
            job,
            others,
        }
    }

    /// Everything that runs on the CPU.
    pub(super) fn tasks(&self, cpu: Cpu) -> u32 {
        self.job[cpu.index()] + self.others[cpu.index()]
    }

    /// Tasks of the job on the CPU.
    pub(super) fn movable(&self, cpu: Cpu) -> u32 {
        self.job[cpu.index()]
    }

    /// Whether nothing runs on the CPU's core.
    pub(super) fn is_idle_core(&self, core: u32, cpu: Cpu) -> bool {
        match self.domains.groups().get(core as usize) {
            Some(_) => self.sums[core as usize].tasks == 0,
            None => self.tasks(cpu) == 0,
        }
    }

    pub(super) fn sums(&self, group: u32) -> Sums {
        self.sums[group as usize]
    }

    pub(super) fn is_marked(&self, group: u32) -> bool {
        self.marked[group as usize]
    }

    /// Sets or clears a mark; says whether that changed it.
    pub(super) fn mark(&mut self, group: u32, on: bool) -> bool {
        std::mem::replace(&mut self.marked[group as usize], on) != on
    }

    /// Moves one task of the job.
    pub(super) fn shift(&mut self, from: Cpu, to: Cpu) {
        self.job[from.index()] -= 1;
        let emptied = u32::from(self.tasks(from) == 0);
        let filled = u32::from(self.tasks(to) == 0);
        self.job[to.index()] += 1;
        for &group in self.domains.groups_of(from) {
            let sums = &mut self.sums[group as usize];
            sums.tasks -= 1;
            sums.idle += emptied;
        }
        for &group in self.domains.groups_of(to) {
            let sums = &mut self.sums[group as usize];
            sums.tasks += 1;
            sums.idle -= filled;
        }
    }

    /// The job's tasks on each CPU.
    pub(super) fn counts(&self) -> &[u32] {
        &self.job
    }

    /// Tasks on the fullest CPU that has one of the job's.
    pub(super) fn fullest(&self) -> u32 {
        let with_job = self.job.iter().zip(&self.others).filter(|(job, _)| **job > 0);
        with_job.map(|(job, others)| job + others).max().unwrap_or(0)
    }

    /// The CPU of each task, by CPU.
    pub(super) fn places(&self) -> Vec<Cpu> {
        let cpus = (0..=u16::MAX).map(Cpu::from).zip(&self.job);
        cpus.flat_map(|(cpu, &tasks)| std::iter::repeat_n(cpu, tasks as usize)).collect()
    }
}
