//! Answers a bounded number of requests at a time, and refuses more at once: a queue would only make all late.

use crate::{config::Live, convert::Failure};
use http::{Request, Response};
use std::{
    future::Future,
    pin::Pin,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    task::{Context, Poll},
};
use tonic::{Status, body::Body};
use tower::{Layer, Service};

/// One limit for all services that share it.
#[derive(Debug, Clone)]
pub(crate) struct Admission {
    live: Live,
    answering: Arc<AtomicUsize>,
}

impl Admission {
    pub(crate) fn new(live: Live) -> Self {
        Self { live, answering: Arc::default() }
    }

    /// A place among those that are answered; else how many there are.
    fn admit(&self) -> Result<Place, usize> {
        let limit = self.live.now().limits.max_requests;
        // Counted before it is compared, so that two cannot both take the last place.
        let place = Place(Arc::clone(&self.answering));
        if self.answering.fetch_add(1, Ordering::Relaxed) < limit { Ok(place) } else { Err(limit) }
    }
}

/// Given back when dropped.
struct Place(Arc<AtomicUsize>);

impl Drop for Place {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
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

impl<S, B> Service<Request<B>> for Admitted<S>
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
        let place = match self.admission.admit() {
            Ok(place) => place,
            Err(limit) => {
                let refused = Failure::Overloaded { limit, of: "requests" };
                return Box::pin(std::future::ready(Ok(Status::from(refused).into_http())));
            }
        };
        let answer = self.inner.call(request);
        Box::pin(async move {
            let answer = answer.await;
            drop(place);
            answer
        })
    }
}
