//! A kubelet of ours: real gRPC on unix sockets, that treats device plugins and pods as a kubelet 1.36 was seen to do.
//!
//! A plugin has to serve when it registers, since it is connected to before it is answered; then its options are asked for and
//! its devices watched. Of a pod's devices the plugin is asked what it prefers only where a choice is left; it is told them by
//! Allocate before the container is made. What containers have is listed, and remembered over a restart, which empties the
//! folder of all sockets and forgets all plugins.

use std::{
    collections::{BTreeMap, BTreeSet},
    fs,
    os::unix::fs::FileTypeExt as _,
    path::{Path, PathBuf},
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    thread,
    time::{Duration, Instant},
};

use berth_proto::kubelet::{
    device_plugin::{
        AllocateRequest, ContainerAllocateRequest, ContainerAllocateResponse,
        ContainerPreferredAllocationRequest, Device, Empty, PreferredAllocationRequest, RegisterRequest,
        device_plugin_client::DevicePluginClient,
        registration_server::{Registration, RegistrationServer},
    },
    pod_resources::{
        AllocatableResourcesRequest, AllocatableResourcesResponse, ContainerDevices, ContainerResources,
        GetPodResourcesRequest, GetPodResourcesResponse, ListPodResourcesRequest, ListPodResourcesResponse,
        PodResources,
        pod_resources_lister_server::{PodResourcesLister, PodResourcesListerServer},
    },
};
use tempfile::TempDir;
use tokio::{net::UnixListener, runtime::Runtime};
use tokio_stream::wrappers::UnixListenerStream;
use tonic::{
    Request, Response, Status,
    transport::{Channel, Endpoint, Server},
};

/// How long a plugin may take for anything, on a busy machine.
pub(super) const PATIENCE: Duration = Duration::from_secs(60);
/// Kept over a restart, as the kubelet's own file of that name.
const CHECKPOINT: &str = "kubelet_internal_checkpoint";

/// How it treats a plugin that registers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) enum Manner {
    /// As it should.
    #[default]
    Good,
    /// Says no.
    Refusing,
    /// Says yes a second late, and watches later still.
    Slow,
    /// Says yes, and does not watch.
    Forgetful,
    /// Watches, and stops after the first list.
    Fickle,
}

/// A kubelet. It ends with its owner.
#[derive(Debug)]
pub(super) struct Kubelet {
    folder: TempDir,
    node: Arc<Node>,
    /// `None`: it is stopped.
    runtime: Option<Runtime>,
}

/// What is behind its sockets.
#[derive(Debug)]
struct Door(Arc<Node>);

#[derive(Debug, Default)]
struct Node {
    plugins: PathBuf,
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    manner: Manner,
    /// What it called, and what was called of it, in order.
    calls: Vec<String>,
    plugins: BTreeMap<String, Plugin>,
    containers: BTreeMap<(String, String), Container>,
    /// CPUs that it has not reserved; empty: it does not tell.
    cpus: Vec<i64>,
}

#[derive(Debug)]
struct Plugin {
    endpoint: String,
    client: DevicePluginClient<Channel>,
    devices: Vec<Device>,
}

/// What a container was given.
#[derive(Debug, Clone, Default)]
pub(super) struct Container {
    resource: String,
    pub(super) devices: Vec<String>,
    pub(super) told: ContainerAllocateResponse,
}

impl Kubelet {
    pub(super) fn start() -> Self {
        let folder = tempfile::tempdir().expect("there is room for sockets");
        let plugins = folder.path().join("device-plugins");
        let mut kubelet =
            Self { folder, node: Arc::new(Node { plugins, state: Mutex::default() }), runtime: None };
        kubelet.begin();
        kubelet
    }

