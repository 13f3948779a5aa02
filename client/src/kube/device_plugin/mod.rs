//! `berth kube device-plugin`: cores or last-level caches as devices of a kubelet.
//!
//! [`device`] makes devices of the topology that berthd tells, [`service`] is what the kubelet calls, on a [`socket`] that
//! [`registration`] keeps known to it. Which devices a container should get is a [`choice`]; what it was given is kept by
//! [`holds`], for as long as [`pods`] have it.

mod choice;
mod device;
mod environment;
mod facts;
mod holds;
mod log;
mod pods;
mod registration;
mod service;
mod socket;
mod watchers;

use std::{
    convert::Infallible,
    io,
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

use berth_proto::v1::{WatchTopologyRequest, topology_service_client::TopologyServiceClient, view};
use tokio::{
    signal::unix::{SignalKind, signal},
    sync::watch,
    time::{sleep, timeout},
};

pub(super) use facts::facts;

use self::{
    device::{Catalogue, Devices},
    holds::Holds,
    log::Log,
    registration::Registration,
    watchers::Watchers,
};
use super::kubelet::Kubelet;
use crate::{
    Error,
    cli::{DevicePlugin, Policy, Resource},
    command::{Answer, Asker},
    connection::{Connection, MAX_ANSWER, Next},
};

/// The pause before berthd is asked again that was not there.
const AGAIN: Duration = Duration::from_secs(1);
/// How long calls that are being answered may take when the plugin is to end.
const TO_END: Duration = Duration::from_secs(1);

/// What all parts share.
#[derive(Debug)]
struct Plugin {
    connection: Connection,
    /// How long one call of the kubelet takes at most.
    deadline: Duration,
    resource: Resource,
    policy: Policy,
    enforced: bool,
    catalogue: Mutex<Catalogue>,
    /// The devices. `None`: not known yet, or the plugin ends.
    devices: watch::Sender<Option<Arc<Devices>>>,
    watchers: Watchers,
    holds: Holds,
    log: Log,
}

/// Runs until it is told to end.
pub(super) async fn run(args: &DevicePlugin, asker: &Asker) -> Result<Answer, Error> {
    let (mut term, mut int) = signals().map_err(Error::Runtime)?;
    let resource = args.resource.clone().unwrap_or_else(|| Resource::usual(args.devices));
    let deadline = asker.connection.limit().min(args.deadline);
    let connection = asker.connection.within(deadline);
    let plugin = Arc::new(Plugin {
        holds: Holds::new(connection.clone(), resource.clone(), args.lease),
        connection,
        deadline,
        resource,
        policy: args.policy,
        enforced: args.enforced,
        catalogue: Mutex::new(Catalogue::new(
            args.devices,
            args.topology,
            args.reserved.clone().unwrap_or_default(),
        )),
        devices: watch::Sender::new(None),
        watchers: Watchers::default(),
        log: Log::default(),
    });
    let kubelet = Kubelet::at(&args.kubelet.pod_resources, asker.connection.limit());
    let mut registration = Registration::new(Arc::clone(&plugin), args.kubelet.plugin_dir.clone());
    // Nothing may end that is only looked at too seldom.
    let every = args.every.min(args.lease / 3);
    tokio::select! {
        never = plugin.follow(&asker.connection) => match never {},
        never = registration.keep() => match never {},
        never = pods::keep(&plugin, &kubelet, every, args.grace) => match never {},
        _ = term.recv() => {}
        _ = int.recv() => {}
    }
    // What containers have they keep, and so it stays held.
    plugin.devices.send_replace(None);
    if let Some(socket) = registration.socket.take() {
        _ = timeout(TO_END, socket.close()).await;
    }
    plugin.log.say("ended");
    Ok(Answer::of_this_command(String::new()))
}

fn signals() -> io::Result<(tokio::signal::unix::Signal, tokio::signal::unix::Signal)> {
    Ok((signal(SignalKind::terminate())?, signal(SignalKind::interrupt())?))
}

impl Plugin {
    /// Follows the topology, which berthd tells.
    async fn follow(&self, connection: &Connection) -> Infallible {
        loop {
            // Where it is not answered, leases are as long as was asked for.
            _ = self.holds.keep_to_limits().await;
            let request = WatchTopologyRequest { view: view::Value::Full.into() };
            let followed = connection.follow(
                request,
                async |channel, request| {
                    let mut client =
                        TopologyServiceClient::new(channel).max_decoding_message_size(MAX_ANSWER);
                    client.watch_topology(request).await
                },
                |message| {
                    if self.log.is_well("berthd") {
                        self.log.say("berthd answers again");
                    }
                    if let Some(topology) = &message.topology {
                        self.learn(|catalogue| catalogue.see(topology));
                    }
                    Ok(Next::GoOn)
                },
            );
            if let Err(error) = followed.await {
                let what = match &*self.devices.borrow() {
                    Some(_) => "the devices stay as they are",
                    None => "no devices are known yet",
                };
                self.log.once("berthd", &format!("{what}: {error}"));
            }
            sleep(AGAIN).await;
        }
    }

    /// Learns something of the host, and tells the kubelet if that changes the devices.
    fn learn(&self, learn: impl FnOnce(&mut Catalogue)) {
        let mut catalogue = self.catalogue.lock().unwrap_or_else(PoisonError::into_inner);
        learn(&mut catalogue);
        if !catalogue.is_ready() {
            return;
        }
        let devices = catalogue.devices();
        let (known, healthy) = (devices.len(), devices.healthy());
        let is_new = self.devices.send_if_modified(|told| {
            let is_new = told.as_ref() != Some(&devices);
            *told = Some(devices);
            is_new
        });
        if is_new {
            self.log.say(&format!("{healthy} of {known} devices of {} are healthy", self.resource));
        }
    }
}
