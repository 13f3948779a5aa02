//! Takes connections as they come. Whoever has too many already is turned away, so that the others get in; an error of
//! the kernel, such as no file descriptor being free, ends no listener.

use super::{connection::Connection, presence::Presence};
use crate::{
    auth::{Key, Origin},
    config::Live,
    shares::Shares,
};
use std::{
    io,
    time::{Duration, Instant},
};
use tokio::{
    net::{TcpListener, TcpStream, UnixListener, UnixStream},
    sync::mpsc,
};
use tokio_stream::wrappers::ReceiverStream;

/// How long no connection is taken after the kernel has refused one.
const PAUSE: Duration = Duration::from_millis(100);
/// How often the log tells that connections are turned away.
const TOLD_EVERY: Duration = Duration::from_secs(60);

/// The connections of one listener, which is closed when this is dropped.
pub(crate) type Incoming<S> = ReceiverStream<io::Result<Connection<S>>>;

/// Where connections come from.
pub(crate) trait Listener: Send + Sync + 'static {
    type Stream: Send + 'static;

    /// The next one, and who is at its other end.
    fn next(&self) -> impl Future<Output = io::Result<(Self::Stream, Origin)>> + Send;
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

    async fn next(&self) -> io::Result<(TcpStream, Origin)> {
        let (stream, address) = self.listener.accept().await?;
        // An answer is one small write: it is not to wait for more.
        stream.set_nodelay(true)?;
        let origin = Origin::tcp(address.ip(), self.needs_certificate, Presence::new(Instant::now()));
        Ok((stream, origin))
    }
}

impl Listener for UnixListener {
    type Stream = UnixStream;

    async fn next(&self) -> io::Result<(UnixStream, Origin)> {
        let (stream, _) = self.accept().await?;
        let origin = Origin::unix(&stream, Presence::new(Instant::now()))?;
        Ok((stream, origin))
    }
}

/// Takes connections in a task of its own.
pub(crate) fn incoming<L: Listener>(listener: L, places: Shares, live: Live) -> Incoming<L::Stream> {
    let (sender, receiver) = mpsc::channel(1);
    tokio::spawn(async move {
        tokio::select! {
            () = take(listener, places, live, &sender) => {}
            () = sender.closed() => {}
        }
    });
    ReceiverStream::new(receiver)
}

async fn take<L: Listener>(
    listener: L,
    places: Shares,
    live: Live,
    sender: &mpsc::Sender<io::Result<Connection<L::Stream>>>,
) {
    let mut turned_away = Told::default();
    loop {
        let (stream, origin) = match listener.next().await {
            Ok(accepted) => accepted,
            Err(error) => {
                tracing::warn!(%error, "a connection could not be taken");
                tokio::time::sleep(PAUSE).await;
                continue;
            }
        };
        let limits = &live.now().limits;
        let (total, of_one) = (limits.max_connections, limits.max_connections_per_peer);
        let Ok(place) = places.take(Key::of(origin.identity()), total, of_one) else {
            turned_away.tell(&origin);
            continue;
        };
        if sender.send(Ok(Connection::new(stream, origin, live.clone(), place))).await.is_err() {
            return;
        }
    }
}

/// Connections that were turned away since the log told of some.
#[derive(Default)]
struct Told {
    last: Option<Instant>,
    since: u64,
}

impl Told {
    fn tell(&mut self, origin: &Origin) {
        self.since += 1;
        if self.last.is_none_or(|last| last.elapsed() > TOLD_EVERY) {
            let peer = origin.identity();
            tracing::warn!(%peer, connections = self.since, "too many connections: more are turned away");
            *self = Self { last: Some(Instant::now()), since: 0 };
        }
    }
}
