//! What already runs on a host, and what is held there: tasks and measured utilisation per CPU.

use crate::cpuset::{Cpu, CpuSet};
use std::collections::BTreeMap;

/// The most runnable tasks that are taken on one CPU; more count as so many.
pub const MAX_RUNNABLE: u32 = 1 << 15;

/// What runs on one CPU.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct CpuLoad {
    /// Runnable tasks, the running one included.
    pub runnable: u32,
    /// Measured utilisation, 0 to 1, where known.
    pub utilisation: Option<f32>,
}

/// A run queue's averages in the kernel's units, where they are known.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Averages {
    /// 1024 for each runnable task of nice 0.
    #[doc(alias = "load_avg")]
    pub load: Option<u32>,
    /// 0 to 1024.
    #[doc(alias = "util_avg")]
    pub util: Option<u32>,
    /// 1024 for each task that is always runnable.
    #[doc(alias = "runnable_avg")]
    pub runnable: Option<u32>,
}

/// The load of a host; CPUs that nothing is known of are idle.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Load {
    cpus: Vec<CpuLoad>,
    averages: BTreeMap<Cpu, Averages>,
    /// Held tasks beyond the runnable ones.
    asleep: Vec<u32>,
    /// CPUs on which pinned tasks waited of late.
    crowded: CpuSet,
}

impl Load {
    /// A host on which nothing runs.
    pub fn idle() -> Self {
        Self::default()
    }

    /// What runs on the CPU.
    pub fn of(&self, cpu: Cpu) -> CpuLoad {
        self.cpus.get(cpu.index()).copied().unwrap_or_default()
    }

    /// Runnable tasks on the CPU.
    #[doc(alias = "nr_running")]
    pub fn runnable(&self, cpu: Cpu) -> u32 {
        self.of(cpu).runnable
    }

    /// The CPUs on which something runs, ascending, with their runnable tasks.
    pub fn busy(&self) -> impl Iterator<Item = (Cpu, u32)> {
        let all = (0..=u16::MAX).map(Cpu::from).zip(&self.cpus);
        all.map(|(cpu, load)| (cpu, load.runnable)).filter(|&(_, runnable)| runnable > 0)
    }

    /// Tasks for which the CPU is held and that were not measured to run there: the kernel does not see them.
    pub fn asleep(&self, cpu: Cpu) -> u32 {
        self.asleep.get(cpu.index()).copied().unwrap_or(0)
    }

    /// Tasks that count on the CPU: the larger of what runs there and what is held.
    pub fn taken(&self, cpu: Cpu) -> u32 {
        self.runnable(cpu) + self.asleep(cpu)
    }

    /// The CPUs on which any tasks count.
    pub fn occupied(&self) -> CpuSet {
        let limit = self.cpus.len().max(self.asleep.len());
        (0..=u16::MAX).map(Cpu::from).take(limit).filter(|&cpu| self.taken(cpu) > 0).collect()
    }

    /// Says for how many tasks in all the CPU is held. Those that run are among its runnable ones, which have to be said
    /// before.
    pub fn hold(&mut self, cpu: Cpu, tasks: u32) {
        if cpu.index() >= self.asleep.len() {
            self.asleep.resize(cpu.index() + 1, 0);
        }
        self.asleep[cpu.index()] = tasks.min(MAX_RUNNABLE).saturating_sub(self.runnable(cpu));
    }

    /// The same once all holders run, if any sleeps.
    pub fn awake(&self) -> Option<Self> {
        let sleepers = self.sleepers();
        (!sleepers.is_empty()).then(|| self.awake_on(&sleepers))
    }

    /// The CPUs on which holders sleep.
    pub fn sleepers(&self) -> CpuSet {
        let all = (0..=u16::MAX).map(Cpu::from).zip(&self.asleep);
        all.filter(|&(_, &tasks)| tasks > 0).map(|(cpu, _)| cpu).collect()
    }

    /// The same once all holders on these CPUs run.
    pub fn awake_on(&self, cpus: &CpuSet) -> Self {
        let mut awake = self.clone();
        for cpu in cpus {
            let tasks = self.asleep(cpu);
            if tasks > 0 {
                awake.add(cpu, tasks);
                awake.asleep[cpu.index()] = 0;
                // They were those of its other tasks.
                awake.averages.remove(&cpu);
            }
        }
        awake
    }

    /// CPUs on which pinned tasks waited of late while others were idle: load balancing may have left marks there.
    pub fn crowded(&self) -> &CpuSet {
        &self.crowded
    }

    /// Says on which CPUs pinned tasks waited of late.
    pub fn set_crowded(&mut self, cpus: CpuSet) {
        self.crowded = cpus;
    }

    /// Says what runs on the CPU.
    pub fn set(&mut self, cpu: Cpu, load: CpuLoad) {
        if cpu.index() >= self.cpus.len() {
            self.cpus.resize(cpu.index() + 1, CpuLoad::default());
        }
        self.cpus[cpu.index()] = CpuLoad { runnable: load.runnable.min(MAX_RUNNABLE), ..load };
    }

    /// The averages of the CPUs of which some are known; those of others follow from their tasks.
    pub fn averages(&self) -> impl Iterator<Item = (Cpu, Averages)> {
        self.averages.iter().map(|(&cpu, &averages)| (cpu, averages))
    }

    /// What is known of the CPU's averages.
    pub fn averages_of(&self, cpu: Cpu) -> Averages {
        self.averages.get(&cpu).copied().unwrap_or_default()
    }

    /// Says what the CPU's averages are.
    pub fn set_averages(&mut self, cpu: Cpu, averages: Averages) {
        let most = |average: Option<u32>, most: u32| average.map(|average| average.min(most));
        let queue = MAX_RUNNABLE * 1024;
        let Averages { load, util, runnable } = averages;
        let averages =
            Averages { load: most(load, queue), util: most(util, 1024), runnable: most(runnable, queue) };
        self.averages.insert(cpu, averages);
    }

    /// Adds runnable tasks to the CPU.
    pub fn add(&mut self, cpu: Cpu, tasks: u32) {
        let known = self.of(cpu);
        self.set(cpu, CpuLoad { runnable: known.runnable.saturating_add(tasks), ..known });
    }
}

impl FromIterator<(Cpu, CpuLoad)> for Load {
    fn from_iter<I: IntoIterator<Item = (Cpu, CpuLoad)>>(loads: I) -> Self {
        let mut all = Self::idle();
        for (cpu, load) in loads {
            all.set(cpu, load);
        }
        all
    }
}
