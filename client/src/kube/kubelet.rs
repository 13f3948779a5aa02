//! The kubelet of this node, as far as it tells of its pods.

use std::{collections::BTreeMap, fmt, path::Path, time::Duration};

use berth_model::{Cpu, CpuSet};
use berth_proto::kubelet::pod_resources::{
    AllocatableResourcesRequest, ContainerDevices, ListPodResourcesRequest, PodResources,
    pod_resources_lister_client::PodResourcesListerClient,
};
use tonic::{Request, Response, Status, transport::Channel};

use super::status::Fact;
use crate::{
    Error,
    address::Address,
    cli::KubeletArgs,
    connection::{Connection, MAX_ANSWER},
};

/// The name of the socket at which device plugins register.
pub(super) const REGISTRATION: &str = "kubelet.sock";

/// Whom to ask what pods have.
#[derive(Debug, Clone)]
pub(super) struct Kubelet {
    connection: Connection,
}

/// What can be given to pods, in use or not.
#[derive(Debug, Clone, Default)]
pub(super) struct Allocatable {
    /// Devices of all plugins.
    pub(super) devices: Vec<ContainerDevices>,
    /// CPUs that are not reserved for the system. Empty: it does not tell.
    pub(super) cpus: CpuSet,
}

/// Why there is no answer.
#[derive(Debug)]
pub(super) struct Unheard(pub(super) Error);

impl fmt::Display for Unheard {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.0 {
            Error::Unreachable { address, cause, .. } => {
                write!(f, "no kubelet answers at {address}: {cause}")
            }
            Error::Refused { status, .. } => write!(f, "the kubelet refuses: {}", status.message()),
            other => write!(f, "{other}"),
        }
    }
}

impl Kubelet {
    /// The one whose pod-resources socket this is, with so much patience.
    pub(super) fn at(socket: &Path, limit: Duration) -> Self {
        Self { connection: Connection::new(Address::Unix(socket.to_owned()), None, limit) }
    }

    /// What each pod has.
    pub(super) async fn pods(&self) -> Result<Vec<PodResources>, Unheard> {
        let listed = self
            .ask(ListPodResourcesRequest {}, async |channel, request| client(channel).list(request).await);
        Ok(listed.await?.pod_resources)
    }

    /// What can be given to pods.
    pub(super) async fn allocatable(&self) -> Result<Allocatable, Unheard> {
        let told = self.ask(AllocatableResourcesRequest {}, async |channel, request| {
            client(channel).get_allocatable_resources(request).await
        });
        let told = told.await?;
        let cpu = |&id: &i64| u32::try_from(id).ok().and_then(Cpu::try_new);
        Ok(Allocatable { cpus: told.cpu_ids.iter().filter_map(cpu).collect(), devices: told.devices })
    }

    async fn ask<Q, A>(
        &self,
        question: Q,
        call: impl AsyncFnOnce(Channel, Request<Q>) -> Result<Response<A>, Status>,
    ) -> Result<A, Unheard> {
        self.connection.ask(question, call).await.map_err(Unheard)
    }
}

fn client(channel: Channel) -> PodResourcesListerClient<Channel> {
    PodResourcesListerClient::new(channel).max_decoding_message_size(MAX_ANSWER)
}

/// Whether the kubelet is there, and what it tells.
pub(super) async fn facts(args: &KubeletArgs, limit: Duration) -> Vec<Fact> {
    const ABOUT: &str = "kubelet";
    let kubelet = Kubelet::at(&args.pod_resources, limit);
    let (pods, allocatable) = (kubelet.pods().await, kubelet.allocatable().await);
    let known = allocatable.as_ref().map(|told| resources(&told.devices)).unwrap_or_default();
    let pods = match pods {
        Ok(pods) => Fact::good(ABOUT, format!("answers: {} pods", pods.len())),
        Err(error) => Fact::bad(ABOUT, error.to_string()),
    };
    let cpus = match allocatable {
        Ok(told) if told.cpus.is_empty() => {
            Fact::good("its CPUs", "not told: it reserves none, or its CPU manager does not pin")
        }
        Ok(told) => Fact::good("its CPUs", format!("{} may be given to pods", told.cpus)),
        Err(_) => Fact::doubtful("its CPUs", "not known"),
    };
    let door = args.plugin_dir.join(REGISTRATION);
    let plugins = if door.exists() {
        Fact::good("plugins", format!("register at {}{known}", door.display()))
    } else {
        Fact::bad("plugins", format!("cannot register: there is no {}", door.display()))
    };
    vec![pods, cpus, plugins]
}

/// How many devices of each resource there are.
fn resources(devices: &[ContainerDevices]) -> String {
    let mut counts: BTreeMap<&str, usize> = BTreeMap::new();
    for devices in devices {
        *counts.entry(&devices.resource_name).or_default() += devices.device_ids.len();
    }
    counts.iter().map(|(resource, count)| format!("; {resource}: {count}")).collect()
}