    /// Starts it: its folder is emptied, but for what it keeps itself, and its sockets are made.
    pub(super) fn begin(&mut self) {
        let pods = self.folder.path().join("pod-resources");
        for folder in [&self.node.plugins, &pods] {
            fs::create_dir_all(folder).expect("it can be made");
        }
        self.empty_the_folder();
        fs::write(self.node.plugins.join(CHECKPOINT), "{}").expect("it can be written");
        let _ = fs::remove_file(self.pod_resources());
        let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build();
        let runtime = runtime.expect("threads can be had");
        let inside = runtime.enter();
        let listen = |path: PathBuf| {
            UnixListenerStream::new(UnixListener::bind(path).expect("nobody has it, and its path is short"))
        };
        let lister = PodResourcesListerServer::new(Door(Arc::clone(&self.node)));
        runtime
            .spawn(Server::builder().add_service(lister).serve_with_incoming(listen(self.pod_resources())));
        let registration = RegistrationServer::new(Door(Arc::clone(&self.node)));
        let door = listen(self.plugin_dir().join("kubelet.sock"));
        runtime.spawn(Server::builder().add_service(registration).serve_with_incoming(door));
        drop(inside);
        self.runtime = Some(runtime);
    }

    /// Stops it. What containers have, they keep.
    pub(super) fn stop(&mut self) {
        if let Some(runtime) = self.runtime.take() {
            runtime.shutdown_background();
        }
        self.node.state().plugins.clear();
    }

    /// As a kubelet that starts does to its folder.
    pub(super) fn empty_the_folder(&self) {
        for entry in fs::read_dir(&self.node.plugins).expect("it is there").flatten() {
            if entry.file_type().is_ok_and(|kind| kind.is_socket()) {
                fs::remove_file(entry.path()).expect("it is ours");
            }
        }
    }

    pub(super) fn plugin_dir(&self) -> &Path {
        &self.node.plugins
    }

    pub(super) fn pod_resources(&self) -> PathBuf {
        self.folder.path().join("pod-resources/kubelet.sock")
    }

    pub(super) fn behave(&self, manner: Manner) {
        self.node.state().manner = manner;
    }

    /// CPUs that it has not reserved for the system.
    pub(super) fn gives(&self, cpus: impl IntoIterator<Item = u32>) {
        self.node.state().cpus = cpus.into_iter().map(i64::from).collect();
    }

    /// All calls so far, in order.
    pub(super) fn calls(&self) -> Vec<String> {
        self.node.state().calls.clone()
    }

    /// Forgets the calls so far.
    pub(super) fn forget_calls(&self) {
        self.node.state().calls.clear();
    }

    /// The name of a registered plugin's socket.
    pub(super) fn endpoint(&self, resource: &str) -> Option<String> {
        self.node.state().plugins.get(resource).map(|plugin| plugin.endpoint.clone())
    }

    /// The devices that it was told last.
    pub(super) fn devices(&self, resource: &str) -> Vec<Device> {
        self.node.state().plugins.get(resource).map(|plugin| plugin.devices.clone()).unwrap_or_default()
    }

    /// Waits until it knows devices of which this is so.
    pub(super) fn wait_for(&self, resource: &str, what: impl Fn(&[Device]) -> bool) -> Vec<Device> {
        wait(|| {
            let devices = self.devices(resource);
            (!devices.is_empty() && what(&devices)).then_some(devices)
        })
    }

