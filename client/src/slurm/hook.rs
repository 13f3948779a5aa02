//! Whatever happens, a hook ends in time and with status 0.

use std::{
    ffi::{OsStr, OsString},
    panic::{self, AssertUnwindSafe},
    process, thread,
    time::{Duration, Instant},
};

use super::host;
use crate::cli::Cli;

/// How long a hook takes at most, from the start of its process.
const LIMIT: Duration = Duration::from_secs(2);
/// So much before that it stops asking, to say what it has.
const TO_SAY_IT: Duration = Duration::from_millis(200);
/// The commands that Slurm runs.
const HOOKS: [&str; 3] = ["prolog", "task-prolog", "epilog"];

/// Whether these arguments, the program's name first, call a hook.
pub fn is_hook(args: &[OsString]) -> bool {
    let before_rest = args.split(|arg| arg == "--").next().unwrap_or_default();
    let is = |pair: &[OsString]| pair[0] == "slurm" && HOOKS.iter().any(|hook| pair[1] == OsStr::new(hook));
    before_rest.windows(2).any(is)
}

/// Runs a hook. Returns, or ends the process with status 0.
pub fn run(args: Vec<OsString>) {
    // A message and a trace would go to the job.
    panic::set_hook(Box::new(|_| {}));
    let watchdog = || {
        thread::sleep(deadline(LIMIT).saturating_duration_since(Instant::now()));
        process::exit(0);
    };
    // Where no thread can be had, only each call has its limit.
    let _ = thread::Builder::new().stack_size(64 << 10).spawn(watchdog);
    never_panics(|| match Cli::of(args) {
        Ok(cli) => _ = crate::run(&cli),
        Err(error) => _ = error.print(),
    });
}

/// The moment until which answers are waited for.
pub(super) fn last_call() -> Instant {
    deadline(LIMIT.saturating_sub(TO_SAY_IT))
}

fn deadline(limit: Duration) -> Instant {
    // On a busy machine it may have waited for a CPU before it came here.
    Instant::now() + limit.saturating_sub(host::age().unwrap_or_default())
}

fn never_panics(run: impl FnOnce()) {
    let _ = panic::catch_unwind(AssertUnwindSafe(run));
}

#[cfg(test)]
mod tests {
    use super::*;

    fn typed(line: &str) -> bool {
        is_hook(&line.split_whitespace().map(OsString::from).collect::<Vec<_>>())
    }

    #[test]
    fn hooks_are_known_by_their_names() {
        for hook in
            ["berth slurm prolog", "berth --server x slurm task-prolog --nonsense", "berth slurm epilog -v"]
        {
            assert!(typed(hook), "{hook}");
        }
        for other in ["", "berth", "berth slurm", "berth slurm install", "berth hold -n 1 -- slurm prolog"] {
            assert!(!typed(other), "{other}");
        }
    }

    #[test]
    fn a_panic_goes_no_further() {
        never_panics(|| panic!("of this test"));
    }
}
