//! The thread that owns the book and its file.

use super::{
    Locked, Parts, Settings, Unusable, clock,
    lock::{Lock, NoLock},
    room::Room,
    store::{self, Changes, Contents, Store},
};
use crate::{
    audit::{By, Causes},
    convert::Failure,
    ingest::boot_id,
    metrics,
    snapshot::{
        Snapshot,
        publisher::{self, Current},
    },
};
use berth_model::{
    cpuset::CpuSet,
    hold::{Book, Gone, Id, Moment, New},
    load::Load,
};
use std::{
    fmt,
    panic::{AssertUnwindSafe, catch_unwind},
    path::{Path, PathBuf},
    sync::Arc,
    time::{Duration, Instant},
};
use tokio::sync::{mpsc, watch};

/// Decisions are gathered for so long, and so many, before they are written.
const GATHER: Duration = Duration::from_millis(4);
const MOST: usize = 256;

/// How long a file that failed is left alone.
const PAUSE: Duration = Duration::from_millis(500);

/// Tells one caller, once what was decided is written or could not be.
type Tell = Box<dyn FnOnce(Result<(), Unusable>) + Send>;
/// Decides, at a desk if there is one.
type Act = Box<dyn FnOnce(Option<&mut Desk<'_>>) -> Tell + Send>;

/// What the keeper is brought.
pub(super) enum Message {
    Act(Act, Option<By>),
    Seen(Seen),
    Stop,
}

impl Message {
    /// A decision of the request that is being answered.
    pub(super) fn act(act: impl FnOnce(Option<&mut Desk<'_>>) -> Tell + Send + 'static) -> Self {
        Self::Act(Box::new(act), By::current())
    }
}

impl fmt::Debug for Message {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Act(..) => f.write_str("Act"),
            Self::Seen(seen) => seen.fmt(f),
            Self::Stop => f.write_str("Stop"),
        }
    }
}

/// What was seen on the host.
#[derive(Debug, Default)]
pub(super) struct Seen {
    pub(super) gone: Vec<Gone>,
    /// A sample of the load, and a moment before which it was not begun.
    pub(super) measured: Option<(Arc<Load>, Moment)>,
    pub(super) online: Option<CpuSet>,
}

/// A book, and the generation of the one of which it is the next.
#[derive(Debug, Clone, Default)]
pub(crate) struct Published {
    pub(crate) before: Option<u64>,
    pub(crate) book: Arc<Book>,
}

/// Where one decision is made.
#[derive(Debug)]
pub(crate) struct Desk<'a> {
    /// The moment of the decision.
    pub(crate) now: Moment,
    book: &'a mut Arc<Book>,
    answers: &'a mut Vec<(Id, Vec<u8>)>,
    store: &'a Store,
    room: &'a Room,
    current: &'a Current,
}

impl Desk<'_> {
    /// The newest snapshot, in which all counts that was decided before.
    ///
    /// # Errors
    ///
    /// If there is none yet.
    pub(crate) fn snapshot(&self) -> Result<Snapshot, Failure> {
        let newest = self.current.snapshot().ok_or(Failure::NoSnapshot)?;
        Ok(Snapshot { holds: Arc::clone(self.book), ..(*newest).clone() })
    }

    pub(crate) fn book(&self) -> &Book {
        self.book
    }

    /// The book to be changed. There is a snapshot then, in which the change can be shown.
    ///
    /// # Errors
    ///
    /// If there is none yet.
    pub(crate) fn change(&mut self) -> Result<&mut Book, Failure> {
        self.snapshot()?;
        Ok(Arc::make_mut(self.book))
    }

    /// Goes on only if the store has room for a new hold, and for what is answered to the request for it.
    ///
    /// # Errors
    ///
    /// If it has none.
    pub(crate) fn has_room(&self, new: &New, answer: usize) -> Result<(), Failure> {
        self.room.check(self.book, self.answers, new, answer)
    }

    /// Writes with a new hold what was answered to the request for it.
    pub(crate) fn remember(&mut self, id: Id, answer: Vec<u8>) {
        self.answers.push((id, answer));
    }

    /// What was answered to the request for this hold.
    ///
    /// # Errors
    ///
    /// If it cannot be read.
    pub(crate) fn answer(&self, id: Id) -> Result<Option<Vec<u8>>, Failure> {
        let new = self.answers.iter().find(|(new, _)| *new == id).map(|(_, answer)| answer.clone());
        new.map_or_else(|| self.store.answer(id).map_err(Failure::HoldsNotKept), |answer| Ok(Some(answer)))
    }
}

