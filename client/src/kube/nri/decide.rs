//! Where a container goes: what is asked for it, and what is taken of the answer.

use berth_model::CpuSet;
use berth_proto::v1::{
    AdviseRequest, AdviseResponse, Hold, HoldSpec, form, hold, level, proof::Result as Proven,
};
use tonic::Code;

use super::{
    containers::{Containers, Keeping, Placed},
    keeper::{Keeper, Whom, is},
    wish::Wish,
};
use crate::Error;

/// Where a container goes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Decision {
    pub(super) placed: Placed,
    /// NUMA nodes to take memory from. Empty: any.
    pub(super) memory_nodes: CpuSet,
    /// No run of the kernel's rules piles up. Of the device plugin's CPUs, that is for it to know.
    pub(super) proven: bool,
    /// What the container asked for and does not get, and what else there is to know. Empty: nothing.
    pub(super) notes: Vec<String>,
    /// Its CPUs were to be its own alone, and are not.
    pub(super) exclusive_refused: bool,
}

/// A container for which is decided.
#[derive(Debug, Clone, Copy)]
pub(super) struct Subject<'a> {
    pub(super) whom: Whom<'a>,
    pub(super) wish: &'a Wish,
    /// The CPUs that it could have at most: those of its pod that nobody else has for itself alone.
    pub(super) reach: &'a CpuSet,
}

