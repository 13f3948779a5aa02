//! The lock beside the store: one berthd keeps the holds of a host.

use super::Locked;
use rustix::fs::{FlockOperation, flock};
use std::{
    fs::{self, File, OpenOptions},
    io::{self, Read, Seek, Write},
    os::unix::fs::OpenOptionsExt,
    path::Path,
    time::Duration,
};

const NAME: &str = "lock";

/// How often it is tried, and how long is waited in between: two seconds in all. A daemon that was killed holds its lock
/// until the kernel has taken its memory apart.
const ATTEMPTS: u32 = 41;
const PAUSE: Duration = Duration::from_millis(50);

/// The lock, for as long as it lives. Its file stays: removing it would let two daemons hold different files of one
/// name.
#[derive(Debug)]
pub(super) struct Lock(File);

/// Why there is no lock.
#[derive(Debug)]
pub(super) enum NoLock {
    /// Another process has it.
    Locked(Locked),
    /// The folder cannot be written to.
    Io(io::Error),
}

impl Lock {
    /// Takes the lock of a folder, which is made if it is missing. Waits for one who ends.
    pub(super) fn take(folder: &Path) -> Result<Self, NoLock> {
        Self::attempt(folder, ATTEMPTS)
    }

    /// The same without waiting.
    pub(super) fn take_at_once(folder: &Path) -> Result<Self, NoLock> {
        Self::attempt(folder, 1)
    }

    fn attempt(folder: &Path, attempts: u32) -> Result<Self, NoLock> {
        fs::create_dir_all(folder).map_err(NoLock::Io)?;
        let path = folder.join(NAME);
        let file =
            OpenOptions::new().create(true).truncate(false).read(true).write(true).mode(0o600).open(&path);
        let mut file = file.map_err(NoLock::Io)?;
        for attempt in 1.. {
            match flock(&file, FlockOperation::NonBlockingLockExclusive) {
                Ok(()) => break,
                Err(rustix::io::Errno::WOULDBLOCK) if attempt < attempts => std::thread::sleep(PAUSE),
                Err(rustix::io::Errno::WOULDBLOCK) => {
                    let mut by = String::new();
                    // For people; without it the message says less.
                    let _ = file.read_to_string(&mut by);
                    return Err(NoLock::Locked(Locked {
                        folder: folder.to_owned(),
                        by: by.trim().to_owned(),
                    }));
                }
                Err(cause) => return Err(NoLock::Io(cause.into())),
            }
        }
        // For people, as above: on a full disk the lock is as good.
        let _ = file.set_len(0).and_then(|()| file.rewind());
        let _ = writeln!(file, "{}", std::process::id());
        Ok(Self(file))
    }
}

impl Drop for Lock {
    fn drop(&mut self) {
        // Not left to the closing of the file: a process that is just being started has a copy of it still.
        let _ = flock(&self.0, FlockOperation::Unlock);
    }
}