/// Owns the book and its file.
#[derive(Debug)]
pub(crate) struct Keeper {
    inbox: mpsc::Receiver<Message>,
    usable: watch::Sender<Result<(), Unusable>>,
    published: watch::Sender<Published>,
    publisher: publisher::Handle,
    current: Current,
    metrics: metrics::Holds,
    boot_id: String,
    /// The file. It is ours while there is a lock.
    path: Option<PathBuf>,
    lock: Option<Lock>,
    store: Option<Store>,
    room: Room,
    /// What is written, and published.
    book: Arc<Book>,
    failed_at: Option<Instant>,
    /// The CPUs that were seen online last. A book that is read anew may not know of them.
    online: Option<CpuSet>,
}

impl Keeper {
    /// Opens the file. Blocks, and not for long.
    ///
    /// # Errors
    ///
    /// If another daemon has it. Whatever else is wrong with it is told by [`super::Handle::usable`].
    pub(crate) fn open(
        parts: Parts,
        settings: &Settings,
        publisher: publisher::Handle,
        current: Current,
        metrics: metrics::Holds,
    ) -> Result<Self, Locked> {
        let Parts { inbox, usable, published } = parts;
        let mut keeper = Self {
            inbox,
            usable,
            published,
            publisher,
            current,
            metrics,
            boot_id: boot_id(&settings.root),
            path: settings.folder.as_ref().map(|folder| folder.join(store::NAME)),
            lock: None,
            store: None,
            room: Room::default(),
            book: Arc::default(),
            failed_at: None,
            online: None,
        };
        keeper.try_open()?;
        Ok(keeper)
    }

    /// Keeps holds until it is told to stop. Blocks.
    pub(crate) fn run(mut self) {
        while let Some(message) = self.inbox.blocking_recv() {
            if !self.work(message) {
                break;
            }
        }
    }

    /// Opens the file if it is not open, and says whether holds are kept.
    fn try_open(&mut self) -> Result<(), Locked> {
        let is_first = self.failed_at.is_none();
        self.failed_at = Some(Instant::now());
        let opened = match (&self.path, self.boot_id.is_empty()) {
            (None, _) => Err(Unusable::NoFolder),
            (_, true) => Err(Unusable::NoBootId),
            (Some(path), false) => self.open_file(&path.clone(), is_first)?,
        };
        if let Err(unusable) = &opened {
            if self.usable.borrow().as_ref() != Err(unusable) {
                tracing::warn!("holds are not kept: {unusable}");
            }
        } else {
            tracing::info!(holds = self.book.len(), "holds are kept");
        }
        self.tell(opened);
        Ok(())
    }

    fn open_file(&mut self, path: &Path, is_first: bool) -> Result<Result<(), Unusable>, Locked> {
        let folder = path.parent().unwrap_or_else(|| Path::new("."));
        if self.lock.is_none() {
            // Only while it starts is there time for another to end.
            match if is_first { Lock::take(folder) } else { Lock::take_at_once(folder) } {
                Ok(lock) => self.lock = Some(lock),
                Err(NoLock::Locked(locked)) => return Err(locked),
                Err(NoLock::Io(error)) => return Ok(Err(Unusable::failing(folder, error))),
            }
        }
        Ok(self.open_locked(path))
    }

    fn open_locked(&mut self, path: &Path) -> Result<(), Unusable> {
        let generation = self.book.generation();
        let known =
            || Contents { boot_id: self.boot_id.clone(), book: (*self.book).clone(), answers: Vec::new() };
        let (mut contents, is_there) = match store::look(path)? {
            Some(contents) => (contents, true),
            None => (known(), false),
        };
        let is_other_boot = contents.boot_id != self.boot_id;
        if is_other_boot {
            contents.book.reboot();
            contents.answers.clear();
            contents.boot_id.clone_from(&self.boot_id);
        }
        // Generations never go back, whatever a write that failed has left.
        let behind = contents.book.generation() <= generation;
        contents.book.begin_after(generation);
        let read = contents.book.generation();
        if let Some(online) = &self.online {
            contents.book.online(online);
        }
        let is_other = is_other_boot || behind || contents.book.generation() != read;
        // Even if it cannot be written now: what is known to be held counts.
        self.publish(Arc::new(contents.book.clone()), false);
        if !is_there {
            Store::make(path, &contents)?;
        }
        let store = Store::open(path)?;
        if is_there && is_other {
            store.replace(&contents)?;
        }
        self.room = Room::of(&contents.answers);
        self.store = Some(store);
        Ok(())
    }

