//! What the fuzzer runs, and the tests run over the corpora: each target takes any bytes and must neither panic nor
//! break what it promises.

use berth_model::{
    Cpu, CpuSet,
    domains::{Domains, chains},
    load::{Averages, CpuLoad, Load},
    predict::{
        Burst, Children, Entry, Host, Markable, Marks, Parent, Search, Settling, Symmetry, Weight, explore,
        place, predict, settle,
    },
    profile::{self, KernelIdentity, Profile},
    topology::{Description, NodeDescription, Processor, PuDescription, Topology},
};

/// Kernel texts, one a line: release, version, signature.
pub(crate) fn versions(bytes: &[u8]) {
    let Ok(text) = std::str::from_utf8(bytes) else { return };
    let mut lines = text.split('\n');
    let release = lines.next().unwrap_or_default();
    let identity = KernelIdentity {
        release: release.to_owned(),
        version: lines.next().map(str::to_owned),
        version_signature: lines.next().map(str::to_owned),
    };
    for candidates in [profile::candidates(&identity), profile::from_text(release)] {
        match candidates {
            Ok(candidates) => {
                assert!(!candidates.profiles.is_empty() && !candidates.evidence.is_empty());
                let names: Vec<&str> = candidates.profiles.iter().map(|profile| profile.name).collect();
                assert!(names.iter().all(|name| Profile::named(name).is_some()), "{names:?}");
            }
            // Messages stand on one line, and are short.
            Err(error) => {
                let said = error.to_string();
                assert!(said.len() < 2048 && !said.contains('\n'), "{said:?}");
            }
        }
    }
}

/// A set of CPUs in any form: what can be read comes back the same from each of its forms.
pub(crate) fn cpulists(bytes: &[u8]) {
    let Ok(text) = std::str::from_utf8(bytes) else { return };
    match CpuSet::parse(text) {
        Ok(set) if set.is_empty() => {}
        Ok(set) => {
            for form in [set.to_string(), set.to_hex(), set.to_groups()] {
                assert_eq!(CpuSet::parse(&form).as_ref(), Ok(&set), "{form}");
            }
            assert_eq!(set.iter().count(), set.len());
        }
        Err(error) => assert!(error.to_string().len() < 2048, "{error}"),
    }
}

/// Two sets, a byte for eight CPUs: what set algebra promises.
pub(crate) fn masks(bytes: &[u8]) {
    let (a, b) = bytes.split_at(bytes.len() / 2);
    let set = |bytes: &[u8]| -> CpuSet {
        let bits = bytes
            .iter()
            .enumerate()
            .flat_map(|(i, byte)| (0..8).filter(move |bit| byte >> bit & 1 == 1).map(move |bit| i * 8 + bit));
        bits.filter_map(|cpu| u32::try_from(cpu).ok().and_then(Cpu::try_new)).collect()
    };
    let (a, b) = (set(a), set(b));
    let (both, either, only) = (a.intersection(&b), a.union(&b), a.difference(&b));
    assert_eq!(both.len(), a.intersection_len(&b));
    assert_eq!(either.len() + both.len(), a.len() + b.len());
    assert_eq!(only.union(&both), a);
    assert_eq!(a.intersects(&b), !both.is_empty());
    assert!(both.is_subset(&a) && a.is_subset(&either) && !only.intersects(&b));
    assert_eq!((a.first(), a.last()), (a.iter().next(), a.iter().last()));
    let walked = a.first().and_then(|first| a.next_wrapping(first));
    assert!(walked.is_none_or(|next| a.contains(next)));
    for form in [a.to_string(), a.to_hex(), a.to_groups()] {
        assert!(a.is_empty() || CpuSet::parse(&form).as_ref() == Ok(&a), "{form}");
    }
}

/// The most CPUs of a host that is made of bytes.
const MOST: u8 = 48;

