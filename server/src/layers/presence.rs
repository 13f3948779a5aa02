//! Tells the connection of a request that it is used, until the caller has taken the whole answer.

use super::kept::Kept;
use crate::{
    auth::{
        Origin,
        methods::{Lasts, method},
    },
    config::Live,
};
use http::{Request, Response};
use std::{
    future::Future,
    pin::Pin,
    task::{Context, Poll},
    time::Instant,
};
use tonic::body::Body;
use tower::{Layer, Service};

/// Notes requests at their connections.
#[derive(Debug, Clone)]
pub(crate) struct Presences(pub(crate) Live);

impl<S> Layer<S> for Presences {
    type Service = Present<S>;
    fn layer(&self, inner: S) -> Present<S> {
        Present { inner, live: self.0.clone() }
    }
}

/// A service whose requests keep their connections.
#[derive(Debug, Clone)]
pub(crate) struct Present<S> {
    inner: S,
    live: Live,
}

impl<S, B> Service<Request<B>> for Present<S>
where
    S: Service<Request<B>, Response = Response<Body>>,
    S::Future: Send + 'static,
    S::Error: Send + 'static,
{
    type Response = Response<Body>;
    type Error = S::Error;
    type Future = Pin<Box<dyn Future<Output = Result<Response<Body>, S::Error>> + Send>>;

    fn poll_ready(&mut self, context: &mut Context<'_>) -> Poll<Result<(), S::Error>> {
        self.inner.poll_ready(context)
    }

    fn call(&mut self, request: Request<B>) -> Self::Future {
        let path = request.uri().path();
        let is_answer = method(path).lasts == Lasts::ForAnAnswer;
        let limits = &self.live.now().limits;
        let due = is_answer.then(|| Instant::now() + limits.deadline + limits.stalled_timeout);
        let call = Origin::of_request(&request).map(|origin| origin.presence().begin(due));
        let answer = self.inner.call(request);
        Box::pin(async move {
            let answer = answer.await?;
            Ok(answer.map(|body| Kept::keep(body, call)))
        })
    }
}
