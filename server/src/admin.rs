//! The admin listener, for operators and their monitoring: plain HTTP on an address of its own, and none by default.
//!
//! | request | answer |
//! |---|---|
//! | `GET /metrics` | what is counted, as OpenMetrics text |
//! | `GET /livez` | 200: the process answers |
//! | `GET /readyz` | 200 once questions are answered; 503 before that, and as soon as the daemon is to stop |
//! | `GET /log` | what is logged, in the form of `RUST_LOG` |
//! | `PUT /log` | changes that until SIGHUP or a restart; 403 unless `admin.change_log` allows it |
//!
//! Nothing here tells what runs on the host or who asks, so that it may be read by whoever reaches the address.

use crate::{auth::Key, config::Live, serve::Health, shares::Shares, telemetry};
use axum::{
    Router,
    extract::{DefaultBodyLimit, State},
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
use std::{sync::Arc, time::Duration};
use tokio::net::TcpListener;

/// Connections at a time, in all and of one address; more are closed at once.
const MAX_CONNECTIONS: (usize, usize) = (64, 32);
/// A connection carries one request, and is closed after this time.
const MAX_TIME: Duration = Duration::from_secs(10);
/// Whoever has not said by then what is wanted is not listened to any longer: its place is for those who ask.
const MAX_HEADER_TIME: Duration = Duration::from_secs(1);
/// The longest filter for the log.
const MAX_FILTER_BYTES: usize = 4096;
/// The content type of what Prometheus reads.
const OPEN_METRICS: &str = "application/openmetrics-text; version=1.0.0; charset=utf-8";

/// What the endpoints tell of.
#[derive(Debug, Clone)]
pub(crate) struct Admin {
    pub(crate) registry: Arc<Registry>,
    pub(crate) health: Health,
    pub(crate) live: Live,
}

impl Admin {
    /// Serves for as long as the daemon runs.
    pub(crate) async fn serve(self, listener: TcpListener) {
        let routes = Router::new()
            .route("/metrics", get(metrics))
            .route("/livez", get("ok\n"))
            .route("/readyz", get(readyz))
            .route("/log", get(log).put(put_log))
            .layer(DefaultBodyLimit::max(MAX_FILTER_BYTES))
            .with_state(self);
        let places = Shares::default();
        let mut http = auto::Builder::new(TokioExecutor::new()).http1_only();
        http.http1().keep_alive(false).timer(TokioTimer::new()).header_read_timeout(MAX_HEADER_TIME);
        loop {
            let (connection, from) = match listener.accept().await {
                Ok(accepted) => accepted,
                Err(error) => {
                    tracing::debug!(%error, "no connection to the admin listener");
                    // Such as too many open files, which does not pass by trying at once.
                    tokio::time::sleep(Duration::from_millis(100)).await;
                    continue;
                }
            };
            let (total, of_one) = MAX_CONNECTIONS;
            let Ok(place) = places.take(Key::of_address(from.ip()), total, of_one) else { continue };
            let (http, service) = (http.clone(), TowerToHyperService::new(routes.clone()));
            tokio::spawn(async move {
                let answered = http.serve_connection(TokioIo::new(connection), service);
                // Whoever is slow, or talks something else, is not waited for.
                let _ = tokio::time::timeout(MAX_TIME, answered).await;
                drop(place);
            });
        }
    }
}

async fn metrics(State(admin): State<Admin>) -> impl IntoResponse {
    let mut told = String::new();
    match text::encode(&mut told, &admin.registry) {
        Ok(()) => (StatusCode::OK, [(header::CONTENT_TYPE, OPEN_METRICS)], told).into_response(),
        Err(error) => (StatusCode::INTERNAL_SERVER_ERROR, format!("{error}\n")).into_response(),
    }
}

async fn readyz(State(admin): State<Admin>) -> (StatusCode, &'static str) {
    if admin.health.is_serving() {
        (StatusCode::OK, "ok\n")
    } else {
        (StatusCode::SERVICE_UNAVAILABLE, "not serving: the host is being read, or the daemon is to stop\n")
    }
}

async fn log() -> String {
    format!("{}\n", telemetry::filter())
}

async fn put_log(State(admin): State<Admin>, filter: String) -> (StatusCode, String) {
    if !admin.live.now().admin.change_log {
        let refused = "admin.change_log is false: whoever reaches this address could change what is logged. \
            Set it to true, or change log.filter and send SIGHUP.\n";
        return (StatusCode::FORBIDDEN, refused.to_owned());
    }
    match telemetry::check_filter(filter.trim()) {
        Ok(()) => {
            telemetry::set_filter(filter.trim());
            tracing::info!(filter = filter.trim(), "what is logged was changed through the admin listener");
            (StatusCode::OK, format!("{}\n", filter.trim()))
        }
        Err(problem) => (StatusCode::BAD_REQUEST, format!("{}: {problem}\n", filter.trim())),
    }
}
