//! Takes connections as they come. Whoever has too many already is turned away, so that the others get in; an error of
//! the kernel, such as no file descriptor being free, ends no listener.

use super::{connection::Connection, presence::Presence};
use crate::{
    auth::{Key, Origin},
    config::Live,
    ending::Ending,
    shares::Shares,
};
use rustix::{
    net::{UCred, sockopt::socket_peercred},
    process::Resource,
};
use std::{
    io,
    net::SocketAddr,
    time::{Duration, Instant},
};
use tokio::{
    net::{TcpListener, TcpStream, UnixListener, UnixStream},
    sync::mpsc,
};
use tokio_stream::wrappers::ReceiverStream;

/// How long no connection is taken after the kernel has refused one.
const PAUSE: Duration = Duration::from_millis(100);
/// File descriptors that are not for connections: files, the store, and pipes to processes that read descriptions.
const OWN_DESCRIPTORS: usize = 128;
/// How often the log tells that connections are turned away, or cannot be taken.
const TOLD_EVERY: Duration = Duration::from_secs(60);

/// The connections of one listener, which is closed when this is dropped.
pub(crate) type Incoming<C> = ReceiverStream<io::Result<C>>;

/// Where connections come from.
pub(crate) trait Listener: Send + Sync + 'static {
    type Stream: Send + 'static;
    /// Whom the kernel says that one comes from.
    type From: Send;

    fn next(&self) -> impl Future<Output = io::Result<(Self::Stream, Self::From)>> + Send;

    /// What limits count it by.
    fn key(from: &Self::From) -> Key;

    /// Who that is. May read more of that one, which is not done for those who are turned away.
    fn origin(&self, from: Self::From) -> Origin;
}

/// A TCP address.
#[derive(Debug)]
pub(crate) struct Tcp {
    pub(crate) listener: TcpListener,
    /// A peer's address alone says nothing.
    pub(crate) needs_certificate: bool,
}

impl Listener for Tcp {
    type Stream = TcpStream;
    type From = SocketAddr;

    async fn next(&self) -> io::Result<(TcpStream, SocketAddr)> {
        let (stream, address) = self.listener.accept().await?;
        // An answer is one small write: it is not to wait for more.
        let _ = stream.set_nodelay(true);
        Ok((stream, address))
    }

    fn key(from: &SocketAddr) -> Key {
        Key::of_address(from.ip())
    }

    fn origin(&self, from: SocketAddr) -> Origin {
        Origin::tcp(from.ip(), self.needs_certificate, Presence::new(Instant::now()))
    }
}

impl Listener for UnixListener {
    type Stream = UnixStream;
    type From = UCred;

    async fn next(&self) -> io::Result<(UnixStream, UCred)> {
        let (stream, _) = self.accept().await?;
        let from = socket_peercred(&stream)?;
        Ok((stream, from))
    }

    fn key(from: &UCred) -> Key {
        Key::Uid(from.uid.as_raw())
    }

    fn origin(&self, from: UCred) -> Origin {
        Origin::unix(from, Presence::new(Instant::now()))
    }
}

/// Takes connections in a task of its own.
pub(crate) fn incoming<L: Listener>(
    listener: L,
    places: Shares,
    live: Live,
    ending: Ending,
) -> Incoming<Connection<L::Stream>> {
    let (sender, receiver) = mpsc::channel(1);
    tokio::spawn(async move {
        tokio::select! {
            () = take(listener, places, live, ending, &sender) => {}
            () = sender.closed() => {}
        }
    });
    ReceiverStream::new(receiver)
}

async fn take<L: Listener>(
    listener: L,
    places: Shares,
    live: Live,
    ending: Ending,
    sender: &mpsc::Sender<io::Result<Connection<L::Stream>>>,
) {
    let (mut turned_away, mut failed) = (Told::default(), Told::default());
    loop {
        let (stream, from) = match listener.next().await {
            Ok(accepted) => accepted,
            // It ended before it was taken.
            Err(error) if error.kind() == io::ErrorKind::ConnectionAborted => continue,
            Err(error) => {
                failed.tell(|since| tracing::warn!(%error, since, "connections cannot be taken"));
                tokio::time::sleep(PAUSE).await;
                continue;
            }
        };
        let limits = &live.now().limits;
        let total = limits.max_connections.min(descriptors());
        let of_one = limits.max_connections_per_peer.min(total.div_ceil(2));
        let key = L::key(&from);
        let Ok(place) = places.take(key.clone(), total, of_one) else {
            turned_away.tell(
                |since| tracing::warn!(peer = ?key, since, "too many connections: more are turned away"),
            );
            continue;
        };
        let origin = listener.origin(from);
        let connection = Connection::new(stream, origin, live.clone(), ending.clone(), place);
        if sender.send(Ok(connection)).await.is_err() {
            return;
        }
    }
}

/// Connections that there are file descriptors for, beside those that the daemon needs itself.
fn descriptors() -> usize {
    let most = rustix::process::getrlimit(Resource::Nofile).current;
    let most = most.and_then(|most| usize::try_from(most).ok()).unwrap_or(usize::MAX);
    most.saturating_sub(OWN_DESCRIPTORS).max(2)
}

/// What happens often, and is told from time to time.
#[derive(Default)]
struct Told {
    last: Option<Instant>,
    since: u64,
}

impl Told {
    /// Tells how often it has happened since it was told last, if that is long ago.
    fn tell(&mut self, tell: impl FnOnce(u64)) {
        self.since += 1;
        if self.last.is_none_or(|last| last.elapsed() > TOLD_EVERY) {
            tell(self.since);
            *self = Self { last: Some(Instant::now()), since: 0 };
        }
    }
}
