//! A socket before a real berthd, that behaves as it is told.

use std::{
    io::{Read as _, Write as _},
    net::Shutdown,
    os::unix::net::{UnixListener, UnixStream},
    path::PathBuf,
    sync::{Arc, Mutex, PoisonError},
    thread,
    time::Duration,
};

use tempfile::TempDir;

use crate::berthd::Berthd;
use crate::slurm::open_to_all;

/// How the socket behaves.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Manner {
    /// As the berthd behind it.
    Good,
    /// Closes each connection at once.
    Closing,
    /// Takes what is said and never answers.
    Silent,
    /// Passes on what is said, and its answers a second late.
    Slow,
    /// Answers bytes that are no HTTP/2.
    Babbling,
    /// Passes on an answer's beginning, then closes.
    Breaking,
}

impl Manner {
    /// All in which no answer comes.
    pub(crate) const BAD: [Self; 5] =
        [Self::Closing, Self::Silent, Self::Slow, Self::Babbling, Self::Breaking];
}

/// The socket.
#[derive(Debug)]
pub(crate) struct Front {
    folder: TempDir,
    manner: Arc<Mutex<Manner>>,
}

impl Front {
    pub(crate) fn before(server: &Berthd) -> Self {
        let folder = tempfile::tempdir().expect("there is room for a socket");
        open_to_all(folder.path());
        let manner = Arc::new(Mutex::new(Manner::Good));
        let front = Self { folder, manner: Arc::clone(&manner) };
        let listener = UnixListener::bind(front.path()).expect("nobody has it");
        let server = server.socket();
        // It ends with the process of the tests.
        thread::spawn(move || {
            for caller in listener.incoming().flatten() {
                let manner = *manner.lock().unwrap_or_else(PoisonError::into_inner);
                let server = server.clone();
                thread::spawn(move || serve(manner, caller, server));
            }
        });
        front
    }

    fn path(&self) -> PathBuf {
        self.folder.path().join("front.sock")
    }

    pub(crate) fn address(&self) -> String {
        format!("unix:{}", self.path().display())
    }

    pub(crate) fn behave(&self, manner: Manner) {
        *self.manner.lock().unwrap_or_else(PoisonError::into_inner) = manner;
    }
}

fn serve(manner: Manner, mut caller: UnixStream, server: PathBuf) {
    match manner {
        Manner::Closing => {}
        Manner::Silent => drop(std::io::copy(&mut caller, &mut std::io::sink())),
        Manner::Babbling => {
            let _ = caller.write_all(&[b'?'; 4096]);
            let _ = std::io::copy(&mut caller, &mut std::io::sink());
        }
        Manner::Good | Manner::Slow | Manner::Breaking => {
            // It may have ended.
            let Ok(server) = UnixStream::connect(server) else { return };
            let (mut from, mut to) = (
                caller.try_clone().expect("a socket can be cloned"),
                server.try_clone().expect("a socket can be cloned"),
            );
            thread::spawn(move || {
                let _ = std::io::copy(&mut from, &mut to);
                let _ = to.shutdown(Shutdown::Both);
            });
            answer(manner, server, &mut caller);
            let _ = caller.shutdown(Shutdown::Both);
        }
    }
}

fn answer(manner: Manner, mut server: UnixStream, caller: &mut UnixStream) {
    let mut bytes = [0; 16 << 10];
    let mut passed = 0;
    while let Ok(count @ 1..) = server.read(&mut bytes) {
        let mut part = &bytes[..count];
        match manner {
            Manner::Slow => thread::sleep(Duration::from_secs(1)),
            // The greeting and the beginning of an answer.
            Manner::Breaking => part = &part[..count.min(60_usize.saturating_sub(passed))],
            _ => {}
        }
        passed += part.len();
        if part.is_empty() || caller.write_all(part).is_err() {
            return;
        }
    }
}
