//! What a kernel does with an advice: its parts launched one after the other.

use super::{Kernel, Part, Request};
use crate::{
    cpuset::{Cpu, CpuSet},
    load::Load,
    predict::{Burst, Host, Placed, Prediction, Run, Tally, origins, place, predict},
};

/// The most origins that are tried.
const MAX_ORIGINS: usize = 32;

/// Parts that are launched one after the other, each from its own origin.
#[derive(Debug, Clone, Copy)]
pub(super) struct Launched<'a> {
    pub(super) request: &'a Request<'a>,
    pub(super) kernel: &'a Kernel<'a>,
    pub(super) parts: &'a [Part],
    /// What runs there, with holders asleep or running.
    pub(super) load: &'a Load,
    /// The CPUs against which the outcome is judged.
    pub(super) free: &'a CpuSet,
}

impl<'a> Launched<'a> {
    /// These parts under whichever load is worse, with what [`Launched::worst`] says of it.
    pub(super) fn worst_of<'b>(self, parts: &'b [Part], awake: Option<&'b Load>) -> (Launched<'b>, Cpu, Run)
    where
        'a: 'b,
    {
        let asleep = Launched { parts, ..self };
        let (origin, run) = asleep.worst();
        if let Some(load) = awake {
            let awake = Launched { load, ..asleep };
            let (other, its_run) = awake.worst();
            if its_run.tally.severity() > run.tally.severity() {
                return (awake, other, its_run);
            }
        }
        (asleep, origin, run)
    }

    /// The central run from the worst origin of the first part, and that origin.
    fn worst(&self) -> (Cpu, Run) {
        let central = |first: Cpu| {
            let places = self.from(first, place, |&cpu| cpu);
            let tally = self.tally(first, &places);
            (first, Run { places, tally })
        };
        // The first of the worst.
        let worst = self.starts().into_iter().map(central).rev().max_by_key(|(_, run)| run.tally.severity());
        worst.unwrap_or_else(|| central(Cpu::from(0)))
    }

    /// The same from that origin, with what of it is determined.
    pub(super) fn examined(&self, origin: Cpu) -> Prediction {
        let tasks: Vec<Placed> =
            self.from(origin, |host, burst| predict(host, burst).tasks, |placed| placed.cpu);
        let places: Vec<Cpu> = tasks.iter().map(|placed| placed.cpu).collect();
        Prediction { origin, tally: self.tally(origin, &places), tasks }
    }

    /// The tasks of all parts, each on top of those before it.
    fn from<T>(
        &self,
        first: Cpu,
        launch: impl Fn(Host<'_>, &Burst<'_>) -> Vec<T>,
        cpu: impl Fn(&T) -> Cpu,
    ) -> Vec<T> {
        let mut load = self.load.clone();
        let mut tasks = Vec::with_capacity(self.request.tasks as usize);
        let of_parent = self.request.launch.part_of_parent(self.parts);
        for (index, part) in self.parts.iter().enumerate() {
            let start = if index == 0 { Some(first) } else { self.given(part).or_else(|| part.cpus.first()) };
            let Some(origin) = start else { continue };
            let of_part = self.request.launch.of_part(index == of_parent);
            let new = launch(self.host(&load), &of_part.burst(&part.cpus, part.tasks, origin));
            new.iter().for_each(|task| load.add(cpu(task), 1));
            tasks.extend(new);
        }
        tasks
    }

    /// The parent's CPU, if it is known and the part's mask leaves it there.
    fn given(&self, part: &Part) -> Option<Cpu> {
        self.request.launch.origin.filter(|&cpu| part.as_asked || part.cpus.contains(cpu))
    }

    fn starts(&self) -> Vec<Cpu> {
        let Some(part) = self.parts.first() else { return Vec::new() };
        let only = part.cpus.first().filter(|_| part.cpus.len() == 1);
        if let Some(cpu) = self.given(part).or(only) {
            return vec![cpu];
        }
        let burst = self.request.launch.burst(&part.cpus, part.tasks, Cpu::from(0));
        let classes = origins(self.host(self.load), self.kernel.symmetry, &burst);
        classes.into_iter().take(MAX_ORIGINS).map(|origin| origin.cpu).collect()
    }

    fn tally(&self, origin: Cpu, places: &[Cpu]) -> Tally {
        let burst = self.request.launch.burst(self.free, self.request.tasks, origin);
        burst.tally(self.host(self.load), places)
    }

    fn host<'h>(&'h self, load: &'h Load) -> Host<'h> {
        let Kernel { profile, domains, .. } = *self.kernel;
        Host { topology: self.request.topology, domains, profile, load }
    }
}
