//! The book of holds under any sequence of operations.

use crate::bursts::{cpu, cpus};
use berth_model::{
    Cpu, CpuSet,
    hold::{
        Book, End, Error, Gone, Hold, Id, MAX_ENDED, Mode, Moment, New, Owner, Part, Process, Running, Uid,
    },
    load::{CpuLoad, Load},
};
use proptest::{collection::vec, option, prelude::*, sample};
use std::{collections::BTreeMap, time::Duration};

fn new(uid: u32, cpus: &CpuSet) -> New {
    New {
        uid: Uid(uid),
        name: String::new(),
        owner: Owner::Lease,
        parts: if cpus.is_empty() { Vec::new() } else { vec![Part::spread(cpus, 1)] },
        mode: Mode::Shared,
        claim: None,
        foreign: false,
        keep: true,
        ttl: Some(Duration::from_secs(5)),
        before: 0,
        request_id: String::new(),
        labels: BTreeMap::new(),
    }
}

fn at(seconds: u64) -> Moment {
    Moment::since_boot(Duration::from_secs(seconds))
}

fn process(pid: u32) -> Owner {
    Owner::Process(Process { pid, start_time: 7 })
}

fn ended(book: &Book, hold: &Hold) -> Option<End> {
    book.get(hold.id).unwrap().ended.map(|ended| ended.why)
}

#[test]
fn exclusive_cpus_are_nobody_elses() {
    let mut book = Book::default();
    let alone = New { mode: Mode::Exclusive, ..new(1, &cpus("0-3")) };
    let first = book.make(alone.clone(), at(0)).unwrap();
    for other in [new(1, &cpus("3-4")), New { mode: Mode::Exclusive, ..new(2, &cpus("2")) }] {
        let error = book.make(other.clone(), at(0)).unwrap_err();
        let cpus = if other.parts[0].cpus().contains(cpu(2)) { cpus("2") } else { cpus("3") };
        assert_eq!(error, Error::Taken { cpus, by: vec![first.id] });
    }
    let beside = book.make(new(1, &cpus("4")), at(0)).unwrap();
    assert_eq!(book.closed_to(Mode::Shared, &cpus("0-7")), cpus("0-3"));
    assert_eq!(book.closed_to(Mode::Exclusive, &cpus("0-7")), cpus("0-4"));
    // What another manager gave out is known all the same, and the owner is told.
    let foreign = book.make(New { foreign: true, ..new(0, &cpus("0")) }, at(0)).unwrap();
    let first = book.get(first.id).unwrap();
    assert_eq!(book.intruders_of(first).map(|hold| hold.id).collect::<Vec<_>>(), [foreign.id]);
    assert_eq!(first.generation, foreign.generation);
    assert_eq!(book.intruders_of(&beside).count(), 0);
    book.check().unwrap();
}

#[test]
fn each_end_says_why() {
    let mut book = Book::default();
    let make = |book: &mut Book, change: &dyn Fn(&mut New)| {
        let mut wanted = New { ttl: None, owner: process(1), ..new(1, &cpus("1")) };
        change(&mut wanted);
        book.make(wanted, at(1)).unwrap()
    };
    let lease = make(&mut book, &|new| (new.owner, new.ttl) = (Owner::Lease, Some(Duration::from_secs(3))));
    let dies = make(&mut book, &|_| {});
    let cgroup = make(&mut book, &|new| new.owner = Owner::Cgroup("/a".to_owned()));
    let short = make(&mut book, &|new| new.keep = false);
    let claim = make(&mut book, &|new| new.parts.clear());
    let step = make(&mut book, &|new| (new.claim, new.owner) = (Some(claim.id), Owner::Lease));
    let stays = make(&mut book, &|_| {});

    book.expire(at(3));
    assert_eq!(ended(&book, &lease), None);
    book.expire(at(4));
    assert_eq!(ended(&book, &lease), Some(End::Expired));
    let gone = |hold: &Hold, owner: Owner| Gone { id: hold.id, owner };
    book.owners_gone(&[gone(&dies, process(1)), gone(&stays, process(2))], at(4));
    book.owners_gone(&[gone(&cgroup, Owner::Cgroup("/a".to_owned()))], at(4));
    assert_eq!(ended(&book, &dies), Some(End::ProcessDied));
    assert_eq!(ended(&book, &cgroup), Some(End::CgroupEmpty));
    // The short one and the two others on this CPU: three tasks have to be there.
    let running =
        |tasks| -> Load { [(cpu(1), CpuLoad { runnable: tasks, utilisation: None })].into_iter().collect() };
    book.measured(&running(3), at(0), at(5));
    assert_eq!(ended(&book, &short), None, "made after the sample began");
    book.measured(&running(1), at(1), at(5));
    assert_eq!((ended(&book, &short), ended(&book, &stays)), (Some(End::TasksSeen), None));
    assert_eq!(book.release(claim.id, at(6)).unwrap().also, 1);
    assert_eq!((ended(&book, &claim), ended(&book, &step)), (Some(End::Released), Some(End::ClaimEnded)));
    assert_eq!(book.release(claim.id, at(6)).unwrap_err(), Error::NotFound);
    book.reboot();
    assert_eq!(ended(&book, &stays), Some(End::Rebooted));
    assert!(book.is_empty());
    book.check().unwrap();
}

