//! What is made good: all containers when the runtime tells of them, and holds that are gone.

use std::{collections::BTreeMap, mem};

use berth_model::CpuSet;
use berth_proto::{
    nri::{self, ContainerUpdate, PodSandbox, SynchronizeRequest},
    v1::{Hold, hold},
};
use tokio::time::{Instant, timeout, timeout_at};
use tonic::Code;

use super::{
    adjust,
    containers::{Change, Container, Containers, Keeping, Placed},
    keeper::{Whom, is, owners},
    plugin::Plugin,
    say,
};
use crate::{Error, kube::HOLD_ANNOTATION};

impl Plugin {
    /// Takes all containers in, places those that ask and were created while nobody was there to do so, and says what must change.
    pub(super) async fn repair(
        &mut self,
        all: SynchronizeRequest,
        deadline: Instant,
    ) -> Vec<ContainerUpdate> {
        let before = mem::take(&mut self.containers);
        let holds = match timeout_at(deadline, self.keeper.all()).await {
            Ok(Ok(holds)) => Some(holds),
            Ok(Err(error)) => self.unheard(&error.to_string()),
            Err(_) => self.unheard("berthd does not answer in time"),
        };
        let pods: BTreeMap<&str, &PodSandbox> = all.pods.iter().map(|pod| (pod.id.as_str(), pod)).collect();
        let none = PodSandbox::default();
        let pod_of = |asked: &nri::Container| *pods.get(asked.pod_sandbox_id.as_str()).unwrap_or(&&none);
        for asked in &all.containers {
            let (mut container, _) = self.seen(pod_of(asked), asked);
            let held = holds.as_ref().and_then(|holds| holds.get(&asked.id));
            container.placed = known_again(asked, &container, before.get(&asked.id), held, holds.is_some());
            container.before = before
                .get(&asked.id)
                .filter(|old| old.cpus == container.cpus)
                .and_then(|old| old.before.clone());
            self.containers.insert(asked.id.clone(), container);
        }
        narrowed_again(&mut self.containers);
        self.release_gone(holds.unwrap_or_default(), deadline).await;
        if !self.manager().lets_act() {
            return Vec::new();
        }
        let mut updates = Vec::new();
        for asked in &all.containers {
            updates.extend(self.place_late(pod_of(asked), asked, deadline).await);
        }
        let changes = self.containers.changes();
        self.containers.made(&changes);
        updates.extend(changes.into_iter().map(adjust::update));
        say!(
            "{} containers are here, {} of them are placed; {} change",
            all.containers.len(),
            self.containers.placed(),
            updates.len()
        );
        updates
    }

    /// Places a container that was created without us.
    async fn place_late(
        &mut self,
        pod: &PodSandbox,
        asked: &nri::Container,
        deadline: Instant,
    ) -> Option<ContainerUpdate> {
        let container =
            self.containers.get(&asked.id).filter(|container| container.placed.is_none())?.clone();
        // Somebody has put it where it is.
        if !container.cpus.is_empty() && container.before.is_none() {
            return None;
        }
        let fresh = Container { cpus: container.has(), before: None, ..container };
        let unset = Container { cpus: CpuSet::new(), ..fresh };
        let wish = self.wish(pod, asked, &unset)?;
        let left = deadline.saturating_duration_since(Instant::now()).min(self.limit());
        let decision = self.decide(&asked.id, &wish, &unset, left).await?;
        let change = Change { id: asked.id.clone(), cpus: decision.placed.cpus.clone() };
        let placed = Container { cpus: change.cpus.clone(), placed: Some(decision.placed), ..unset };
        self.containers.insert(asked.id.clone(), placed);
        Some(adjust::update(change))
    }

    /// Lets CPUs go that are kept for containers which are not there any more, or not on them.
    async fn release_gone(&self, holds: BTreeMap<String, Hold>, deadline: Instant) {
        let is_placed =
            |id: &str| self.containers.get(id).is_some_and(|container| container.placed.is_some());
        let gone = holds.into_iter().filter(|(id, _)| !is_placed(id.as_str()));
        for (id, hold) in gone.collect::<Vec<_>>() {
            match timeout_at(deadline, self.keeper.release(hold.id)).await {
                Ok(Ok(())) => say!("container {id} is not on CPUs {}: they are let go", hold.cpus),
                // It ends by itself.
                Ok(Err(_)) | Err(_) => return,
            }
        }
    }

    fn unheard<T>(&self, why: &str) -> Option<T> {
        self.counts.failures.inc();
        say!("warning: which CPUs are held for containers is not known: {why}");
        None
    }

