//! The unix socket, taken over from a dead server and never from a live one.
//!
//! A lock beside the socket tells the two apart: the kernel gives it up with the process that holds it, however that
//! ended. The file of the lock stays, since removing it would let two servers hold different files of one name.

use super::Error;
use rustix::{
    fs::{FlockOperation, flock},
    net::{self, AddressFamily, SocketAddrUnix, SocketFlags, SocketType},
};
use std::{
    fs::{self, File, OpenOptions, Permissions},
    io,
    os::unix::{
        fs::{FileTypeExt, MetadataExt, OpenOptionsExt, PermissionsExt, chown},
        net::UnixStream,
    },
    path::{Path, PathBuf},
    time::Duration,
};
use tokio::net::UnixListener;

/// How often the lock is tried, and how long is waited in between: two seconds in all.
const LOCK_ATTEMPTS: u32 = 21;
const LOCK_PAUSE: Duration = Duration::from_millis(100);

/// Connections that wait to be taken; the kernel may have a lower limit.
const BACKLOG: i32 = 1024;

/// Who may connect to the socket.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Access {
    /// Its mode. Whoever may write to it may connect.
    pub(crate) mode: u32,
    /// Its group. None: that of the daemon, or of the folder.
    pub(crate) group: Option<u32>,
}

/// A socket that this process listens on; removed when dropped.
#[derive(Debug)]
pub(crate) struct Socket {
    path: PathBuf,
    /// Device and inode: what is removed has to be ours still.
    identity: (u64, u64),
    lock: File,
}

impl Socket {
    /// Listens on the path; makes its folder if that is missing.
    pub(crate) fn bind(path: &Path, access: Access) -> Result<(Self, UnixListener), Error> {
        let failed = |cause| Error::Unix { path: path.to_owned(), cause };
        if let Some(folder) = path.parent().filter(|folder| !folder.as_os_str().is_empty()) {
            fs::create_dir_all(folder).map_err(failed)?;
        }
        let lock = lock(path)?;
        remove_stale(path)?;
        let listener = listen(path, access).map_err(failed)?;
        let socket = Self { path: path.to_owned(), identity: identity(path).map_err(failed)?, lock };
        Ok((socket, listener))
    }

    pub(crate) fn path(&self) -> &Path {
        &self.path
    }
}

impl Drop for Socket {
    fn drop(&mut self) {
        if identity(&self.path).is_ok_and(|identity| identity == self.identity) {
            // If it cannot be removed, the next server takes it over.
            let _ = fs::remove_file(&self.path);
        }
        // Not left to the closing of the file: a process that is just being started has a copy of it still.
        let _ = flock(&self.lock, FlockOperation::Unlock);
    }
}

fn identity(path: &Path) -> io::Result<(u64, u64)> {
    fs::symlink_metadata(path).map(|metadata| (metadata.dev(), metadata.ino()))
}

/// Nobody can connect before the mode and group are set: the kernel refuses until it is listened on.
fn listen(path: &Path, access: Access) -> io::Result<UnixListener> {
    let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
    let socket = net::socket_with(AddressFamily::UNIX, SocketType::STREAM, flags, None)?;
    net::bind(&socket, &SocketAddrUnix::new(path)?)?;
    if access.group.is_some() {
        chown(path, None, access.group)?;
    }
    fs::set_permissions(path, Permissions::from_mode(access.mode))?;
    net::listen(&socket, BACKLOG)?;
    UnixListener::from_std(socket.into())
}

/// The lock beside the socket, held for as long as the file is open.
fn lock(path: &Path) -> Result<File, Error> {
    let mut name = path.as_os_str().to_owned();
    name.push(".lock");
    let file = OpenOptions::new().create(true).truncate(false).write(true).mode(0o600).open(&name);
    let file = file.map_err(|cause| Error::Unix { path: PathBuf::from(name), cause })?;
    for attempt in 1.. {
        match flock(&file, FlockOperation::NonBlockingLockExclusive) {
            Ok(()) => break,
            // A server that was killed holds its lock until the kernel has taken its memory apart.
            Err(rustix::io::Errno::WOULDBLOCK) if attempt < LOCK_ATTEMPTS => std::thread::sleep(LOCK_PAUSE),
            Err(rustix::io::Errno::WOULDBLOCK) => return Err(Error::InUse { path: path.to_owned() }),
            Err(cause) => return Err(Error::Unix { path: path.to_owned(), cause: cause.into() }),
        }
    }
    Ok(file)
}

/// Removes a socket on which nobody answers.
fn remove_stale(path: &Path) -> Result<(), Error> {
    let failed = |cause| Error::Unix { path: path.to_owned(), cause };
    let there = match fs::symlink_metadata(path) {
        Ok(there) => there,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
        Err(error) => return Err(failed(error)),
    };
    if !there.file_type().is_socket() {
        return Err(Error::NoSocket { path: path.to_owned() });
    }
    // Another program than berthd may answer there, without our lock.
    match UnixStream::connect(path) {
        Ok(_) => Err(Error::InUse { path: path.to_owned() }),
        Err(error) if error.kind() == io::ErrorKind::ConnectionRefused => {
            fs::remove_file(path).map_err(failed)
        }
        Err(error) => Err(failed(error)),
    }
}
