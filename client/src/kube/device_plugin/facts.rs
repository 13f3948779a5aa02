//! What `berth kube status` says of device plugins.

use std::{fs, path::PathBuf};

use berth_proto::kubelet::device_plugin::{Device, Empty, device_plugin_client::DevicePluginClient};

use super::{holds::Holds, socket::stem};
use crate::{
    address::Address,
    cli::{KubeStatus, Resource},
    command::Asker,
    connection::{Connection, MAX_ANSWER, Next},
    kube::{
        kubelet::{Kubelet, Unheard},
        status::Fact,
    },
};

const ABOUT: &str = "device plugin";

/// Whether plugins of these resources serve, what the kubelet knows of them, and what is held.
pub(in crate::kube) async fn facts(args: &KubeStatus, asker: &Asker) -> Vec<Fact> {
    let mut facts = Vec::new();
    for resource in args.resources() {
        for socket in sockets(args, &resource) {
            facts.push(plugin(&resource, socket, asker).await);
            facts.push(kubelet(&resource, args, asker).await);
            facts.push(held(&resource, asker).await);
        }
    }
    if facts.is_empty() {
        let said = format!("none: no socket of one in {}", args.kubelet.plugin_dir.display());
        facts.push(Fact::doubtful(ABOUT, said));
    }
    facts
}

fn sockets(args: &KubeStatus, resource: &Resource) -> Vec<PathBuf> {
    let stem = stem(resource);
    let files = fs::read_dir(&args.kubelet.plugin_dir).into_iter().flatten().flatten();
    let is_ours = |path: &PathBuf| {
        path.file_name()
            .and_then(|name| name.to_str())
            .is_some_and(|name| name.starts_with(&stem) && name.ends_with(".sock"))
    };
    files.map(|file| file.path()).filter(is_ours).collect()
}

/// Whether the plugin answers as a kubelet would be answered.
async fn plugin(resource: &Resource, socket: PathBuf, asker: &Asker) -> Fact {
    let connection = Connection::new(Address::Unix(socket.clone()), None, asker.connection.limit());
    let mut devices: Vec<Device> = Vec::new();
    let listed = connection.follow(
        Empty {},
        async |channel, request| {
            DevicePluginClient::new(channel)
                .max_decoding_message_size(MAX_ANSWER)
                .list_and_watch(request)
                .await
        },
        |message: berth_proto::kubelet::device_plugin::ListAndWatchResponse| {
            devices = message.devices;
            Ok(Next::Stop)
        },
    );
    match listed.await {
        Ok(()) => {
            let healthy = devices.iter().filter(|device| device.health == "Healthy").count();
            let at = socket.display();
            let said =
                format!("serves {resource} at {at}: {healthy} of {} devices are healthy", devices.len());
            Fact::good(ABOUT, said)
        }
        Err(error) => Fact::bad(ABOUT, format!("silent at {}: {error}", socket.display())),
    }
}

/// What the kubelet knows of the resource.
async fn kubelet(resource: &Resource, args: &KubeStatus, asker: &Asker) -> Fact {
    const ABOUT: &str = "its devices";
    let kubelet = Kubelet::at(&args.kubelet.pod_resources, asker.connection.limit());
    let told: Result<_, Unheard> = async { Ok((kubelet.allocatable().await?, kubelet.pods().await?)) }.await;
    let (allocatable, pods) = match told {
        Ok(told) => told,
        Err(error) => return Fact::doubtful(ABOUT, error.to_string()),
    };
    let count = |devices: &[berth_proto::kubelet::pod_resources::ContainerDevices]| -> usize {
        let ours = devices.iter().filter(|devices| devices.resource_name == resource.as_str());
        ours.map(|devices| devices.device_ids.len()).sum()
    };
    let known = count(&allocatable.devices);
    let used: usize =
        pods.iter().flat_map(|pod| &pod.containers).map(|container| count(&container.devices)).sum();
    if known == 0 {
        return Fact::bad(ABOUT, "unknown to the kubelet: the plugin is not registered");
    }
    Fact::good(ABOUT, format!("known to the kubelet: {known}, {used} of them some pod's"))
}

/// What is held for pods.
async fn held(resource: &Resource, asker: &Asker) -> Fact {
    const ABOUT: &str = "its holds";
    let holds = Holds::new(asker.connection.clone(), resource.clone(), std::time::Duration::ZERO);
    match holds.list("").await {
        Ok(holds) => Fact::good(ABOUT, format!("kept by berthd: {}", holds.len())),
        Err(error) => Fact::doubtful(ABOUT, error.to_string()),
    }
}
