//! What the fuzzer runs of the server's parsers, and the tests run over the corpora: each target takes any bytes, as a
//! kernel never writes them or as a user has put them into a name, and must neither panic nor be misled.

use berth_model::Cpu;
use berth_server::{
    auth::cpuset,
    ingest::load::{debug, stat, task::Task},
};
use std::path::Component;

/// Two readings of `/proc/stat`, half of the bytes each: shares are shares.
pub(crate) fn stat(bytes: &[u8]) {
    let (before, after) = bytes.split_at(bytes.len() / 2);
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    let [before, after] = [before, after].map(|bytes| stat::parse(&text(bytes)));
    let whole = stat::parse(&text(bytes));
    for (before, after) in [(&before, &after), (&after, &before), (&whole, &whole)] {
        for (cpu, busy) in stat::between(before, after) {
            assert!(before.contains_key(&cpu) && after.contains_key(&cpu));
            let shares = [busy.utilisation, busy.steal, busy.irq];
            assert!(shares.iter().all(|share| (0.0..=1.0).contains(share)), "{busy:?}");
            for counted in [0, 1, 7, u32::MAX] {
                assert!(busy.allows(busy.allows(counted)) == busy.allows(counted));
            }
        }
    }
}

/// A line of `/proc/PID/stat`; and one whose name these bytes are.
pub(crate) fn tasks(bytes: &[u8]) {
    let _ = Task::parse(bytes);
    let rest = b") R 9 7 7 0 -1 4194304 10 0 0 0 3 4 0 0 20 0 2 0 4242 1 1 1 1 1 0 0 0 0 0 0 0 0 0 0 17 639 0 1 0 0\n";
    let name = &bytes[..bytes.len().min(64)];
    let line = [b"77 (", name, rest].concat();
    let read = std::str::from_utf8(name).ok().map(|_| Task::parse(&line).expect("it is a line"));
    // A name of any bytes is no reason to lose the task.
    let task = read.or_else(|| Task::parse(&line)).expect("it is a line");
    assert_eq!((task.tid, task.parent, task.cpu.number()), (77, 9, 639));
    assert_eq!((task.ticks, task.threads, task.start_time), (7, 2, 4242));
    assert!(task.is_runnable() && task.is_realtime && !task.is_dead() && !task.is_kernel);
}

/// The scheduler's debug file; and one in which a task has these bytes as its name.
pub(crate) fn queues(bytes: &[u8]) {
    debug::parse(bytes);
    let name = &bytes[..bytes.len().min(15)];
    let padded = [&b"               "[name.len()..], name].concat();
    let head = b"cpu#3, 2100.000 MHz\n  .nr_running  : 3\n  .nr_switches : 5\n  .curr->pid : 12\n\nrunnable tasks:\n R ";
    let tail = b"  1501       512.031001        12   120\n\ncpu#5, 2100.000 MHz\n  .nr_running : 0\n  .curr->pid : 0\n";
    let queues = debug::parse(&[head, padded.as_slice(), tail].concat());
    let told: Vec<(u32, u32, u32)> =
        queues.iter().map(|(cpu, queue): (&Cpu, _)| (cpu.number(), queue.runnable, queue.running)).collect();
    assert_eq!(told, [(3, 3, 12), (5, 0, 0)]);
}

/// `/proc/PID/cgroup`, up to the first zero, and `/proc/self/mountinfo`: a cgroup does not lead out of its mount.
pub(crate) fn cgroups(bytes: &[u8]) {
    let text = String::from_utf8_lossy(bytes);
    let (cgroups, mounts) = text.split_once('\0').unwrap_or((&text, ""));
    cpuset::files(cgroups, mounts);
    let own =
        "30 20 0:26 / /cgroup rw - cgroup2 cgroup2 rw\n31 20 0:27 / /cgroup rw - cgroup cgroup rw,cpuset\n";
    for file in cpuset::files(&text, own) {
        assert!(file.starts_with("/cgroup"), "{}", file.display());
        assert!(file.components().all(|part| part != Component::ParentDir), "{}", file.display());
    }
}
