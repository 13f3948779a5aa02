//! The file that the holds are written to.
//!
//! A file that cannot be trusted is not touched: it is read into memory and checked there, every page of it, before it
//! is opened. So whatever is found wrong, somebody can still look at it.

use super::{Unusable, record::Record};
use berth_model::hold::{Book, Hold, Id};
use redb::{
    Builder, Database, ReadableDatabase, ReadableTable, StorageBackend, TableDefinition,
    backends::InMemoryBackend,
};
use std::{
    fs::{self, File, OpenOptions},
    io::{self, Read},
    os::unix::fs::OpenOptionsExt,
    panic::{AssertUnwindSafe, catch_unwind},
    path::{Path, PathBuf},
};

/// The file's name.
pub(super) const NAME: &str = "holds.redb";

/// The version of what is written. One that is higher was written by a newer berthd.
const FORMAT: u64 = 1;

/// Names that what is written is ours, with its version, and what holds for all of it.
const META: TableDefinition<'_, &str, &str> = TableDefinition::new("berth");
/// Holds by their numbers.
const HOLDS: TableDefinition<'_, u64, &str> = TableDefinition::new("holds");
/// What was answered to requests that can be repeated, by the numbers of the holds that they made.
const ANSWERS: TableDefinition<'_, u64, &[u8]> = TableDefinition::new("answers");

/// Memory for its pages. What it holds is small.
const CACHE: usize = 1 << 20;

/// A larger file is not read. Ours stays well below: see [`super::room`].
const MAX_BYTES: u64 = 768 << 20;

/// So much of it is read at a time.
const CHUNK: usize = 1 << 20;

/// All that is written.
#[derive(Debug, Default)]
pub(super) struct Contents {
    pub(super) boot_id: String,
    pub(super) book: Book,
    pub(super) answers: Vec<(Id, Vec<u8>)>,
}

/// The changes of one transaction.
#[derive(Debug)]
pub(super) struct Changes<'a> {
    pub(super) book: &'a Book,
    /// Generation of the book that is written already.
    pub(super) since: u64,
    /// Ended holds that are forgotten.
    pub(super) forgotten: &'a [Id],
    /// What was answered.
    pub(super) answers: &'a [(Id, Vec<u8>)],
}

/// The open file.
#[derive(Debug)]
pub(super) struct Store {
    database: Database,
    path: PathBuf,
}

/// What is in a file, read without touching it. Nothing if there is no file.
///
/// # Errors
///
/// If it is not ours, or broken.
pub(super) fn look(path: &Path) -> Result<Option<Contents>, Unusable> {
    let broken = |what: String| Unusable::Broken { path: path.to_owned(), what };
    let memory = match read(path) {
        // Ours never is: it is made beside and moved into place.
        Ok(Some(memory)) if memory.len().is_ok_and(|bytes| bytes == 0) => {
            return Err(broken("it is empty".to_owned()));
        }
        Ok(Some(memory)) => memory,
        Ok(None) => return Err(broken(format!("it is longer than {MAX_BYTES} bytes"))),
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(Unusable::failing(path, error)),
    };
    // A file that something else wrote over may make redb panic instead of saying so.
    let looked = catch_unwind(AssertUnwindSafe(|| {
        let mut builder = builder();
        let database = builder.set_check_integrity_on_open(true).create_with_backend(memory);
        contents(&database.map_err(|error| error.to_string())?)
    }));
    looked.unwrap_or_else(|_| Err("redb cannot read it".to_owned())).map(Some).map_err(broken)
}

/// The file in memory, once: no second copy of it is made. Nothing of one that is too long.
fn read(path: &Path) -> io::Result<Option<InMemoryBackend>> {
    let memory = InMemoryBackend::new();
    let file = File::open(path)?;
    let about = file.metadata()?;
    if !about.is_file() {
        return Err(io::Error::other("it is no file"));
    }
    if about.len() > MAX_BYTES {
        return Ok(None);
    }
    memory.set_len(about.len())?;
    let (mut chunk, mut at) = (vec![0; CHUNK], 0);
    let mut file = file.take(about.len());
    loop {
        let read = file.read(&mut chunk)?;
        if read == 0 {
            return Ok(Some(memory));
        }
        memory.write(at, &chunk[..read])?;
        at += read as u64;
    }
}

