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

/// Where the messages of a request begin and end: each is a flag, its length in four bytes, and itself.
#[derive(Debug, Default)]
struct Messages {
    prefix: [u8; 5],
    /// Bytes of the message that is coming, and how many it has once its prefix is there.
    seen: usize,
    length: usize,
    /// Bytes of the one before.
    before: usize,
}

impl Messages {
    /// Goes on by some bytes; says how many bytes of messages are done with, since another has begun.
    fn go_on(&mut self, mut data: &[u8]) -> usize {
        let mut done = 0;
        while let Some((&first, rest)) = data.split_first() {
            if self.seen < self.prefix.len() {
                if self.seen == 0 {
                    done += std::mem::take(&mut self.before);
                }
                self.prefix[self.seen] = first;
                (self.seen, data) = (self.seen + 1, rest);
                let [_, length @ ..] = self.prefix;
                self.length =
                    self.prefix.len() + usize::try_from(u32::from_be_bytes(length)).unwrap_or(usize::MAX);
            } else {
                let part = data.len().min(self.length - self.seen);
                (self.seen, data) = (self.seen + part, &data[part..]);
            }
            if self.seen >= self.prefix.len() && self.seen == self.length {
                (self.before, self.seen) = (self.seen, 0);
            }
        }
        done
    }
}

/// A body whose bytes are counted. It keeps what goes with it until it has been taken, or nobody wants it any more.
#[derive(Debug)]
pub(super) struct Metered<T> {
    body: Body,
    meter: Meter,
    is_answer: bool,
    is_over: bool,
    /// Bytes of an answer's last frame.
    last: usize,
    /// Of a request.
    messages: Messages,
    _with: T,
}

/// A request's body.
pub(super) fn request(body: Body, meter: Meter) -> Body {
    Body::new(Metered {
        body,
        meter,
        is_answer: false,
        is_over: false,
        last: 0,
        messages: Messages::default(),
        _with: (),
    })
}

/// An answer's body.
pub(super) fn answer<T: Send + Unpin + 'static>(body: Body, meter: Meter, with: T) -> Body {
    Body::new(Metered {
        body,
        meter,
        is_answer: true,
        is_over: false,
        last: 0,
        messages: Messages::default(),
        _with: with,
    })
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
        let data = match &frame {
            Some(Ok(frame)) => frame.data_ref().map_or(&[][..], AsRef::as_ref),
            _ => &[],
        };
        let bytes = data.len();
        // Streams may last for ever, so what is done with is counted no longer: who asks for the next frame of an answer
        // has sent the one before, and who reads the next message of a request has taken the one before.
        let this = &mut *self;
        let done =
            if this.is_answer { std::mem::replace(&mut this.last, bytes) } else { this.messages.go_on(data) };
        this.meter.uncount(done);
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

    /// So many frames of 1 MiB are to come, of messages of that length.
    struct Frames(usize, u32);

    const MANY: usize = 300;
    const MIB: usize = 1 << 20;

    impl http_body::Body for Frames {
        type Data = Bytes;
        type Error = Status;

        fn poll_frame(
            mut self: Pin<&mut Self>,
            _: &mut Context<'_>,
        ) -> Poll<Option<Result<Frame<Bytes>, Status>>> {
            let more = self.0.checked_sub(1);
            self.0 = more.unwrap_or(0);
            let mut data = vec![0; MIB];
            let begins = self.0 == MANY - 1 || self.1 < 1 << 20;
            if begins {
                data[1..5].copy_from_slice(&self.1.to_be_bytes());
            }
            Poll::Ready(more.map(|_| Ok(Frame::data(Bytes::from(data)))))
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
    fn streams_last_and_a_long_message_does_not() {
        let shares = Shares::default();
        let meter = || Meter::new(&shares, Key::Uid(1));
        let one = || Body::new(Frames(MANY, u32::try_from(MANY * MIB - 5).unwrap()));
        let many = || Body::new(Frames(MANY, u32::try_from(MIB - 5).unwrap()));
        assert_eq!(taken(answer(one(), meter(), ())), MANY);
        assert_eq!(taken(request(many(), meter())), MANY);
        assert_eq!(taken(request(one(), meter())), 64);
        // All was given back.
        assert_eq!(taken(request(one(), meter())), 64);
    }

    #[test]
    fn messages_end_wherever_frames_do() {
        let stream: Vec<u8> = [3_u32, 0, 7]
            .iter()
            .flat_map(|&n| [vec![0], n.to_be_bytes().into(), vec![9; n as usize]].concat())
            .collect();
        for size in 1..=stream.len() {
            let mut messages = Messages::default();
            let done: usize = stream.chunks(size).map(|part| messages.go_on(part)).sum();
            assert_eq!((done, messages.before, messages.seen), (8 + 5, 12, 0), "frames of {size}");
        }
    }
}