    /// Looks after all holds: those of containers that run end with them, those of containers that do not run yet last longer.
    pub(super) async fn tend(&mut self) {
        let needy = self.containers.iter().filter_map(|(id, container)| {
            let placed = container.placed.as_ref()?;
            matches!(placed.hold, Keeping::Lease(_) | Keeping::Nothing).then(|| id.clone())
        });
        let needy: Vec<String> = needy.collect();
        let limit = self.limit();
        let all = async {
            for id in &needy {
                self.keep(id).await;
            }
        };
        if timeout(limit, all).await.is_err() {
            self.counts.failures.inc();
            say!("warning: holds of containers are not looked after: berthd does not answer in time");
        }
    }

    /// Looks after the hold of a container.
    pub(super) async fn keep(&mut self, id: &str) {
        let Some(container) = self.containers.get(id) else { return };
        let Some(placed) = container.placed.clone() else { return };
        let whom = Whom { id, title: &container.title };
        let kept = match &placed.hold {
            Keeping::Own(_) | Keeping::Device(_) => return,
            Keeping::Lease(hold) => match self.to_owner(id, container.pid, hold).await {
                // It was not in time.
                Err(error) if is(&error, Code::NotFound) => {
                    self.keep_anew(whom, container.pid, &placed).await
                }
                kept => kept,
            },
            Keeping::Nothing => self.keep_anew(whom, container.pid, &placed).await,
        };
        match kept {
            Err(error) => self.warn(id, &format!("its CPUs {} are not held: {error}", placed.cpus)),
            Ok(kept) => {
                if let Some(Container { placed: Some(placed), .. }) = self.containers.get_mut(id) {
                    placed.hold = kept;
                }
            }
        }
    }

    /// Keeps CPUs for a container that has them already.
    async fn keep_anew(&self, whom: Whom<'_>, pid: u32, placed: &Placed) -> Result<Keeping, Error> {
        let hold = self.keeper.keep(whom, placed).await?;
        say!("{}: its CPUs {} are held anew", whom.title, placed.cpus);
        self.to_owner(whom.id, pid, &hold.id).await
    }

    /// Has a lease end with the container, or last longer until it has a process.
    async fn to_owner(&self, id: &str, pid: u32, hold: &str) -> Result<Keeping, Error> {
        for owner in owners(pid, id) {
            match self.keeper.adopt(hold, owner).await {
                // berthd does not see this owner.
                Err(error) if is(&error, Code::InvalidArgument) => {}
                adopted => return adopted.map(|()| Keeping::Own(hold.to_owned())),
            }
        }
        self.keeper.renew(hold).await.map(|()| Keeping::Lease(hold.to_owned()))
    }
}

/// Where a container was placed before: by what was known of it, what is held for it, or what it was told.
fn known_again(
    asked: &nri::Container,
    container: &Container,
    before: Option<&Container>,
    held: Option<&Hold>,
    holds_known: bool,
) -> Option<Placed> {
    if container.cpus.is_empty() {
        return None;
    }
    let cpus = container.cpus.clone();
    let hold = match (held, asked.annotations.get(HOLD_ANNOTATION)) {
        (Some(held), _) if held.owner.as_ref().is_some_and(|owner| owner.owner.is_some()) => {
            Keeping::Own(held.id.clone())
        }
        (Some(held), _) => Keeping::Lease(held.id.clone()),
        (None, Some(device)) => Keeping::Device(device.clone()),
        (None, None) => Keeping::Nothing,
    };
    if let Some(old) = before.and_then(|before| before.placed.as_ref()).filter(|old| old.cpus == cpus) {
        let hold = if holds_known { hold } else { old.hold.clone() };
        return Some(Placed { hold, ..old.clone() });
    }
    if let Some(held) = held.filter(|held| CpuSet::parse(&held.cpus).is_ok_and(|held| cpus.is_subset(&held)))
    {
        let alone = held.mode() == hold::Mode::Exclusive;
        let alone = if alone { CpuSet::parse(&held.cpus).unwrap_or_default() } else { CpuSet::new() };
        return Some(Placed { cpus, alone, tasks: held.tasks, hold });
    }
    let told = CpuSet::parse(asked.annotations.get(adjust::CPUS)?).ok()?;
    let tasks = u32::try_from(cpus.len()).unwrap_or(u32::MAX);
    (told == cpus).then(|| Placed { alone: CpuSet::new(), tasks, hold, cpus })
}