fn builder() -> Builder {
    let mut builder = Builder::new();
    builder.set_cache_size(CACHE);
    builder
}

/// Reads all of it.
fn contents(database: &Database) -> Result<Contents, String> {
    let read = || -> Result<Result<Contents, String>, redb::Error> {
        let transaction = database.begin_read()?;
        let meta = match transaction.open_table(META) {
            Ok(meta) => meta,
            Err(redb::TableError::TableDoesNotExist(_)) => {
                return Ok(Err("it was not written by berthd".to_owned()));
            }
            Err(error) => return Err(error.into()),
        };
        let text = |key: &str| Ok::<_, redb::Error>(meta.get(key)?.map(|value| value.value().to_owned()));
        let number = |key: &str| Ok::<_, redb::Error>(text(key)?.and_then(|text| text.parse::<u64>().ok()));
        match number("format")? {
            Some(FORMAT) => {}
            Some(newer) => {
                return Ok(Err(format!(
                    "a newer berthd wrote it, in format {newer}; this one knows {FORMAT}"
                )));
            }
            None => return Ok(Err("it does not say its format".to_owned())),
        }
        let (Some(boot_id), Some(last_id), Some(generation)) =
            (text("boot_id")?, number("last_id")?, number("generation")?)
        else {
            return Ok(Err("it lacks a boot id, a last id or a generation".to_owned()));
        };
        let mut holds: Vec<Hold> = Vec::new();
        for entry in transaction.open_table(HOLDS)?.iter()? {
            let (key, value) = entry?;
            match parse(value.value()) {
                Ok(hold) if hold.id.number() == key.value() => holds.push(hold),
                Ok(hold) => {
                    return Ok(Err(format!("hold {} stands in the place of h{}", hold.id, key.value())));
                }
                Err(error) => return Ok(Err(format!("hold h{}: {error}", key.value()))),
            }
        }
        let mut answers = Vec::new();
        for entry in transaction.open_table(ANSWERS)?.iter()? {
            let (key, value) = entry?;
            answers.push((Id::new(key.value()), value.value().to_owned()));
        }
        let book = Book::restore(last_id, generation, holds);
        Ok(book.map(|book| Contents { boot_id, book, answers }).map_err(|broken| broken.to_string()))
    };
    read().map_err(|error| error.to_string())?
}

/// A hold as it is written.
pub(super) fn parse(json: &str) -> Result<Hold, String> {
    let record: Record = serde_json::from_str(json).map_err(|error| error.to_string())?;
    Hold::try_from(record)
}

/// The same, to be written.
pub(super) fn write(hold: &Hold) -> String {
    // A record is texts and numbers, which always can be written.
    serde_json::to_string(&Record::from(hold)).unwrap_or_default()
}

impl Store {
    /// Makes a file that is not there yet, with these contents, whole or not at all.
    ///
    /// # Errors
    ///
    /// If it cannot be written.
    pub(super) fn make(path: &Path, contents: &Contents) -> Result<(), Unusable> {
        let failing = |error: redb::Error| Unusable::failing(path, error);
        let mut beside = path.as_os_str().to_owned();
        beside.push(".new");
        let beside = PathBuf::from(beside);
        // What is left of a making that was cut off.
        let _ = fs::remove_file(&beside);
        let made = caught(|| {
            // Holds are for their users' eyes.
            OpenOptions::new().write(true).create_new(true).mode(0o600).open(&beside)?;
            let store = Self { database: builder().create(&beside)?, path: beside.clone() };
            store.write_all(contents)?;
            Ok(store.database.close()?)
        });
        if let Err(error) = made {
            let _ = fs::remove_file(&beside);
            return Err(failing(error));
        }
        let folder = path.parent().unwrap_or_else(|| Path::new("."));
        let moved = fs::rename(&beside, path).and_then(|()| File::open(folder)).and_then(|f| f.sync_all());
        moved.map_err(|error| Unusable::failing(path, error))
    }

