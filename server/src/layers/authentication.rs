//! Tells who asks, and refuses what that one may not do, before the request takes a place or is read.

use super::refusal::refuse;
use crate::{
    auth::{Peer, caller, methods::method},
    config::Live,
};
use http::{Request, Response};
use std::{
    future::Future,
    pin::Pin,
    task::{Context, Poll},
};
use tonic::body::Body;
use tower::{Layer, Service};

/// Who has which role: read anew for each request.
#[derive(Debug, Clone)]
pub(crate) struct Authentication(pub(crate) Live);

impl<S> Layer<S> for Authentication {
    type Service = Authenticated<S>;
    fn layer(&self, inner: S) -> Authenticated<S> {
        Authenticated { inner, live: self.0.clone() }
    }
}

/// A service whose requests carry their [`Peer`].
#[derive(Debug, Clone)]
pub(crate) struct Authenticated<S> {
    inner: S,
    live: Live,
}

impl<S> Service<Request<Body>> for Authenticated<S>
where
    S: Service<Request<Body>, Response = Response<Body>>,
    S::Future: Send + 'static,
    S::Error: Send + 'static,
{
    type Response = Response<Body>;
    type Error = S::Error;
    type Future = Pin<Box<dyn Future<Output = Result<Response<Body>, S::Error>> + Send>>;

    fn poll_ready(&mut self, context: &mut Context<'_>) -> Poll<Result<(), S::Error>> {
        self.inner.poll_ready(context)
    }

    fn call(&mut self, mut request: Request<Body>) -> Self::Future {
        if !super::is_ours(request.uri().path()) {
            return Box::pin(self.inner.call(request));
        }
        let peer = Peer::of_request(&request, &self.live.now().roles);
        tracing::Span::current().record("caller", tracing::field::display(&peer));
        let path = request.uri().path();
        if let Err(refused) = peer.require(method(path).role, path.trim_start_matches('/')) {
            tracing::debug!(reason = refused.reason(), "refused");
            let body = request.into_body();
            return Box::pin(async move { Ok(refuse(body, refused).await) });
        }
        let key = peer.key();
        request.extensions_mut().insert(peer);
        Box::pin(caller::scope(key, self.inner.call(request)))
    }
}
