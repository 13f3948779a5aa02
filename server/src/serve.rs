//! The gRPC server: services in their layers, health and reflection beside them.

use crate::{
    convert::MAX_REQUEST_BYTES,
    layers::Layers,
    ledger::Unusable,
    listen::Incoming,
    service::{Berth, Context},
};
use berth_proto::{
    FILE_DESCRIPTOR_SETS,
    v1::{
        hold_service_server::HoldServiceServer, info_service_server::InfoServiceServer,
        load_service_server::LoadServiceServer, placement_service_server::PlacementServiceServer,
        topology_service_server::TopologyServiceServer,
    },
};
use std::{
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};
use tokio::{
    io::{AsyncRead, AsyncWrite},
    sync::watch,
};
use tonic::{
    server::NamedService,
    service::Routes,
    transport::{Error, Server, server::Connected},
};
use tonic_health::{ServingStatus, server::HealthReporter};

/// Streams of one connection at a time.
const MAX_STREAMS: u32 = 256;
/// Bytes that a connection may send before they are wanted.
const WINDOW: u32 = 256 << 10;
/// Bytes of a request's headers.
const MAX_HEADERS: u32 = 16 << 10;
/// How often an idle connection is asked whether it is still there, and how long it may take to say so.
const KEEPALIVE: (Duration, Duration) = (Duration::from_secs(60), Duration::from_secs(20));
/// A connection is asked to end after this time, so that none stays for ever on a server that is to be replaced.
const CONNECTION_AGE: Duration = Duration::from_secs(3600);
/// How long what is going on then may last.
const CONNECTION_GRACE: Duration = Duration::from_secs(3600);

/// The names that health knows: the server as a whole and each service.
const NAMES: [&str; 6] = [
    "",
    PlacementServiceServer::<Berth>::NAME,
    TopologyServiceServer::<Berth>::NAME,
    LoadServiceServer::<Berth>::NAME,
    InfoServiceServer::<Berth>::NAME,
    HoldServiceServer::<Berth>::NAME,
];

/// Says whether the daemon serves.
#[derive(Debug, Clone)]
pub(crate) struct Health {
    reporter: HealthReporter,
    is_serving: Arc<AtomicBool>,
}

impl Health {
    /// NOT_SERVING.
    pub(crate) async fn new() -> Self {
        let health = Self { reporter: HealthReporter::new(), is_serving: Arc::default() };
        health.not_serving().await;
        health
    }

    /// Whether questions are answered.
    pub(crate) fn is_serving(&self) -> bool {
        self.is_serving.load(Ordering::Relaxed)
    }

    /// SERVING; `HoldService` if holds are kept.
    pub(crate) async fn serving(&self, holds: bool) {
        for name in NAMES.iter().filter(|name| **name != HoldServiceServer::<Berth>::NAME) {
            self.reporter.set_service_status(*name, ServingStatus::Serving).await;
        }
        self.serving_holds(holds).await;
        self.is_serving.store(true, Ordering::Relaxed);
    }

    async fn serving_holds(&self, holds: bool) {
        let status = if holds { ServingStatus::Serving } else { ServingStatus::NotServing };
        self.reporter.set_service_status(HoldServiceServer::<Berth>::NAME, status).await;
    }

    /// Says of `HoldService` whether holds are kept, whenever that changes.
    pub(crate) async fn follow_holds(self, mut usable: watch::Receiver<Result<(), Unusable>>) {
        while usable.changed().await.is_ok() {
            let is_usable = usable.borrow_and_update().is_ok();
            self.serving_holds(is_usable).await;
        }
    }

    pub(crate) async fn not_serving(&self) {
        self.is_serving.store(false, Ordering::Relaxed);
        for name in NAMES {
            self.reporter.set_service_status(name, ServingStatus::NotServing).await;
        }
    }
}

/// Every service.
pub(crate) fn routes(context: Arc<Context>, health: &Health) -> Routes {
    let berth = Berth(context);
    macro_rules! bounded {
        ($server:ident) => {
            $server::new(berth.clone()).max_decoding_message_size(MAX_REQUEST_BYTES)
        };
    }
    let mut routes = Routes::builder();
    routes
        .add_service(bounded!(PlacementServiceServer))
        .add_service(bounded!(TopologyServiceServer))
        .add_service(bounded!(LoadServiceServer))
        .add_service(bounded!(InfoServiceServer))
        .add_service(bounded!(HoldServiceServer))
        .add_service(tonic_health::pb::health_server::HealthServer::new(
            tonic_health::server::HealthService::from_health_reporter(health.reporter.clone()),
        ));
    // The descriptors are fixed at build time, and a test lists them: an error cannot come up at run time.
    match reflection().build_v1() {
        Ok(service) => {
            routes.add_service(service);
        }
        Err(error) => tracing::error!(%error, "no reflection v1"),
    }
    match reflection().build_v1alpha() {
        Ok(service) => {
            routes.add_service(service);
        }
        Err(error) => tracing::error!(%error, "no reflection v1alpha"),
    }
    routes.routes()
}

fn reflection() -> tonic_reflection::server::Builder<'static> {
    let sets = FILE_DESCRIPTOR_SETS.into_iter().chain([tonic_health::pb::FILE_DESCRIPTOR_SET]);
    sets.fold(tonic_reflection::server::Builder::configure(), |builder, set| {
        builder.register_encoded_file_descriptor_set(set)
    })
}

/// The server of one listener.
pub(crate) struct Listening<C> {
    pub(crate) incoming: Incoming<C>,
    pub(crate) layers: Layers,
}

impl<C: Connected + AsyncRead + AsyncWrite + Unpin + Send + 'static> Listening<C> {
    /// Serves until it is stopped.
    pub(crate) async fn serve(self, routes: Routes) -> Result<(), Error> {
        let server = Server::builder()
            .http2_keepalive_interval(Some(KEEPALIVE.0))
            .http2_keepalive_timeout(Some(KEEPALIVE.1))
            .max_connection_age(CONNECTION_AGE)
            .max_connection_age_grace(CONNECTION_GRACE)
            .max_concurrent_streams(MAX_STREAMS)
            .initial_stream_window_size(WINDOW)
            .initial_connection_window_size(WINDOW)
            .http2_max_header_list_size(MAX_HEADERS);
        let ending = self.layers.counting.ending.clone();
        let mut server = server.layer(self.layers);
        server.add_routes(routes).serve_with_incoming_shutdown(self.incoming, ending.begun()).await
    }
}