/// One task that runs is not what two holds of its CPU wait for.
#[test]
fn a_task_is_seen_for_one_hold() {
    let mut book = Book::default();
    let short = New { keep: false, ..new(1, &cpus("0")) };
    let first = book.make(short.clone(), at(0)).unwrap();
    let second = book.make(short, at(0)).unwrap();
    let running =
        |tasks| -> Load { [(cpu(0), CpuLoad { runnable: tasks, utilisation: None })].into_iter().collect() };
    for _ in 0..3 {
        book.measured(&running(1), at(0), at(1));
        assert_eq!((ended(&book, &first), ended(&book, &second)), (Some(End::TasksSeen), None));
        let mut load = running(1);
        book.count_on(&mut load, &Running::new(), &cpus("0"));
        assert_eq!(
            load.taken(cpu(0)),
            1,
            "held by the second, which is the one that runs as far as can be told"
        );
    }
    book.measured(&running(2), at(0), at(1));
    assert_eq!(ended(&book, &second), Some(End::TasksSeen));
}

#[test]
fn a_hold_that_lost_cpus_is_kept_and_marked() {
    let mut book = Book::default();
    let hold = book.make(new(1, &cpus("0-3")), at(0)).unwrap();
    book.online(&cpus("0-1,4"));
    let marked = book.get(hold.id).unwrap();
    assert_eq!((marked.missing.clone(), marked.ended), (cpus("2-3"), None));
    assert!(marked.generation > hold.generation);
    book.online(&cpus("0-7"));
    assert!(book.get(hold.id).unwrap().missing.is_empty());
}

/// How holds ended is forgotten first of those who end most, and there what ended first.
#[test]
fn traffic_of_one_user_does_not_make_others_be_forgotten() {
    let mut book = Book::default();
    let claim = |book: &mut Book, uid, now| book.make(new(uid, &CpuSet::new()), at(now)).unwrap().id;
    let (quiet, long_lived) = (claim(&mut book, 1, 0), claim(&mut book, 2, 0));
    book.release(quiet, at(0)).unwrap();
    let busy: Vec<Id> = (0..MAX_ENDED).map(|_| claim(&mut book, 2, 1)).collect();
    // From the last to the first: what ended first is not what was made first.
    for (now, id) in (1..).zip(busy.iter().rev()) {
        book.release(*id, Moment::since_boot(Duration::from_millis(1000 + now))).unwrap();
    }
    book.release(long_lived, at(3)).unwrap();
    let first: Vec<Id> = busy.iter().rev().take(2).copied().collect();
    assert_eq!(book.forget(at(3)), first);
    assert_eq!(book.ended().count(), MAX_ENDED);
    assert!(book.get(quiet).is_some() && book.get(long_lived).is_some());
    book.check().unwrap();
}

