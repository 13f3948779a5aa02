//! What is known of the containers on this node, and which CPUs some of them have for themselves alone.

use std::collections::BTreeMap;

use berth_model::CpuSet;

/// Every container that is there.
#[derive(Debug, Default)]
pub(super) struct Containers(BTreeMap<String, Container>);

/// A container.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(super) struct Container {
    /// As people know it: namespace, pod and name.
    pub(super) title: String,
    /// Its first process. 0: none that is known.
    pub(super) pid: u32,
    /// Its CPU limit, rounded up. 0: it has none.
    pub(super) limit: u32,
    /// The CPUs that it could have at most: those of its pod.
    pub(super) reach: CpuSet,
    /// Its cpuset, as the runtime has it. Empty: none of its own.
    pub(super) cpus: CpuSet,
    /// Where it was placed.
    pub(super) placed: Option<Placed>,
    /// It was narrowed, and had these before. Empty: none of its own.
    pub(super) before: Option<CpuSet>,
}

/// Where a container was placed.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(super) struct Placed {
    /// Its CPUs.
    pub(super) cpus: CpuSet,
    /// CPUs that are its own alone, its own CPUs among them. Empty: others may be on them.
    pub(super) alone: CpuSet,
    /// How many tasks it is for.
    pub(super) tasks: u32,
    /// The hold that keeps them.
    pub(super) hold: Keeping,
}

/// What keeps the CPUs of a container.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(super) enum Keeping {
    /// Nothing does.
    #[default]
    Nothing,
    /// A lease, that ends unless it is renewed.
    Lease(String),
    /// A hold that ends with the container.
    Own(String),
    /// The device plugin's.
    Device(String),
}

/// A container's cpuset that is to be changed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Change {
    pub(super) id: String,
    pub(super) cpus: CpuSet,
}

impl Containers {
    pub(super) fn insert(&mut self, id: String, container: Container) {
        self.0.insert(id, container);
    }

    pub(super) fn remove(&mut self, id: &str) -> Option<Container> {
        self.0.remove(id)
    }

    pub(super) fn get_mut(&mut self, id: &str) -> Option<&mut Container> {
        self.0.get_mut(id)
    }

