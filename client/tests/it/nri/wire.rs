//! The runtime's side of a plugin's socket, byte by byte, by its own rules: it is no kin of what it tests.

use std::{
    collections::VecDeque,
    io::{Read as _, Write as _},
    os::unix::net::UnixStream,
    time::Duration,
};

use berth_proto::nri::ttrpc::{Request, Response, Status};
use prost::Message;

/// How long the runtime waits for an answer; a later one costs the connection. A real one waits for two seconds, on a machine that
/// does not run many tests at once.
pub(super) const REQUEST_LIMIT: Duration = Duration::from_secs(30);
/// The longest payload of a frame that a runtime takes.
const MAX_FRAME: usize = 4096;
/// Of the plugin's calls, and of the runtime's.
pub(super) const FROM_PLUGIN: u32 = 2;
pub(super) const TO_PLUGIN: u32 = 1;

/// A message of the plugin.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Packet {
    pub(super) connection: u32,
    pub(super) stream: u32,
    pub(super) kind: u8,
    pub(super) body: Vec<u8>,
}

impl Packet {
    /// It, as the answer to a call: the payload, or how it failed.
    pub(super) fn answer(&self) -> Result<Vec<u8>, Status> {
        assert_eq!((self.connection, self.kind), (TO_PLUGIN, 2), "it is an answer");
        let response = Response::decode(&*self.body).expect("a response");
        match response.status {
            None => Ok(response.payload),
            Some(status) => {
                assert!(response.payload.is_empty(), "a failure has no payload");
                Err(status)
            }
        }
    }

    /// It, as a call.
    pub(super) fn call(&self) -> Request {
        assert_eq!((self.connection, self.kind), (FROM_PLUGIN, 1), "it is a call");
        Request::decode(&*self.body).expect("a request")
    }
}

/// A message as bytes, without frames.
pub(super) fn message(stream: u32, kind: u8, body: &[u8]) -> Vec<u8> {
    let length = u32::try_from(body.len()).expect("it fits");
    [&length.to_be_bytes()[..], &stream.to_be_bytes(), &[kind, 0], body].concat()
}

/// Bytes as a frame.
pub(super) fn frame(connection: u32, bytes: &[u8]) -> Vec<u8> {
    let length = u32::try_from(bytes.len()).expect("it fits");
    [&connection.to_be_bytes()[..], &length.to_be_bytes(), bytes].concat()
}

/// A message as a runtime frames it: 4096 bytes, then all the rest at once.
pub(super) fn framed(connection: u32, bytes: &[u8]) -> Vec<u8> {
    match bytes.split_at_checked(MAX_FRAME) {
        Some((first, rest)) if !rest.is_empty() => {
            [frame(connection, first), frame(connection, rest)].concat()
        }
        _ => frame(connection, bytes),
    }
}

/// A connection of the plugin.
#[derive(Debug)]
pub(super) struct Wire {
    pub(super) stream: UnixStream,
    bytes: Vec<u8>,
    /// Of each connection in it, by id.
    unframed: [Vec<u8>; 3],
    packets: VecDeque<Packet>,
}

impl Wire {
    pub(super) fn new(stream: UnixStream) -> Self {
        stream.set_read_timeout(Some(REQUEST_LIMIT)).expect("a time can be set");
        stream.set_write_timeout(Some(REQUEST_LIMIT)).expect("a time can be set");
        Self { stream, bytes: Vec::new(), unframed: Default::default(), packets: VecDeque::new() }
    }

    pub(super) fn send(&mut self, bytes: &[u8]) {
        self.stream.write_all(bytes).expect("the plugin reads");
    }

    /// The plugin's next message. `None`: it has closed the connection.
    ///
    /// Fails when it takes longer than a runtime waits, or breaks a rule of frames.
    pub(super) fn receive(&mut self) -> Option<Packet> {
        loop {
            if let Some(packet) = self.packets.pop_front() {
                return Some(packet);
            }
            let mut part = [0; 4096];
            match self.stream.read(&mut part) {
                Ok(0) => return None,
                Ok(count) => self.bytes.extend_from_slice(&part[..count]),
                Err(error) if error.kind() == std::io::ErrorKind::ConnectionReset => return None,
                // As when the machine was halted for a moment: a read with a time limit is not begun again by itself.
                Err(error) if error.kind() == std::io::ErrorKind::Interrupted => {}
                Err(error) => panic!("the plugin does not answer in time: {error}"),
            }
            self.unframe();
        }
    }

    fn unframe(&mut self) {
        let number = |bytes: &[u8]| u32::from_be_bytes(bytes.try_into().expect("four bytes"));
        let size = |bytes: &[u8]| usize::try_from(number(bytes)).expect("it fits");
        while self.bytes.len() >= 8 {
            let (connection, length) = (number(&self.bytes[..4]), size(&self.bytes[4..8]));
            assert!(length <= MAX_FRAME, "a runtime closes the connection on a frame of {length} bytes");
            assert!(matches!(connection, TO_PLUGIN | FROM_PLUGIN), "a frame for connection {connection}");
            if self.bytes.len() < 8 + length {
                return;
            }
            let frame: Vec<u8> = self.bytes.drain(..8 + length).skip(8).collect();
            let unframed = &mut self.unframed[usize::try_from(connection).expect("it is small")];
            unframed.extend(frame);
            while unframed.len() >= 10 && unframed.len() >= 10 + size(&unframed[..4]) {
                let length = 10 + size(&unframed[..4]);
                let packet: Vec<u8> = unframed.drain(..length).collect();
                assert_eq!(packet[9], 0, "flags are never set");
                let (stream, kind, body) = (number(&packet[4..8]), packet[8], packet[10..].to_vec());
                self.packets.push_back(Packet { connection, stream, kind, body });
            }
        }
    }
}
