//! Starts the process that runs hwloc, and takes its answer.

use super::{Hardware, Refused, Source, child, guard, parcel::Parcel, sysfs::Sysfs};
use crate::{auth::caller, shares::Shares};
use prost::Message;
use std::{
    ffi::OsString,
    io,
    os::unix::process::ExitStatusExt,
    path::{Path, PathBuf},
    process::{ExitStatus, Stdio},
    sync::{Arc, OnceLock},
};
use tokio::{
    io::{AsyncRead, AsyncReadExt, AsyncWriteExt},
    process::Command,
    sync::Semaphore,
};

/// Foreign descriptions that are read at a time.
pub const AT_A_TIME: usize = 2;
/// How many are present: those that are read and those that wait for it. Each may be 16 MiB long. One caller has at most half
/// of the places.
const PRESENT: usize = AT_A_TIME + 14;
/// The longest answer that is taken, in bytes: several times that of 65,536 CPUs.
const MAX_ANSWER: u64 = 32 << 20;
/// How much of what hwloc says in passing is kept for the log, in bytes.
const MAX_TALK: u64 = 4 << 10;

/// Why there is no topology.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The description is not accepted.
    #[error(transparent)]
    Refused(#[from] Refused),
    /// The description cannot be read. Says why.
    #[error("{0}")]
    Unreadable(String),
    /// hwloc did not survive the description.
    #[error("hwloc did not survive it ({status}); it contradicts itself, or takes too much memory or time")]
    Died {
        /// How it ended.
        status: ExitStatus,
    },
    /// Too many descriptions wait to be read already.
    #[error("{limit} descriptions wait to be read already")]
    Busy {
        /// How many may.
        limit: usize,
    },
    /// The process that runs hwloc could not be started, or gave an answer that is none.
    #[error("the process that reads topologies failed")]
    Failed(#[source] io::Error),
}

impl Error {
    /// Whether another description could have been read.
    pub fn is_of_description(&self) -> bool {
        match self {
            Self::Refused(_) | Self::Unreadable(_) | Self::Died { .. } => true,
            Self::Busy { .. } | Self::Failed(_) => false,
        }
    }
}

/// Reads topologies, each in a process of its own.
#[derive(Debug, Clone)]
pub struct Reader {
    program: PathBuf,
    foreign: Arc<Semaphore>,
    present: Shares,
    version: Arc<OnceLock<String>>,
}

impl Reader {
    /// Will start `program`, which must be berthd.
    pub fn new(program: PathBuf) -> Self {
        Self {
            program,
            foreign: Arc::new(Semaphore::new(AT_A_TIME)),
            present: Shares::default(),
            version: Arc::default(),
        }
    }

    /// Reads the running host: hwloc's view, corrected by what the kernel says of itself below `root` (`/` but in
    /// tests).
    ///
    /// # Errors
    ///
    /// If hwloc cannot read it.
    pub async fn live(&self, root: &Path) -> Result<Hardware, Error> {
        let mut hardware = self.start(child::LIVE, "", Source::Live).await?;
        let root = root.to_owned();
        let sysfs = tokio::task::spawn_blocking(move || Sysfs::read(&root));
        sysfs.await.map_err(|error| Error::Failed(error.into()))?.correct(&mut hardware);
        Ok(hardware)
    }

    /// Reads an hwloc XML.
    ///
    /// # Errors
    ///
    /// If it is too long, of format 3, or cannot be read.
    pub async fn xml(&self, xml: &str) -> Result<Hardware, Error> {
        guard::check_xml(xml)?;
        self.start_foreign(child::XML, xml, Source::Xml).await
    }

    /// Reads an hwloc synthetic description.
    ///
    /// # Errors
    ///
    /// If it describes too many objects, or cannot be read.
    pub async fn synthetic(&self, text: &str) -> Result<Hardware, Error> {
        guard::check_synthetic(text)?;
        self.start_foreign(child::SYNTHETIC, text, Source::Synthetic).await
    }

    /// hwloc's version, once something was read.
    pub fn hwloc_version(&self) -> &str {
        self.version.get().map_or("", String::as_str)
    }

    async fn start_foreign(&self, kind: &str, text: &str, source: Source) -> Result<Hardware, Error> {
        let present = self.present.take(caller::current(), PRESENT, PRESENT / 2);
        let _present = present.map_err(|_| Error::Busy { limit: PRESENT })?;
        let permit = self.foreign.acquire().await;
        let _permit = permit.map_err(|closed| Error::Failed(io::Error::other(closed)))?;
        self.start(kind, text, source).await
    }

    async fn start(&self, kind: &str, text: &str, source: Source) -> Result<Hardware, Error> {
        let (status, answer, talk) = self.run(kind, text).await.map_err(Error::Failed)?;
        if !talk.is_empty() {
            tracing::debug!(kind, talk, "hwloc said");
        }
        let damaged = || Error::Failed(io::Error::new(io::ErrorKind::InvalidData, "its answer is damaged"));
        match status.code() {
            Some(0) => {
                let parcel = Parcel::decode(answer.as_slice()).map_err(|_| damaged())?;
                self.version.get_or_init(|| parcel.hwloc_version.clone());
                parcel.unpack(source).map_err(|_| damaged())
            }
            Some(code) if code == i32::from(child::REFUSED) => {
                Err(Error::Unreadable(String::from_utf8_lossy(&answer).into_owned()))
            }
            // The loader's way to say that a library is missing, a panic's, and the like.
            Some(_) if status.signal().is_none() && source == Source::Live => {
                Err(Error::Failed(io::Error::other(format!("{status}: {talk}"))))
            }
            _ => Err(Error::Died { status }),
        }
    }

    async fn run(&self, kind: &str, text: &str) -> io::Result<(ExitStatus, Vec<u8>, String)> {
        let mut command = Command::new(&self.program);
        command.args([child::ARGUMENT, kind]);
        for name in steering_variables() {
            command.env_remove(name);
        }
        // No plug-ins: the same XML reader everywhere, and no driver is loaded to look for devices. What contradicts
        // itself ends hwloc at once instead of being carried along.
        command.env("HWLOC_PLUGINS_PATH", "/nonexistent").env("HWLOC_DEBUG_CHECK", "1");
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).kill_on_drop(true);
        let mut process = command.spawn()?;

        let mut input = process.stdin.take();
        let give = async {
            if let Some(input) = &mut input {
                // A process that has refused already no longer listens.
                let _ = input.write_all(text.as_bytes()).await;
            }
            drop(input.take());
        };
        let (answer, talk) = (process.stdout.take(), process.stderr.take());
        let ((), answer, talk) = tokio::join!(give, take(answer, MAX_ANSWER), take(talk, MAX_TALK));
        let status = process.wait().await?;
        Ok((status, answer?, String::from_utf8_lossy(&talk?).trim().to_owned()))
    }
}

/// The variables that would make hwloc read another host, load code or leave things out.
fn steering_variables() -> impl Iterator<Item = OsString> {
    std::env::vars_os().map(|(name, _)| name).filter(|name| name.to_string_lossy().starts_with("HWLOC_"))
}

/// Reads all of a pipe and keeps the first `most` bytes.
async fn take(pipe: Option<impl AsyncRead + Unpin>, most: u64) -> io::Result<Vec<u8>> {
    let mut kept = Vec::new();
    if let Some(mut pipe) = pipe {
        (&mut pipe).take(most).read_to_end(&mut kept).await?;
        tokio::io::copy(&mut pipe, &mut tokio::io::sink()).await?;
    }
    Ok(kept)
}