/// Containers that have just what is left beside others' own CPUs were narrowed, by an earlier life of the plugin.
fn narrowed_again(containers: &mut Containers) {
    let narrow: Vec<String> = containers
        .iter()
        .filter_map(|(id, container)| {
            let alone = containers.alone(id);
            let left = container.reach.difference(&alone);
            let is_narrow = container.placed.is_none() && container.before.is_none();
            (is_narrow && container.reach.intersects(&alone) && container.cpus == left).then(|| id.clone())
        })
        .collect();
    for id in narrow {
        if let Some(container) = containers.get_mut(&id) {
            container.before = Some(CpuSet::new());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use berth_proto::v1::{Owner, Process, owner};

    fn set(list: &str) -> CpuSet {
        CpuSet::parse(list).unwrap()
    }

    fn container(cpus: &str) -> Container {
        Container { reach: set("0-7"), cpus: set(cpus), ..Container::default() }
    }

    fn asked(annotations: &[(&str, &str)]) -> nri::Container {
        let annotations =
            annotations.iter().map(|&(key, value)| (key.to_owned(), value.to_owned())).collect();
        nri::Container { annotations, ..nri::Container::default() }
    }

    fn held(cpus: &str, mode: hold::Mode) -> Hold {
        let owner = Owner { owner: Some(owner::Owner::Process(Process::default())) };
        Hold {
            id: "7".to_owned(),
            cpus: cpus.to_owned(),
            tasks: 3,
            mode: mode.into(),
            owner: Some(owner),
            ..Hold::default()
        }
    }

    #[test]
    fn a_container_is_known_again() {
        let now = container("2-3");
        let shared = held("2-3", hold::Mode::Shared);
        let placed = known_again(&asked(&[]), &now, None, Some(&shared), true).unwrap();
        assert_eq!(
            (placed.tasks, placed.alone.is_empty(), placed.hold),
            (3, true, Keeping::Own("7".to_owned()))
        );
        let alone = held("2-4", hold::Mode::Exclusive);
        assert_eq!(known_again(&asked(&[]), &now, None, Some(&alone), true).unwrap().alone, set("2-4"));
        let told = known_again(&asked(&[(adjust::CPUS, "2-3")]), &now, None, None, true).unwrap();
        assert_eq!((told.tasks, told.hold), (2, Keeping::Nothing));
        let device = [(adjust::CPUS, "2-3"), (HOLD_ANNOTATION, "9")];
        assert_eq!(
            known_again(&asked(&device), &now, None, None, true).unwrap().hold,
            Keeping::Device("9".to_owned())
        );
        // What berthd says of holds counts, if it says anything.
        let old = Placed { hold: Keeping::Own("5".to_owned()), ..placed_on("2-3") };
        let old = Container { placed: Some(old), ..container("2-3") };
        assert_eq!(
            known_again(&asked(&[]), &now, Some(&old), None, false).unwrap().hold,
            Keeping::Own("5".to_owned())
        );
        assert_eq!(known_again(&asked(&[]), &now, Some(&old), None, true).unwrap().hold, Keeping::Nothing);
    }

    fn placed_on(cpus: &str) -> Placed {
        Placed { cpus: set(cpus), alone: CpuSet::new(), tasks: 2, hold: Keeping::Nothing }
    }

    #[test]
    fn who_was_put_elsewhere_is_not_ours_any_more() {
        let old = Container { placed: Some(placed_on("2-3")), ..container("2-3") };
        let shared = held("2-3", hold::Mode::Shared);
        for cpus in ["4", "0-7", ""] {
            let now = container(cpus);
            assert_eq!(
                known_again(&asked(&[(adjust::CPUS, "2-3")]), &now, Some(&old), Some(&shared), true),
                None,
                "{cpus}"
            );
        }
    }

    #[test]
    fn who_was_narrowed_is_known_by_what_is_left() {
        let mut containers = Containers::default();
        let mine = Placed { alone: set("0-1"), ..placed_on("0-1") };
        containers.insert("mine".to_owned(), Container { placed: Some(mine), ..container("0-1") });
        containers.insert("narrow".to_owned(), container("2-7"));
        containers.insert("other".to_owned(), container("3-4"));
        containers.insert("free".to_owned(), container(""));
        narrowed_again(&mut containers);
        let before = |id: &str| containers.get(id).unwrap().before.clone();
        assert_eq!((before("narrow"), before("other"), before("free")), (Some(CpuSet::new()), None, None));
    }
}
