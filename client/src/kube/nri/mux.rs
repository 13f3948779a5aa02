//! One socket, several connections: each frame says which one its bytes belong to.

use bytes::{Buf as _, Bytes, BytesMut};

use super::ttrpc::MAX_MESSAGE;

/// Connection id and length, both big-endian.
const HEADER: usize = 8;
/// The longest payload of a frame that runtimes take: they close the connection on a longer one.
const MAX_SENT: usize = 4096;
/// The longest payload that is taken. Runtimes send what is left of a message in one frame.
const MAX_TAKEN: usize = MAX_MESSAGE;

/// One of the connections in a socket.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Connection {
    /// Calls of the runtime, and answers to them.
    Plugin,
    /// Calls of the plugin, and answers to them.
    Runtime,
}

impl Connection {
    fn id(self) -> u32 {
        match self {
            Self::Plugin => 1,
            Self::Runtime => 2,
        }
    }

    fn of(id: u32) -> Result<Self, Error> {
        match id {
            1 => Ok(Self::Plugin),
            2 => Ok(Self::Runtime),
            _ => Err(Error::Connection(id)),
        }
    }
}

/// Why bytes are no frames.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(super) enum Error {
    /// A connection that no runtime has.
    #[error("a frame for connection {0}; expected 1 or 2")]
    Connection(u32),
    /// More than any runtime sends.
    #[error("a frame of {0} bytes; expected at most {MAX_TAKEN}")]
    TooLong(u32),
}

/// Takes bytes as they come, and gives frames.
#[derive(Debug, Default)]
pub(super) struct Frames {
    buffer: BytesMut,
}

impl Frames {
    /// Where bytes from the socket are put.
    pub(super) fn buffer(&mut self) -> &mut BytesMut {
        &mut self.buffer
    }

    /// The next frame. `None`: more bytes are needed.
    ///
    /// # Errors
    ///
    /// The bytes are no frames. Nothing that follows can be understood.
    pub(super) fn next(&mut self) -> Result<Option<(Connection, Bytes)>, Error> {
        let Some((header, _)) = self.buffer.split_first_chunk::<HEADER>() else { return Ok(None) };
        let mut header = &header[..];
        let (connection, length) = (Connection::of(header.get_u32())?, header.get_u32());
        let whole = usize::try_from(length).ok().filter(|&length| length <= MAX_TAKEN);
        let whole = HEADER + whole.ok_or(Error::TooLong(length))?;
        if self.buffer.len() < whole {
            self.buffer.reserve(whole - self.buffer.len());
            return Ok(None);
        }
        let frame = self.buffer.split_to(whole).freeze();
        Ok(Some((connection, frame.slice(HEADER..))))
    }
}

/// The bytes as frames that every runtime takes.
pub(super) fn framed(connection: Connection, bytes: &[u8]) -> Vec<u8> {
    let mut frames = Vec::with_capacity(bytes.len() + (bytes.len() / MAX_SENT + 1) * HEADER);
    for part in bytes.chunks(MAX_SENT) {
        let length = u32::try_from(part.len()).unwrap_or(u32::MAX);
        frames.extend(connection.id().to_be_bytes());
        frames.extend(length.to_be_bytes());
        frames.extend(part);
    }
    frames
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kube::nri::ttrpc::Messages;
    use proptest::prelude::*;

    fn all(frames: &mut Frames) -> Result<Vec<(Connection, Vec<u8>)>, Error> {
        let mut seen = Vec::new();
        while let Some((connection, payload)) = frames.next()? {
            seen.push((connection, payload.to_vec()));
        }
        Ok(seen)
    }

    #[test]
    fn frames_come_out_however_the_bytes_come() {
        let long: Vec<u8> = (0..10_000_u32).map(|i| i.to_be_bytes()[3]).collect();
        let mut bytes = framed(Connection::Runtime, b"register");
        bytes.extend(framed(Connection::Plugin, &long));
        for step in [1, 3, 7, 8, 9, 4096, 4104, bytes.len()] {
            let (mut frames, mut seen) = (Frames::default(), Vec::new());
            for part in bytes.chunks(step) {
                frames.buffer().extend_from_slice(part);
                seen.extend(all(&mut frames).unwrap());
            }
            assert_eq!(seen[0], (Connection::Runtime, b"register".to_vec()), "{step}");
            let lengths: Vec<usize> = seen[1..].iter().map(|(_, payload)| payload.len()).collect();
            assert_eq!(lengths, [4096, 4096, 1808], "no frame is longer than runtimes take");
            let whole: Vec<u8> = seen[1..].iter().flat_map(|(_, payload)| payload.clone()).collect();
            assert!(whole == long && frames.buffer().is_empty());
        }
    }

    proptest! {
        /// Whatever comes, in whatever pieces: it is refused or understood, and the same each time.
        #[test]
        fn any_bytes_are_taken(bytes in any_bytes(), step in 1_usize..40) {
            prop_assert_eq!(understood(&bytes, step), understood(&bytes, usize::MAX));
        }
    }

    /// Bytes, some of which are frames of messages.
    fn any_bytes() -> impl Strategy<Value = Vec<u8>> {
        let word = prop_oneof![Just(0_u32), 1..3_u32, Just(10), Just(12), any::<u32>()];
        let words = proptest::collection::vec(word, 0..12);
        let words = words.prop_map(|words| words.into_iter().flat_map(u32::to_be_bytes).collect::<Vec<u8>>());
        let message = (0..3_u8, proptest::collection::vec(any::<u8>(), 0..30)).prop_map(|(kind, body)| {
            let length = u32::try_from(body.len()).unwrap();
            framed(Connection::Plugin, &[&length.to_be_bytes()[..], &[0, 0, 0, 1, kind, 0], &body].concat())
        });
        proptest::collection::vec(prop_oneof![words, message, any::<Vec<u8>>()], 0..5)
            .prop_map(|parts| parts.concat())
    }

    /// What is understood of them, up to the first that is refused.
    fn understood(bytes: &[u8], step: usize) -> Vec<String> {
        let (mut frames, mut messages, mut seen) = (Frames::default(), Messages::default(), Vec::new());
        for part in bytes.chunks(step.min(bytes.len().max(1))) {
            frames.buffer().extend_from_slice(part);
            loop {
                match frames.next() {
                    Ok(None) => break,
                    Ok(Some((_, payload))) => messages.take(&payload),
                    Err(error) => {
                        seen.push(error.to_string());
                        return seen;
                    }
                }
                loop {
                    match messages.next() {
                        Ok(None) => break,
                        Ok(Some(message)) => seen.push(format!("{message:?}")),
                        Err(error) => {
                            seen.push(error.to_string());
                            return seen;
                        }
                    }
                }
            }
        }
        seen
    }

    #[test]
    fn what_is_no_frame_is_refused_before_it_is_waited_for() {
        let header = |id: u32, length: u32| {
            let mut frames = Frames::default();
            frames.buffer().extend_from_slice(&[id.to_be_bytes(), length.to_be_bytes()].concat());
            frames.next()
        };
        assert_eq!(header(0, 1), Err(Error::Connection(0)));
        assert_eq!(header(3, 1), Err(Error::Connection(3)));
        assert_eq!(header(1, u32::MAX), Err(Error::TooLong(u32::MAX)));
        let most = u32::try_from(MAX_TAKEN).unwrap();
        assert_eq!(header(1, most), Ok(None));
        assert_eq!(header(1, most + 1), Err(Error::TooLong(most + 1)));
        assert_eq!(header(2, 0), Ok(Some((Connection::Runtime, Bytes::new()))));
    }
}
