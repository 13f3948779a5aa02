//! Threads that never sleep, bound to one CPU.

use berth_model::cpuset::{Cpu, CpuSet};
use rustix::thread::{self, sched_getaffinity, sched_setaffinity};
use std::{
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    thread::JoinHandle,
};

/// The CPUs that this process may use.
pub(crate) fn allowed() -> CpuSet {
    let set = sched_getaffinity(None).unwrap();
    (0..1024_u16).map(Cpu::from).filter(|cpu| set.is_set(cpu.index())).collect()
}

/// Such threads of this process, until they are dropped.
pub(crate) struct Spinning {
    stop: Arc<AtomicBool>,
    threads: Vec<JoinHandle<()>>,
}

impl Spinning {
    pub(crate) fn start(threads: usize, cpu: Cpu) -> Self {
        let stop = Arc::new(AtomicBool::new(false));
        let spin = |_| {
            let stop = Arc::clone(&stop);
            std::thread::spawn(move || {
                let mut set = thread::CpuSet::new();
                set.set(cpu.index());
                sched_setaffinity(None, &set).unwrap();
                while !stop.load(Ordering::Relaxed) {
                    std::hint::spin_loop();
                }
            })
        };
        Self { threads: (0..threads).map(spin).collect(), stop }
    }
}

impl Drop for Spinning {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
        for thread in self.threads.drain(..) {
            let _ = thread.join();
        }
    }
}
