//! Bounds the bytes of messages that are in memory: of requests until they are answered, of answers until they have been
//! taken. A message may be long, and many callers may send theirs slowly or never take an answer.

use crate::{
    auth::Key,
    convert::Failure,
    shares::{Full, Share, Shares},
};
use http_body::{Frame, SizeHint};
use prost::bytes::Bytes;
use std::{
    pin::Pin,
    sync::{Arc, Mutex, PoisonError},
    task::{Context, Poll, ready},
};
use tonic::{Status, body::Body};

/// Bytes of messages in memory, and how many of them may be one caller's.
const TOTAL: usize = 192 << 20;
const OF_ONE: usize = 64 << 20;
/// What a call may have without being counted.
const SMALL: usize = 64 << 10;

/// What the messages of one call have in memory.
#[derive(Debug, Clone)]
pub(super) struct Meter(Arc<Mutex<Counted>>);

#[derive(Debug)]
struct Counted {
    uncounted: usize,
    share: Share,
}

impl Meter {
    pub(super) fn new(bytes: &Shares, key: Key) -> Self {
        Self(Arc::new(Mutex::new(Counted { uncounted: 0, share: Share::none(bytes.clone(), key) })))
    }

    fn count(&self, bytes: usize) -> Result<(), Failure> {
        let mut counted = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if counted.uncounted + bytes <= SMALL {
            counted.uncounted += bytes;
            return Ok(());
        }
        counted.share.grow(bytes, TOTAL, OF_ONE).map_err(|full| match full {
            Full::All => Failure::Overloaded { limit: TOTAL, of: "bytes of messages" },
            Full::OfOne => Failure::Overloaded { limit: OF_ONE, of: "bytes of messages of one caller" },
        })
    }
}

/// A body whose bytes are counted. It keeps what goes with it until it has been taken, or nobody wants it any more.
#[derive(Debug)]
pub(super) struct Metered<T> {
    body: Body,
    meter: Meter,
    is_answer: bool,
    is_over: bool,
    _with: T,
}

/// A request's body.
pub(super) fn request(body: Body, meter: Meter) -> Body {
    Body::new(Metered { body, meter, is_answer: false, is_over: false, _with: () })
}

/// An answer's body.
pub(super) fn answer<T: Send + Unpin + 'static>(body: Body, meter: Meter, with: T) -> Body {
    Body::new(Metered { body, meter, is_answer: true, is_over: false, _with: with })
}

impl<T: Unpin> http_body::Body for Metered<T> {
    type Data = Bytes;
    type Error = Status;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Status>>> {
        if self.is_over {
            return Poll::Ready(None);
        }
        let frame = ready!(Pin::new(&mut self.body).poll_frame(context));
        let bytes = match &frame {
            Some(Ok(frame)) => frame.data_ref().map_or(0, Bytes::len),
            _ => 0,
        };
        let Err(full) = self.meter.count(bytes) else { return Poll::Ready(frame) };
        self.is_over = true;
        let status = Status::from(full);
        if !self.is_answer {
            return Poll::Ready(Some(Err(status)));
        }
        // In the place of the message: its headers are sent already.
        let mut trailers = http::HeaderMap::new();
        Poll::Ready(Some(match status.add_header(&mut trailers) {
            Ok(()) => Ok(Frame::trailers(trailers)),
            Err(error) => Err(error),
        }))
    }

    fn is_end_stream(&self) -> bool {
        self.is_over || self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        // Not that of the body, which may be cut off.
        SizeHint::default()
    }
}
