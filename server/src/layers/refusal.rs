//! A refusal, once the request has been heard out.
//!
//! An answer that comes before the end of its request makes the HTTP library reset the stream, and a client that goes on
//! sending on many such streams is taken for one that means harm: its connection would end. So what is on its way is
//! taken first, unless it is long or slow.

use crate::convert::Failure;
use http::Response;
use http_body::Body as _;
use std::{future::poll_fn, pin::Pin, time::Duration};
use tonic::{Status, body::Body};

/// The most that is heard of a request that is refused: bytes, and time.
const BYTES: usize = 64 << 10;
const TIME: Duration = Duration::from_millis(250);

pub(super) async fn refuse(mut body: Body, refused: Failure) -> Response<Body> {
    let hear = async {
        let mut heard = 0;
        while heard <= BYTES {
            match poll_fn(|context| Pin::new(&mut body).poll_frame(context)).await {
                Some(Ok(frame)) => heard += frame.data_ref().map_or(0, |data| data.len()),
                Some(Err(_)) | None => return,
            }
        }
    };
    let _ = tokio::time::timeout(TIME, hear).await;
    Status::from(refused).into_http()
}
