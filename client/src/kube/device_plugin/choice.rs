//! Which devices a container should get: by berthd's advice, or else by where they are.

use std::{
    collections::{BTreeMap, HashMap},
    hash::Hash,
};

use berth_model::{Cpu, CpuSet};
use berth_proto::v1::{AdviseRequest, AdviseResponse, form, policy};

use super::device::{Device, Devices};
use crate::cli::Policy;

/// What is to be chosen for one container.
#[derive(Debug, Clone)]
pub(super) struct Wish<'a> {
    /// Devices that must be in the choice.
    must: Vec<&'a Device>,
    /// Further devices to choose from.
    free: Vec<&'a Device>,
    /// How many of these are to be chosen.
    more: usize,
    policy: Policy,
}

impl<'a> Wish<'a> {
    /// What a kubelet asks for. Ids that are not known cannot be chosen.
    pub(super) fn new(
        devices: &'a Devices,
        available: &[String],
        must: &[String],
        count: i32,
        policy: Policy,
    ) -> Self {
        let known = |ids: &[String]| -> BTreeMap<Option<Cpu>, &'a Device> {
            ids.iter().filter_map(|id| devices.get(id)).map(|device| (device.first(), device)).collect()
        };
        let (must, mut free) = (known(must), known(available));
        free.retain(|first, _| !must.contains_key(first));
        let more = usize::try_from(count).unwrap_or(0).saturating_sub(must.len()).min(free.len());
        Self { must: must.into_values().collect(), free: free.into_values().collect(), more, policy }
    }

    /// Whether there is anything to decide.
    pub(super) fn is_open(&self) -> bool {
        0 < self.more && self.more < self.free.len()
    }

    /// All that is wished for, if nothing is to be decided.
    pub(super) fn settled(&self) -> Vec<String> {
        ids(self.must.iter().chain(self.free.iter().take(self.more)))
    }

    fn all(&self) -> impl Iterator<Item = &'a Device> + '_ {
        self.must.iter().chain(&self.free).copied()
    }

    /// How many devices there will be.
    fn count(&self) -> usize {
        self.must.len() + self.more
    }

    /// The question for berthd. One CPU stands for each core; caches that are to lie close together are asked for as all the
    /// cores in them, so that what runs on any of them counts.
    pub(super) fn question(&self) -> AdviseRequest {
        let stands = |device: &Device| -> CpuSet {
            let online = device.cores.iter().map(|core| core.intersection(&device.online));
            online.filter_map(|core| core.first()).collect()
        };
        let set = |devices: &mut dyn Iterator<Item = &'a Device>| {
            devices.fold(CpuSet::new(), |all, device| all.union(&stands(device)))
        };
        let is_core = self.all().all(|device| device.cores.len() == 1);
        let (tasks, policy) = match self.policy {
            Policy::Spread => (self.count(), policy::Value::Spread),
            policy if is_core => (self.count(), policy.into()),
            _ => {
                let mut sizes: Vec<usize> = self.all().map(|device| device.cores.len()).collect();
                sizes.sort_unstable();
                (sizes.iter().rev().take(self.count()).sum(), policy::Value::Compact)
            }
        };
        let must = set(&mut self.must.iter().copied());
        AdviseRequest {
            tasks: u32::try_from(tasks).unwrap_or(u32::MAX),
            allowed: set(&mut self.all()).to_string(),
            must_include: if must.is_empty() { String::new() } else { must.to_string() },
            policy: policy.into(),
            can_apply: vec![form::Value::PerTask.into()],
            single_cpus: true,
            ..AdviseRequest::default()
        }
    }

    /// The devices on which the advice has most tasks; as many as it is short of are chosen by where they are.
    ///
    /// # Errors
    ///
    /// The advice is none.
    pub(super) fn advised(mut self, response: &AdviseResponse) -> Result<Vec<String>, String> {
        let advice = response.advice.as_ref().ok_or("the answer has no advice")?;
        let mut tasks: HashMap<Cpu, usize> = HashMap::new();
        for entry in &advice.tasks {
            for cpu in &CpuSet::parse(&entry.cpus).map_err(|error| error.to_string())? {
                *tasks.entry(cpu).or_default() += 1;
            }
        }
        let on = |device: &Device| -> usize {
            device.cores.iter().flatten().filter_map(|cpu| tasks.get(&cpu)).sum()
        };
        if self.free.iter().all(|device| on(device) == 0) {
            return Err("the answer has none of the devices".to_owned());
        }
        // Stable: of equals the first.
        self.free.sort_by_key(|device| std::cmp::Reverse(on(device)));
        let chosen = self.free.iter().take(self.more).take_while(|device| on(device) > 0).count();
        self.must.extend(self.free.drain(..chosen));
        self.more -= chosen;
        Ok(self.by_place())
    }

    /// The devices by where they are alone, next to those that are there already; or as far apart as possible.
    pub(super) fn by_place(mut self) -> Vec<String> {
        if self.policy == Policy::Spread {
            let chosen = spread(&self.free, self.more, &LEVELS);
            return ids(self.must.iter().chain(&chosen));
        }
        for level in LEVELS.iter().rev() {
            let is_near = |device: &&Device| self.must.iter().any(|other| level(other) == level(device));
            let (near, far): (Vec<_>, Vec<_>) = self.free.iter().copied().partition(is_near);
            let chosen = compact(near.clone(), self.more, &LEVELS);
            self.more -= chosen.len();
            let is_left = |device: &&Device| !chosen.iter().any(|other| other.id == device.id);
            self.free = near.into_iter().filter(is_left).chain(far).collect();
            self.must.extend(chosen);
        }
        self.must.extend(compact(self.free, self.more, &LEVELS));
        ids(&self.must)
    }
}

