//! What time and the host do to holds: expiry, the end of owners, tasks that are seen, CPUs that come and go.

use super::{Book, End, Hold, Id, Mode, Moment, Owner, Part, Uid};
use crate::{
    cpuset::{Cpu, CpuSet},
    load::Load,
};
use std::{collections::BTreeMap, sync::Arc, time::Duration};

/// How long it can be told how a hold ended.
pub const KEPT_ENDED: Duration = Duration::from_secs(600);

/// The most ended holds of which that is kept. If there are more, those that ended first of the users with most are
/// forgotten: nobody's traffic makes what was promised to others be forgotten.
pub const MAX_ENDED: usize = 1024;

/// An owner that is no more.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Gone {
    /// The hold that it owned.
    pub id: Id,
    /// The owner as it was looked for. By now the hold may have another.
    pub owner: Owner,
}

impl Book {
    /// Ends what has expired.
    pub fn expire(&mut self, now: Moment) {
        self.end_all(End::Expired, now, |hold| hold.expiry.is_some_and(|expiry| expiry.at <= now));
    }

    /// Ends what has lost its owner.
    pub fn owners_gone(&mut self, gone: &[Gone], now: Moment) {
        for Gone { id, owner } in gone {
            let why = match owner {
                Owner::Lease => continue,
                Owner::Process(_) => End::ProcessDied,
                Owner::Cgroup(_) => End::CgroupEmpty,
            };
            self.end_all(why, now, |hold| hold.id == *id && hold.owner == *owner);
        }
    }

    /// Takes note of the tasks of holds that were made before `began` and that are measured to run since: as many on its
    /// CPUs as it is for, beyond those that ran there before and those of older holds. A hold that is not to outlast that
    /// ends, since its tasks count themselves.
    pub fn measured(&mut self, load: &Load, began: Moment, now: Moment) {
        // Of older holds, by CPU: tasks that are seen now, and those that may be what is seen.
        let (mut newly, mut unseen) = (OnCpus::default(), OnCpus::default());
        let (mut seen, mut later): (Vec<Id>, Vec<(Id, u32)>) = (Vec::new(), Vec::new());
        for hold in self.living.values().filter(|hold| !hold.tasks_seen && !hold.is_claim()) {
            let before = hold.before.saturating_add(newly.of(hold));
            let needed = before.saturating_add(unseen.of(hold)).saturating_add(hold.tasks());
            if hold.created_at <= began && running_on(load, &hold.parts) >= needed {
                newly.add(hold);
                seen.push(hold.id);
            } else {
                unseen.add(hold);
                later.extend((before != hold.before).then_some((hold.id, before)));
            }
        }
        // They are all in force.
        for &id in &seen {
            let _ = self.change(id, |hold| hold.tasks_seen = true);
        }
        for (id, before) in later {
            let _ = self.change(id, |hold| hold.before = before);
        }
        self.end_all(End::TasksSeen, now, |hold| !hold.keep && seen.contains(&hold.id));
    }

    /// Marks what of the holds the host does not have now.
    pub fn online(&mut self, online: &CpuSet) {
        let missing = |hold: &Hold| hold.cpus().difference(online);
        let changed: Vec<(Id, CpuSet)> = self
            .living
            .values()
            .map(|hold| (hold, missing(hold)))
            .filter(|(hold, missing)| hold.missing != *missing)
            .map(|(hold, missing)| (hold.id, missing))
            .collect();
        for (id, missing) in changed {
            // They are all in force.
            let _ = self.change(id, |hold| hold.missing = missing);
        }
    }

    /// Ends everything: the host was booted anew, at the beginning of its clock.
    pub fn reboot(&mut self) {
        // How the others ended is told by a clock that is no more.
        self.ended.clear();
        self.end_all(End::Rebooted, Moment::default(), |_| true);
    }