    /// Admits a container of a pod, which wants so many devices: the same way, in the same order. `reused` are those of init
    /// containers of the same pod. `Err`: the pod is not admitted.
    pub(super) fn admit(
        &self,
        pod: &str,
        container: &str,
        (resource, count): (&str, usize),
        reused: &[String],
    ) -> Result<Container, String> {
        let (mut client, mut available, must) = {
            let state = self.node.state();
            let plugin = state.plugins.get(resource).ok_or("no such plugin is registered")?;
            let taken: BTreeSet<&String> = state.containers.values().flat_map(|c| &c.devices).collect();
            let healthy = plugin.devices.iter().filter(|device| device.health == "Healthy");
            let ids = healthy.map(|device| &device.id);
            let free: Vec<String> = ids.filter(|id| !taken.contains(id)).cloned().collect();
            let must: Vec<String> = reused.iter().take(count).cloned().collect();
            (plugin.client.clone(), [free, must.clone()].concat(), must)
        };
        if available.len() < count {
            return Err(format!("{count} devices are wanted, and {} are there", available.len()));
        }
        let run = |call: &str| self.node.called(call);
        let runtime = self.runtime.as_ref().ok_or("it is stopped")?;
        let devices = if available.len() == count || must.len() == count {
            // No choice is left.
            if must.len() == count { must } else { available }
        } else {
            run("GetPreferredAllocation");
            let asked = ContainerPreferredAllocationRequest {
                available_device_i_ds: available.clone(),
                must_include_device_i_ds: must.clone(),
                allocation_size: i32::try_from(count).expect("few"),
            };
            let request = PreferredAllocationRequest { container_requests: vec![asked] };
            let answer = runtime.block_on(client.get_preferred_allocation(request));
            let answer = answer.map_err(|status| status.to_string())?.into_inner();
            let preferred = answer.container_responses.into_iter().flat_map(|c| c.device_i_ds);
            // It takes of the answer what can be given, and what is missing itself.
            let mut chosen = must;
            for id in preferred.chain(std::mem::take(&mut available)) {
                if chosen.len() < count && !chosen.contains(&id) {
                    chosen.push(id);
                }
            }
            chosen
        };
        run("Allocate");
        let asked = ContainerAllocateRequest { devices_ids: devices.clone() };
        let answer = runtime.block_on(client.allocate(AllocateRequest { container_requests: vec![asked] }));
        let answer = answer.map_err(|status| status.to_string())?.into_inner();
        let told = answer.container_responses.into_iter().next().ok_or("an answer for each container")?;
        let given = Container { resource: resource.to_owned(), devices, told };
        self.node.state().containers.insert((pod.to_owned(), container.to_owned()), given.clone());
        Ok(given)
    }

    /// Ends a pod.
    pub(super) fn remove(&self, pod: &str) {
        self.node.state().containers.retain(|(of, _), _| of != pod);
    }
}

impl Drop for Kubelet {
    fn drop(&mut self) {
        self.stop();
    }
}

/// Waits until something is there.
pub(super) fn wait<T>(mut what: impl FnMut() -> Option<T>) -> T {
    let start = Instant::now();
    loop {
        if let Some(found) = what() {
            return found;
        }
        assert!(start.elapsed() < PATIENCE, "it does not come");
        thread::sleep(Duration::from_millis(20));
    }
}

impl Node {
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn called(&self, call: &str) {
        self.state().calls.push(call.to_owned());
    }

    /// Follows the plugin's devices, as long as it tells them and nobody takes its place.
    async fn watch(self: Arc<Self>, request: RegisterRequest, manner: Manner) {
        let RegisterRequest { endpoint, resource_name, .. } = request;
        let client = || Some(self.state().plugins.get(&resource_name)?.client.clone());
        let Some(mut client) = client() else { return };
        self.called("ListAndWatch");
        let Ok(stream) = client.list_and_watch(Empty {}).await else { return };
        let mut stream = stream.into_inner();
        while let Ok(Some(list)) = stream.message().await {
            let mut state = self.state();
            match state.plugins.get_mut(&resource_name) {
                Some(plugin) if plugin.endpoint == endpoint => plugin.devices = list.devices,
                _ => return,
            }
            if manner == Manner::Fickle {
                break;
            }
        }
        // Its devices are not there any more.
        let mut state = self.state();
        let devices = state.plugins.get_mut(&resource_name).filter(|plugin| plugin.endpoint == endpoint);
        for device in devices.into_iter().flat_map(|plugin| &mut plugin.devices) {
            device.health = "Unhealthy".to_owned();
        }
    }
}

