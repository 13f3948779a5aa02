//! `berthd ledger`: looks at a store, writes it as text, makes one of such a text.

use super::{
    Unusable,
    lock::{self, Lock, NoLock},
    store::{self, Contents, Store},
};
use crate::config::{Config, Invalid, Stop};
use anyhow::{Context as _, bail};
use berth_model::hold::{Book, Id};
use clap::{Parser, Subcommand};
use serde::{Deserialize, Serialize};
use std::{
    ffi::OsString,
    fs,
    io::{self, Read, Write},
    os::unix::fs::{MetadataExt, lchown},
    path::{Path, PathBuf},
};

/// The first argument of the daemon that leads here.
pub const NAME: &str = "ledger";

/// Looks after the store of holds while berthd does not run.
#[derive(Debug, Parser)]
#[command(name = "berthd ledger", version, max_term_width = 100)]
struct Arguments {
    #[command(subcommand)]
    action: Action,
    /// The folder of the store, as for berthd.
    #[arg(long, global = true, value_name = "PATH")]
    state_dir: Option<OsString>,
    /// The configuration file, as for berthd.
    #[arg(long, global = true, value_name = "FILE")]
    config: Option<OsString>,
}

#[derive(Debug, Subcommand)]
enum Action {
    /// Read all of the store and say what is in it. Exit status 1 if it cannot be used.
    Check,
    /// Write the store to stdout, one JSON object a line.
    Export,
    /// Make a store of what `export` wrote. Refused where there is one.
    Import {
        /// The file; `-` for stdin.
        file: PathBuf,
    },
}

/// A line of the text.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
enum Line {
    /// What holds for all of it: the first line.
    Ledger { boot_id: String, last_id: u64, generation: u64 },
    /// A hold, as the store has it.
    Hold(serde_json::Value),
    /// What was answered to the request for a hold, in hexadecimal digits.
    Answer { id: u64, bytes: String },
}

/// Does what the arguments say, the program's name and `ledger` first.
///
/// # Errors
///
/// If that cannot be done.
pub fn run(arguments: &[OsString]) -> anyhow::Result<()> {
    let rest = arguments.get(2..).unwrap_or_default().iter();
    let arguments = Arguments::try_parse_from(std::iter::once(&OsString::from(NAME)).chain(rest));
    let arguments = match arguments {
        Ok(arguments) => arguments,
        Err(said) if said.use_stderr() => return Err(said.into()),
        Err(said) => return Ok(said.print()?),
    };
    let folder = folder(&arguments)?;
    let path = folder.join(store::NAME);
    let lock = match &arguments.action {
        Action::Check | Action::Export => Lock::take_existing(&folder),
        Action::Import { .. } => Lock::take(&folder).map(Some),
    };
    let _lock = match (lock, &arguments.action) {
        (Ok(lock), _) => lock,
        (Err(NoLock::Locked(locked)), _) => bail!("{locked}"),
        // What cannot be written can be read.
        (Err(NoLock::Io(_)), Action::Check | Action::Export) => None,
        (Err(NoLock::Io(error)), Action::Import { .. }) => {
            return Err(error).with_context(|| format!("{} cannot be written to", folder.display()));
        }
    };
    match arguments.action {
        Action::Check => check(&path),
        Action::Export => export(&path),
        Action::Import { file } => {
            // Also if no more is made.
            give_away(&folder, lock::NAME)?;
            import(&path, &file)?;
            give_away(&folder, store::NAME)
        }
    }
}

fn folder(arguments: &Arguments) -> anyhow::Result<PathBuf> {
    let mut flags = vec![OsString::from("berthd")];
    let given = [("--state-dir", &arguments.state_dir), ("--config", &arguments.config)];
    for (flag, value) in given {
        flags.extend(value.iter().flat_map(|value| [flag.into(), value.clone()]));
    }
    let config = Config::try_from_args(flags).map_err(|stop| match stop {
        Stop::Said(said) => anyhow::Error::new(*said),
        Stop::Invalid(invalid) => invalid.into(),
    })?;
    let none = || Invalid(vec!["there is no folder for a store; give one with --state-dir".to_owned()]);
    Ok(config.sections.holds.state_dir.ok_or_else(none)?)
}

