//! A command that runs while CPUs are held for it.

use std::{ffi::OsStr, fs, io, os::unix::process::ExitStatusExt as _, process::ExitStatus};

use berth_model::CpuSet;
use rustix::{
    process::{Pid, Signal, getpgrp, kill_process},
    termios::tcgetpgrp,
};
use tokio::{
    process::{Child, Command},
    signal::unix::{SignalKind, signal},
    sync::mpsc,
};

use crate::{Error, Exit, affinity};

/// Signals that are passed on, and whether a terminal sends them to the command itself.
const SIGNALS: [(Signal, bool); 6] = [
    (Signal::HUP, true),
    (Signal::INT, true),
    (Signal::QUIT, true),
    (Signal::TERM, false),
    (Signal::USR1, false),
    (Signal::USR2, false),
];

/// A running command.
#[derive(Debug)]
pub(crate) struct Running {
    child: Child,
    signals: mpsc::Receiver<Signal>,
}

impl Running {
    /// Starts the command, with these variables beside those it inherits.
    ///
    /// # Errors
    ///
    /// It cannot be started.
    pub(crate) fn start(
        program: &OsStr,
        args: &[impl AsRef<OsStr>],
        variables: impl IntoIterator<Item = (&'static str, String)>,
    ) -> Result<Self, Error> {
        let failed = |source| Error::NotStarted { program: program.to_owned(), source };
        // Caught before it starts, so that none ends this process alone; what is caught is not inherited.
        let signals = caught().map_err(failed)?;
        let child = Command::new(program).args(args).envs(variables).spawn().map_err(failed)?;
        Ok(Self { child, signals })
    }

    /// Its process id; `None` once it has ended.
    pub(crate) fn pid(&self) -> Option<u32> {
        self.child.id()
    }

    /// Waits until it ends, and passes signals on to it.
    pub(crate) async fn wait(&mut self) -> io::Result<Exit> {
        loop {
            tokio::select! {
                ended = self.child.wait() => return ended.map(exit),
                Some(signal) = self.signals.recv() => self.pass_on(signal),
            }
        }
    }

    fn pass_on(&self, signal: Signal) {
        let pid = self.pid().and_then(|pid| i32::try_from(pid).ok()).and_then(Pid::from_raw);
        let by_terminal = SIGNALS.iter().any(|&(known, of_terminal)| known == signal && of_terminal);
        if let Some(pid) = pid.filter(|_| !(by_terminal && is_in_foreground())) {
            // It may just have ended.
            let _ = kill_process(pid, signal);
        }
    }
}

/// As shells put it: the status, or 128 and the number of the signal that ended it.
fn exit(status: ExitStatus) -> Exit {
    let number = status.code().or_else(|| status.signal().map(|signal| 128 + signal));
    Exit::OfCommand(number.and_then(|number| u8::try_from(number).ok()).unwrap_or(u8::MAX))
}

/// A terminal sends its signals to every process in its foreground, the command among them.
fn is_in_foreground() -> bool {
    fs::File::open("/dev/tty")
        .is_ok_and(|terminal| tcgetpgrp(&terminal).is_ok_and(|group| group == getpgrp()))
}

/// Those of the signals that this process does not ignore: what `nohup` has it ignore, the command shall ignore too.
fn caught() -> io::Result<mpsc::Receiver<Signal>> {
    let (sender, receiver) = mpsc::channel(16);
    let ignored = fs::read_to_string("/proc/self/status").map_or(0, |status| ignored(&status));
    for (number, _) in SIGNALS.into_iter().filter(|(signal, _)| ignored >> (signal.as_raw() - 1) & 1 == 0) {
        let mut stream = signal(SignalKind::from_raw(number.as_raw()))?;
        let sender = sender.clone();
        tokio::spawn(async move {
            while stream.recv().await.is_some() {
                if sender.send(number).await.is_err() {
                    break;
                }
            }
        });
    }
    Ok(receiver)
}

/// The mask of ignored signals in the text of /proc/PID/status: bit 0 is signal 1.
fn ignored(status: &str) -> u64 {
    let line = status.lines().find_map(|line| line.strip_prefix("SigIgn:"));
    line.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok()).unwrap_or(0)
}

/// When a process was started, in clock ticks after boot, which with the pid names the process for good.
pub(crate) fn start_time(pid: u32) -> Option<u64> {
    stat_field(pid, 22)
}

/// A number of /proc/PID/stat, by its field as proc(5) counts them: the third or a later one.
pub(crate) fn stat_field(pid: u32, field: usize) -> Option<u64> {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    // The command's name, field 2, may hold anything, and ends with the last bracket.
    let (_, fields) = stat.rsplit_once(')')?;
    fields.split_whitespace().nth(field.checked_sub(3)?)?.parse().ok()
}

/// Binds this thread, and with it the commands it starts, to the CPUs.
///
/// # Errors
///
/// The system refuses, or a CPU is beyond those that can be named.
pub(crate) fn bind(cpus: &str) -> Result<(), Error> {
    let failed = |cause: String| Error::NotBound { cpus: cpus.to_owned(), cause };
    let set = CpuSet::parse(cpus).map_err(|error| failed(error.to_string()))?;
    affinity::set(None, &set).map_err(|error| {
        failed(match error {
            affinity::Error::TooLarge { .. } => {
                format!("{error}; leave --bind out, and use `taskset -c \"$BERTH_CPUS\"`")
            }
            affinity::Error::Refused(_) => error.to_string(),
        })
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ignored_signals_are_read() {
        let status =
            "Name:\tberth\nSigBlk:\t0000000000000000\nSigIgn:\t0000000000001001\nSigCgt:\t0000000000000000\n";
        assert_eq!(ignored(status), 0x1001);
        assert_eq!(ignored(""), 0);
    }

    #[test]
    fn a_process_has_one_start_time() {
        let own = start_time(std::process::id());
        assert!(own.is_some_and(|ticks| ticks > 0), "{own:?}");
        assert_eq!(own, start_time(std::process::id()));
        assert_eq!(start_time(u32::MAX), None);
    }

    #[test]
    fn an_end_is_told_as_shells_do() {
        assert_eq!(exit(ExitStatus::from_raw(7 << 8)), Exit::OfCommand(7));
        assert_eq!(exit(ExitStatus::from_raw(15)), Exit::OfCommand(143));
    }
}
