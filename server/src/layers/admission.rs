//! Answers a bounded number of requests at a time, and refuses more at once: a queue would only make all late.

use crate::convert::Failure;
use http::{Request, Response};
use std::{
    future::Future,
    pin::Pin,
    sync::Arc,
    task::{Context, Poll},
};
use tokio::sync::Semaphore;
use tonic::{Status, body::Body};
use tower::{Layer, Service};

/// One limit for all services that share it.
#[derive(Debug, Clone)]
pub(crate) struct Admission {
    limit: usize,
    free: Arc<Semaphore>,
}

impl Admission {
    pub(crate) fn new(limit: usize) -> Self {
        Self { limit, free: Arc::new(Semaphore::new(limit)) }
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
        let Ok(permit) = Arc::clone(&self.admission.free).try_acquire_owned() else {
            let refused = Failure::Overloaded { limit: self.admission.limit, of: "requests" };
            return Box::pin(std::future::ready(Ok(Status::from(refused).into_http())));
        };
        let answer = self.inner.call(request);
        Box::pin(async move {
            let answer = answer.await;
            drop(permit);
            answer
        })
    }
}
