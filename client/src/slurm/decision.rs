//! Where the tasks go that share a mask: one decision for all of them, of which each takes its own part.

use std::ops::Range;

use berth_model::CpuSet;
use berth_proto::v1::{
    Advice, AdviseRequest, AdviseResponse, HoldSpec, form, policy, proof::Result as Proven, smt,
};

use super::{host, masks::Crowd};

/// Where a task is to be.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Place {
    /// Where Slurm has put it, and why.
    AsItIs(String),
    /// On these CPUs.
    On {
        /// The CPUs, all of them among those of the crowd.
        cpus: CpuSet,
        /// No other task of the crowd has any of them.
        alone: bool,
        /// NUMA nodes to take memory from.
        memory_nodes: CpuSet,
    },
}

/// What is asked for a crowd. Its tasks never get fewer CPUs than their share of the mask: where that is two or more, every
/// CPU of the mask is given to one task.
#[derive(Debug, Clone, Copy)]
pub(super) struct Question<'a> {
    crowd: &'a Crowd,
    /// CPUs of the mask for each task, rounded down.
    share: u32,
    /// Places that are asked for: one for each CPU, or one for each task.
    places: u32,
}

impl<'a> Question<'a> {
    /// # Errors
    ///
    /// Why the tasks are better left alone.
    pub(super) fn new(crowd: &'a Crowd, cpus_per_task: u32) -> Result<Self, String> {
        let cpus = u32::try_from(crowd.cpus.len()).unwrap_or(u32::MAX);
        if cpus_per_task > 1 && cpus_per_task > cpus / crowd.tasks {
            return Err(format!(
                "{} tasks want {cpus_per_task} CPUs each, and Slurm gave them {cpus} together",
                crowd.tasks
            ));
        }
        let share = cpus / crowd.tasks;
        let places = if share >= 2 { cpus } else { crowd.tasks };
        Ok(Self { crowd, share, places })
    }

    /// The request, which is the same for every task of the crowd.
    pub(super) fn request(&self, hold: HoldSpec) -> AdviseRequest {
        let (policy, smt) = match self.share {
            // All CPUs are used, and none twice.
            2.. => (policy::Value::Compact, smt::Value::Share),
            _ => (policy::Value::Auto, smt::Value::Avoid),
        };
        let forms = match self.share {
            2.. => &[form::Value::PerTask][..],
            _ => &[form::Value::Mask, form::Value::Split, form::Value::PerTask],
        };
        AdviseRequest {
            tasks: self.places,
            allowed: self.crowd.cpus.to_string(),
            policy: policy.into(),
            smt: smt.into(),
            can_apply: forms.iter().map(|&form| form.into()).collect(),
            single_cpus: self.share >= 2,
            hold: Some(hold),
            ..AdviseRequest::default()
        }
    }

    /// The part of the answer that is for this task of the crowd.
    ///
    /// # Errors
    ///
    /// What is wrong with the answer.
    pub(super) fn place(&self, response: &AdviseResponse) -> Result<Place, String> {
        let is_safe = |proof: Option<&berth_proto::v1::Proof>| {
            proof.is_some_and(|proof| proof.result() == Proven::Safe)
        };
        if is_safe(response.asked.as_ref()) {
            return Ok(Place::AsItIs("the kernel is proven to fill Slurm's mask".to_owned()));
        }
        let advice = response.advice.as_ref().ok_or("the answer has no advice")?;
        if advice.form() == form::Value::None {
            return Ok(Place::AsItIs("nothing is better than Slurm's mask".to_owned()));
        }
        if !is_safe(advice.proof.as_ref()) {
            return Ok(Place::AsItIs("nothing else is proven to be better".to_owned()));
        }
        let entries = self.entries(advice).ok_or("the answer does not have each task once")?;
        let outside = |entry: &&Entry| entry.cpus.is_empty() || !entry.cpus.is_subset(&self.crowd.cpus);
        if let Some(entry) = entries.iter().find(outside) {
            return Err(format!("the answer has CPUs {} and Slurm gave {}", entry.cpus, self.crowd.cpus));
        }
        if !self.is_fair(&entries) {
            let why = "what else runs there would leave some tasks less than their share";
            return Ok(Place::AsItIs(why.to_owned()));
        }
        if self.share >= 2 {
            return Ok(self.part_of_all(&entries));
        }
        let own = self.own();
        let (own, before, after) = (&entries[own.clone()], &entries[..own.start], &entries[own.end..]);
        let union =
            |of: fn(&Entry) -> &CpuSet| own.iter().fold(CpuSet::new(), |all, entry| all.union(of(entry)));
        let (cpus, memory_nodes) = (union(|entry| &entry.cpus), union(|entry| &entry.memory_nodes));
        let alone = !before.iter().chain(after).any(|entry| entry.cpus.intersects(&cpus));
        Ok(Place::On { cpus, alone, memory_nodes })
    }

