//! How busy each CPU was, from two readings of `/proc/stat`.
//!
//! `procfs` reads that file too, but drops the number in front of each line: with a CPU offline, every later one
//! would be taken for its neighbour.

use berth_model::cpuset::Cpu;
use std::{collections::BTreeMap, fs, io, path::Path};

/// From this share of busy time on, a CPU counts as running one task. An estimate: `/proc/stat` tells no counts.
const BUSY: f64 = 0.5;
/// From this share on, tasks may have waited all the time.
const NOT_IDLE: f64 = 0.9;
/// Up to this share, what ran was passing by.
const PASSING: f64 = 0.1;

/// One CPU's time since boot, in clock ticks.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Ticks {
    user: u64,
    nice: u64,
    system: u64,
    idle: u64,
    iowait: u64,
    irq: u64,
    softirq: u64,
    steal: u64,
}

/// Every online CPU's time since boot.
pub type Reading = BTreeMap<Cpu, Ticks>;

/// How busy one CPU was between two readings, each a share of the time from 0 to 1.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Busy {
    /// Not idle, which includes the two below.
    pub utilisation: f64,
    /// Taken by a hypervisor.
    pub steal: f64,
    /// Spent on hard and soft interrupts.
    pub irq: f64,
}

impl Busy {
    /// How many tasks were runnable, as far as this tells: an estimate.
    pub fn estimate(&self) -> u32 {
        u32::from(self.utilisation >= BUSY)
    }

    /// What becomes of a number of runnable tasks that was counted earlier: as much of it as this allows.
    ///
    /// A CPU that was busy ran at least one task, and one that was idle part of the time had none waiting.
    pub fn allows(&self, counted: u32) -> u32 {
        let most = if self.utilisation < NOT_IDLE { u32::from(self.utilisation > PASSING) } else { u32::MAX };
        counted.clamp(self.estimate(), most.max(self.estimate()))
    }
}

/// Reads `proc/stat` below `root`, which is `/` but in tests.
///
/// # Errors
///
/// If the file cannot be read, or tells of no CPU.
pub fn read(root: &Path) -> io::Result<Reading> {
    let reading = parse(&fs::read_to_string(root.join("proc/stat"))?);
    if reading.is_empty() {
        return Err(io::Error::new(io::ErrorKind::InvalidData, "/proc/stat has no line for any CPU"));
    }
    Ok(reading)
}

/// The lines of CPUs in its text.
pub fn parse(stat: &str) -> Reading {
    stat.lines().filter_map(parse_line).collect()
}

/// `cpu12 user nice system idle iowait irq softirq steal ...`; other lines give nothing.
fn parse_line(line: &str) -> Option<(Cpu, Ticks)> {
    let mut words = line.strip_prefix("cpu")?.split_ascii_whitespace();
    let digits = words
        .next()
        .filter(|digits| line.as_bytes().get(3).is_some_and(u8::is_ascii_digit) && !digits.is_empty())?;
    let cpu = digits.parse().ok().and_then(Cpu::try_new)?;
    let mut next = || words.next().and_then(|word| word.parse().ok());
    let (user, nice, system, idle) = (next()?, next()?, next()?, next()?);
    let mut or_none = || next().unwrap_or(0);
    let (iowait, irq, softirq, steal) = (or_none(), or_none(), or_none(), or_none());
    Some((cpu, Ticks { user, nice, system, idle, iowait, irq, softirq, steal }))
}

/// How busy each CPU was that is in both readings. One that went offline in between, or whose counters went
/// backwards, is left out; one that did not tick at all was idle.
pub fn between(before: &Reading, after: &Reading) -> BTreeMap<Cpu, Busy> {
    after.iter().filter_map(|(&cpu, now)| Some((cpu, busy(before.get(&cpu)?, now)?))).collect()
}

fn busy(before: &Ticks, after: &Ticks) -> Option<Busy> {
    let spent = |of: fn(&Ticks) -> u64| of(after).checked_sub(of(before));
    let sum = |parts: &[u64]| parts.iter().fold(0_u64, |sum, part| sum.saturating_add(*part));
    // The kernel itself says that iowait may decrease; idle does on some tickless kernels.
    let iowait = after.iowait.saturating_sub(before.iowait);
    let idle = sum(&[after.idle.saturating_sub(before.idle), iowait]);
    let irq = sum(&[spent(|t| t.irq)?, spent(|t| t.softirq)?]);
    let steal = spent(|t| t.steal)?;
    let used = sum(&[spent(|t| t.user)?, spent(|t| t.nice)?, spent(|t| t.system)?, irq, steal]);
    let share = |ticks: u64| match sum(&[used, idle]) {
        0 => 0.0,
        #[allow(clippy::cast_precision_loss, reason = "ticks between two readings are few")]
        all => ticks as f64 / all as f64,
    };
    Some(Busy { utilisation: share(used), steal: share(steal), irq: share(irq) })
}

#[cfg(test)]
mod tests {
    use super::*;

    const FIRST: &str = "cpu  10 0 10 100 0 0 0 0 0 0\ncpu0 10 0 10 100 0 0 0 0 0 0\ncpu2 0 0 0 100 0 0 0 0 0 0\ncpu3 5 0 0 100 0 0 0 0 0 0\nintr 1 2 3\ncpufreq 1 2 3 4\n";
    const SECOND: &str = "cpu0 60 0 30 100 20 0 10 0 0 0\ncpu2 10 0 0 190 0 0 0 0 0 0\ncpu3 4 0 0 200 0 0 0 0 0 0\ncpu4 1 1 1 1\n";

    #[test]
    fn shares_by_the_number_in_the_line() {
        let (first, second) = (parse(FIRST), parse(SECOND));
        assert_eq!(first.keys().map(|cpu| cpu.number()).collect::<Vec<_>>(), [0, 2, 3]);
        let busy = between(&first, &second);
        // CPU 3 went backwards, CPU 4 is new.
        assert_eq!(busy.keys().map(|cpu| cpu.number()).collect::<Vec<_>>(), [0, 2]);
        let zero = busy[&Cpu::from(0)];
        assert_eq!((zero.utilisation, zero.irq, zero.steal), (0.8, 0.1, 0.0));
        assert_eq!(zero.estimate(), 1);
        assert_eq!(busy[&Cpu::from(2)].estimate(), 0);
    }

    #[test]
    fn an_old_count_is_held_against_what_was_busy_since() {
        let busy = |utilisation| Busy { utilisation, steal: 0.0, irq: 0.0 };
        for (utilisation, counted, allowed) in [
            (0.0, 3, 0),
            (0.05, 1, 0),
            (0.3, 1, 1),
            (0.3, 0, 0),
            (0.3, 4, 1),
            (0.8, 0, 1),
            (0.8, 2, 1),
            (0.97, 0, 1),
            (1.0, 5, 5),
        ] {
            assert_eq!(busy(utilisation).allows(counted), allowed, "{counted} at {utilisation}");
        }
    }

    #[test]
    fn no_ticks_are_idle() {
        let one = parse(FIRST);
        assert_eq!(between(&one, &one)[&Cpu::from(0)].utilisation, 0.0);
    }
}
