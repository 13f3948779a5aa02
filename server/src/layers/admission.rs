//! Answers a bounded number of requests at a time, at most half of them for one caller, and refuses more at once: a
//! queue would only make all late. Health and reflection have places of their own: they answer when the rest does not.

use super::{
    meter::{self, Meter},
    refusal::refuse,
};
use crate::{
    auth::{
        Key, Peer,
        methods::{Lasts, method},
    },
    config::Live,
    convert::Failure,
    metrics::Sheds,
    shares::{Full, Share, Shares},
};
use http::{Request, Response};
use std::{
    future::Future,
    pin::Pin,
    task::{Context, Poll},
};
use tonic::body::Body;
use tower::{Layer, Service};

/// Calls of health and reflection at a time that are answered, and that last, by one caller. More than a connection may
/// have.
const ANSWERS_BESIDE: usize = 1024;
const STREAMS_BESIDE: usize = 256;

/// One limit for all services that share it.
#[derive(Debug, Clone)]
pub(crate) struct Admission {
    live: Live,
    answers: Shares,
    streams: Shares,
    answers_beside: Shares,
    streams_beside: Shares,
    bytes: Shares,
    sheds: Sheds,
}

impl Admission {
    /// `sheds` counts what is refused.
    pub(crate) fn new(live: Live, sheds: Sheds) -> Self {
        let (answers, streams, answers_beside, streams_beside, bytes) = Default::default();
        Self { live, answers, streams, answers_beside, streams_beside, bytes, sheds }
    }

    /// A place among those that are answered, or among the streams, which last.
    fn admit(&self, request: &Request<Body>, caller: Key) -> Result<Share, Failure> {
        let limits = &self.live.now().limits;
        let (shares, limit, of, of_one) = match method(request.uri().path()).lasts {
            Lasts::ForAnAnswer => (&self.answers, limits.max_requests, "requests", "requests of one caller"),
            Lasts::AsLongAsLiked => (&self.streams, limits.max_streams, "streams", "streams of one caller"),
        };
        let most = limit.div_ceil(2);
        shares.take(caller, limit, most).map_err(|full| match full {
            Full::All => self.shed(limit, of),
            Full::OfOne => self.shed(most, of_one),
        })
    }

    /// The same of health and reflection, of which no caller can take the places of another.
    fn admit_beside(&self, request: &Request<Body>, caller: Key) -> Result<Share, Failure> {
        let (shares, most, of) = match method(request.uri().path()).lasts {
            Lasts::ForAnAnswer => (&self.answers_beside, ANSWERS_BESIDE, "health checks of one caller"),
            Lasts::AsLongAsLiked => {
                (&self.streams_beside, STREAMS_BESIDE, "health and reflection streams of one caller")
            }
        };
        shares.take(caller, usize::MAX, most).map_err(|_| self.shed(most, of))
    }

    fn shed(&self, limit: usize, of: &'static str) -> Failure {
        self.sheds.of(of).inc();
        Failure::Overloaded { limit, of }
    }
}

impl<S> Layer<S> for Admission {
    type Service = Admitted<S>;
    fn layer(&self, inner: S) -> Admitted<S> {
        Admitted { inner, admission: self.clone() }
    }
}

/// A service within the limit.
#[derive(Debug, Clone)]
pub(crate) struct Admitted<S> {
    inner: S,
    admission: Admission,
}

impl<S> Service<Request<Body>> for Admitted<S>
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

    fn call(&mut self, request: Request<Body>) -> Self::Future {
        let (caller, place) = if super::is_ours(request.uri().path()) {
            let caller = Peer::within(request.extensions()).key();
            (caller.clone(), self.admission.admit(&request, caller))
        } else {
            // Nobody has asked who that is.
            let caller = Peer::of_request(&request, &self.admission.live.now().roles).key();
            (caller.clone(), self.admission.admit_beside(&request, caller))
        };
        let place = match place {
            Ok(place) => place,
            Err(refused) => {
                let body = request.into_body();
                return Box::pin(async move { Ok(refuse(body, refused).await) });
            }
        };
        let meter = Meter::new(&self.admission.bytes, caller);
        let answer = self.inner.call(request.map(|body| meter::request(body, meter.clone())));
        // Kept until the caller has taken the answer: one that is not taken costs memory too.
        Box::pin(async move {
            // Those that arrived meanwhile are counted, or refused, before this one is computed: they are no queue that
            // nobody sees.
            tokio::task::yield_now().await;
            Ok(answer.await?.map(|body| meter::answer(body, meter, place)))
        })
    }
}