/// Connects as a kubelet does: not for ever.
async fn connected(path: &Path) -> Result<Channel, Status> {
    let endpoint = Endpoint::from_shared(format!("unix:{}", path.display()))
        .map_err(|error| Status::invalid_argument(error.to_string()))?;
    endpoint
        .connect_timeout(Duration::from_secs(10))
        .connect()
        .await
        .map_err(|error| Status::unavailable(format!("failed to dial device plugin: {error}")))
}

#[tonic::async_trait]
impl Registration for Door {
    async fn register(&self, request: Request<RegisterRequest>) -> Result<Response<Empty>, Status> {
        let request = request.into_inner();
        self.0.called("Register");
        let manner = self.0.state().manner;
        if manner == Manner::Refusing {
            return Err(Status::unknown("the ResourceName is invalid"));
        }
        if request.version != "v1beta1" || !request.resource_name.contains('/') {
            return Err(Status::unknown("requested API version or resource name is not supported"));
        }
        // It has to serve by now.
        let mut client = DevicePluginClient::new(connected(&self.0.plugins.join(&request.endpoint)).await?);
        self.0.called("GetDevicePluginOptions");
        let options = client.get_device_plugin_options(Empty {}).await?.into_inner();
        if !options.get_preferred_allocation_available {
            return Err(Status::internal("this plugin has preferences"));
        }
        let plugin = Plugin { endpoint: request.endpoint.clone(), client, devices: Vec::new() };
        self.0.state().plugins.insert(request.resource_name.clone(), plugin);
        if manner == Manner::Slow {
            tokio::time::sleep(Duration::from_secs(1)).await;
        }
        if manner != Manner::Forgetful {
            let node = Arc::clone(&self.0);
            tokio::spawn(async move {
                if manner == Manner::Slow {
                    tokio::time::sleep(Duration::from_secs(1)).await;
                }
                node.watch(request, manner).await;
            });
        }
        Ok(Response::new(Empty {}))
    }
}

#[tonic::async_trait]
impl PodResourcesLister for Door {
    async fn list(
        &self,
        _: Request<ListPodResourcesRequest>,
    ) -> Result<Response<ListPodResourcesResponse>, Status> {
        let state = self.0.state();
        let mut pods: BTreeMap<&str, PodResources> = BTreeMap::new();
        for ((pod, name), container) in &state.containers {
            let entry = pods.entry(pod).or_insert_with(|| PodResources {
                name: pod.clone(),
                namespace: "default".to_owned(),
                containers: Vec::new(),
            });
            // One entry for each NUMA node, in no order; here, for each device.
            let devices = container.devices.iter().rev().map(|id| ContainerDevices {
                resource_name: container.resource.clone(),
                device_ids: vec![id.clone()],
                topology: None,
            });
            let other = ContainerDevices {
                resource_name: "example.com/gpu".to_owned(),
                device_ids: vec!["core-0".to_owned()],
                topology: None,
            };
            entry.containers.push(ContainerResources {
                name: name.clone(),
                devices: devices.chain([other]).collect(),
                ..ContainerResources::default()
            });
        }
        Ok(Response::new(ListPodResourcesResponse { pod_resources: pods.into_values().collect() }))
    }

    async fn get_allocatable_resources(
        &self,
        _: Request<AllocatableResourcesRequest>,
    ) -> Result<Response<AllocatableResourcesResponse>, Status> {
        let state = self.0.state();
        let of_plugin = |(resource, plugin): (&String, &Plugin)| ContainerDevices {
            resource_name: resource.clone(),
            device_ids: plugin.devices.iter().map(|device| device.id.clone()).collect(),
            topology: None,
        };
        let devices = state.plugins.iter().map(of_plugin).collect();
        Ok(Response::new(AllocatableResourcesResponse {
            devices,
            cpu_ids: state.cpus.iter().rev().copied().collect(),
            memory: Vec::new(),
        }))
    }

    async fn get(
        &self,
        _: Request<GetPodResourcesRequest>,
    ) -> Result<Response<GetPodResourcesResponse>, Status> {
        Err(Status::unimplemented("the feature gate is off"))
    }
}
