//! Counts every request, and ends those that never end by themselves when the daemon is to stop.
//!
//! A stream, such as a watcher's, goes on for as long as its caller likes. Told to stop, it ends at the next moment
//! that it has nothing to say, so that it does not hold up the rest. Here alone: whoever is told of the end at two places
//! hears whichever is first.

use crate::{
    auth::methods::{Lasts, method},
    convert::Failure,
    ending::Ending,
    metrics::{Requests, Ticket},
};
use http::{HeaderMap, Request, Response};
use http_body::{Body as HttpBody, Frame, SizeHint};
use std::{
    future::Future,
    pin::Pin,
    task::{Context, Poll},
};
use tonic::{Code, Status, body::Body};
use tower::{Layer, Service};

/// Counts requests.
#[derive(Debug, Clone)]
pub(crate) struct Counting {
    pub(crate) requests: Requests,
    pub(crate) ending: Ending,
}

impl<S> Layer<S> for Counting {
    type Service = Counted<S>;
    fn layer(&self, inner: S) -> Counted<S> {
        Counted { inner, counting: self.clone() }
    }
}

/// A service whose requests are counted.
#[derive(Debug, Clone)]
pub(crate) struct Counted<S> {
    inner: S,
    counting: Counting,
}

impl<S, B> Service<Request<B>> for Counted<S>
where
    S: Service<Request<B>, Response = Response<Body>>,
    S::Future: Send + 'static,
{
    type Response = Response<Body>;
    type Error = S::Error;
    type Future = Pin<Box<dyn Future<Output = Result<Response<Body>, S::Error>> + Send>>;

    fn poll_ready(&mut self, context: &mut Context<'_>) -> Poll<Result<(), S::Error>> {
        self.inner.poll_ready(context)
    }

    fn call(&mut self, request: Request<B>) -> Self::Future {
        let path = request.uri().path();
        let (mut ticket, lasts) = (self.counting.requests.begin(path), method(path).lasts);
        let ending = self.counting.ending.clone();
        let answer = self.inner.call(request);
        Box::pin(async move {
            let response = match lasts {
                Lasts::ForAnAnswer => answer.await?,
                // A caller that streams is answered at its end, which may be far.
                Lasts::AsLongAsLiked => tokio::select! {
                    biased;
                    answer = answer => answer?,
                    () = ending.clone().begun() => Status::from(Failure::Stopping).into_http(),
                },
            };
            // An answer that is a status alone has it in its headers.
            if let Some(code) = code(response.headers()) {
                ticket.answered(code);
                return Ok(response);
            }
            let counted = |body| CountedBody { body, ticket, ending, end: None, ended: false };
            Ok(response.map(|body| Body::new(counted(body))))
        })
    }
}

fn code(headers: &HeaderMap) -> Option<Code> {
    headers.get(Status::GRPC_STATUS).map(|status| Code::from_bytes(status.as_bytes()))
}

/// The messages of an answer, and the status behind them.
struct CountedBody {
    body: Body,
    ticket: Ticket,
    ending: Ending,
    /// Waits for the end. Only made for a body that has made its reader wait.
    end: Option<Pin<Box<dyn Future<Output = ()> + Send>>>,
    ended: bool,
}

impl CountedBody {
    fn poll_end(&mut self, context: &mut Context<'_>) -> Poll<()> {
        let ending = &self.ending;
        self.end.get_or_insert_with(|| Box::pin(ending.clone().begun())).as_mut().poll(context)
    }
}

impl HttpBody for CountedBody {
    type Data = <Body as HttpBody>::Data;
    type Error = <Body as HttpBody>::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Self::Data>, Self::Error>>> {
        if self.ended {
            return Poll::Ready(None);
        }
        match Pin::new(&mut self.body).poll_frame(context) {
            Poll::Pending => {
                std::task::ready!(self.poll_end(context));
                self.ended = true;
                let status = Status::from(Failure::Stopping);
                self.ticket.answered(status.code());
                let mut trailers = HeaderMap::new();
                let told = status.add_header(&mut trailers);
                Poll::Ready(told.is_ok().then_some(Ok(Frame::trailers(trailers))))
            }
            Poll::Ready(frame) => {
                if let Some(Ok(frame)) = &frame
                    && let Some(code) = frame.trailers_ref().and_then(code)
                {
                    self.ticket.answered(code);
                }
                Poll::Ready(frame)
            }
        }
    }

    fn is_end_stream(&self) -> bool {
        self.ended || self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}