/// A host of any shape, what runs on it, a kernel and a launch: domains, placement and load balancing. Tasks go to
/// allowed CPUs, and none is lost. Cores that reach over nodes and the like are allowed: no host, but no reason to panic.
pub(crate) fn topologies(bytes: &[u8]) {
    let mut bytes = Bytes(bytes);
    let profiles = profile::all();
    let profile = &profiles[usize::from(bytes.next()) % profiles.len()];
    let Ok(topology) = Topology::try_new(description(&mut bytes)) else { return };
    let online: Vec<Cpu> = topology.online().iter().collect();
    let domains = Domains::build(&topology, profile);
    for &cpu in &online {
        for domain in domains.of(cpu) {
            assert!(domain.span().contains(cpu) && domain.groups().len() > 0);
        }
    }
    for chain in chains(&topology, profile, topology.online()) {
        let stays = chain.levels.iter().filter(|level| level.vanishes.is_none()).count();
        assert_eq!(stays, domains.of(chain.cpu).len());
    }

    let mut load = Load::idle();
    for &cpu in &online {
        let runnable = u32::from(bytes.next().saturating_sub(200) % 8);
        load.set(cpu, CpuLoad { runnable, utilisation: None });
    }
    let mut allowed: CpuSet = online.iter().copied().filter(|_| bytes.next() % 3 > 0).collect();
    let origin = online[usize::from(bytes.next()) % online.len()];
    if allowed.is_empty() {
        allowed.insert(origin);
    }
    let parent = [Parent::Waits, Parent::Runs, Parent::IsTask, Parent::Sleeps][usize::from(bytes.next() % 4)];
    let entry = [Entry::Fork, Entry::Exec][usize::from(bytes.next() % 2)];
    let launch = bytes.next();
    let children = [Children::Running, Children::Asleep][usize::from(launch % 4 == 2)];
    let parent_weight = [Weight::Fresh, Weight::Settled, Weight::Light][usize::from(launch % 3)];
    let gap = [0, 100, 30_000][usize::from(launch / 4 % 3)];
    let marks = [Marks::Never, Marks::Expected, Marks::AtOnce][usize::from(launch / 16 % 3)];
    let tasks = u32::from(bytes.next() % 64) + 1;
    for &cpu in &online {
        let (known, size) = (bytes.next(), u32::from(bytes.next()));
        let average = |bit: u8, unit: u32| (known >> bit & 1 == 1).then_some(size << unit);
        load.set_averages(
            cpu,
            Averages { load: average(0, 24), util: average(1, 3), runnable: average(2, 24) },
        );
    }
    let host = Host { topology: &topology, domains: &domains, profile, load: &load };
    let frozen = Burst::forks(&allowed, tasks, origin);
    let burst = Burst { parent, entry, children, parent_weight, gap, marks, ..frozen };
    let places = place(host, &burst);
    assert_eq!(places.len(), tasks as usize);
    let own = usize::from(parent == Parent::IsTask);
    assert!(places[own..].iter().all(|&cpu| allowed.contains(cpu)), "{places:?} outside {allowed}");
    let told = predict(host, &burst);
    assert_eq!(told.tasks.iter().map(|task| task.cpu).collect::<Vec<_>>(), places);

    let symmetry = Symmetry::new(&topology, &domains);
    let limits = Search {
        marks: Markable::Crowded,
        weights: gap > 0,
        stop_at_pile_up: true,
        runs: 64,
        looks: 1 << 14,
    };
    let explored = explore(host, &burst, &symmetry, limits);
    assert!(explored.refused.iter().all(|run| run.tally.pile_up));
    assert!(explored.refused.is_some() || !burst.tally(host, &places).pile_up);
    assert!(explored.ends.iter().all(|run| run.places.len() == tasks as usize));

    let settled = settle(host, &burst, &places, Settling { horizon_ms: 200, ..Settling::default() });
    assert_eq!(settled.places.len(), places.len());
    assert!(settled.fullest_least <= settled.fullest_most);
}

/// Bytes, and zeroes once they are used up.
struct Bytes<'a>(&'a [u8]);

impl Bytes<'_> {
    fn next(&mut self) -> u8 {
        let Some((&first, rest)) = self.0.split_first() else { return 0 };
        self.0 = rest;
        first
    }

    fn below(&mut self, bound: u8) -> u32 {
        u32::from(self.next() % bound)
    }
}

fn description(bytes: &mut Bytes<'_>) -> Description {
    let count = bytes.next() % MOST + 1;
    let nodes = bytes.next() % 6 + 1;
    let some = |bytes: &mut Bytes<'_>, one_in: u8| bytes.next() % one_in == one_in - 1;
    let pus = (0..count).map(|i| PuDescription {
        cpu: Cpu::from(u16::from(i) * 3 + u16::from(bytes.next() % 3)),
        package: bytes.below(3),
        node: bytes.below(nodes),
        llc: bytes.below(8),
        core: bytes.below(32),
        cluster: if some(bytes, 3) { Some(bytes.below(16)) } else { None },
        capacity: if some(bytes, 16) { 512 } else { 1024 },
    });
    let pus: Vec<PuDescription> = pus.collect();
    let distances = some(bytes, 2).then(|| {
        let row = |from: u8, bytes: &mut Bytes<'_>| {
            (0..nodes).map(|to| if from == to { 10 } else { 10 + bytes.below(40) }).collect()
        };
        (0..nodes).map(|from| row(from, bytes)).collect()
    });
    let taken = |bytes: &mut Bytes<'_>, one_in: u8| -> CpuSet {
        pus.iter().map(|pu| pu.cpu).filter(|_| bytes.next() % one_in == one_in - 1).collect()
    };
    let (offline, isolated, disallowed) = (taken(bytes, 16), taken(bytes, 8), taken(bytes, 16));
    let partitions = (0..bytes.next() % 3).map(|_| taken(bytes, 4)).collect();
    let vendor = if some(bytes, 2) { "AuthenticAMD" } else { "" };
    Description {
        nodes: (0..nodes).map(|id| NodeDescription { id: id.into(), memory: None }).collect(),
        pus,
        distances,
        offline,
        isolated,
        disallowed,
        partitions,
        processor: Processor { vendor: vendor.to_owned(), family: Some(0x19) },
    }
}