    /// This task's part where every CPU of the mask is given to one task. Which one, the neighbourhood of the CPUs says.
    fn part_of_all(&self, entries: &[Entry]) -> Place {
        let order = host::neighbours(&self.crowd.cpus);
        let cpus: CpuSet = order.get(self.own()).into_iter().flatten().copied().collect();
        let near = entries.iter().filter(|entry| entry.cpus.intersects(&cpus));
        let memory_nodes = near.fold(CpuSet::new(), |all, entry| all.union(&entry.memory_nodes));
        Place::On { cpus, alone: true, memory_nodes }
    }

    /// The places of this task.
    fn own(&self) -> Range<usize> {
        let bound = |task: u32| {
            let (task, places, tasks) = (task.into(), u64::from(self.places), u64::from(self.crowd.tasks));
            usize::try_from(places * u64::min(task, tasks) / tasks).unwrap_or(0)
        };
        bound(self.crowd.index)..bound(self.crowd.index.saturating_add(1))
    }

    /// Each place, in order. `None`: they are not as many as were asked for.
    fn entries(&self, advice: &Advice) -> Option<Vec<Entry>> {
        let mut entries: Vec<Option<Entry>> = vec![None; usize::try_from(self.places).ok()?];
        let mut put = |first: u32, count: u32, cpus: &str, nodes: &str| {
            let range = usize::try_from(first).ok()?..usize::try_from(first.checked_add(count)?).ok()?;
            let entry = Entry { cpus: CpuSet::parse(cpus).ok()?, memory_nodes: CpuSet::parse(nodes).ok()? };
            entries.get_mut(range)?.fill(Some(entry));
            Some(())
        };
        if advice.form() == form::Value::PerTask {
            for task in &advice.tasks {
                put(task.task, 1, &task.cpus, &task.memory_nodes)?;
            }
        } else {
            for part in &advice.parts {
                put(part.first_task, part.tasks, &part.cpus, &part.memory_nodes)?;
            }
        }
        entries.into_iter().collect()
    }

    /// Whether no CPU is for more places than it must be: one, unless there are more tasks than CPUs.
    fn is_fair(&self, entries: &[Entry]) -> bool {
        let most = usize::try_from(self.places).unwrap_or(usize::MAX).div_ceil(self.crowd.cpus.len().max(1));
        let mut different: Vec<(&CpuSet, usize)> = Vec::new();
        let mut taken = CpuSet::new();
        for Entry { cpus, .. } in entries {
            match different.last_mut() {
                // Entries with the same CPUs mostly follow each other.
                Some((last, count)) if *last == cpus => *count += 1,
                _ => match different.iter_mut().find(|(known, _)| *known == cpus) {
                    Some((_, count)) => *count += 1,
                    None if taken.intersects(cpus) => return false,
                    None => {
                        taken.extend_from(cpus);
                        different.push((cpus, 1));
                    }
                },
            }
        }
        different.iter().all(|(cpus, count)| *count <= most * cpus.len())
    }
}

/// One place.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Entry {
    cpus: CpuSet,
    memory_nodes: CpuSet,
}

#[cfg(test)]
mod tests {
    use super::*;
    use berth_proto::v1::{Part, Proof, TaskEntry};

    fn crowd(cpus: &str, tasks: u32, index: u32) -> Crowd {
        Crowd { number: 0, cpus: CpuSet::parse(cpus).unwrap(), tasks, index }
    }

    fn proof(result: Proven) -> Option<Proof> {
        Some(Proof { result: result.into(), ..Proof::default() })
    }

    fn answer(form: form::Value, parts: &[(&str, u32)], tasks: &[&str]) -> AdviseResponse {
        let mut first_task = 0;
        let mut part = |&(cpus, tasks): &(&str, u32)| {
            let part = Part { cpus: cpus.to_owned(), tasks, first_task, ..Part::default() };
            first_task = u32::wrapping_add(first_task, tasks);
            part
        };
        let entry = |(task, cpus): (usize, &&str)| TaskEntry {
            task: u32::try_from(task).unwrap(),
            cpus: (*cpus).to_owned(),
            memory_nodes: "0".to_owned(),
            ..TaskEntry::default()
        };
        let advice = Advice {
            form: form.into(),
            parts: parts.iter().map(&mut part).collect(),
            tasks: tasks.iter().enumerate().map(entry).collect(),
            proof: proof(Proven::Safe),
            ..Advice::default()
        };
        AdviseResponse { advice: Some(advice), asked: proof(Proven::Unsafe), ..AdviseResponse::default() }
    }

    fn places(cpus: &str, tasks: u32, answer: &AdviseResponse) -> Vec<String> {
        let place = |index| {
            let crowd = crowd(cpus, tasks, index);
            match Question::new(&crowd, 1).unwrap().place(answer) {
                Ok(Place::On { cpus, alone, .. }) => format!("{cpus}{}", if alone { "" } else { " shared" }),
                Ok(Place::AsItIs(why)) => format!("as it is: {why}"),
                Err(why) => format!("wrong: {why}"),
            }
        };
        (0..tasks).map(place).collect()
    }

