//! What pods have, from time to time: by that holds are renewed, and let go.

use std::{convert::Infallible, time::Duration};

use berth_model::CpuSet;
use berth_proto::kubelet::pod_resources::PodResources;
use tokio::time::sleep;

use super::{Plugin, device::Devices, holds::Given};
use crate::kube::kubelet::{Allocatable, Kubelet};

/// Asks the kubelet again and again.
pub(super) async fn keep(plugin: &Plugin, kubelet: &Kubelet, every: Duration, grace: Duration) -> Infallible {
    loop {
        look(plugin, kubelet, grace).await;
        sleep(every).await;
    }
}

async fn look(plugin: &Plugin, kubelet: &Kubelet, grace: Duration) {
    let allocatable = match kubelet.allocatable().await {
        Ok(Allocatable { cpus, .. }) => Some(cpus),
        Err(error) => {
            // Older kubelets do not know the question.
            plugin.log.once("allocatable", &format!("which CPUs the kubelet reserves is not known: {error}"));
            None
        }
    };
    plugin.learn(|catalogue| catalogue.allocatable(allocatable));
    // Asked before the holds are: what a pod has was held, or was tried to be, before the kubelet lists it.
    let pods = kubelet.pods().await;
    let Some(devices) = plugin.devices.borrow().clone() else { return };
    let containers = match pods {
        Ok(pods) => {
            if plugin.log.is_well("pods") {
                plugin.log.say("the kubelet tells again what pods have");
            }
            Some(containers(&pods, plugin.resource.as_str(), &devices))
        }
        Err(error) => {
            let said = format!("what pods have is not known, and nothing is let go: {error}");
            plugin.log.once("pods", &said);
            None
        }
    };
    let settled = plugin.holds.settle(containers.as_deref(), grace).await;
    settled.done.iter().for_each(|said| plugin.log.say(said));
    match settled.failed {
        Some(error) => plugin.log.once("holds", &format!("not all is held as it should be: {error}")),
        None => _ = plugin.log.is_well("holds"),
    }
}

/// What each container has of this resource.
fn containers(pods: &[PodResources], resource: &str, devices: &Devices) -> Vec<Given> {
    let of_pod = |pod: &PodResources| {
        let container = |container: &berth_proto::kubelet::pod_resources::ContainerResources| {
            let ids = container.devices.iter().filter(|devices| devices.resource_name == resource);
            let ids: Vec<String> = ids.flat_map(|devices| devices.device_ids.iter().cloned()).collect();
            let known = ids.iter().filter_map(|id| devices.get(id));
            let cpus = known.fold(CpuSet::new(), |all, device| all.union(&device.online));
            let container = format!("{}/{}/{}", pod.namespace, pod.name, container.name);
            (!cpus.is_empty()).then_some(Given { devices: ids, cpus, container })
        };
        pod.containers.iter().filter_map(container).collect::<Vec<_>>()
    };
    pods.iter().flat_map(of_pod).collect()
}
