//! Gives each request a name and a span, and says the name in the answer.

use http::{HeaderName, HeaderValue, Request, Response};
use std::{
    future::Future,
    pin::Pin,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    task::{Context, Poll},
    time::{Instant, SystemTime, UNIX_EPOCH},
};
use tower::{Layer, Service};
use tracing::Instrument;

/// The header that carries the name: the caller's own if it gives one.
const HEADER: HeaderName = HeaderName::from_static("x-request-id");
/// The longest name that a caller may give.
const MAX_LENGTH: usize = 64;

tokio::task_local! {
    static CURRENT: String;
}

/// The name of the request that is being answered.
pub(crate) fn current() -> Option<String> {
    CURRENT.try_with(Clone::clone).ok()
}

/// Makes the names.
#[derive(Debug, Clone)]
pub(crate) struct RequestIds {
    /// Differs from one start of the daemon to the next.
    start: u64,
    next: Arc<AtomicU64>,
}

impl RequestIds {
    pub(crate) fn new() -> Self {
        let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        Self { start: since.as_secs() & 0xffff_ffff, next: Arc::default() }
    }

    fn name<B>(&self, request: &Request<B>) -> String {
        let given = request.headers().get(&HEADER).and_then(|value| value.to_str().ok());
        let printable = |text: &&str| {
            !text.is_empty() && text.len() <= MAX_LENGTH && text.bytes().all(|b| b.is_ascii_graphic())
        };
        match given.filter(printable) {
            Some(given) => given.to_owned(),
            None => format!("{:08x}-{}", self.start, self.next.fetch_add(1, Ordering::Relaxed)),
        }
    }
}

impl<S> Layer<S> for RequestIds {
    type Service = Named<S>;
    fn layer(&self, inner: S) -> Named<S> {
        Named { inner, ids: self.clone() }
    }
}

/// A service whose requests have names.
#[derive(Debug, Clone)]
pub(crate) struct Named<S> {
    inner: S,
    ids: RequestIds,
}

impl<S, B, R> Service<Request<B>> for Named<S>
where
    S: Service<Request<B>, Response = Response<R>>,
    S::Future: Send + 'static,
{
    type Response = S::Response;
    type Error = S::Error;
    type Future = Pin<Box<dyn Future<Output = Result<S::Response, S::Error>> + Send>>;

    fn poll_ready(&mut self, context: &mut Context<'_>) -> Poll<Result<(), S::Error>> {
        self.inner.poll_ready(context)
    }

    fn call(&mut self, request: Request<B>) -> Self::Future {
        let id = self.ids.name(&request);
        let span =
            tracing::info_span!("request", id, method = request.uri().path(), caller = tracing::field::Empty);
        let header = HeaderValue::from_str(&id).ok();
        let answer = CURRENT.sync_scope(id.clone(), || span.in_scope(|| self.inner.call(request)));
        let started = Instant::now();
        let named = async move {
            let mut answer = answer.await;
            if let (Ok(response), Some(header)) = (&mut answer, header) {
                response.headers_mut().insert(HEADER, header);
            }
            tracing::debug!(
                micros = u64::try_from(started.elapsed().as_micros()).unwrap_or(u64::MAX),
                "answered"
            );
            answer
        };
        Box::pin(CURRENT.scope(id, named).instrument(span))
    }
}
