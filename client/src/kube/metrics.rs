//! What is counted, over plain HTTP on an address of its own: Prometheus reads nothing else without help. None by default.
//!
//! | request | answer |
//! |---|---|
//! | `GET /metrics` | what is counted, as OpenMetrics text |
//! | `GET /livez` | 200: the process answers |
//! | `GET /readyz` | 200 or 503, and in words what works and what does not |

use std::{io, sync::Arc, time::Duration};

use axum::{
    Router,
    http::{StatusCode, header},
    response::IntoResponse,
    routing::get,
};
use hyper_util::{
    rt::{TokioExecutor, TokioIo, TokioTimer},
    server::conn::auto,
    service::TowerToHyperService,
};
use prometheus_client::{encoding::text, registry::Registry};
use tokio::{
    net::TcpListener,
    sync::Semaphore,
    time::{sleep, timeout},
};

use crate::Error;

/// Connections at a time; more are closed at once.
const MAX_CONNECTIONS: usize = 16;
/// A connection carries one request, and is closed after this time.
const MAX_TIME: Duration = Duration::from_secs(10);
/// Whoever has not said by then what is wanted is not listened to any longer.
const MAX_HEADER_TIME: Duration = Duration::from_secs(1);
/// The content type of what Prometheus reads.
const OPEN_METRICS: &str = "application/openmetrics-text; version=1.0.0; charset=utf-8";

/// The listener, and what is counted.
#[derive(Debug)]
pub(super) struct Admin {
    listener: Option<TcpListener>,
    registry: Registry,
}

impl Admin {
    /// Listens on an address, such as `127.0.0.1:9117`; nowhere if there is none.
    ///
    /// # Errors
    ///
    /// Nobody can listen there.
    pub(super) async fn bind(address: Option<&String>) -> Result<Self, Error> {
        let listener = match address {
            Some(address) => Some(TcpListener::bind(address).await.map_err(|source| {
                Error::NotListening { flag: "--metrics", address: address.clone(), source }
            })?),
            None => None,
        };
        Ok(Self { listener, registry: Registry::default() })
    }

    /// The address. `None`: nobody listens.
    pub(super) fn address(&self) -> Option<io::Result<std::net::SocketAddr>> {
        self.listener.as_ref().map(TcpListener::local_addr)
    }

    /// With something that counts.
    pub(super) fn with<C>(mut self, counts: impl FnOnce(&mut Registry) -> C) -> (C, Self) {
        (counts(&mut self.registry), self)
    }

    /// Serves. Does not end. `ready` says whether all works, and what there is to know.
    pub(super) async fn serve<R>(self, ready: R)
    where
        R: Fn() -> Result<String, String> + Clone + Send + Sync + 'static,
    {
        let Some(listener) = self.listener else { return std::future::pending().await };
        let registry = Arc::new(self.registry);
        let routes = Router::new()
            .route("/metrics", get(move || async move { metrics(&registry) }))
            .route("/livez", get("ok\n"))
            .route("/readyz", get(move || async move { readyz(ready()) }));
        let places = Arc::new(Semaphore::new(MAX_CONNECTIONS));
        let mut http = auto::Builder::new(TokioExecutor::new()).http1_only();
        http.http1().keep_alive(false).timer(TokioTimer::new()).header_read_timeout(MAX_HEADER_TIME);
        loop {
            let Ok((connection, _)) = listener.accept().await else {
                // Such as too many open files, which does not pass by trying at once.
                sleep(Duration::from_millis(100)).await;
                continue;
            };
            let Ok(place) = Arc::clone(&places).try_acquire_owned() else { continue };
            let (http, service) = (http.clone(), TowerToHyperService::new(routes.clone()));
            tokio::spawn(async move {
                let answered = http.serve_connection(TokioIo::new(connection), service);
                // Whoever is slow, or talks something else, is not waited for.
                let _ = timeout(MAX_TIME, answered).await;
                drop(place);
            });
        }
    }
}

fn metrics(registry: &Registry) -> impl IntoResponse + use<> {
    let mut told = String::new();
    match text::encode(&mut told, registry) {
        Ok(()) => (StatusCode::OK, [(header::CONTENT_TYPE, OPEN_METRICS)], told).into_response(),
        Err(error) => (StatusCode::INTERNAL_SERVER_ERROR, format!("{error}\n")).into_response(),
    }
}

fn readyz(ready: Result<String, String>) -> (StatusCode, String) {
    match ready {
        Ok(said) => (StatusCode::OK, said),
        Err(said) => (StatusCode::SERVICE_UNAVAILABLE, said),
    }
}
