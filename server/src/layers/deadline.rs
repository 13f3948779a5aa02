//! Gives a request up when its time has passed: the lesser of the caller's `grpc-timeout` and the server's limit.
//!
//! Streams have none: they last as long as both sides like.
//!
//! tonic has a timeout of its own, which answers `CANCELLED`; this one is a little earlier. Beside that it says in our
//! own words that a message was too long, which tonic finds out before any service sees the request.

use crate::{
    auth::methods::{Lasts, method},
    config::Live,
    convert::{Failure, Faults, MAX_REQUEST_BYTES},
};
use http::{HeaderMap, Request, Response};
use std::{
    future::Future,
    pin::Pin,
    task::{Context, Poll},
    time::Duration,
};
use tonic::{Code, Status, body::Body};
use tower::{Layer, Service};

/// By how much the caller's own timeout is undercut, so that this answer is there before the other.
const EARLIER: Duration = Duration::from_millis(50);

/// The longest that a request may take.
#[derive(Debug, Clone)]
pub(crate) struct Deadline(pub(crate) Live);

impl<S> Layer<S> for Deadline {
    type Service = Timed<S>;
    fn layer(&self, inner: S) -> Timed<S> {
        Timed { inner, live: self.0.clone() }
    }
}

/// A service whose requests have a deadline.
#[derive(Debug, Clone)]
pub(crate) struct Timed<S> {
    inner: S,
    live: Live,
}

impl<S, B> Service<Request<B>> for Timed<S>
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
        if !super::is_ours(path) || method(path).lasts == Lasts::AsLongAsLiked {
            return Box::pin(self.inner.call(request));
        }
        let given = given(request.headers());
        let most = self.live.now().limits.deadline;
        let limit = given.map_or(most, |given| given.min(most));
        let earlier = if given.is_some() { EARLIER.min(limit / 10) } else { Duration::ZERO };
        let answer = self.inner.call(request);
        Box::pin(async move {
            match tokio::time::timeout(limit.saturating_sub(earlier), answer).await {
                Ok(answer) => {
                    answer.map(|response| if is_too_long(&response) { too_long() } else { response })
                }
                Err(_) => Ok(Status::from(Failure::Deadline { limit }).into_http()),
            }
        })
    }
}

/// The caller's timeout: up to eight digits and a unit.
fn given(headers: &HeaderMap) -> Option<Duration> {
    let text = headers.get("grpc-timeout")?.to_str().ok()?;
    let (digits, unit) = text.split_at_checked(text.len().checked_sub(1)?)?;
    let amount: u64 = digits.parse().ok().filter(|_| digits.len() <= 8)?;
    match unit {
        "H" => Some(Duration::from_secs(amount * 3600)),
        "M" => Some(Duration::from_secs(amount * 60)),
        "S" => Some(Duration::from_secs(amount)),
        "m" => Some(Duration::from_millis(amount)),
        "u" => Some(Duration::from_micros(amount)),
        "n" => Some(Duration::from_nanos(amount)),
        _ => None,
    }
}

/// No service of ours answers `OUT_OF_RANGE`.
fn is_too_long(response: &Response<Body>) -> bool {
    Status::from_header_map(response.headers()).is_some_and(|status| status.code() == Code::OutOfRange)
}

fn too_long() -> Response<Body> {
    let mut faults = Faults::default();
    faults.add("", format!("the message is too long; expected at most {MAX_REQUEST_BYTES} bytes"));
    let failure = faults.none().err().unwrap_or_else(|| Failure::internal("no fault"));
    Status::from(failure).into_http()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn timeouts_of_callers() {
        let given = |text: &str| {
            let mut headers = HeaderMap::new();
            headers.insert("grpc-timeout", text.parse().unwrap());
            given(&headers)
        };
        assert_eq!(given("250m"), Some(Duration::from_millis(250)));
        assert_eq!(given("2S"), Some(Duration::from_secs(2)));
        assert_eq!(given("99999999H"), Some(Duration::from_secs(99_999_999 * 3600)));
        for bad in ["", "S", "5", "999999999S", "-1S", "1.5S", "2s"] {
            assert_eq!(given(bad), None, "{bad}");
        }
    }
}