    #[test]
    fn each_task_takes_its_own_part() {
        let split = answer(form::Value::Split, &[("0-1", 2), ("2", 1)], &[]);
        assert_eq!(places("0-3", 3, &split), ["0-1 shared", "0-1 shared", "2"]);
        let each = answer(form::Value::PerTask, &[], &["3", "1", "0"]);
        assert_eq!(places("0-3", 3, &each), ["3", "1", "0"]);
    }

    #[test]
    fn every_cpu_is_given_where_a_share_is_two_or_more() {
        let each = answer(form::Value::PerTask, &[], &["0", "4", "1", "5", "2", "6", "3", "7"]);
        for tasks in 2..=4 {
            // Which CPUs are neighbours, this host says.
            let parts = places("0-7", tasks, &each).into_iter().map(|part| CpuSet::parse(&part).unwrap());
            let parts: Vec<CpuSet> = parts.collect();
            let sizes: Vec<usize> = parts.iter().map(CpuSet::len).collect();
            let share = 8 / usize::try_from(tasks).unwrap();
            assert!(sizes.iter().all(|size| (share..=share + 1).contains(size)), "{sizes:?}");
            let all = parts.iter().fold(CpuSet::new(), |all, part| all.union(part));
            assert_eq!((sizes.iter().sum::<usize>(), all.to_string().as_str()), (8, "0-7"));
        }
    }

    #[test]
    fn more_tasks_than_cpus_share_them_evenly() {
        let each = answer(form::Value::PerTask, &[], &["0", "0", "1"]);
        assert_eq!(places("0-1", 3, &each), ["0 shared", "0 shared", "1"]);
        let each = answer(form::Value::PerTask, &[], &["0", "0", "0"]);
        assert!(places("0-1", 3, &each).iter().all(|place| place.starts_with("as it is: what else runs")));
    }

    #[test]
    fn nobody_gets_less_than_a_share() {
        let two_on_one = answer(form::Value::PerTask, &[], &["0", "0"]);
        assert!(places("0-1", 2, &two_on_one)[0].starts_with("as it is: what else runs"));
        let narrow = answer(form::Value::Mask, &[("0-1", 3)], &[]);
        assert!(places("0-3", 3, &narrow)[0].starts_with("as it is: what else runs"));
        let overlapping = answer(form::Value::Split, &[("0-1", 2), ("1-2", 1)], &[]);
        assert!(places("0-3", 3, &overlapping)[0].starts_with("as it is: what else runs"));
        let crowd = crowd("0-7", 4, 0);
        assert!(Question::new(&crowd, 2).is_ok());
        assert!(Question::new(&crowd, 3).is_err());
    }

    #[test]
    fn what_is_safe_or_not_proven_stays() {
        let mut response = answer(form::Value::PerTask, &[], &["0", "1"]);
        response.asked = proof(Proven::Safe);
        assert!(places("0-1", 2, &response)[0].starts_with("as it is: the kernel is proven"));
        let mut response = answer(form::Value::PerTask, &[], &["0", "1"]);
        response.advice.as_mut().unwrap().proof = proof(Proven::Cut);
        assert!(places("0-1", 2, &response)[0].starts_with("as it is: nothing else is proven"));
        let none = answer(form::Value::None, &[], &[]);
        assert!(places("0-1", 2, &none)[0].starts_with("as it is: nothing is better"));
    }

    #[test]
    fn nonsense_is_refused() {
        for nonsense in [
            answer(form::Value::PerTask, &[], &["0", "9"]),
            answer(form::Value::PerTask, &[], &["0"]),
            answer(form::Value::PerTask, &[], &["0", "1", "1"]),
            answer(form::Value::PerTask, &[], &["0", ""]),
            answer(form::Value::PerTask, &[], &["0", "1\nexport LD_PRELOAD=x"]),
            answer(form::Value::Split, &[("0", 1), ("1", u32::MAX)], &[]),
            answer(form::Value::Mask, &[], &[]),
            AdviseResponse::default(),
        ] {
            assert!(
                places("0-1", 2, &nonsense).iter().all(|place| place.starts_with("wrong: ")),
                "{nonsense:?}"
            );
        }
    }

    #[test]
    fn what_is_asked_is_the_same_for_all_tasks() {
        let request = |index| Question::new(&crowd("0-9", 4, index), 1).unwrap().request(HoldSpec::default());
        assert_eq!(request(0), request(3));
        assert_eq!((request(0).tasks, request(0).single_cpus), (10, true));
        let few = Question::new(&crowd("0-9", 6, 0), 1).unwrap().request(HoldSpec::default());
        assert_eq!((few.tasks, few.single_cpus, few.allowed.as_str()), (6, false, "0-9"));
    }
}
