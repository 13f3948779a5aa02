//! What the kubelet calls.

use std::{
    collections::BTreeMap,
    pin::Pin,
    sync::Arc,
    time::{Duration, Instant},
};

use berth_model::CpuSet;
use berth_proto::{
    kubelet::device_plugin::{
        AllocateRequest, AllocateResponse, ContainerAllocateResponse, ContainerPreferredAllocationResponse,
        DevicePluginOptions, Empty, ListAndWatchResponse, PreStartContainerRequest,
        PreStartContainerResponse, PreferredAllocationRequest, PreferredAllocationResponse,
        device_plugin_server::DevicePlugin,
    },
    v1::placement_service_client::PlacementServiceClient,
};
use tokio::time::timeout;
use tokio_stream::{Stream, StreamExt as _, wrappers::WatchStream};
use tonic::{Request, Response, Status};

use super::{
    Plugin,
    choice::Wish,
    device::{Device, Devices},
    environment,
    holds::Given,
};
use crate::{Error, connection::MAX_ANSWER, kube::HOLD_ANNOTATION};

/// Of more devices than this the log tells the number.
const FEW: usize = 8;

/// What the plugin wants to be asked.
pub(super) const OPTIONS: DevicePluginOptions =
    DevicePluginOptions { pre_start_required: false, get_preferred_allocation_available: true };

/// The plugin as the kubelet sees it.
#[derive(Debug, Clone)]
pub(super) struct Service(pub(super) Arc<Plugin>);

#[tonic::async_trait]
impl DevicePlugin for Service {
    type ListAndWatchStream = Pin<Box<dyn Stream<Item = Result<ListAndWatchResponse, Status>> + Send>>;

    async fn get_device_plugin_options(
        &self,
        _: Request<Empty>,
    ) -> Result<Response<DevicePluginOptions>, Status> {
        Ok(Response::new(OPTIONS))
    }

    async fn list_and_watch(&self, _: Request<Empty>) -> Result<Response<Self::ListAndWatchStream>, Status> {
        let watching = self.0.watchers.one_more();
        let told = WatchStream::new(self.0.devices.subscribe())
            // There are none any more: the plugin stops.
            .map_while(|devices| devices)
            .map(move |devices| {
                let _ = &watching;
                Ok(ListAndWatchResponse { devices: devices.iter().map(Device::to_wire).collect() })
            });
        Ok(Response::new(Box::pin(told)))
    }

    async fn get_preferred_allocation(
        &self,
        request: Request<PreferredAllocationRequest>,
    ) -> Result<Response<PreferredAllocationResponse>, Status> {
        let devices = self.0.known()?;
        let mut container_responses = Vec::new();
        let start = Instant::now();
        for asked in request.into_inner().container_requests {
            let wish = Wish::new(
                &devices,
                &asked.available_device_i_ds,
                &asked.must_include_device_i_ds,
                asked.allocation_size,
                self.0.policy,
            );
            let device_i_ds = self.0.choose(wish, self.0.deadline.saturating_sub(start.elapsed())).await;
            container_responses.push(ContainerPreferredAllocationResponse { device_i_ds });
        }
        Ok(Response::new(PreferredAllocationResponse { container_responses }))
    }

    async fn allocate(
        &self,
        request: Request<AllocateRequest>,
    ) -> Result<Response<AllocateResponse>, Status> {
        let devices = self.0.known()?;
        let containers = request.into_inner().container_requests;
        // All or none: the pod fails with the first that cannot be given.
        let containers: Vec<Vec<&Device>> =
            containers.iter().map(|asked| given(&devices, &asked.devices_ids)).collect::<Result<_, _>>()?;
        let mut container_responses = Vec::new();
        let start = Instant::now();
        for container in containers {
            container_responses
                .push(self.0.give(&container, self.0.deadline.saturating_sub(start.elapsed())).await);
        }
        Ok(Response::new(AllocateResponse { container_responses }))
    }

    async fn pre_start_container(
        &self,
        _: Request<PreStartContainerRequest>,
    ) -> Result<Response<PreStartContainerResponse>, Status> {
        Ok(Response::new(PreStartContainerResponse {}))
    }
}

/// The devices of these ids, all of which must be there and healthy.
fn given<'a>(devices: &'a Devices, ids: &[String]) -> Result<Vec<&'a Device>, Status> {
    let device = |id: &String| match devices.get(id) {
        Some(device) if device.is_healthy() => Ok(device),
        Some(_) => {
            Err(Status::failed_precondition(format!("{id} has no CPU online; expected another device")))
        }
        None => {
            let shown: String = id.chars().take(80).collect();
            Err(Status::not_found(format!("there is no device {shown}; expected one of ListAndWatch")))
        }
    };
    ids.iter().map(device).collect()
}

impl Plugin {
    /// The devices of the moment.
    fn known(&self) -> Result<Arc<Devices>, Status> {
        let none = || Status::unavailable("berthd has not told the topology yet");
        self.devices.borrow().clone().ok_or_else(none)
    }

    /// What one container should get: by berthd's advice, if that comes in time.
    async fn choose(&self, wish: Wish<'_>, limit: Duration) -> Vec<String> {
        if !wish.is_open() {
            return wish.settled();
        }
        let connection = self.connection.within(limit);
        let asked = connection.ask(wish.question(), async |channel, request| {
            let mut client = PlacementServiceClient::new(channel).max_decoding_message_size(MAX_ANSWER);
            client.advise(request).await
        });
        let advised = match asked.await {
            Ok(response) => wish.clone().advised(&response),
            Err(error) => Err(error.to_string()),
        };
        match advised {
            Ok(ids) => ids,
            Err(why) => {
                self.log.say(&format!("devices are chosen by the topology alone: {why}"));
                wish.by_place()
            }
        }
    }

    /// Holds what one container is given, and says what it finds of that.
    async fn give(&self, devices: &[&Device], limit: Duration) -> ContainerAllocateResponse {
        let cpus = devices.iter().fold(CpuSet::new(), |all, device| all.union(&device.online));
        if cpus.is_empty() {
            return ContainerAllocateResponse::default();
        }
        let ids: Vec<String> = devices.iter().map(|device| device.id.clone()).collect();
        let named = if ids.len() <= FEW { ids.join(" ") } else { format!("{} devices", ids.len()) };
        let given = Given { devices: ids, cpus, container: String::new() };
        let late = || Error::Timeout { address: self.connection.address().clone(), limit };
        let held = timeout(limit, self.holds.hold(&given)).await.unwrap_or_else(|_| Err(late()));
        match held {
            Ok(hold) => {
                self.log.say(&format!("given: {named}; CPUs {} are held ({})", hold.cpus, hold.id));
                ContainerAllocateResponse {
                    envs: environment::of(&hold, self.enforced),
                    annotations: BTreeMap::from([(HOLD_ANNOTATION.to_owned(), hold.id)]),
                    ..ContainerAllocateResponse::default()
                }
            }
            Err(why) => {
                self.log.say(&format!("given: {named}, and not held yet: {why}"));
                ContainerAllocateResponse::default()
            }
        }
    }
}