#[test]
fn an_adopted_hold_ends_with_its_new_owner() {
    let mut book = Book::default();
    let hold = book.make(New { keep: false, ..new(1, &cpus("0")) }, at(0)).unwrap();
    book.adopt(hold.id, process(9), false).unwrap();
    book.expire(at(100));
    book.measured(
        &[(cpu(0), CpuLoad { runnable: 1, utilisation: None })].into_iter().collect(),
        at(1),
        at(2),
    );
    assert_eq!(ended(&book, &hold), None);
    assert_eq!(book.adopt(hold.id, Owner::Lease, false).unwrap_err(), Error::Endless);
    book.owners_gone(&[Gone { id: hold.id, owner: process(9) }], at(101));
    assert_eq!(ended(&book, &hold), Some(End::ProcessDied));
}

#[derive(Debug, Clone)]
enum Op {
    Make {
        uid: u32,
        cpus: CpuSet,
        exclusive: bool,
        foreign: bool,
        keep: bool,
        ttl: Option<u64>,
        pid: Option<u32>,
        claim: Option<u64>,
        name: bool,
    },
    Renew {
        id: u64,
        ttl: Option<u64>,
    },
    Release {
        id: u64,
    },
    Adopt {
        id: u64,
        pid: u32,
        keep_expiry: bool,
    },
    Pass {
        seconds: u64,
    },
    Dies {
        pid: u32,
    },
    Measured {
        running: Vec<(Cpu, u32)>,
    },
    Online {
        online: CpuSet,
    },
    Forget,
}

