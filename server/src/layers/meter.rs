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

    /// These are in memory no longer.
    fn uncount(&self, bytes: usize) {
        let mut counted = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let left = bytes - counted.share.shrink(bytes);
        counted.uncounted = counted.uncounted.saturating_sub(left);
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
    /// Bytes of the answer's last frame.
    last: usize,
    _with: T,
}

/// A request's body.
pub(super) fn request(body: Body, meter: Meter) -> Body {
    Body::new(Metered { body, meter, is_answer: false, is_over: false, last: 0, _with: () })
}

/// An answer's body.
pub(super) fn answer<T: Send + Unpin + 'static>(body: Body, meter: Meter, with: T) -> Body {
    Body::new(Metered { body, meter, is_answer: true, is_over: false, last: 0, _with: with })
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
        if self.is_answer {
            // Who asks for the next frame has sent the one before: a stream of answers may last for ever.
            let sent = std::mem::replace(&mut self.last, bytes);
            self.meter.uncount(sent);
        }
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

#[cfg(test)]
mod tests {
    use super::*;
    use http_body::Body as _;
    use std::task::Waker;

    /// As many frames of 1 MiB.
    struct Frames(usize);

    impl http_body::Body for Frames {
        type Data = Bytes;
        type Error = Status;

        fn poll_frame(
            mut self: Pin<&mut Self>,
            _: &mut Context<'_>,
        ) -> Poll<Option<Result<Frame<Bytes>, Status>>> {
            let more = self.0.checked_sub(1);
            self.0 = more.unwrap_or(0);
            Poll::Ready(more.map(|_| Ok(Frame::data(Bytes::from(vec![0; 1 << 20])))))
        }
    }

    fn taken(mut body: Body) -> usize {
        let mut context = Context::from_waker(Waker::noop());
        let mut data = 0;
        while let Poll::Ready(Some(Ok(frame))) = Pin::new(&mut body).poll_frame(&mut context) {
            data += usize::from(frame.is_data());
        }
        data
    }

    #[test]
    fn a_stream_of_answers_lasts_and_a_request_does_not() {
        let shares = Shares::default();
        let meter = || Meter::new(&shares, Key::Uid(1));
        let frames = || Body::new(Frames(300));
        assert_eq!(taken(answer(frames(), meter(), ())), 300);
        assert_eq!(taken(request(frames(), meter())), 64);
        // All was given back.
        assert_eq!(taken(request(frames(), meter())), 64);
    }
}
