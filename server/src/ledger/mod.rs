//! The single writer of holds.
//!
//! [`keeper`] is a thread that owns the book and its file. Whoever wants to hold, release or otherwise change something
//! brings it a closure through [`Handle::act`]; the closure decides on the newest snapshot, in which everything that was
//! decided before it counts. What was decided is on the disk and in the published snapshot before anybody is told.
//! Decisions that wait are written together, so that a herd of callers costs few writes.
//!
//! [`caretaker`] brings it what the host does: owners that die, samples of the load, CPUs that come and go.
//!
//! Without a file that can be trusted and written nothing is decided; what is known to be held still counts.

mod caretaker;
mod clock;
mod keeper;
mod lock;
mod owners;
mod program;
mod record;
mod room;
mod store;

pub(crate) use clock::{by_wall_clock, now};
pub(crate) use keeper::{Desk, Keeper, Published};
pub(crate) use owners::Owners;
pub use program::{NAME, run};

use crate::{convert::Failure, snapshot::publisher};
use caretaker::take_care;
use keeper::Message;
use std::{
    fmt::{self, Display},
    path::{Path, PathBuf},
    sync::Arc,
};
use tokio::sync::{mpsc, oneshot, watch};

/// Decisions that are waiting; whoever brings more waits too.
const INBOX: usize = 256;

/// Where and for whom holds are kept.
#[derive(Debug, Clone)]
pub(crate) struct Settings {
    /// The folder of the store; `None` if there is none that can be written.
    pub(crate) folder: Option<PathBuf>,
    /// Where `proc` and `sys` lie.
    pub(crate) root: PathBuf,
}

/// Another daemon keeps the holds there.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error(
    "another berthd{} keeps the holds in {}; stop it, or give another folder with --state-dir",
    if .by.is_empty() { String::new() } else { format!(" (process {})", .by) },
    .folder.display()
)]
pub struct Locked {
    /// The folder.
    pub folder: PathBuf,
    /// That daemon's process; empty if it did not say.
    pub by: String,
}

/// Why no holds are kept.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Unusable {
    /// The daemon has only just begun, or is about to end.
    NotOpen,
    /// No folder for the store was given, and no usual one can be written to.
    NoFolder,
    /// The kernel does not say which boot this is.
    NoBootId,
    /// The file is another program's, or a newer berthd's, or damaged. It is left as it is.
    Broken { path: PathBuf, what: String },
    /// It cannot be read or written: a full disk, a folder without the right to write.
    Failing { path: PathBuf, cause: String },
}

impl Unusable {
    fn failing(path: &Path, cause: impl Display) -> Self {
        Self::Failing { path: path.to_owned(), cause: cause.to_string() }
    }

    /// Whether it may get better without anybody's doing something about berthd.
    pub(crate) fn may_pass(&self) -> bool {
        matches!(self, Self::NotOpen | Self::Failing { .. })
    }
}

impl Display for Unusable {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NotOpen => f.write_str("the store of holds is not open"),
            Self::NoFolder => f.write_str(
                "no folder for the store of holds can be written to; start berthd with --state-dir, or give it the right to write /var/lib/berth",
            ),
            Self::NoBootId => f.write_str(
                "the kernel's boot id cannot be read, without which holds of an earlier boot cannot be told",
            ),
            Self::Broken { path, what } => write!(
                f,
                "the store of holds {} cannot be used: {what}; it is left as it is: move it away, or look at it with `berthd ledger check`, then start berthd again",
                path.display()
            ),
            Self::Failing { path, cause } => {
                write!(f, "the store of holds {} fails: {cause}; it is tried again", path.display())
            }
        }
    }
}

/// The way to the keeper.
#[derive(Debug, Clone)]
pub(crate) struct Handle {
    inbox: mpsc::Sender<Message>,
    usable: watch::Receiver<Result<(), Unusable>>,
    published: watch::Receiver<Published>,
}

/// What a keeper is started with.
#[derive(Debug)]
pub(crate) struct Parts {
    inbox: mpsc::Receiver<Message>,
    usable: watch::Sender<Result<(), Unusable>>,
    published: watch::Sender<Published>,
}

/// A handle, and what the keeper behind it is to be started with.
pub(crate) fn handle() -> (Handle, Parts) {
    let (to_keeper, inbox) = mpsc::channel(INBOX);
    let (tell_usable, usable) = watch::channel(Err(Unusable::NotOpen));
    let (tell_published, published) = watch::channel(Published::default());
    let parts = Parts { inbox, usable: tell_usable, published: tell_published };
    (Handle { inbox: to_keeper, usable, published }, parts)
}

impl Handle {
    /// Has this decided, after all that was brought before, and written down.
    ///
    /// # Errors
    ///
    /// What `act` says, or why nothing can be written.
    pub(crate) async fn act<T: Send + 'static>(
        &self,
        act: impl FnOnce(&mut Desk<'_>) -> Result<T, Failure> + Send + 'static,
    ) -> Result<T, Failure> {
        let (tell, told) = oneshot::channel();
        let span = tracing::Span::current();
        let message = Message::act(move |desk| {
            // If nobody waits for it any more, nothing is held for nobody.
            let desk = desk.filter(|_| !tell.is_closed());
            let result = desk.map(|desk| span.in_scope(|| act(desk)));
            Box::new(move |written| {
                let unusable = || Err(Failure::HoldsNotKept(Unusable::NotOpen));
                let result =
                    written.map_err(Failure::HoldsNotKept).and_then(|()| result.unwrap_or_else(unusable));
                // The caller may have gone.
                let _ = tell.send(result);
            })
        });
        let ended = || Failure::HoldsNotKept(Unusable::NotOpen);
        self.inbox.send(message).await.map_err(|_| ended())?;
        told.await.unwrap_or_else(|_| Err(Failure::internal("a decision on holds was not made")))
    }

    /// Whether holds are kept; why not.
    pub(crate) fn usable(&self) -> watch::Receiver<Result<(), Unusable>> {
        self.usable.clone()
    }

    /// Returns once the keeper has ended.
    pub(crate) async fn ended(&self) {
        let mut usable = self.usable();
        while usable.changed().await.is_ok() {}
    }

    /// The books as they are published.
    pub(crate) fn published(&self) -> watch::Receiver<Published> {
        self.published.clone()
    }

    /// Looks after the holds, until the keeper ends.
    pub(crate) async fn take_care(
        self,
        owners: Arc<Owners>,
        current: publisher::Current,
        live: crate::config::Live,
    ) {
        take_care(self, owners, current, live).await;
    }

    /// Has the keeper close its file and end; waits for that.
    pub(crate) async fn stop(&self) {
        // It may have ended, or never begun.
        if self.inbox.send(Message::Stop).await.is_ok() {
            let _ = self.usable().wait_for(|usable| *usable == Err(Unusable::NotOpen)).await;
        }
    }
}
