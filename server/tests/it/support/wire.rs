//! Connections that do not keep to the rules: bytes and frames as a test likes them.

use super::process::Running;
use h2::client::SendRequest;
use prost::bytes::Bytes;
use std::{future::Future, io, pin::Pin, time::Duration};
use tokio::{
    io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt},
    net::{TcpStream, UnixStream},
};

/// How a connection is made.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Over {
    Tcp,
    Unix,
}

pub(crate) const BOTH: [Over; 2] = [Over::Tcp, Over::Unix];

pub(crate) trait Wire: AsyncRead + AsyncWrite + Unpin + Send {}
impl<T: AsyncRead + AsyncWrite + Unpin + Send> Wire for T {}

/// A connection to a running server.
pub(crate) async fn connect(running: &Running, over: Over) -> io::Result<Box<dyn Wire>> {
    Ok(match over {
        Over::Tcp => Box::new(TcpStream::connect(running.tcp).await?),
        Over::Unix => Box::new(UnixStream::connect(&running.uds).await?),
    })
}

/// What HTTP/2 begins with: the preface and empty settings.
pub(crate) fn greeting() -> Vec<u8> {
    [b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n".to_vec(), frame(4, 0, 0, &[])].concat()
}

/// A frame.
pub(crate) fn frame(kind: u8, flags: u8, stream: u32, payload: &[u8]) -> Vec<u8> {
    let length = u32::try_from(payload.len()).unwrap().to_be_bytes();
    let mut bytes = vec![length[1], length[2], length[3], kind, flags];
    bytes.extend(stream.to_be_bytes());
    bytes.extend(payload);
    bytes
}

/// Headers, none of which is to be remembered. Names and values are shorter than 127 bytes.
pub(crate) fn headers(list: &[(&str, &str)]) -> Vec<u8> {
    let mut bytes = Vec::new();
    for (name, value) in list {
        bytes.push(0);
        for text in [name, value] {
            bytes.push(u8::try_from(text.len()).ok().filter(|length| *length < 127).unwrap());
            bytes.extend(text.as_bytes());
        }
    }
    bytes
}

/// The headers of a call.
pub(crate) fn call(path: &str) -> Vec<u8> {
    headers(&[
        (":method", "POST"),
        (":scheme", "http"),
        (":path", path),
        (":authority", "localhost"),
        ("content-type", "application/grpc"),
        ("te", "trailers"),
    ])
}

/// Sends what it may, and waits until the server ends the connection, or for this long.
pub(crate) async fn send_and_look(wire: &mut (impl Wire + ?Sized), bytes: &[u8], wait: Duration) -> bool {
    let _ = wire.write_all(bytes).await;
    is_ended(wire, wait).await
}

/// Whether the server ends the connection within this time.
pub(crate) async fn is_ended(wire: &mut (impl Wire + ?Sized), wait: Duration) -> bool {
    let ended = async {
        let mut sink = [0; 4096];
        while wire.read(&mut sink).await.is_ok_and(|read| read > 0) {}
    };
    tokio::time::timeout(wait, ended).await.is_ok()
}

/// A client that takes no byte of an answer unless it is told to, and sends requests piece by piece.
pub(crate) async fn client(
    running: &Running,
    over: Over,
) -> (SendRequest<Bytes>, Pin<Box<dyn Future<Output = Result<(), h2::Error>> + Send>>) {
    let wire = connect(running, over).await.unwrap();
    let (send, connection) = h2::client::Builder::new().initial_window_size(0).handshake(wire).await.unwrap();
    (send, Box::pin(connection))
}

/// A call's request.
pub(crate) fn request(path: &str) -> http::Request<()> {
    let builder = http::Request::post(format!("http://localhost{path}"));
    builder.header("content-type", "application/grpc").header("te", "trailers").body(()).unwrap()
}

/// Numbers that look random, and are the same each time.
pub(crate) struct Noise(pub(crate) u64);

impl Noise {
    pub(crate) fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        self.0 >> 33
    }

    pub(crate) fn bytes(&mut self, count: usize) -> Vec<u8> {
        (0..count).map(|_| u8::try_from(self.next() & 0xff).unwrap()).collect()
    }
}
