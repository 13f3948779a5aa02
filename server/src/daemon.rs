//! The daemon: listens, reads the host, serves, stops.

use crate::{
    admin::Admin,
    config::{Config, Live, Reloader, Stop, TextFile, Tls as TlsFiles, Topology},
    ending::{End, ending},
    follow::follow,
    ingest::{self, Hardware, Reader, Settings, kernel::Kernel},
    layers::{
        Layers, admission::Admission, authentication::Authentication, deadline::Deadline, metrics::Counting,
        presence::Presences, request_id::RequestIds,
    },
    ledger::{self, Keeper, Owners},
    listen::{self, Access, Socket, Tcp, Tls, incoming},
    metrics::{self, Facts, Metrics, Requests},
    serve::{self, Health, Listening},
    service::{Context, Pool, Repeats},
    shares::Shares,
    snapshot::{Choice, Here, Machine, Sampler, publisher},
    systemd, telemetry,
};
use berth_model::topology;
use std::{
    fs, io,
    net::SocketAddr,
    path::{Path, PathBuf},
    sync::Arc,
    time::{Instant, SystemTime},
};
use tokio::{
    sync::watch,
    task::{JoinError, JoinSet},
};

/// Hosts that are not here, asked about at a time.
const FOREIGN_AT_A_TIME: usize = 2;

