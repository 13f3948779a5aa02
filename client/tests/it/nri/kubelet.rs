//! A kubelet that tells which CPUs it has given to containers, on a real socket.

use std::{
    fs,
    path::PathBuf,
    sync::{Arc, Mutex, PoisonError},
};

use berth_proto::kubelet::pod_resources::{
    AllocatableResourcesRequest, AllocatableResourcesResponse, ContainerResources, GetPodResourcesRequest,
    GetPodResourcesResponse, ListPodResourcesRequest, ListPodResourcesResponse, PodResources,
    pod_resources_lister_server::{PodResourcesLister, PodResourcesListerServer},
};
use tokio::{net::UnixListener, runtime::Runtime};
use tokio_stream::wrappers::UnixListenerStream;
use tonic::{Request, Response, Status, transport::Server};

/// A kubelet. It ends with its owner.
#[derive(Debug)]
pub(super) struct Kubelet {
    given: Given,
    _runtime: Runtime,
}

#[derive(Debug, Clone, Default)]
struct Given(Arc<Mutex<Vec<PodResources>>>);

impl Kubelet {
    /// One that has given out nothing.
    pub(super) fn start(socket: PathBuf) -> Self {
        let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build();
        let runtime = runtime.expect("threads can be had");
        let given = Given::default();
        let _ = fs::remove_file(&socket);
        let inside = runtime.enter();
        let listener = UnixListenerStream::new(UnixListener::bind(socket).expect("nobody has it"));
        let service = PodResourcesListerServer::new(given.clone());
        runtime.spawn(Server::builder().add_service(service).serve_with_incoming(listener));
        drop(inside);
        Self { given, _runtime: runtime }
    }

    /// From now on these pods have these CPUs, and nobody else has any.
    pub(super) fn gives(&self, pods: &[(&str, &[i64])]) {
        let pod = |&(name, cpus): &(&str, &[i64])| PodResources {
            name: name.to_owned(),
            namespace: "default".to_owned(),
            containers: vec![ContainerResources {
                name: "main".to_owned(),
                cpu_ids: cpus.to_vec(),
                ..ContainerResources::default()
            }],
        };
        *self.given.0.lock().unwrap_or_else(PoisonError::into_inner) = pods.iter().map(pod).collect();
    }
}

#[tonic::async_trait]
impl PodResourcesLister for Given {
    async fn list(
        &self,
        _: Request<ListPodResourcesRequest>,
    ) -> Result<Response<ListPodResourcesResponse>, Status> {
        let pod_resources = self.0.lock().unwrap_or_else(PoisonError::into_inner).clone();
        Ok(Response::new(ListPodResourcesResponse { pod_resources }))
    }

    async fn get_allocatable_resources(
        &self,
        _: Request<AllocatableResourcesRequest>,
    ) -> Result<Response<AllocatableResourcesResponse>, Status> {
        Err(Status::unimplemented("not asked for here"))
    }

    async fn get(
        &self,
        _: Request<GetPodResourcesRequest>,
    ) -> Result<Response<GetPodResourcesResponse>, Status> {
        Err(Status::unimplemented("not asked for here"))
    }
}
