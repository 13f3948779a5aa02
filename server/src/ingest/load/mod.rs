//! What runs on the host: how busy each CPU was, and which tasks are runnable where.
//!
//! * [`stat`]: shares of time from `/proc/stat`.
//! * [`debug`]: how many tasks each run queue holds, from the scheduler's debug file.
//! * [`scan`]: every runnable task, from the states of all threads.
//! * [`pinned`]: which of them may not run everywhere.
//! * [`crowd`]: whether pinned tasks wait while CPUs are idle.
//! * [`owned`]: which tasks belong to owners of holds.
//! * [`task`]: one thread's line, which it is read from.
//!
//! Parsing is pure; each reading is a handful of small files below a root that is `/` but in tests.

pub mod crowd;
pub mod debug;
pub mod owned;
pub mod pinned;
pub mod scan;
mod settings;
pub mod stat;
pub mod task;

pub use settings::Method;
pub use stat::Busy;

/// Where a number of runnable tasks comes from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Source {
    /// The scheduler's debug file.
    Debug,
    /// The states of all threads.
    Threads,
    /// An estimate from utilisation.
    Estimate,
    /// Another agent.
    Reported,
}