impl Subject<'_> {
    /// Decides, and keeps the CPUs.
    ///
    /// # Errors
    ///
    /// Why the container is left as it is.
    pub(super) async fn decide(&self, keeper: &Keeper, others: &Containers) -> Result<Decision, String> {
        if let Some(id) = &self.wish.hold {
            let hold =
                keeper.get(id).await.map_err(|error| format!("the device plugin's hold {id}: {error}"))?;
            return self.take_device(&hold);
        }
        let mut notes = Vec::new();
        if let Some(level) = self.wish.exclusive {
            match self.decide_alone(level, keeper, others).await {
                Ok(decision) => return Ok(decision),
                Err(why) => notes.push(format!("its CPUs cannot be its own alone: {why}")),
            }
        }
        let exclusive_refused = !notes.is_empty();
        let (response, tasks) = self.ask(None, keeper).await.map_err(|error| error.to_string())?;
        let mut decision = self.take(&response, tasks, false)?;
        notes.append(&mut decision.notes);
        Ok(Decision { notes, exclusive_refused, ..decision })
    }

    /// The same with CPUs that nobody else is on.
    async fn decide_alone(
        &self,
        level: level::Value,
        keeper: &Keeper,
        others: &Containers,
    ) -> Result<Decision, String> {
        let asked = self.ask(Some(level), keeper).await;
        let (response, tasks) = asked.map_err(|error| match is(&error, Code::Unimplemented) {
            true => format!("this berthd does not give whole units of level {}", level.as_str_name()),
            false => one_line(&error),
        })?;
        let decided = match self.take(&response, tasks, true) {
            Ok(decision) => {
                let alone = &decision.placed.alone;
                match others.could_be_alone(self.whom.id, alone) {
                    Ok(()) if self.reach.is_subset(alone) => {
                        Err("no CPU would be left for other containers".to_owned())
                    }
                    Ok(()) => Ok(decision),
                    Err(why) => Err(why),
                }
            }
            Err(why) => Err(why),
        };
        if decided.is_err() {
            keeper.release_of(self.whom).await.map_err(|error| error.to_string())?;
        }
        decided
    }

    /// Asks, and says for how many tasks. A berthd that cannot be told of a least number of CPUs is asked for as many tasks: so many
    /// the limit lets run.
    async fn ask(
        &self,
        exclusive: Option<level::Value>,
        keeper: &Keeper,
    ) -> Result<(AdviseResponse, u32), Error> {
        let request = self.request(exclusive, keeper.lease(self.whom).await?);
        let (tasks, least) = (request.tasks, request.min_cpus);
        match keeper.advise(request.clone()).await {
            Err(error) if least > 0 && is(&error, Code::Unimplemented) => {
                let request = AdviseRequest { tasks: least, min_cpus: 0, ..request };
                Ok((keeper.advise(request).await?, least))
            }
            answered => Ok((answered?, tasks)),
        }
    }

    /// The request. A container has one mask for all its tasks.
    fn request(&self, exclusive: Option<level::Value>, lease: HoldSpec) -> AdviseRequest {
        let most = u32::try_from(self.reach.len()).unwrap_or(u32::MAX);
        let limit = self.wish.limit.min(most);
        // CPUs of its own are held so. Larger units are asked for by their level.
        let (mode, level) = match exclusive {
            None => (hold::Mode::Shared, None),
            Some(level::Value::Pu) => (hold::Mode::Exclusive, None),
            Some(level) => (hold::Mode::Exclusive, Some(level)),
        };
        AdviseRequest {
            tasks: self.wish.tasks,
            allowed: self.reach.to_string(),
            policy: self.wish.policy.into(),
            can_apply: vec![form::Value::Mask.into()],
            // A mask is never smaller than its tasks need.
            min_cpus: if limit > self.wish.tasks { limit } else { 0 },
            exclusive: level.unwrap_or_default().into(),
            hold: Some(HoldSpec { mode: mode.into(), ..lease }),
            ..AdviseRequest::default()
        }
    }

    /// What is taken of an answer.
    ///
    /// # Errors
    ///
    /// What is wrong with it.
    fn take(&self, response: &AdviseResponse, tasks: u32, alone: bool) -> Result<Decision, String> {
        let advice = response.advice.as_ref().ok_or("the answer has no advice")?;
        let hold = response.hold.as_ref().ok_or("the answer has no hold")?;
        let part = match &advice.parts[..] {
            [part] if advice.form() == form::Value::Mask => part,
            _ => return Err(format!("the answer has no mask, but the form {}", advice.form().as_str_name())),
        };
        let cpus = self.fitting(&part.cpus)?;
        let held = CpuSet::parse(&hold.cpus).unwrap_or_default();
        let warnings = response.warnings.iter().map(|warning| warning.message.clone());
        Ok(Decision {
            placed: Placed {
                alone: if alone { cpus.union(&held) } else { CpuSet::new() },
                cpus,
                tasks,
                hold: Keeping::Lease(hold.id.clone()),
            },
            memory_nodes: CpuSet::parse(&part.memory_nodes).unwrap_or_default(),
            proven: advice.proof.as_ref().is_some_and(|proof| proof.result() == Proven::Safe),
            notes: warnings.collect(),
            exclusive_refused: false,
        })
    }

    /// The CPUs that the device plugin has held for the container.
    fn take_device(&self, hold: &Hold) -> Result<Decision, String> {
        if hold.state() == hold::State::Ended {
            return Err(format!("the device plugin's hold {} has ended", hold.id));
        }
        let cpus =
            self.fitting(&hold.cpus).map_err(|why| format!("the device plugin's hold {}: {why}", hold.id))?;
        let asked = self.wish.exclusive.is_some();
        let notes =
            asked.then(|| "its CPUs cannot be its own alone: they are the device plugin's".to_owned());
        Ok(Decision {
            placed: Placed {
                cpus,
                alone: CpuSet::new(),
                tasks: if self.wish.tasks == 0 { hold.tasks } else { self.wish.tasks },
                hold: Keeping::Device(hold.id.clone()),
            },
            memory_nodes: CpuSet::parse(&hold.memory_nodes).unwrap_or_default(),
            proven: true,
            notes: notes.into_iter().collect(),
            exclusive_refused: asked,
        })
    }

    /// The CPUs, if the container can have them.
    fn fitting(&self, cpus: &str) -> Result<CpuSet, String> {
        let cpus = CpuSet::parse(cpus).map_err(|error| error.to_string())?;
        let limit = usize::try_from(self.wish.limit).unwrap_or(usize::MAX).min(self.reach.len());
        if cpus.is_empty() || !cpus.is_subset(self.reach) {
            return Err(format!("CPUs `{cpus}` are not among those of its pod, {}", self.reach));
        }
        if cpus.len() < limit {
            return Err(format!("CPUs {cpus} are fewer than its limit of {limit}"));
        }
        Ok(cpus)
    }
}