    /// Forgets how holds ended that ended long ago; says which.
    pub fn forget(&mut self, now: Moment) -> Vec<Id> {
        let long_ago = |hold: &Hold| hold.ended.is_none_or(|ended| now.since(ended.at) > KEPT_ENDED);
        let mut forgotten: Vec<Id> =
            self.ended.values().filter(|hold| long_ago(hold)).map(|hold| hold.id).collect();
        for id in &forgotten {
            self.ended.remove(id);
        }
        let more = self.ended.len().saturating_sub(MAX_ENDED);
        for id in self.least_kept(more) {
            self.ended.remove(&id);
            forgotten.push(id);
        }
        forgotten
    }

    /// So many ended holds: each time the one that ended first, of a user who has most.
    fn least_kept(&self, number: usize) -> Vec<Id> {
        if number == 0 {
            return Vec::new();
        }
        let mut of_users: BTreeMap<Uid, Vec<(Option<Moment>, Id)>> = BTreeMap::new();
        for hold in self.ended.values() {
            of_users.entry(hold.uid).or_default().push((hold.ended.map(|ended| ended.at), hold.id));
        }
        for ended in of_users.values_mut() {
            ended.sort_unstable_by(|a, b| b.cmp(a));
        }
        let next = |_| {
            let most = of_users.values_mut().max_by_key(|ended| ended.len())?;
            most.pop().map(|(_, id)| id)
        };
        (0..number).map_while(next).collect()
    }

    /// When something will expire next.
    pub fn next_end(&self) -> Option<Moment> {
        self.living.values().filter_map(|hold| hold.expiry).map(|expiry| expiry.at).min()
    }

    fn end_all(&mut self, why: End, now: Moment, ends: impl Fn(&Hold) -> bool) {
        let ending: Vec<Id> = self.living.values().filter(|hold| ends(hold)).map(|hold| hold.id).collect();
        if ending.is_empty() {
            return;
        }
        self.generation += 1;
        for id in ending {
            // It may have ended with its claim.
            let _ = self.end(id, why, now);
        }
    }

    /// What must hold after any operation; for tests.
    ///
    /// # Errors
    ///
    /// What does not.
    pub fn check(&self) -> Result<(), String> {
        let counted = Self::restore(
            self.last_id(),
            self.generation(),
            self.changed_since(0).map(|hold| (**hold).clone()),
        );
        let counted = counted.map_err(|broken| broken.to_string())?;
        for hold in self.living() {
            let clashes = |other: &&Arc<Hold>| !other.foreign && !hold.foreign && other.id != hold.id;
            if hold.mode == Mode::Exclusive
                && let Some(other) = self.intruders_of(hold).find(clashes)
            {
                return Err(format!("{} is on CPUs of {}, which are its own", other.id, hold.id));
            }
        }
        if !self.on_each().eq(counted.on_each()) {
            return Err("what is held on each CPU is not the sum of the holds".to_owned());
        }
        Ok(())
    }
}

/// Tasks of holds on each CPU.
#[derive(Default)]
struct OnCpus(Vec<u32>);

impl OnCpus {
    fn add(&mut self, hold: &Hold) {
        for &(cpu, tasks) in hold.parts.iter().flat_map(Part::counts) {
            if self.0.len() <= cpu.index() {
                self.0.resize(cpu.index() + 1, 0);
            }
            self.0[cpu.index()] = self.0[cpu.index()].saturating_add(tasks);
        }
    }

    /// Those on the CPUs of a hold.
    fn of(&self, hold: &Hold) -> u32 {
        if self.0.is_empty() {
            return 0;
        }
        let on = |cpu: Cpu| self.0.get(cpu.index()).copied().unwrap_or(0);
        hold.cpus().iter().fold(0, |sum, cpu| sum.saturating_add(on(cpu)))
    }
}

/// Tasks that run on the CPUs of these parts.
pub fn running_on(load: &Load, parts: &[Part]) -> u32 {
    let cpus = parts.iter().fold(CpuSet::new(), |all, part| all.union(part.cpus()));
    cpus.iter().fold(0, |sum, cpu| sum.saturating_add(load.runnable(cpu)))
}
