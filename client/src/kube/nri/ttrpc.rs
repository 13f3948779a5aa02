//! Calls and their answers, as ttrpc writes them: a header of ten bytes and a protobuf body.

use berth_proto::nri::ttrpc::{Request, Response, Status};
use bytes::{Buf as _, BytesMut};
use prost::Message as _;
use tonic::Code;

/// Length of the body, stream, kind and flags.
const HEADER: usize = 10;
/// The longest body.
const MAX_BODY: usize = 4 << 20;
/// The longest message.
pub(super) const MAX_MESSAGE: usize = HEADER + MAX_BODY;

/// A call, or the answer to one.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Message {
    /// A call.
    Call {
        /// Tells it from the caller's other calls; odd.
        stream: u32,
        /// What is called, and with what.
        request: Request,
    },
    /// An answer.
    Answer {
        /// The stream of the call.
        stream: u32,
        /// What is answered.
        response: Response,
    },
}

/// Why bytes are no messages.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
pub(super) enum Error {
    /// Longer than ttrpc allows.
    #[error("a message of {0} bytes; expected at most {MAX_BODY}")]
    TooLong(u32),
    /// Of a kind that this interface does not use.
    #[error("a message of type {0}; expected 1 (a request) or 2 (a response)")]
    Kind(u8),
    /// The body is no protobuf.
    #[error("a message that cannot be read: {0}")]
    Body(#[from] prost::DecodeError),
}

/// Takes the bytes of one connection as they come, and gives messages.
#[derive(Debug, Default)]
pub(super) struct Messages {
    buffer: BytesMut,
}

impl Messages {
    pub(super) fn take(&mut self, bytes: &[u8]) {
        self.buffer.extend_from_slice(bytes);
    }

    /// The next message. `None`: more bytes are needed.
    ///
    /// # Errors
    ///
    /// The bytes are no messages. Nothing that follows can be understood.
    pub(super) fn next(&mut self) -> Result<Option<Message>, Error> {
        let Some((header, _)) = self.buffer.split_first_chunk::<HEADER>() else { return Ok(None) };
        let mut header = &header[..];
        let (length, stream, kind) = (header.get_u32(), header.get_u32(), header.get_u8());
        let whole = usize::try_from(length).ok().filter(|&length| length <= MAX_BODY);
        let whole = HEADER + whole.ok_or(Error::TooLong(length))?;
        if !matches!(kind, 1 | 2) {
            return Err(Error::Kind(kind));
        }
        if self.buffer.len() < whole {
            return Ok(None);
        }
        let mut body = self.buffer.split_to(whole).freeze();
        body.advance(HEADER);
        Ok(Some(match kind {
            1 => Message::Call { stream, request: Request::decode(body)? },
            _ => Message::Answer { stream, response: Response::decode(body)? },
        }))
    }
}

impl Message {
    /// As it is sent.
    pub(super) fn to_bytes(&self) -> Vec<u8> {
        let (stream, kind, body) = match self {
            Self::Call { stream, request } => (stream, 1, request.encode_to_vec()),
            Self::Answer { stream, response } => (stream, 2, response.encode_to_vec()),
        };
        let mut bytes = Vec::with_capacity(HEADER + body.len());
        bytes.extend(u32::try_from(body.len()).unwrap_or(u32::MAX).to_be_bytes());
        bytes.extend(stream.to_be_bytes());
        bytes.extend([kind, 0]);
        bytes.extend(body);
        bytes
    }
}

/// An answer with nothing but a message.
pub(super) fn answer(message: &impl prost::Message) -> Response {
    Response { status: None, payload: message.encode_to_vec() }
}

/// The answer to a call that is not known. The runtime leaves it off.
pub(super) fn unimplemented(request: &Request) -> Response {
    let message = format!("{}/{} is not served", request.service, request.method);
    failure(Code::Unimplemented, message)
}

/// The answer to a call that cannot be understood.
pub(super) fn malformed(error: &prost::DecodeError) -> Response {
    failure(Code::InvalidArgument, error.to_string())
}

fn failure(code: Code, message: String) -> Response {
    Response { status: Some(Status { code: code.into(), message }), payload: Vec::new() }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn all(bytes: &[u8], step: usize) -> Result<Vec<Message>, Error> {
        let (mut messages, mut seen) = (Messages::default(), Vec::new());
        for part in bytes.chunks(step) {
            messages.take(part);
            while let Some(message) = messages.next()? {
                seen.push(message);
            }
        }
        Ok(seen)
    }

    #[test]
    fn messages_come_out_however_the_bytes_come() {
        let request = Request {
            service: "nri.pkg.api.v1alpha1.Runtime".to_owned(),
            method: "RegisterPlugin".to_owned(),
            payload: vec![7; 300],
            timeout_nano: 5,
        };
        let sent = [
            Message::Call { stream: 1, request: request.clone() },
            Message::Answer { stream: 3, response: Response::default() },
            Message::Answer { stream: 5, response: unimplemented(&request) },
        ];
        let bytes: Vec<u8> = sent.iter().flat_map(Message::to_bytes).collect();
        for step in [1, 9, 10, 11, bytes.len()] {
            assert_eq!(all(&bytes, step).unwrap(), sent, "{step}");
        }
        assert_eq!(sent[1].to_bytes(), [0, 0, 0, 0, 0, 0, 0, 3, 2, 0], "an empty answer has no body");
    }

    #[test]
    fn what_is_no_message_is_refused() {
        let header = |length: u32, kind: u8| {
            let mut bytes = [length.to_be_bytes(), 1_u32.to_be_bytes()].concat();
            bytes.extend([kind, 0]);
            all(&bytes, 10)
        };
        let most = u32::try_from(MAX_BODY).unwrap();
        assert_eq!(header(most + 1, 1), Err(Error::TooLong(most + 1)));
        assert_eq!(header(u32::MAX, 1), Err(Error::TooLong(u32::MAX)));
        assert_eq!(header(0, 3), Err(Error::Kind(3)));
        assert_eq!(header(most, 1), Ok(Vec::new()));
        assert!(matches!(all(&[0, 0, 0, 1, 0, 0, 0, 1, 1, 0, 0xff], 3), Err(Error::Body(_))));
    }
}
