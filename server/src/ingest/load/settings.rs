//! How the load is measured.

/// How runnable tasks are counted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Method {
    /// In the cheapest source that is exact, else estimated.
    #[default]
    Auto,
    /// In the scheduler's debug file.
    Debug,
    /// By the states of all threads.
    Threads,
    /// Not at all: estimated from utilisation.
    Estimate,
}
