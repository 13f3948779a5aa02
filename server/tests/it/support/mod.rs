//! A daemon in this process, listening on a free port and on a socket in a folder of its own.

pub(crate) mod certificates;
pub(crate) mod process;
pub(crate) mod spin;
pub(crate) mod wire;

use berth_proto::v1::{
    self, hold_service_client::HoldServiceClient, host::Source, info_service_client::InfoServiceClient,
    load_service_client::LoadServiceClient, placement_service_client::PlacementServiceClient,
    topology_service_client::TopologyServiceClient,
};
use berth_server::{Daemon, config::Config};
use hyper_util::rt::TokioIo;
use std::{
    net::SocketAddr,
    path::{Path, PathBuf},
};
use tempfile::TempDir;
use tokio::net::UnixStream;
use tonic::transport::{Channel, Endpoint};
use tower::service_fn;

/// The program, which the daemon starts to read topologies.
pub(crate) const PROGRAM: &str = env!("CARGO_BIN_EXE_berthd");

pub(crate) struct Served {
    pub(crate) daemon: Daemon,
    /// Goes with the daemon.
    _folder: TempDir,
}

impl Served {
    /// A daemon with these flags beside those that tell where it listens, once it serves.
    pub(crate) async fn start(flags: &[&str]) -> Self {
        let mut served = Self::begin(flags, |_| {}).await;
        served.daemon.ready().await.unwrap();
        served
    }

    /// The same, while it still reads the host.
    pub(crate) async fn begin(flags: &[&str], change: impl FnOnce(&mut Config)) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let mut config = config(folder.path(), flags);
        change(&mut config);
        Self { daemon: Daemon::start(config).await.unwrap(), _folder: folder }
    }

    /// A connection over each transport, with its name.
    pub(crate) async fn channels(&self) -> [(&'static str, Channel); 2] {
        let tcp = over_tcp(&self.daemon).await;
        [("tcp", tcp), ("uds", over_unix(self.daemon.uds().unwrap()).await)]
    }
}

pub(crate) fn config(folder: &Path, flags: &[&str]) -> Config {
    let (socket, state) = (folder.join("berthd.sock"), folder.join("state"));
    let paths = ["--uds", socket.to_str().unwrap(), "--state-dir", state.to_str().unwrap()];
    // Not what this machine's file says.
    let listen = ["berthd", "--config", "none", "--tcp", "127.0.0.1:0"];
    let mut config = Config::try_from_args(listen.iter().chain(&paths).chain(flags)).unwrap();
    config.program = PathBuf::from(PROGRAM);
    config
}

pub(crate) async fn over_tcp(daemon: &Daemon) -> Channel {
    over_tcp_at(daemon.tcp().unwrap()).await
}

pub(crate) async fn over_tcp_at(address: SocketAddr) -> Channel {
    Endpoint::from_shared(format!("http://{address}")).unwrap().connect().await.unwrap()
}

pub(crate) async fn over_unix(path: &Path) -> Channel {
    try_unix(path).await.expect("somebody listens")
}

/// A connection, if there is somebody to connect to.
pub(crate) async fn try_unix(path: &Path) -> Option<Channel> {
    let path = path.to_owned();
    let connect = service_fn(move |_| {
        let path = path.clone();
        async move { UnixStream::connect(path).await.map(TokioIo::new) }
    });
    Endpoint::from_static("http://unix").connect_with_connector(connect).await.ok()
}

pub(crate) fn placement(channel: &Channel) -> PlacementServiceClient<Channel> {
    PlacementServiceClient::new(channel.clone()).max_decoding_message_size(usize::MAX)
}

pub(crate) fn topology(channel: &Channel) -> TopologyServiceClient<Channel> {
    TopologyServiceClient::new(channel.clone())
}

pub(crate) fn load(channel: &Channel) -> LoadServiceClient<Channel> {
    LoadServiceClient::new(channel.clone())
}

pub(crate) fn holds(channel: &Channel) -> HoldServiceClient<Channel> {
    HoldServiceClient::new(channel.clone()).max_decoding_message_size(usize::MAX)
}

pub(crate) fn info(channel: &Channel) -> InfoServiceClient<Channel> {
    InfoServiceClient::new(channel.clone())
}

/// The folder of recorded machines.
pub(crate) fn topologies() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../testdata/topologies")
}

/// One of them by name.
pub(crate) fn xml(name: &str) -> String {
    std::fs::read_to_string(topologies().join(name)).unwrap()
}

/// The host of an XML.
pub(crate) fn host_of(xml: String) -> Option<v1::Host> {
    Some(v1::Host { source: Some(Source::Xml(xml)), ..v1::Host::default() })
}

/// A synthetic host of one package.
pub(crate) fn small_host() -> Option<v1::Host> {
    let text = "pack:1 [numa] l3:2 core:4 pu:1".to_owned();
    Some(v1::Host { source: Some(Source::Synthetic(text)), ..v1::Host::default() })
}

/// A kernel by its release.
pub(crate) fn release(release: &str) -> Option<v1::Kernel> {
    Some(v1::Kernel { release: release.to_owned(), ..v1::Kernel::default() })
}

/// Numbers that look random, the same for the same seed.
pub(crate) struct Random(pub(crate) u64);

impl Random {
    /// One of so many, from 0.
    pub(crate) fn below(&mut self, bound: u64) -> u64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % bound
    }
}

/// Another seed each time. Whoever takes it says it when something fails.
pub(crate) fn new_seed() -> u64 {
    let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap();
    u64::from(now.subsec_nanos()) << 20 ^ now.as_secs()
}
