//! A body that keeps something until it has been taken, or nobody wants it any more.

use http_body::{Frame, SizeHint};
use prost::bytes::Bytes;
use std::{
    pin::Pin,
    task::{Context, Poll},
};
use tonic::{Status, body::Body};

/// A body, and what goes with it.
#[derive(Debug)]
pub(super) struct Kept<T> {
    body: Body,
    _with: T,
}

impl<T: Send + Unpin + 'static> Kept<T> {
    pub(super) fn keep(body: Body, with: T) -> Body {
        Body::new(Self { body, _with: with })
    }
}

impl<T: Unpin> http_body::Body for Kept<T> {
    type Data = Bytes;
    type Error = Status;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Status>>> {
        Pin::new(&mut self.body).poll_frame(context)
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}