/// Why the daemon does not serve.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The host that it is told to answer about cannot be read.
    #[error("{what}: {cause}")]
    Described {
        /// What it was told.
        what: String,
        /// Why.
        cause: ingest::Error,
    },
    /// It cannot listen.
    #[error(transparent)]
    Listen(#[from] listen::Error),
    /// Another daemon keeps this host's holds.
    #[error(transparent)]
    Locked(#[from] ledger::Locked),
    /// The thread that keeps holds cannot be started.
    #[error("no thread for the store of holds: {0}")]
    NoThread(io::Error),
    /// This host cannot be read.
    #[error("this host cannot be read")]
    Read(#[source] ingest::Error),
    /// What was read is no host.
    #[error("what was read of this host contradicts itself: {0}")]
    Impossible(#[from] topology::Error),
    /// The thread that measures the load cannot be started.
    #[error("no thread to measure the load can be started")]
    Sampler(#[source] io::Error),
    /// The file that says that it serves cannot be written, or one from before cannot be removed.
    #[error("{} cannot be written or removed: {cause}", .path.display())]
    ReadyFile {
        /// The file.
        path: PathBuf,
        /// Why.
        cause: io::Error,
    },
    /// The thread that keeps holds ended by itself.
    #[error("the thread that keeps holds ended; the log says why")]
    NoKeeper,
    /// A server failed.
    #[error("a server failed")]
    Server(#[source] tonic::transport::Error),
    /// A server ended without a word.
    #[error("a server ended though it was not told to")]
    Ended,
    /// A part of the daemon panicked; the log says where.
    #[error("a part of the daemon panicked")]
    Panicked(#[from] JoinError),
}

/// A running daemon.
#[derive(Debug)]
pub struct Daemon {
    tcp: Option<SocketAddr>,
    socket: Option<Socket>,
    health: Health,
    end: End,
    servers: JoinSet<Result<(), tonic::transport::Error>>,
    start: JoinSet<Result<(), Error>>,
    sampler: Option<Sampler>,
    /// What goes on beside, until the daemon is gone.
    background: JoinSet<()>,
    admin: Option<SocketAddr>,
    requests: Requests,
    holds: ledger::Handle,
    live: Live,
    reloader: Reloader,
    ready_file: Option<PathBuf>,
    /// With the files that it has read.
    tls: Option<(Tls, TlsFiles)>,
}

impl Daemon {
    /// Listens and begins to read the host. Until it is read, health says NOT_SERVING.
    ///
    /// # Errors
    ///
    /// If it cannot listen, or a host that it was told to answer about cannot be read.
    pub async fn start(config: Config) -> Result<Self, Error> {
        let begun = Instant::now();
        let (reloader, live) = Reloader::new(&config);
        let listen = &config.sections.listen;
        let reader = Reader::new(config.program.clone());
        // A description is part of the configuration: told before a port is bound.
        let described = described(&config, &reader).await?;
        let tls = Tls::new(&config.sections.tls)?;
        let tls_files = tls.clone().map(|tls| (tls, config.sections.tls.clone()));
        let tcp = match listen.tcp {
            Some(address) => Some(listen::tcp(address).await?),
            None => None,
        };
        let access = Access { mode: listen.uds_mode, group: listen.uds_group };
        let uds = listen.uds.as_deref().map(|path| Socket::bind(path, access)).transpose()?;
        let admin = match config.sections.admin.listen {
            Some(address) => Some(listen::admin(address).await?),
            None => None,
        };
        // That of a daemon that was killed, since where it listened was free.
        listen.ready_file.as_deref().map_or(Ok(()), Ready::remove)?;
        let (tcp, address) = tcp.unzip();
        let (socket, uds) = uds.unzip();
        let (admin, admin_address) = admin.unzip();

        let mut registry = metrics::registry();
        let metrics = Metrics::new(&mut registry);
        let (publisher, current) = publisher::start(live.clone(), config.measure_load);
        let sheds = &metrics.sheds;
        let cores = std::thread::available_parallelism().map_or(1, usize::from);
        let (holds, keeper) = ledger::handle();
        let owners = Arc::new(Owners::new(config.root.clone()));
        let caretaker = holds.clone().take_care(Arc::clone(&owners), current.clone(), live.clone());
        let context = Arc::new(Context {
            current: current.clone(),
            publisher: publisher.clone(),
            holds: holds.clone(),
            repeats: Repeats::default(),
            deciding: tokio::sync::Mutex::default(),
            owners,
            reader: reader.clone(),
            foreign: Pool::new(
                FOREIGN_AT_A_TIME,
                "questions about other hosts or kernels",
                sheds.of("foreign"),
            ),
            long: Pool::new(cores, "long questions", sheds.of("long")),
            looks: Pool::new(1, "looks at processes", sheds.of("looks")),
            live: live.clone(),
            started_at: SystemTime::now(),
            metrics,
        });
        registry.register_collector(Box::new(Facts(Arc::clone(&context))));
        let (requests, counts) = (context.metrics.requests.clone(), context.metrics.holds.clone());
        let health = Health::new().await;
        let admission = Admission::new(live.clone(), context.metrics.sheds.clone());
        let routes = serve::routes(context, &health);
        let places = Shares::default();
        let (end, ending) = ending();
        let layers = Layers {
            presences: Presences(live.clone()),
            ids: RequestIds::new(),
            counting: Counting { requests: requests.clone(), ending: ending.clone() },
            authentication: Authentication(live.clone()),
            admission,
            deadline: Deadline(live.clone()),
        };
        let mut servers = JoinSet::new();
        if let Some(listener) = tcp {
            let needs_certificate = config.sections.tls.client_ca.is_some();
            let tcp = Tcp { listener, needs_certificate };
            let incoming = incoming(tcp, places.clone(), live.clone(), ending.clone());
            let (layers, routes) = (layers.clone(), routes.clone());
            match tls {
                Some(tls) => {
                    servers.spawn(Listening { incoming: tls.secure(incoming), layers }.serve(routes))
                }
                None => servers.spawn(Listening { incoming, layers }.serve(routes)),
            };
        }
        if let Some(listener) = uds {
            let incoming = incoming(listener, places, live.clone(), ending);
            let listening = Listening { incoming, layers };
            servers.spawn(listening.serve(routes));
        }
        // They end with the daemon.
        let mut background = JoinSet::new();
        background.spawn(systemd::watchdog());
        background.spawn(caretaker);
        if let Some(listener) = admin {
            let admin = Admin { registry: Arc::new(registry), health: health.clone(), live: live.clone() };
            background.spawn(admin.serve(listener));
        }
        tracing::info!(
            tcp = address.map(tracing::field::display),
            uds = socket.as_ref().map(|socket| tracing::field::display(socket.path().display())),
            admin = admin_address.map(tracing::field::display),
            "listening"
        );

        let mut start = JoinSet::new();
        let (changes, changed) = watch::channel(());
        let sampler = if config.measure_load {
            let news = (publisher.clone(), current.clone());
            let sampler = Sampler::start(config.root.clone(), live.clone(), news, changes);
            Some(sampler.map_err(Error::Sampler)?)
        } else {
            None
        };
        let ready_file = listen.ready_file.clone();
        let kept_ready_file = ready_file.clone();
        let uds = socket.as_ref().map(|socket| socket.path().to_owned());
        let ready = Ready { tcp: address, uds, admin: admin_address };
        let (serving, mut usable) = (health.clone(), holds.usable());
        start.spawn(async move {
            let settings = ledger::Settings {
                folder: config.sections.holds.state_dir.clone(),
                root: config.root.clone(),
            };
            let told = publisher.clone();
            let opening =
                tokio::task::spawn_blocking(move || Keeper::open(keeper, &settings, told, current, counts));
            let is_live = described.is_none();
            let (machine, here) = read(config.clone(), &reader, described).await?;
            let keeper = opening.await??;
            // Nothing is decided before there is a machine to decide about.
            let known = publisher.machine(machine, here).await;
            let thread = std::thread::Builder::new().name("ledger".to_owned());
            thread.spawn(move || keeper.run()).map_err(Error::NoThread)?;
            let is_usable = usable.borrow_and_update().is_ok();
            serving.serving(is_usable).await;
            tokio::spawn(serving.follow_holds(usable));
            tracing::info!(
                millis = u64::try_from(begun.elapsed().as_millis()).unwrap_or(u64::MAX),
                "serving"
            );
            if let Some(path) = ready_file {
                ready.write(&path)?;
            }
            systemd::ready();
            if is_live {
                tokio::spawn(follow(config, reader, known, changed, publisher));
            }
            Ok(())
        });
        Ok(Self {
            tcp: address,
            socket,
            health,
            end,
            servers,
            start,
            sampler,
            background,
            admin: admin_address,
            requests,
            holds,
            live,
            reloader,
            ready_file: kept_ready_file,
            tls: tls_files,
        })
    }

    /// The TCP address that it listens on.
    pub fn tcp(&self) -> Option<SocketAddr> {
        self.tcp
    }

    /// The unix socket that it listens on.
    pub fn uds(&self) -> Option<&Path> {
        self.socket.as_ref().map(Socket::path)
    }

    /// The admin address that it listens on.
    pub fn admin(&self) -> Option<SocketAddr> {
        self.admin
    }

    /// Requests that are being answered.
    pub fn in_flight(&self) -> i64 {
        self.requests.in_flight()
    }

    /// Waits until it serves.
    ///
    /// # Errors
    ///
    /// If the host cannot be read.
    pub async fn ready(&mut self) -> Result<(), Error> {
        while let Some(started) = self.start.join_next().await {
            started??;
        }
        Ok(())
    }

    /// Waits until a server or the keeper of holds ends, which none does by itself.
    ///
    /// # Errors
    ///
    /// Always, once one has ended.
    pub async fn failed(&mut self) -> Result<(), Error> {
        tokio::select! {
            ended = self.servers.join_next() => match ended {
                Some(ended) => ended?.map_err(Error::Server).and(Err(Error::Ended)),
                None => Err(Error::Ended),
            },
            () = self.holds.ended() => Err(Error::NoKeeper),
        }
    }

    /// Takes what can be changed while it runs from the configuration that was read again, and logs what was and what
    /// was not. One that is wrong changes nothing.
    pub fn reload(&mut self, read: Result<Config, Stop>) {
        if self.health.is_serving() {
            systemd::reloading();
        }
        match read {
            Ok(newer) => match self.renew_tls(&newer) {
                Ok(()) => self.take(&newer),
                Err(error) => tracing::error!("{error}; nothing was changed, and those from before stay"),
            },
            Err(stop) => {
                stop.problems().iter().for_each(|problem| tracing::error!("{problem}"));
                tracing::error!("the configuration is wrong: nothing was changed");
            }
        }
        if self.health.is_serving() {
            systemd::ready();
        }
    }

    /// Takes what is in the TLS files now. Others than those that it was started with need a restart, which the settings
    /// say.
    fn renew_tls(&mut self, newer: &Config) -> Result<(), listen::Error> {
        let Some((tls, files)) = &mut self.tls else { return Ok(()) };
        let newer = &newer.sections.tls;
        let paths = |tls: &TlsFiles| tls.files().map(|file| file.map(|file| file.path.clone()));
        if paths(newer) == paths(files) && newer.files() != files.files() {
            tls.renew(newer)?;
            newer.clone_into(files);
            tracing::info!("the TLS files were read again: new connections go by them");
        }
        Ok(())
    }

    fn take(&mut self, newer: &Config) {
        let reloaded = self.reloader.reload(newer);
        telemetry::set_filter(&self.live.now().log.filter);
        for line in &reloaded.changed {
            tracing::info!("{line}");
        }
        for line in &reloaded.need_restart {
            tracing::warn!("{line}: this needs a restart");
        }
        tracing::info!(
            changed = reloaded.changed.len(),
            need_restart = reloaded.need_restart.len(),
            "the configuration was read again"
        );
    }

    /// Says NOT_SERVING, takes no more requests, and gives those that are there their time.
    ///
    /// Every connection on which something was asked is told that it is the last, and is waited for until its peer has
    /// taken its last answer.
    pub async fn stop(mut self) {
        self.health.not_serving().await;
        self.start.shutdown().await;
        if let Some(Err(error)) = self.ready_file.as_deref().map(Ready::remove) {
            tracing::warn!("{error}");
        }
        self.sampler = None;
        let limit = self.live.now().limits.shutdown_timeout;
        systemd::stopping(limit);
        self.end.tell();
        let closed = async { while self.servers.join_next().await.is_some() {} };
        if tokio::time::timeout(limit, closed).await.is_err() {
            tracing::warn!(?limit, in_flight = self.requests.in_flight(), "connections were cut off");
        }
        self.servers.abort_all();
        self.background.abort_all();
        // The last decisions are written, and the store is closed, before another daemon may open it.
        if tokio::time::timeout(limit, self.holds.stop()).await.is_err() {
            tracing::warn!(?limit, "the store of holds was not closed in time");
        }
    }
}

/// Whether the host that the configuration describes, if it does, can be read.
///
/// # Errors
///
/// If it cannot.
pub async fn check(config: &Config) -> Result<(), Error> {
    Tls::new(&config.sections.tls)?;
    described(config, &Reader::new(config.program.clone())).await.map(drop)
}

/// The host that the configuration describes, if it does.
async fn described(config: &Config, reader: &Reader) -> Result<Option<Hardware>, Error> {
    match &config.topology {
        Topology::Live => Ok(None),
        Topology::Xml(TextFile { path, text }) => {
            let what = format!("--topology-xml {}", path.display());
            reader.xml(text).await.map(Some).map_err(|cause| Error::Described { what, cause })
        }
        Topology::Synthetic(text) => {
            let what = format!("--topology-synthetic `{text}`");
            reader.synthetic(text).await.map(Some).map_err(|cause| Error::Described { what, cause })
        }
    }
}

/// Reads the host, and builds what answers rest on.
pub(crate) async fn read(
    config: Config,
    reader: &Reader,
    described: Option<Hardware>,
) -> Result<(Machine, Here), Error> {
    let live = described.is_none();
    let hardware = match described {
        Some(hardware) => hardware,
        None => reader.live(&config.root).await.map_err(Error::Read)?,
    };
    let build = move || build(&config, hardware, live);
    Ok(tokio::task::spawn_blocking(build).await??)
}

fn build(config: &Config, mut hardware: Hardware, live: bool) -> Result<(Machine, Here), topology::Error> {
    let kernel = Kernel::read(&config.root);
    let processor = &mut hardware.description.processor;
    if live && processor.vendor.is_empty() {
        processor.vendor.clone_from(&kernel.cpu_vendor);
        processor.family = kernel.cpu_family;
    }
    let stated = &config.sections.host;
    if let Some(vendor) = &stated.cpu_vendor {
        processor.vendor.clone_from(vendor);
    }
    processor.family = stated.cpu_family.or(processor.family);
    let stated = stated.kernel.as_deref().and_then(|kernel| Choice::typed(kernel).ok());
    let choice = stated.unwrap_or_else(|| {
        if live {
            Choice::running(&kernel.identity)
        } else {
            let because =
                "The host is a description, whose kernel is not told: every released one is possible.";
            Choice::nothing_told(because.to_owned())
        }
    });
    let machine = Machine::try_new(hardware, choice)?;
    for sentence in &machine.choice.evidence {
        tracing::info!(profile = machine.choice.profiles.first().map_or("none", |p| p.name), "{sentence}");
    }
    let settings = if live { Settings::read(&config.root) } else { Settings::default() };
    Ok((machine, Here { kernel, settings }))
}

/// What the ready file says.
struct Ready {
    tcp: Option<SocketAddr>,
    uds: Option<PathBuf>,
    admin: Option<SocketAddr>,
}

impl Ready {
    /// Written beside and moved into place, so that whoever waits for the file never reads half of it.
    fn write(&self, path: &Path) -> Result<(), Error> {
        let text = serde_json::json!({
            "pid": std::process::id(),
            "tcp": self.tcp.map(|address| address.to_string()),
            "uds": self.uds.as_ref().map(|path| path.to_string_lossy()),
            "admin": self.admin.map(|address| address.to_string()),
        });
        let mut beside = path.as_os_str().to_owned();
        beside.push(".new");
        let written = fs::write(&beside, format!("{text}\n")).and_then(|()| fs::rename(&beside, path));
        written.map_err(|cause| Error::ReadyFile { path: path.to_owned(), cause })
    }

    /// It is no error if there is none.
    fn remove(path: &Path) -> Result<(), Error> {
        match fs::remove_file(path) {
            Err(cause) if cause.kind() != io::ErrorKind::NotFound => {
                Err(Error::ReadyFile { path: path.to_owned(), cause })
            }
            _ => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::PermissionsExt;

    /// A server that ends is a failure, however it ends, so that whoever started the daemon starts it anew.
    #[tokio::test(flavor = "multi_thread")]
    async fn a_server_that_ends_is_a_failure() {
        let folder = tempfile::tempdir().unwrap();
        let path = |name: &str| folder.path().join(name).into_os_string();
        let args = ["berthd", "--config", "none", "--no-tcp", "--uds"].map(Into::into);
        let rest = [path("berthd.sock"), "--state-dir".into(), path("state")];
        let mut config = Config::try_from_args(args.into_iter().chain(rest)).unwrap();
        // Its host is being read all the time.
        config.program = folder.path().join("reader");
        fs::write(&config.program, "#!/bin/sh\nexec sleep 600\n").unwrap();
        fs::set_permissions(&config.program, fs::Permissions::from_mode(0o755)).unwrap();
        let mut daemon = Daemon::start(config).await.unwrap();
        daemon.servers.spawn(async { Ok(()) });
        assert!(matches!(daemon.failed().await, Err(Error::Ended)));
        daemon.servers.spawn(async { panic!("on purpose") });
        assert!(matches!(daemon.failed().await, Err(Error::Panicked(_))));
        daemon.servers.shutdown().await;
        assert!(matches!(daemon.failed().await, Err(Error::Ended)), "there is none left");
        daemon.stop().await;
    }
}
