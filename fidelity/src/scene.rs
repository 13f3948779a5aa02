//! A record as the model wants it: the machine under its kernel, and each case as a question.

use crate::{
    record::{Case, Record},
    track::Track,
};
use anyhow::{Context, Result};
use berth_model::{
    cpuset::{Cpu, CpuSet},
    domains::Domains,
    load::Load,
    predict::{Burst, Children, Host, Parent, Symmetry, Weight},
    profile::Profile,
    topology::Topology,
};

/// A tick of the recorded kernels, in microseconds: they have `CONFIG_HZ=250`.
const TICK: u64 = 4_000;

/// One machine under its kernel.
#[derive(Debug)]
pub struct Scene {
    /// Its hardware.
    pub topology: Topology,
    /// Its kernel's rules, told from its version as on any host.
    pub profile: &'static Profile,
    /// The domains that the model builds.
    pub domains: Domains,
    /// Its mirror images.
    pub symmetry: Symmetry,
}

impl Scene {
    /// The machine of a record.
    ///
    /// # Errors
    ///
    /// If the record contradicts itself.
    pub fn try_new(record: &Record) -> Result<Self> {
        let topology = record.machine.topology()?;
        let profile = record.machine.profile()?;
        let domains = Domains::build(&topology, profile);
        let symmetry = Symmetry::new(&topology, &domains);
        Ok(Self { topology, profile, domains, symmetry })
    }

    /// The machine with what runs on it.
    pub fn host<'a>(&'a self, load: &'a Load) -> Host<'a> {
        Host { topology: &self.topology, domains: &self.domains, profile: self.profile, load }
    }

    /// The cases of a record as questions, in order. Cases whose events were lost are left out.
    ///
    /// # Errors
    ///
    /// If a mask is none.
    pub fn questions<'a>(&self, record: &'a Record) -> Result<Vec<Question<'a>>> {
        let mut questions = Vec::with_capacity(record.cases.len());
        let mut crowded = CpuSet::new();
        for case in &record.cases {
            let allowed = CpuSet::parse(&case.mask)
                .with_context(|| format!("{}: {}#{}: mask", record.name, case.id, case.rep))?;
            let pinned = &allowed != self.topology.online();
            questions.extend(Question::new(case, allowed, crowded));
            crowded = if pinned { case.crowded() } else { CpuSet::new() };
        }
        Ok(questions)
    }
}

/// One case as a question.
#[derive(Debug)]
pub struct Question<'a> {
    /// What was recorded.
    pub case: &'a Case,
    /// The CPUs that the tasks were allowed on.
    pub allowed: CpuSet,
    /// What ran before: the burners.
    pub load: Load,
    /// The CPU that the parent was on at the first fork.
    pub origin: Cpu,
    /// Where the kernel put each task.
    pub places: Vec<Cpu>,
    /// The mean time between two forks, in microseconds.
    pub gap: u64,
    /// The CPUs that pinned tasks of the case before shared, where marks may be left.
    pub crowded_before: CpuSet,
}

impl<'a> Question<'a> {
    fn new(case: &'a Case, allowed: CpuSet, crowded_before: CpuSet) -> Option<Self> {
        let cpus =
            |cpus: &[Option<u16>]| cpus.iter().flatten().map(|&cpu| Cpu::from(cpu)).collect::<Vec<_>>();
        let (places, parents) = (cpus(&case.fork_cpu), cpus(&case.parent_cpu));
        let mut load = Load::idle();
        case.bg_cpus.iter().for_each(|&cpu| load.add(Cpu::from(cpu), 1));
        let last = case.fork_at_us.iter().flatten().last().copied().unwrap_or(0);
        let gap = last / (places.len() as u64).saturating_sub(1).max(1);
        let origin = *parents.first()?;
        (places.len() == case.n as usize).then_some(Self {
            case,
            allowed,
            load,
            origin,
            places,
            gap,
            crowded_before,
        })
    }

    /// Whether some CPU held more tasks than the best placement would give it, as a task was placed there: tasks that load
    /// balancing had moved away by then do not count.
    pub fn piled_up(&self, host: Host<'_>, parent: Parent) -> bool {
        let burst = Burst { parent, ..self.burst() };
        let best = burst.tally(host, &self.places).best;
        let mut track = Track::new(self.case);
        self.places.iter().zip(self.case.fork_at_us.iter().flatten()).any(|(&place, &at)| {
            while track.next_move_before(at).is_some() {}
            track.tasks.push(place);
            let tasks = track.tasks.iter().filter(|&&cpu| cpu == place).count();
            let beside = u32::from(parent == Parent::Runs && place == self.origin);
            u32::try_from(tasks).unwrap_or(u32::MAX) + beside + self.load.runnable(place) > best
        })
    }

    /// The first task before which the parent was held up for more than a tick, beyond the launcher's own pause. What
    /// held it up ran meanwhile, there or elsewhere, and is no part of the load that the record tells.
    pub fn stalls_before(&self) -> Option<usize> {
        let at: Vec<u64> = self.case.fork_at_us.iter().flatten().copied().collect();
        let held_up = |pair: &[u64]| pair[1].saturating_sub(pair[0]) > self.case.gap_us + TICK;
        at.windows(2).position(held_up).map(|before| before + 1)
    }

    /// Whether the tasks began with a nap.
    pub fn naps(&self) -> bool {
        self.case.child != "spin"
    }

    /// Whether the record leaves open where the burners were: they could move, and only the tasks' moves were written
    /// down.
    pub fn has_loose_burners(&self) -> bool {
        self.case.bgfree > 0
    }

    /// Whether the record leaves open what the kernel saw: burners could move, or it is not told when naps began.
    pub fn is_untold(&self) -> bool {
        self.has_loose_burners() || self.naps()
    }

    /// The burst as it was launched, with the parent beside the tasks: it still ran as the last task was placed.
    pub fn burst(&self) -> Burst<'_> {
        Burst {
            parent: Parent::Runs,
            gap: self.gap,
            parent_weight: Weight::Light,
            // A nap begins once the task has got its CPU, which on an emulated host takes longer than the next fork.
            children: Children::Running,
            ..Burst::forks(&self.allowed, self.case.n, self.origin)
        }
    }
}