fn one_line(error: &Error) -> String {
    let details = error.advice();
    details.first().map_or_else(|| error.to_string(), |detail| format!("{error}: {detail}"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use berth_proto::v1::{Advice, Part, Proof, policy};

    fn set(list: &str) -> CpuSet {
        CpuSet::parse(list).unwrap()
    }

    fn wish(tasks: u32, limit: u32) -> Wish {
        let policy = policy::Value::Spread;
        Wish { policy, tasks, limit, exclusive: None, strict_memory: false, hold: None }
    }

    fn with<T>(wish: &Wish, reach: &str, then: impl FnOnce(Subject<'_>) -> T) -> T {
        let whom = Whom { id: "c0ffee", title: "default/web/main" };
        then(Subject { whom, wish, reach: &set(reach) })
    }

    fn answer(cpus: &str, proof: Proven) -> AdviseResponse {
        let part = Part { cpus: cpus.to_owned(), memory_nodes: "0".to_owned(), ..Part::default() };
        let advice = Advice {
            form: form::Value::Mask.into(),
            parts: vec![part],
            proof: Some(Proof { result: proof.into(), ..Proof::default() }),
            ..Advice::default()
        };
        let hold = Hold { id: "7".to_owned(), cpus: cpus.to_owned(), ..Hold::default() };
        AdviseResponse { advice: Some(advice), hold: Some(hold), ..AdviseResponse::default() }
    }

    #[test]
    fn one_mask_is_asked_for_on_what_the_pod_may_use() {
        let request = with(&wish(2, 5), "0-3", |subject| subject.request(None, HoldSpec::default()));
        assert_eq!((request.tasks, request.allowed.as_str(), request.min_cpus), (2, "0-3", 4));
        assert_eq!(request.can_apply, [i32::from(form::Value::Mask)]);
        let request = with(&wish(4, 4), "0-7", |subject| subject.request(None, HoldSpec::default()));
        assert_eq!((request.min_cpus, request.exclusive), (0, 0));
        let request = with(&wish(1, 1), "0-7", |subject| {
            subject.request(Some(level::Value::Core), HoldSpec::default())
        });
        assert_eq!(request.exclusive(), level::Value::Core);
        let request =
            with(&wish(1, 1), "0-7", |subject| subject.request(Some(level::Value::Pu), HoldSpec::default()));
        assert_eq!(request.exclusive(), level::Value::Unspecified);
        assert_eq!(request.hold.unwrap().mode(), hold::Mode::Exclusive);
    }

    #[test]
    fn a_mask_is_taken_whether_it_is_proven_or_not() {
        for (proof, proven) in [(Proven::Safe, true), (Proven::Unsafe, false), (Proven::Cut, false)] {
            let taken =
                with(&wish(2, 2), "0-7", |subject| subject.take(&answer("2-3", proof), 2, false)).unwrap();
            assert_eq!((taken.placed.cpus, taken.memory_nodes), (set("2-3"), set("0")));
            assert_eq!((taken.proven, taken.placed.alone.is_empty()), (proven, true));
        }
        let taken =
            with(&wish(2, 2), "0-7", |subject| subject.take(&answer("2-3", Proven::Safe), 2, true)).unwrap();
        assert_eq!(taken.placed.alone, set("2-3"));
    }

    #[test]
    fn what_does_not_fit_is_not_taken() {
        let mut split = answer("0-1", Proven::Safe);
        split.advice.as_mut().unwrap().form = form::Value::Split.into();
        let mut no_hold = answer("0-1", Proven::Safe);
        no_hold.hold = None;
        for (nonsense, says) in [
            (answer("", Proven::Safe), "not among those of its pod"),
            (answer("8-9", Proven::Safe), "not among those of its pod, 0-7"),
            (answer("0", Proven::Safe), "fewer than its limit of 2"),
            (answer("x", Proven::Safe), "x"),
            (split, "the form SPLIT"),
            (no_hold, "no hold"),
            (AdviseResponse::default(), "no advice"),
        ] {
            let error = with(&wish(2, 2), "0-7", |subject| subject.take(&nonsense, 2, false)).unwrap_err();
            assert!(error.contains(says), "{error}");
        }
        // A limit of more CPUs than there are.
        assert!(
            with(&wish(2, 9), "0-1", |subject| subject.take(&answer("0-1", Proven::Safe), 2, false)).is_ok()
        );
    }

    #[test]
    fn a_hold_of_the_device_plugin_is_taken_as_it_is() {
        let hold = Hold { id: "9".to_owned(), cpus: "4-5".to_owned(), tasks: 2, ..Hold::default() };
        let taken = with(&wish(0, 2), "0-7", |subject| subject.take_device(&hold)).unwrap();
        assert_eq!((taken.placed.cpus, taken.placed.tasks), (set("4-5"), 2));
        assert_eq!(taken.placed.hold, Keeping::Device("9".to_owned()));
        let error = with(&wish(0, 3), "0-7", |subject| subject.take_device(&hold)).unwrap_err();
        assert!(error.contains("hold 9: CPUs 4-5 are fewer than its limit of 3"), "{error}");
        let ended = Hold { state: hold::State::Ended.into(), ..hold };
        let error = with(&wish(0, 2), "0-7", |subject| subject.take_device(&ended)).unwrap_err();
        assert!(error.contains("has ended"), "{error}");
    }
}
