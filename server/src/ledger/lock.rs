//! The lock beside the store: one berthd keeps the holds of a host.

use super::Locked;
use rustix::{
    fs::{FlockOperation, Mode, OFlags, flock, open},
    io::Errno,
};
use std::{
    fs::{self, File},
    io::{self, Read, Seek, Write},
    path::Path,
    time::Duration,
};

pub(super) const NAME: &str = "lock";

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

    /// The lock of a folder that somebody has used. Makes nothing; waits for one who ends.
    pub(super) fn take_existing(folder: &Path) -> Result<Option<Self>, NoLock> {
        match Self::open(folder, OFlags::empty()) {
            Ok(file) => Self::of_file(file, folder, ATTEMPTS).map(Some),
            Err(Errno::NOENT) => Ok(None),
            Err(cause) => Err(NoLock::Io(cause.into())),
        }
    }

    fn attempt(folder: &Path, attempts: u32) -> Result<Self, NoLock> {
        fs::create_dir_all(folder).map_err(NoLock::Io)?;
        let file = Self::open(folder, OFlags::CREATE).map_err(|cause| NoLock::Io(cause.into()))?;
        Self::of_file(file, folder, attempts)
    }

    /// Never what a link leads to: the folder may be another user's than the one who writes here.
    fn open(folder: &Path, how: OFlags) -> Result<File, Errno> {
        let how = how | OFlags::RDWR | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        open(folder.join(NAME), how, Mode::RUSR | Mode::WUSR).map(File::from)
    }

    fn of_file(mut file: File, folder: &Path, attempts: u32) -> Result<Self, NoLock> {
        for attempt in 1.. {
            match flock(&file, FlockOperation::NonBlockingLockExclusive) {
                Ok(()) => break,
                Err(Errno::WOULDBLOCK) if attempt < attempts => std::thread::sleep(PAUSE),
                Err(Errno::WOULDBLOCK) => {
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
