//! What other agents report of the load, merged with what is measured here.

use super::OnCpu;
use crate::ingest::load::Source;
use berth_model::cpuset::Cpu;
use std::{
    collections::BTreeMap,
    time::{Duration, Instant, SystemTime},
};

/// After this time a report is forgotten.
pub(crate) const MAX_AGE: Duration = Duration::from_secs(10);

/// What one message of an agent says.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Report {
    pub(crate) cpus: BTreeMap<Cpu, OnCpu>,
    /// When its numbers were taken.
    pub(crate) at: Instant,
}

/// The youngest report of each CPU.
#[derive(Debug, Default)]
pub(super) struct Reports(BTreeMap<Cpu, (OnCpu, Instant)>);

impl Reports {
    /// Takes a report. A CPU that it does not name keeps what was last said of it, and so does one that a younger report
    /// has told of.
    pub(super) fn take(&mut self, report: Report) {
        for (cpu, on) in report.cpus {
            let known = self.0.get(&cpu);
            if known.is_none_or(|(_, at)| *at <= report.at) {
                self.0.insert(cpu, (on, report.at));
            }
        }
    }

    /// Forgets what is too old. Says whether that was anything.
    pub(super) fn forget(&mut self, now: Instant) -> bool {
        let before = self.0.len();
        self.0.retain(|_, (_, at)| now.saturating_duration_since(*at) <= MAX_AGE);
        self.0.len() != before
    }

    /// When the newest was taken.
    pub(super) fn youngest(&self) -> Option<Instant> {
        self.0.values().map(|(_, at)| *at).max()
    }

    #[cfg(test)]
    fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Puts reports in the place of what was measured, where they are younger, or where it is an estimate or nothing.
    ///
    /// `shares_at` is when shares of time were measured, `counted_at` when tasks were counted; `now` is the same moment on
    /// both clocks.
    pub(super) fn merge(
        &self,
        cpus: &mut BTreeMap<Cpu, OnCpu>,
        shares_at: Option<Instant>,
        counted_at: Option<Instant>,
        now: (Instant, SystemTime),
    ) {
        for (&cpu, (told, at)) in &self.0 {
            let age = now.0.saturating_duration_since(*at);
            let taken_at = now.1.checked_sub(age);
            let Some(own) = cpus.get_mut(&cpu) else {
                cpus.insert(cpu, OnCpu { taken_at, ..*told });
                continue;
            };
            let is_younger = |than: Option<Instant>| than.is_none_or(|than| *at > than);
            let counts = own.runnable.is_none() || own.source == Source::Estimate || is_younger(counted_at);
            if told.runnable.is_some() && counts {
                (own.runnable, own.source, own.taken_at) = (told.runnable, Source::Reported, taken_at);
            }
            let pick = |own: &mut Option<f64>, told: Option<f64>| {
                if told.is_some() && (own.is_none() || is_younger(shares_at)) {
                    *own = told;
                }
            };
            pick(&mut own.utilisation, told.utilisation);
            pick(&mut own.steal, told.steal);
            pick(&mut own.irq, told.irq);
            pick(&mut own.realtime, told.realtime);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOTHING: OnCpu = OnCpu {
        runnable: None,
        source: Source::Reported,
        utilisation: None,
        steal: None,
        irq: None,
        realtime: None,
        taken_at: None,
    };

    fn told(runnable: u32) -> OnCpu {
        OnCpu { runnable: Some(runnable), ..NOTHING }
    }

    fn own(runnable: u32, source: Source) -> OnCpu {
        OnCpu { runnable: Some(runnable), source, utilisation: Some(0.5), ..NOTHING }
    }

    #[test]
    fn the_younger_counts_and_any_report_before_an_estimate() {
        let second = Duration::from_secs(1);
        let old = Instant::now();
        let (middle, now) = (old + second, old + 2 * second);
        let cpu = Cpu::from;
        let mut reports = Reports::default();
        let all = |runnable| (0..4).map(|i| (cpu(i), told(runnable))).collect();
        reports.take(Report { cpus: all(7), at: middle });
        // Older than what is known: it tells of one CPU that nothing was known of.
        let older = [(cpu(0), told(9)), (cpu(4), told(9))].into();
        reports.take(Report { cpus: older, at: old });

        let merged = |counted_at| {
            let mut cpus = BTreeMap::from([
                (cpu(0), own(1, Source::Threads)),
                (cpu(1), own(1, Source::Estimate)),
                (cpu(5), own(1, Source::Threads)),
            ]);
            reports.merge(&mut cpus, Some(now), Some(counted_at), (now, SystemTime::now()));
            cpus.into_iter().map(|(cpu, on)| (cpu.number(), on.runnable.unwrap())).collect::<Vec<_>>()
        };
        assert_eq!(merged(now), [(0, 1), (1, 7), (2, 7), (3, 7), (4, 9), (5, 1)]);
        assert_eq!(merged(old), [(0, 7), (1, 7), (2, 7), (3, 7), (4, 9), (5, 1)]);

        assert!(!reports.forget(old + MAX_AGE) && reports.forget(middle + MAX_AGE));
        assert!(!reports.is_empty() && reports.forget(now + MAX_AGE) && reports.is_empty());
    }

    #[test]
    fn what_a_report_leaves_out_stays_as_measured() {
        let (before, now) = (Instant::now(), Instant::now() + Duration::from_secs(1));
        let mut reports = Reports::default();
        let report = OnCpu { utilisation: Some(0.9), ..NOTHING };
        reports.take(Report { cpus: [(Cpu::from(0), report)].into(), at: now });
        let mut cpus = BTreeMap::from([(Cpu::from(0), own(3, Source::Threads))]);
        reports.merge(&mut cpus, Some(before), Some(before), (now, SystemTime::now()));
        let on = cpus[&Cpu::from(0)];
        assert_eq!((on.runnable, on.source, on.utilisation), (Some(3), Source::Threads, Some(0.9)));
    }
}