fn ids<'a>(devices: impl IntoIterator<Item = &'a &'a Device>) -> Vec<String> {
    devices.into_iter().map(|device| device.id.clone()).collect()
}

/// Which part of the host a device is in.
type Level = fn(&Device) -> Option<u32>;
/// From the largest parts to the smallest.
const LEVELS: [Level; 3] = [
    |device| Some(device.place.package),
    |device| device.place.nodes.first().copied(),
    |device| device.place.llc.map(Cpu::number),
];

/// So many devices in as few parts as possible; of the parts that are large enough the smallest, so that whole ones stay free.
fn compact<'a>(devices: Vec<&'a Device>, count: usize, levels: &[Level]) -> Vec<&'a Device> {
    let Some((level, finer)) = levels.split_first() else {
        return devices.into_iter().take(count).collect();
    };
    let mut parts = parts(&devices, level);
    let mut chosen = Vec::new();
    while chosen.len() < count && !parts.is_empty() {
        let left = count - chosen.len();
        parts.sort_by_key(|part| (part.len() < left, part.len().abs_diff(left)));
        chosen.extend(compact(parts.remove(0), left, finer));
    }
    chosen
}

/// So many devices with as even a number in each part as possible.
fn spread<'a>(devices: &[&'a Device], count: usize, levels: &[Level]) -> Vec<&'a Device> {
    let Some((level, finer)) = levels.split_first() else {
        return devices.iter().take(count).copied().collect();
    };
    let parts = parts(devices, level);
    let mut shares = vec![0; parts.len()];
    for _ in 0..count.min(devices.len()) {
        let has_room = |(share, part): &(&mut usize, &Vec<&Device>)| **share < part.len();
        let least = shares.iter_mut().zip(&parts).filter(has_room).min_by_key(|(share, _)| **share);
        if let Some((share, _)) = least {
            *share += 1;
        }
    }
    parts.iter().zip(shares).flat_map(|(part, share)| spread(part, share, finer)).collect()
}

/// The devices by part, in the order of their first ones.
fn parts<'a, K: Eq + Hash>(devices: &[&'a Device], of: impl Fn(&Device) -> K) -> Vec<Vec<&'a Device>> {
    let (mut index, mut parts) = (HashMap::new(), Vec::<Vec<&Device>>::new());
    for device in devices {
        let next = parts.len();
        let at = *index.entry(of(device)).or_insert(next);
        if at == next {
            parts.push(Vec::new());
        }
        parts[at].push(device);
    }
    parts
}

#[cfg(test)]
mod tests {
    use super::super::device::tests::{devices, host};
    use super::*;
    use crate::cli::DeviceKind;
    use berth_proto::v1::{Advice, TaskEntry};

    /// Two packages of two nodes, each with two caches of four cores.
    const HOST: [u32; 4] = [2, 2, 2, 4];

    fn named(cores: impl IntoIterator<Item = u32>) -> Vec<String> {
        cores.into_iter().map(|core| format!("core-{core}")).collect()
    }

    fn by_place(
        policy: Policy,
        free: impl IntoIterator<Item = u32>,
        must: &[u32],
        count: i32,
    ) -> Vec<String> {
        let devices = devices(DeviceKind::Cores, &host(HOST));
        let wish = Wish::new(&devices, &named(free), &named(must.iter().copied()), count, policy);
        let mut chosen = wish.by_place();
        chosen.sort_by_key(|id| id["core-".len()..].parse::<u32>().unwrap());
        chosen
    }

    #[test]
    fn neighbours_are_chosen_and_whole_parts_stay_free() {
        let compact = |free: &mut dyn Iterator<Item = u32>, count| by_place(Policy::Auto, free, &[], count);
        assert_eq!(compact(&mut (0..32), 4), named(0..4));
        assert_eq!(compact(&mut (0..32), 8), named(0..8));
        assert_eq!(compact(&mut (0..32), 20), named((0..16).chain(16..20)));
        // Core 0 is taken: three fit beside it, four do not.
        assert_eq!(compact(&mut (1..32), 3), named(1..4));
        assert_eq!(compact(&mut (1..32), 4), named(4..8));
        // Nothing is large enough: the largest parts first.
        assert_eq!(compact(&mut [0, 4, 5, 8, 16, 17, 18].into_iter(), 4), named([0, 4, 5, 8]));
    }