    /// Says whether holds are kept.
    fn tell(&self, now: Result<(), Unusable>) {
        self.usable.send_modify(|usable| *usable = now);
    }

    /// Makes the decisions that wait, writes them, tells. Says whether to go on.
    fn work(&mut self, first: Message) -> bool {
        if self.store.is_none() {
            self.try_again();
        }
        let begun = Instant::now();
        let mut book = Arc::clone(&self.book);
        let (mut answers, mut tells, mut causes) = (Vec::new(), Vec::new(), Causes::default());
        let (mut next, mut count, mut go_on) = (Some(first), 0, true);
        while let Some(message) = next.take() {
            let now = clock::now();
            if book.next_end().is_some_and(|end| end <= now) {
                Arc::make_mut(&mut book).expire(now);
                causes.note(&book, None);
            }
            match message {
                Message::Stop => go_on = false,
                Message::Seen(seen) => {
                    self.online = seen.online.clone().or_else(|| self.online.take());
                    take_in(Arc::make_mut(&mut book), &seen, now);
                    causes.note(&book, None);
                }
                Message::Act(act, by) => {
                    let (desks, answers, room) = (&mut book, &mut answers, &self.room);
                    let current = &self.current;
                    let mut desk = self.store.as_ref().map(|store| Desk {
                        now,
                        book: desks,
                        answers,
                        store,
                        room,
                        current,
                    });
                    // If it panics, its caller hears that it was not made.
                    tells.extend(catch_unwind(AssertUnwindSafe(|| act(desk.as_mut()))));
                    causes.note(&book, by);
                }
            }
            count += 1;
            if go_on && count < MOST && begun.elapsed() < GATHER {
                next = self.inbox.try_recv().ok();
            }
        }
        let written = self.write(book, &answers, &causes).and_then(|()| self.usable.borrow().clone());
        tells.into_iter().for_each(|tell| tell(written.clone()));
        go_on
    }

    /// Writes what is new in the book, and publishes it.
    fn write(
        &mut self,
        mut book: Arc<Book>,
        answers: &[(Id, Vec<u8>)],
        causes: &Causes,
    ) -> Result<(), Unusable> {
        let since = self.book.generation();
        if book.generation() == since {
            return Ok(());
        }
        let forgotten = Arc::make_mut(&mut book).forget(clock::now());
        if let Some(store) = &self.store {
            let changes = Changes { book: &book, since, forgotten: &forgotten, answers };
            if let Err(unusable) = store.write(&changes) {
                tracing::error!("holds are not kept: {unusable}");
                self.store = None;
                self.failed_at = Some(Instant::now());
                self.tell(Err(unusable.clone()));
                return Err(unusable);
            }
        }
        self.room.written(answers, &forgotten);
        causes.tell(&self.book, &book, &self.metrics);
        self.publish(book, true);
        Ok(())
    }

    /// Publishes a book: the one before it with some changes, or one that was read anew.
    fn publish(&mut self, book: Arc<Book>, is_next: bool) {
        let before = is_next.then(|| self.book.generation());
        self.publisher.holds(Arc::clone(&book));
        self.book = Arc::clone(&book);
        self.published.send_replace(Published { before, book });
    }

    /// Opens a file that failed again, after a while.
    fn try_again(&mut self) {
        let is_due = self.failed_at.is_none_or(|at| at.elapsed() >= PAUSE);
        let may_pass = self.usable.borrow().as_ref().is_err_and(Unusable::may_pass);
        if is_due
            && may_pass
            && let Err(locked) = self.try_open()
        {
            tracing::error!("{locked}");
        }
    }
}

/// However it ends, nobody is left to believe that holds are kept.
impl Drop for Keeper {
    fn drop(&mut self) {
        // Closed before it is told.
        (self.store, self.lock) = (None, None);
        self.tell(Err(Unusable::NotOpen));
    }
}

/// Takes in what was seen on the host.
fn take_in(book: &mut Book, seen: &Seen, now: Moment) {
    book.owners_gone(&seen.gone, now);
    if let Some(online) = &seen.online {
        book.online(online);
    }
    if let Some((load, began)) = &seen.measured {
        book.measured(load, *began, now);
    }
}