fn op() -> impl Strategy<Value = Op> {
    let some = || vec((0u16..12).prop_map(Cpu::from), 0..5);
    let set = move || some().prop_map(|cpus| cpus.into_iter().collect::<CpuSet>());
    let make = (
        0u32..3,
        set(),
        any::<bool>(),
        0u8..8,
        any::<bool>(),
        option::of(1u64..20),
        option::of(0u32..4),
        option::of(1u64..12),
        0u8..4,
    );
    let make = make.prop_map(|(uid, cpus, exclusive, foreign, keep, ttl, pid, claim, name)| Op::Make {
        uid,
        cpus,
        exclusive,
        foreign: foreign == 0,
        keep,
        ttl,
        pid,
        claim: claim.filter(|id| id % 3 == 0),
        name: name == 0,
    });
    let id = || 0u64..30;
    prop_oneof![
        6 => make,
        1 => (id(), option::of(1u64..20)).prop_map(|(id, ttl)| Op::Renew { id, ttl }),
        2 => id().prop_map(|id| Op::Release { id }),
        1 => (id(), 0u32..4, any::<bool>()).prop_map(|(id, pid, keep_expiry)| Op::Adopt { id, pid, keep_expiry }),
        3 => sample::select(vec![0u64, 1, 3, 30, 700]).prop_map(|seconds| Op::Pass { seconds }),
        1 => (0u32..4).prop_map(|pid| Op::Dies { pid }),
        2 => vec(((0u16..12).prop_map(Cpu::from), 0u32..4), 0..8).prop_map(|running| Op::Measured { running }),
        1 => set().prop_map(|online| Op::Online { online }),
        1 => Just(Op::Forget),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 256, failure_persistence: None, ..ProptestConfig::default() })]

    /// No CPU is anybody else's while it is held alone; what was acknowledged is in force, or has ended for a reason that
    /// was given it; what was refused has changed nothing; what is written down and read back is the same.
    #[test]
    fn any_operations(ops in vec(op(), 1..60)) {
        let mut book = Book::default();
        let mut now = 0;
        // Of each hold that was made: every reason that it has been given to end.
        let mut reasons: BTreeMap<Id, Vec<End>> = BTreeMap::new();
        for op in ops {
            let before = book.clone();
            let mut refused = false;
            let living: Vec<Hold> = before.living().map(|hold| (**hold).clone()).collect();
            let mut reason = |why: End, of: &dyn Fn(&Hold) -> bool| {
                living.iter().filter(|hold| of(hold)).for_each(|hold| reasons.entry(hold.id).or_default().push(why));
            };
            match op {
                Op::Make { uid, cpus, exclusive, foreign, keep, ttl, pid, claim, name } => {
                    let mode = if exclusive { Mode::Exclusive } else { Mode::Shared };
                    let wanted = New {
                        mode, foreign, keep,
                        ttl: ttl.map(Duration::from_secs),
                        owner: pid.map_or(Owner::Lease, process),
                        claim: claim.map(Id::new),
                        name: if name { "name".to_owned() } else { String::new() },
                        ..new(uid, &cpus)
                    };
                    let closed = before.living().any(|other| {
                        let alone = exclusive || other.mode == Mode::Exclusive;
                        alone && other.overlaps(&cpus)
                    });
                    match book.make(wanted, at(now)) {
                        Ok(hold) => {
                            prop_assert!(foreign || !closed);
                            reasons.insert(hold.id, Vec::new());
                        }
                        Err(error) => {
                            let taken = matches!(error, Error::Taken { .. });
                            prop_assert!(!taken || (closed && !foreign));
                            refused = true;
                        }
                    }
                }
                Op::Renew { id, ttl } => refused = book.renew(Id::new(id), ttl.map(Duration::from_secs), at(now)).is_err(),
                Op::Release { id } => {
                    reason(End::Released, &|hold| hold.id.number() == id);
                    refused = book.release(Id::new(id), at(now)).is_err();
                }
                Op::Adopt { id, pid, keep_expiry } => refused = book.adopt(Id::new(id), process(pid), keep_expiry).is_err(),
                Op::Pass { seconds } => {
                    now += seconds;
                    reason(End::Expired, &|hold| hold.expiry.is_some_and(|expiry| expiry.at <= at(now)));
                    book.expire(at(now));
                    prop_assert!(book.next_end().is_none_or(|next| next > at(now)));
                }
                Op::Dies { pid } => {
                    reason(End::ProcessDied, &|hold| hold.owner == process(pid));
                    let gone: Vec<Gone> = living.iter().map(|hold| Gone { id: hold.id, owner: process(pid) }).collect();
                    book.owners_gone(&gone, at(now));
                }
                Op::Measured { running } => {
                    let load: Load = running.into_iter().map(|(cpu, runnable)| (cpu, CpuLoad { runnable, utilisation: None })).collect();
                    reason(End::TasksSeen, &|hold| {
                        let on: u32 = hold.cpus().iter().map(|cpu| load.runnable(cpu)).sum();
                        !hold.keep && on >= hold.tasks()
                    });
                    book.measured(&load, at(now), at(now));
                }
                Op::Online { online } => {
                    book.online(&online);
                    for hold in book.living() {
                        prop_assert_eq!(&hold.missing, &hold.cpus().difference(&online));
                    }
                }
                Op::Forget => {
                    for id in book.forget(at(now)) {
                        prop_assert!(reasons.remove(&id).is_some_and(|reasons| !reasons.is_empty()));
                    }
                }
            }
            prop_assert!(book.check().is_ok(), "{:?}", book.check());
            if refused {
                prop_assert_eq!(book.generation(), before.generation());
                prop_assert_eq!(book.len(), before.len());
            }
            for hold in book.changed_since(before.generation()) {
                prop_assert!(before.get(hold.id) != Some(hold), "unchanged, and in a new generation");
            }
            for (id, reasons) in &reasons {
                let hold = book.get(*id);
                prop_assert!(hold.is_some(), "{id} vanished");
                match hold.unwrap().ended.map(|ended| ended.why) {
                    None => {}
                    Some(End::ClaimEnded) => prop_assert!(hold.unwrap().claim.is_some_and(|claim| book.get(claim).is_none_or(|claim| claim.ended.is_some()))),
                    Some(why) => prop_assert!(reasons.contains(&why), "{id} ended by {why:?}, of {reasons:?}"),
                }
            }
            // A claim's children are forgotten with their own time: they have a reason by then.
            let ends: Vec<Id> = book.ended().filter(|hold| hold.ended.unwrap().why == End::ClaimEnded).map(|hold| hold.id).collect();
            for id in ends {
                reasons.get_mut(&id).unwrap().push(End::ClaimEnded);
            }
            let holds = book.changed_since(0).map(|hold| (**hold).clone());
            let again = Book::restore(book.last_id(), book.generation(), holds).unwrap();
            prop_assert!(again.living().eq(book.living()) && again.ended().eq(book.ended()));
        }
    }
}