fn read(path: &Path) -> anyhow::Result<Contents> {
    match store::look(path) {
        Ok(Some(contents)) => Ok(contents),
        Ok(None) => bail!("there is no store: {} does not exist", path.display()),
        Err(Unusable::Broken { what, .. }) => bail!("{} cannot be used: {what}", path.display()),
        Err(unusable) => bail!("{unusable}"),
    }
}

fn check(path: &Path) -> anyhow::Result<()> {
    let Contents { boot_id, book, answers } = read(path)?;
    let text = format!(
        "{}: sound\nholds in force  {}\nended lately    {}\nanswers kept    {}\ngeneration      {}\nboot            {boot_id}\n",
        path.display(),
        book.len(),
        book.ended().count(),
        answers.len(),
        book.generation(),
    );
    Ok(io::stdout().write_all(text.as_bytes())?)
}

fn export(path: &Path) -> anyhow::Result<()> {
    let Contents { boot_id, book, answers } = read(path)?;
    let mut out = io::BufWriter::new(io::stdout().lock());
    let mut line = |line: &Line| writeln!(out, "{}", serde_json::to_string(line).map_err(io::Error::other)?);
    line(&Line::Ledger { boot_id, last_id: book.last_id(), generation: book.generation() })?;
    for hold in book.changed_since(0) {
        line(&Line::Hold(serde_json::from_str(&store::write(hold))?))?;
    }
    for (id, bytes) in answers {
        let bytes = bytes.iter().map(|byte| format!("{byte:02x}")).collect();
        line(&Line::Answer { id: id.number(), bytes })?;
    }
    Ok(out.flush()?)
}

fn import(path: &Path, from: &Path) -> anyhow::Result<()> {
    if fs::symlink_metadata(path).is_ok() {
        bail!("{} is there already; move it away first", path.display());
    }
    let mut text = String::new();
    if from == Path::new("-") {
        io::stdin().read_to_string(&mut text)?;
    } else {
        text = fs::read_to_string(from).with_context(|| format!("{} cannot be read", from.display()))?;
    }
    let (mut head, mut holds, mut answers) = (None, Vec::new(), Vec::new());
    for (number, line) in (1..).zip(text.lines()) {
        let at = || format!("line {number}");
        match serde_json::from_str(line).with_context(at)? {
            Line::Ledger { boot_id, last_id, generation } => head = Some((boot_id, last_id, generation)),
            Line::Hold(hold) => {
                holds.push(store::parse(&hold.to_string()).map_err(anyhow::Error::msg).with_context(at)?);
            }
            Line::Answer { id, bytes } => {
                answers.push((Id::new(id), bytes_of(&bytes).with_context(at)?));
            }
        }
    }
    let (boot_id, last_id, generation) = head.context("the line with the boot id is missing")?;
    let book = Book::restore(last_id, generation, holds)?;
    let held = book.len();
    Store::make(path, &Contents { boot_id, book, answers })
        .map_err(|unusable| anyhow::anyhow!("{unusable}"))?;
    Ok(io::stdout()
        .write_all(format!("{}: made, with {held} holds in force\n", path.display()).as_bytes())?)
}

/// Whose the folder is, uses it: what root has made there becomes that one's. What a link leads to does not.
fn give_away(folder: &Path, name: &str) -> anyhow::Result<()> {
    if !rustix::process::geteuid().is_root() {
        return Ok(());
    }
    let (about, file) = (fs::metadata(folder)?, folder.join(name));
    lchown(&file, Some(about.uid()), Some(about.gid()))
        .with_context(|| format!("{} cannot be given to uid {}", file.display(), about.uid()))
}

fn bytes_of(digits: &str) -> anyhow::Result<Vec<u8>> {
    let pair = |pair: &[u8]| u8::from_str_radix(std::str::from_utf8(pair)?, 16).map_err(anyhow::Error::new);
    if !digits.len().is_multiple_of(2) {
        bail!("an odd number of hexadecimal digits");
    }
    digits.as_bytes().chunks(2).map(pair).collect()
}