    /// Opens a file that was looked at.
    ///
    /// # Errors
    ///
    /// If it cannot be written.
    pub(super) fn open(path: &Path) -> Result<Self, Unusable> {
        let opened = caught(|| Ok(builder().open(path)?));
        let database = opened.map_err(|error| Unusable::failing(path, error))?;
        Ok(Self { database, path: path.to_owned() })
    }

    /// Writes changes; returns once they are on the disk.
    ///
    /// # Errors
    ///
    /// If they are not, or may not be. The store has to be opened anew then.
    pub(super) fn write(&self, changes: &Changes<'_>) -> Result<(), Unusable> {
        let written = caught(|| {
            let transaction = self.begin()?;
            {
                let mut holds = transaction.open_table(HOLDS)?;
                for hold in changes.book.changed_since(changes.since) {
                    holds.insert(hold.id.number(), write(hold).as_str())?;
                }
                let mut answers = transaction.open_table(ANSWERS)?;
                for (id, answer) in changes.answers {
                    answers.insert(id.number(), answer.as_slice())?;
                }
                for id in changes.forgotten {
                    holds.remove(id.number())?;
                    answers.remove(id.number())?;
                }
                let mut meta = transaction.open_table(META)?;
                meta.insert("last_id", changes.book.last_id().to_string().as_str())?;
                meta.insert("generation", changes.book.generation().to_string().as_str())?;
            }
            Ok(transaction.commit()?)
        });
        written.map_err(|error| Unusable::failing(&self.path, error))
    }

    /// Writes this and nothing else.
    ///
    /// # Errors
    ///
    /// As [`Store::write`].
    pub(super) fn replace(&self, contents: &Contents) -> Result<(), Unusable> {
        caught(|| self.write_all(contents)).map_err(|error| Unusable::failing(&self.path, error))
    }

    /// What was answered to the request that made this hold.
    pub(super) fn answer(&self, id: Id) -> Result<Option<Vec<u8>>, Unusable> {
        let read = caught(|| {
            let answers = self.database.begin_read()?.open_table(ANSWERS)?;
            Ok(answers.get(id.number())?.map(|answer| answer.value().to_owned()))
        });
        read.map_err(|error| Unusable::failing(&self.path, error))
    }

    fn begin(&self) -> Result<redb::WriteTransaction, redb::Error> {
        let mut transaction = self.database.begin_write()?;
        // Holds carry texts of any user: nothing is to rest on redb's checksum, which is not made against an adversary.
        transaction.set_two_phase_commit(true);
        Ok(transaction)
    }

    fn write_all(&self, contents: &Contents) -> Result<(), redb::Error> {
        let transaction = self.begin()?;
        {
            transaction.delete_table(HOLDS)?;
            transaction.delete_table(ANSWERS)?;
            let mut holds = transaction.open_table(HOLDS)?;
            for hold in contents.book.changed_since(0) {
                holds.insert(hold.id.number(), write(hold).as_str())?;
            }
            let mut answers = transaction.open_table(ANSWERS)?;
            for (id, answer) in &contents.answers {
                answers.insert(id.number(), answer.as_slice())?;
            }
            let mut meta = transaction.open_table(META)?;
            meta.insert("format", FORMAT.to_string().as_str())?;
            meta.insert("boot_id", contents.boot_id.as_str())?;
            meta.insert("last_id", contents.book.last_id().to_string().as_str())?;
            meta.insert("generation", contents.book.generation().to_string().as_str())?;
        }
        Ok(transaction.commit()?)
    }
}

/// A panic of redb is an error like any other.
fn caught<T>(act: impl FnOnce() -> Result<T, redb::Error>) -> Result<T, redb::Error> {
    let panicked = || redb::Error::Corrupted("redb panicked".to_owned());
    catch_unwind(AssertUnwindSafe(act)).unwrap_or_else(|_| Err(panicked()))
}
