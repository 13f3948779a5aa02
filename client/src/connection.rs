//! Questions over gRPC, each within one deadline, and streams of answers.

use std::{error::Error as _, io, time::Duration};

use tokio::time::{Instant, timeout_at};
use tonic::{
    Request, Response, Status, Streaming, TimeoutExpired,
    transport::{Channel, ClientTlsConfig, Endpoint},
};

use crate::{Error, address::Address};

/// The longest answer that is taken, in bytes: far more than 65,536 tasks need.
pub(crate) const MAX_ANSWER: usize = 64 << 20;
/// How often a silent stream is asked whether its server is still there.
const STILL_THERE: Duration = Duration::from_secs(15);

/// Where to ask, and how long to wait.
#[derive(Debug, Clone)]
pub(crate) struct Connection {
    address: Address,
    tls: Option<ClientTlsConfig>,
    limit: Duration,
}

impl Connection {
    pub(crate) fn new(address: Address, tls: Option<ClientTlsConfig>, limit: Duration) -> Self {
        Self { address, tls, limit }
    }

    pub(crate) fn address(&self) -> &Address {
        &self.address
    }

    /// How long an answer is waited for.
    pub(crate) fn limit(&self) -> Duration {
        self.limit
    }

    /// The same server with less patience.
    pub(crate) fn within(&self, limit: Duration) -> Self {
        Self { limit, ..self.clone() }
    }

    /// Connects, asks, and waits for the answer; the limit holds for all of it. The server is told how much of it is left.
    pub(crate) async fn ask<Q, A>(
        &self,
        question: Q,
        call: impl AsyncFnOnce(Channel, Request<Q>) -> Result<Response<A>, Status>,
    ) -> Result<A, Error> {
        let deadline = Instant::now() + self.limit;
        let channel = timeout_at(deadline, self.connect()).await.map_err(|_| self.too_late())??;
        let mut request = Request::new(question);
        request.set_timeout(deadline - Instant::now());
        match timeout_at(deadline, call(channel, request)).await {
            Ok(Ok(response)) => Ok(response.into_inner()),
            Ok(Err(status)) => Err(self.failed(status)),
            Err(_) => Err(self.too_late()),
        }
    }

    /// Connects and asks for a stream; the limit holds until its first message, which is told to `each` as all later ones.
    /// Ends when `each` says so.
    ///
    /// # Errors
    ///
    /// Those of [`ask`](Self::ask), those of `each`, and [`Error::Ended`] when the server ends the stream.
    pub(crate) async fn follow<Q, A>(
        &self,
        question: Q,
        call: impl AsyncFnOnce(Channel, Request<Q>) -> Result<Response<Streaming<A>>, Status>,
        mut each: impl FnMut(A) -> Result<Next, Error>,
    ) -> Result<(), Error> {
        let deadline = Instant::now() + self.limit;
        let first = async {
            let channel = self.connect().await?;
            let mut stream = call(channel, Request::new(question))
                .await
                .map_err(|status| self.failed(status))?
                .into_inner();
            let message = stream.message().await.map_err(|status| self.failed(status))?;
            Ok((stream, message))
        };
        let (mut stream, mut message) = timeout_at(deadline, first).await.map_err(|_| self.too_late())??;
        while let Some(told) = message {
            if each(told)? == Next::Stop {
                return Ok(());
            }
            message = stream.message().await.map_err(|status| self.failed(status))?;
        }
        Err(Error::Ended { address: self.address.clone() })
    }

    fn too_late(&self) -> Error {
        Error::Timeout { address: self.address.clone(), limit: self.limit }
    }

    async fn connect(&self) -> Result<Channel, Error> {
        let endpoint = Endpoint::from_shared(self.address.to_string()).and_then(|endpoint| match &self.tls {
            Some(tls) => endpoint.tls_config(tls.clone()),
            None => Ok(endpoint),
        });
        match endpoint {
            Ok(endpoint) => endpoint
                .http2_keep_alive_interval(STILL_THERE)
                .keep_alive_timeout(STILL_THERE)
                .connect()
                .await
                .map_err(|error| self.unreachable(&error)),
            Err(error) => Err(self.unreachable(&error)),
        }
    }

    /// A status with a source was made on this side: the connection broke, or what listens there is no gRPC server.
    fn failed(&self, status: Status) -> Error {
        match status.source() {
            Some(source) => self.unreachable(source),
            None => Error::Refused { status: Box::new(status), mask: "--cpus" },
        }
    }

    /// The innermost cause says most: "connection refused", not "transport error".
    fn unreachable(&self, error: &(dyn std::error::Error + 'static)) -> Error {
        let mut innermost = error;
        while let Some(source) = innermost.source() {
            innermost = source;
        }
        // The transport watches the deadline that it tells the server, and may be first to notice.
        if innermost.is::<TimeoutExpired>() {
            return self.too_late();
        }
        let kind = innermost.downcast_ref::<io::Error>().map_or(io::ErrorKind::Other, io::Error::kind);
        Error::Unreachable { address: self.address.clone(), cause: innermost.to_string(), kind }
    }
}

/// Whether a stream is followed further.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Next {
    /// Further messages are wanted.
    GoOn,
    /// No more are.
    Stop,
}
