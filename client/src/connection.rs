//! One question over gRPC, within one deadline.

use std::{error::Error as _, time::Duration};

use tokio::time::{Instant, timeout_at};
use tonic::{
    Request, Response, Status, TimeoutExpired,
    transport::{Channel, Endpoint},
};

use crate::{Error, address::Address};

/// The longest answer that is taken, in bytes: far more than 65,536 tasks need.
pub(crate) const MAX_ANSWER: usize = 64 << 20;

/// Where to ask, and how long to wait.
#[derive(Debug, Clone)]
pub(crate) struct Connection {
    address: Address,
    limit: Duration,
}

impl Connection {
    pub(crate) fn new(address: Address, limit: Duration) -> Self {
        Self { address, limit }
    }

    pub(crate) fn address(&self) -> &Address {
        &self.address
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

    fn too_late(&self) -> Error {
        Error::Timeout { address: self.address.clone(), limit: self.limit }
    }

    async fn connect(&self) -> Result<Channel, Error> {
        let endpoint = Endpoint::from_shared(self.address.to_string());
        match endpoint {
            Ok(endpoint) => endpoint.connect().await.map_err(|error| self.unreachable(&error)),
            Err(error) => Err(self.unreachable(&error)),
        }
    }

    /// A status with a source was made on this side: the connection broke, or what listens there is no gRPC server.
    fn failed(&self, status: Status) -> Error {
        match status.source() {
            Some(source) => self.unreachable(source),
            None => Error::Refused(Box::new(status)),
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
        Error::Unreachable { address: self.address.clone(), cause: innermost.to_string() }
    }
}