    pub(super) fn get(&self, id: &str) -> Option<&Container> {
        self.0.get(id)
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = (&String, &Container)> {
        self.0.iter()
    }

    /// How many were placed.
    pub(super) fn placed(&self) -> usize {
        self.0.values().filter(|container| container.placed.is_some()).count()
    }

    /// The CPUs that containers other than this one have for themselves alone.
    pub(super) fn alone(&self, but: &str) -> CpuSet {
        let others = self.0.iter().filter(|(id, _)| *id != but);
        others
            .filter_map(|(_, other)| other.placed.as_ref())
            .fold(CpuSet::new(), |all, placed| all.union(&placed.alone))
    }

    /// Whether this container can have these CPUs for itself alone.
    ///
    /// # Errors
    ///
    /// Who cannot do without them.
    pub(super) fn could_be_alone(&self, id: &str, alone: &CpuSet) -> Result<(), String> {
        for (_, other) in self.0.iter().filter(|(other, _)| *other != id) {
            let has = other.has();
            if !has.intersects(alone) {
                continue;
            }
            let left = has.difference(alone);
            let needs = usize::try_from(other.limit.max(1)).unwrap_or(usize::MAX).min(has.len());
            if other.placed.is_some() {
                return Err(format!("{} was placed on some of CPUs {alone}", other.title));
            }
            if left.len() < needs {
                let title = &other.title;
                return Err(format!(
                    "{title} would be left with {} CPUs, and its limit is {needs}",
                    left.len()
                ));
            }
        }
        Ok(())
    }

    /// What must change so that nobody is on CPUs that are another's alone, and nobody is kept from CPUs that are not so
    /// any more.
    pub(super) fn changes(&self) -> Vec<Change> {
        let wanted =
            self.0.iter().filter_map(|(id, container)| Some((id, container, self.wanted(id, container)?)));
        let different = wanted.filter(|(_, container, cpus)| !cpus.is_empty() && *cpus != container.cpus);
        different.map(|(id, _, cpus)| Change { id: id.clone(), cpus }).collect()
    }

    /// The cpuset that a container is to have. `None`: the one that it has.
    pub(super) fn wanted(&self, id: &str, container: &Container) -> Option<CpuSet> {
        if container.placed.is_some() {
            return None;
        }
        let (has, alone) = (container.has(), self.alone(id));
        match has.intersects(&alone) {
            true => Some(has.difference(&alone)),
            // There is no way to take a cpuset away.
            false => container.before.as_ref().map(|_| has),
        }
    }

    /// Notes that these were made.
    pub(super) fn made(&mut self, changes: &[Change]) {
        for Change { id, cpus } in changes {
            if let Some(container) = self.0.get_mut(id) {
                let has = container.has();
                let before = container.before.take().unwrap_or_else(|| container.cpus.clone());
                container.before = (*cpus != has).then_some(before);
                container.cpus = cpus.clone();
            }
        }
    }
}

impl Container {
    /// The CPUs that it has, or would have if nobody had any for itself alone.
    pub(super) fn has(&self) -> CpuSet {
        let own = self.before.as_ref().unwrap_or(&self.cpus);
        if own.is_empty() { self.reach.clone() } else { own.clone() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn set(list: &str) -> CpuSet {
        CpuSet::parse(list).unwrap()
    }

    fn container(reach: &str, cpus: &str, limit: u32) -> Container {
        Container { title: "t".to_owned(), reach: set(reach), cpus: set(cpus), limit, ..Container::default() }
    }

    fn alone(cpus: &str) -> Container {
        let placed = Placed { cpus: set(cpus), alone: set(cpus), tasks: 1, hold: Keeping::Nothing };
        Container { cpus: set(cpus), placed: Some(placed), reach: set("0-7"), ..Container::default() }
    }

    fn all(containers: Vec<(&str, Container)>) -> Containers {
        Containers(containers.into_iter().map(|(id, container)| (id.to_owned(), container)).collect())
    }

    fn shown(changes: &[Change]) -> Vec<String> {
        changes.iter().map(|change| format!("{}: {}", change.id, change.cpus)).collect()
    }

    #[test]
    fn everybody_else_is_narrowed_and_widened_again() {
        let mut containers = all(vec![
            ("free", container("0-7", "", 0)),
            ("own", container("0-7", "2-5", 0)),
            ("away", container("0-7", "6-7", 0)),
        ]);
        assert_eq!(containers.changes(), []);
        containers.insert("mine".to_owned(), alone("0-3"));
        let changes = containers.changes();
        assert_eq!(shown(&changes), ["free: 4-7", "own: 4-5"]);
        containers.made(&changes);
        assert_eq!(containers.changes(), [], "it is done");
        containers.insert("more".to_owned(), alone("4"));
        let changes = containers.changes();
        assert_eq!(shown(&changes), ["free: 5-7", "own: 5"]);
        containers.made(&changes);
        containers.remove("mine");
        let changes = containers.changes();
        assert_eq!(shown(&changes), ["free: 0-3,5-7", "own: 2-3,5"]);
        containers.made(&changes);
        containers.remove("more");
        let changes = containers.changes();
        assert_eq!(shown(&changes), ["free: 0-7", "own: 2-5"]);
        containers.made(&changes);
        assert_eq!(containers.changes(), []);
        assert_eq!(containers.get("free").unwrap().before, None, "it is not narrow any more");
    }

    #[test]
    fn nobody_is_left_with_too_little() {
        let mut containers = all(vec![("a", container("0-3", "", 3)), ("b", container("0-3", "3", 0))]);
        assert_eq!(containers.could_be_alone("mine", &set("0")), Ok(()));
        let error = containers.could_be_alone("mine", &set("0-1")).unwrap_err();
        assert!(error.contains("would be left with 2 CPUs, and its limit is 3"), "{error}");
        assert!(containers.could_be_alone("mine", &set("3")).is_err(), "nothing would be left of b");
        containers.insert("c".to_owned(), alone("1"));
        let error = containers.could_be_alone("mine", &set("1")).unwrap_err();
        assert!(error.contains("was placed on some of CPUs 1"), "{error}");
        // Its limit cannot be kept as it is.
        let containers = all(vec![("a", container("0-3", "", 9))]);
        assert!(containers.could_be_alone("mine", &set("0")).is_err());
        assert_eq!(containers.could_be_alone("a", &set("0")), Ok(()), "it is not in its own way");
    }

    #[test]
    fn nobody_is_narrowed_to_nothing() {
        let containers = all(vec![("a", container("0-1", "", 0)), ("mine", alone("0-1"))]);
        assert_eq!(containers.changes(), []);
        assert_eq!(containers.alone("mine"), CpuSet::new());
        assert_eq!(containers.alone("a"), set("0-1"));
        assert_eq!(containers.placed(), 1);
    }
}
