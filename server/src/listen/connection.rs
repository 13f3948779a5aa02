//! One connection: it keeps its place while it lives, and ends when it is silent, idle or stalled for too long.

use super::presence::Standing;
use crate::{
    auth::Origin,
    config::{Limits, Live},
    ending::Ending,
    shares::Share,
};
use std::{
    future::Future,
    io,
    pin::Pin,
    task::{Context, Poll, ready},
    time::{Duration, Instant},
};
use tokio::{
    io::{AsyncRead, AsyncWrite, ReadBuf},
    time::{Sleep, sleep},
};
use tonic::transport::server::Connected;

/// How often a connection is looked at.
const LOOK: (Duration, Duration) = (Duration::from_millis(20), Duration::from_secs(5));

/// A stream of bytes from one peer.
#[derive(Debug)]
pub(crate) struct Connection<S> {
    stream: S,
    origin: Origin,
    live: Live,
    ending: Ending,
    look: Pin<Box<Sleep>>,
    /// Since when the peer takes nothing of what is to be sent.
    stalled_since: Option<Instant>,
    _place: Share,
}

impl<S> Connection<S> {
    pub(super) fn new(stream: S, origin: Origin, live: Live, ending: Ending, place: Share) -> Self {
        let look = Box::pin(sleep(interval(&live.now().limits)));
        Self { stream, origin, live, ending, look, stalled_since: None, _place: place }
    }

    /// Ends the connection if it is of no use. Wakes the task that reads or writes when it is to be looked at again.
    fn look(&mut self, context: &mut Context<'_>) -> io::Result<()> {
        if self.ending.has_begun() {
            self.is_of_use()?;
        }
        while self.look.as_mut().poll(context).is_ready() {
            self.is_of_use()?;
            let again = interval(&self.live.now().limits);
            self.look.set(sleep(again));
        }
        Ok(())
    }

    fn is_of_use(&self) -> io::Result<()> {
        let Some(why) = self.useless(Instant::now()) else { return Ok(()) };
        tracing::debug!(peer = %self.origin.identity(), "closing a connection: {why}");
        Err(io::Error::new(io::ErrorKind::TimedOut, why))
    }

    fn useless(&self, now: Instant) -> Option<&'static str> {
        let limits = &self.live.now().limits;
        let over = |since: Instant, limit| now.saturating_duration_since(since) > limit;
        if self.stalled_since.is_some_and(|since| over(since, limits.stalled_timeout)) {
            return Some("its peer does not read");
        }
        match self.origin.presence().standing(now) {
            Standing::Overdue => Some("its peer does not take an answer"),
            // One that has asked is told that this is the end, and ends when it has heard everything.
            Standing::Idle { has_asked: false, .. } if self.ending.has_begun() => Some("the server stops"),
            Standing::Idle { since, has_asked: false } if over(since, limits.silent_timeout) => {
                Some("its peer asks nothing")
            }
            Standing::Idle { since, .. } if over(since, limits.idle_timeout) => Some("it is idle"),
            Standing::Idle { .. } | Standing::Used => None,
        }
    }

    /// Notes whether the peer took something.
    fn sent<T>(&mut self, sent: Poll<T>) -> Poll<T> {
        self.stalled_since = match sent {
            Poll::Ready(_) => None,
            Poll::Pending => self.stalled_since.or_else(|| Some(Instant::now())),
        };
        sent
    }
}

fn interval(limits: &Limits) -> Duration {
    (limits.silent_timeout.min(limits.idle_timeout).min(limits.stalled_timeout) / 4).clamp(LOOK.0, LOOK.1)
}

impl<S> Connected for Connection<S> {
    type ConnectInfo = Origin;

    fn connect_info(&self) -> Origin {
        self.origin.clone()
    }
}

impl<S: AsyncRead + Unpin> AsyncRead for Connection<S> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        self.look(context)?;
        Pin::new(&mut self.stream).poll_read(context, buffer)
    }
}

impl<S: AsyncWrite + Unpin> AsyncWrite for Connection<S> {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        self.look(context)?;
        let sent = Pin::new(&mut self.stream).poll_write(context, bytes);
        self.sent(sent)
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.look(context)?;
        ready!(Pin::new(&mut self.stream).poll_flush(context))?;
        Poll::Ready(Ok(()))
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.look(context)?;
        Pin::new(&mut self.stream).poll_shutdown(context)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        slices: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        self.look(context)?;
        let sent = Pin::new(&mut self.stream).poll_write_vectored(context, slices);
        self.sent(sent)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }
}
