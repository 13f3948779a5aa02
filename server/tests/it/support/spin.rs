//! Threads that never sleep, bound to one CPU.

use berth_model::cpuset::{Cpu, CpuSet};
use rustix::{
    process::{Pid, Signal, kill_process},
    thread::{self, sched_getaffinity, sched_setaffinity},
};
use std::{
    process::{Child, Command},
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

/// A process of one such thread, killed when it is dropped.
pub(crate) struct Process(Child);

impl Process {
    pub(crate) fn start(cpu: Cpu) -> Self {
        // It inherits the mask of the thread that starts it.
        let start = move || {
            bind(cpu);
            Command::new("/bin/sh").args(["-c", "while :; do :; done"]).spawn().unwrap()
        };
        Self(std::thread::spawn(start).join().unwrap())
    }

    pub(crate) fn pid(&self) -> u32 {
        self.0.id()
    }

    /// Lets it sleep.
    pub(crate) fn pause(&self) {
        kill_process(self.rustix_pid(), Signal::STOP).unwrap();
    }

    pub(crate) fn go_on(&self) {
        kill_process(self.rustix_pid(), Signal::CONT).unwrap();
    }

    fn rustix_pid(&self) -> Pid {
        Pid::from_child(&self.0)
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Binds the calling thread.
fn bind(cpu: Cpu) {
    let mut set = thread::CpuSet::new();
    set.set(cpu.index());
    sched_setaffinity(None, &set).unwrap();
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
                bind(cpu);
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