    #[test]
    fn what_must_be_in_it_draws_the_others_near() {
        let near = |must: &[u32], count| by_place(Policy::Compact, 0..32, must, count);
        assert_eq!(near(&[21], 4), named(20..24));
        assert_eq!(near(&[21], 9), named(16..25));
        assert_eq!(near(&[1, 2], 2), named([1, 2]));
        assert_eq!(near(&[1, 2], 1), named([1, 2]), "all that must be in it");
    }

    #[test]
    fn apart_is_over_packages_nodes_and_caches() {
        let apart = |count| by_place(Policy::Spread, 0..32, &[], count);
        assert_eq!(apart(2), named([0, 16]));
        assert_eq!(apart(4), named([0, 8, 16, 24]));
        assert_eq!(apart(8), named([0, 4, 8, 12, 16, 20, 24, 28]));
        assert_eq!(by_place(Policy::Spread, 0..9, &[], 9), named(0..9));
    }

    #[test]
    fn a_broken_question_is_answered_as_far_as_it_can_be() {
        for (free, must, count, chosen) in
            [(0..0, &[][..], 3, 0), (0..4, &[], -1, 0), (0..4, &[], i32::MAX, 4), (40..44, &[50], 2, 0)]
        {
            assert_eq!(by_place(Policy::Auto, free.clone(), must, count).len(), chosen, "{free:?} {count}");
        }
        let devices = devices(DeviceKind::Cores, &host(HOST));
        let twice = [named(0..4), named(0..4)].concat();
        let wish = Wish::new(&devices, &twice, &named([1]), 3, Policy::Auto);
        assert!(wish.is_open());
        assert_eq!(wish.by_place().len(), 3);
    }

    #[test]
    fn berthd_is_asked_for_one_cpu_of_each_core() {
        let devices = devices(DeviceKind::Cores, &host(HOST));
        let wish = Wish::new(&devices, &named(4..16), &named([3]), 5, Policy::Spread);
        let request = wish.question();
        assert_eq!((request.tasks, &*request.allowed, &*request.must_include), (5, "3-15", "3"));
        assert_eq!((request.policy(), request.single_cpus), (policy::Value::Spread, true));
    }

    #[test]
    fn berthd_is_asked_for_all_cores_of_caches() {
        let devices = devices(DeviceKind::Llc, &host(HOST));
        let ids: Vec<String> = devices.iter().map(|device| device.id.clone()).collect();
        let together = Wish::new(&devices, &ids, &[], 2, Policy::Auto).question();
        assert_eq!((together.tasks, &*together.allowed), (8, "0-31"));
        assert_eq!(together.policy(), policy::Value::Compact);
        assert_eq!(Wish::new(&devices, &ids, &[], 2, Policy::Spread).question().tasks, 2);
    }

    fn answer(cpus: &[&str]) -> AdviseResponse {
        let entry = |cpus: &&str| TaskEntry { cpus: (*cpus).to_owned(), ..TaskEntry::default() };
        let advice = Advice { tasks: cpus.iter().map(entry).collect(), ..Advice::default() };
        AdviseResponse { advice: Some(advice), ..AdviseResponse::default() }
    }

    #[test]
    fn an_advice_is_followed_and_made_whole() {
        let devices = devices(DeviceKind::Cores, &host(HOST));
        let wish = |count| Wish::new(&devices, &named(0..32), &[], count, Policy::Auto);
        assert_eq!(
            wish(3).advised(&answer(&["9", "30", "2"])).map(|mut ids| {
                ids.sort();
                ids
            }),
            Ok(named([2, 30, 9]))
        );
        // Two tasks on one CPU: another core is found near to it.
        assert_eq!(wish(2).advised(&answer(&["9", "9"])), Ok(named([9, 8])));
        // Too many, and some that are not there.
        assert_eq!(wish(2).advised(&answer(&["9", "10", "11", "77"])), Ok(named([9, 10])));
        for none in [AdviseResponse::default(), answer(&[]), answer(&["77"]), answer(&["x"])] {
            assert!(wish(2).advised(&none).is_err(), "{none:?}");
        }
        // Of caches those with most of the tasks.
        let caches = super::super::device::tests::devices(DeviceKind::Llc, &host(HOST));
        let ids: Vec<String> = caches.iter().map(|device| device.id.clone()).collect();
        let wish = Wish::new(&caches, &ids, &[], 1, Policy::Auto);
        assert_eq!(wish.advised(&answer(&["0", "8", "9", "10"])), Ok(vec!["llc-8".to_owned()]));
    }
}