#[cfg(test)]
mod tests {
    use super::{
        super::{Handle, handle},
        *,
    };
    use crate::config::{Config, Reloader};
    use berth_model::hold::{Mode, Owner, Part, Uid};
    use std::thread;

    /// One over the store of this folder, to which no machine is known.
    async fn keeper(folder: &Path) -> (Keeper, Handle) {
        let config = Config::try_from_args(["berthd", "--config", "none"]).unwrap();
        let (publisher, current) = publisher::start(Reloader::new(&config).1, false);
        let (handle, parts) = handle();
        let settings = Settings { folder: Some(folder.to_owned()), root: PathBuf::from("/") };
        let open = move || Keeper::open(parts, &settings, publisher, current, metrics::Holds::default());
        (tokio::task::spawn_blocking(open).await.unwrap().unwrap(), handle)
    }

    /// A hold of four CPUs.
    fn new() -> New {
        let (name, claim, ttl, labels, request_id) = Default::default();
        let parts = vec![Part::spread(&CpuSet::parse("0-3").unwrap(), 4)];
        let owner = Owner::Cgroup("/a".to_owned());
        let (mode, foreign, keep, before) = (Mode::Shared, false, true, 0);
        New { uid: Uid(1), name, owner, parts, mode, claim, foreign, keep, ttl, before, request_id, labels }
    }

    #[tokio::test(flavor = "multi_thread")]
    async fn a_keeper_that_panics_is_told() {
        let folder = tempfile::tempdir().unwrap();
        let (keeper, handle) = keeper(folder.path()).await;
        assert_eq!(*handle.usable.borrow(), Ok(()));
        let running = thread::spawn(move || keeper.run());
        // A panic where decisions are told is not caught.
        let sent = handle.inbox.send(Message::act(|_| Box::new(|_| panic!("on purpose")))).await;
        sent.unwrap();
        tokio::time::timeout(Duration::from_secs(60), handle.ended()).await.unwrap();
        assert_eq!(*handle.usable.borrow(), Err(Unusable::NotOpen));
        assert!(running.join().is_err());
        assert!(Lock::take_at_once(folder.path()).is_ok());
    }

    #[tokio::test(flavor = "multi_thread")]
    async fn what_cannot_be_shown_is_not_changed() {
        let folder = tempfile::tempdir().unwrap();
        let (keeper, handle) = keeper(folder.path()).await;
        let running = thread::spawn(move || keeper.run());
        let made = handle.act(|desk| {
            let now = desk.now;
            desk.change()?.make(new(), now).map_err(Failure::internal)
        });
        assert!(matches!(made.await, Err(Failure::NoSnapshot)));
        handle.stop().await;
        running.join().unwrap();
        assert_eq!(store::look(&folder.path().join(store::NAME)).unwrap().unwrap().book.last_id(), 0);
    }

    #[tokio::test(flavor = "multi_thread")]
    async fn a_book_that_is_read_anew_knows_what_is_online() {
        let folder = tempfile::tempdir().unwrap();
        let (mut keeper, _handle) = keeper(folder.path()).await;
        let missing = |book: &Book| book.living().map(|hold| hold.missing.to_string()).collect::<String>();
        let work = move || {
            keeper.work(Message::act(|desk| {
                let desk = desk.unwrap();
                Arc::make_mut(desk.book).make(new(), desk.now).unwrap();
                Box::new(|written| written.unwrap())
            }));
            assert_eq!(missing(&keeper.book), "");
            // As after a write that failed.
            keeper.store = None;
            keeper.failed_at = Some(Instant::now());
            keeper.tell(Err(Unusable::failing(folder.path(), "no space")));
            let online = CpuSet::parse("0-2").ok();
            keeper.work(Message::Seen(Seen { online, ..Seen::default() }));
            assert!(keeper.store.is_none());
            thread::sleep(PAUSE);
            keeper.work(Message::Seen(Seen::default()));
            assert!(keeper.store.is_some());
            assert_eq!(missing(&keeper.book), "3");
            drop(keeper);
            let written = store::look(&folder.path().join(store::NAME)).unwrap().unwrap();
            assert_eq!(missing(&written.book), "3");
        };
        thread::spawn(work).join().unwrap();
    }
}
