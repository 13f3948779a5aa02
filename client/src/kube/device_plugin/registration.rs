//! The kubelet knows the plugin, whatever becomes of the kubelet and its folder.
//!
//! A kubelet that starts empties its folder and makes `kubelet.sock` anew; it forgets every plugin. So the plugin looks, twice a
//! second, whether both sockets are the ones they were. It registers again too if the kubelet does not watch its devices any
//! more: it has dropped the plugin for reasons of its own.

use std::{
    convert::Infallible,
    path::{Path, PathBuf},
    sync::Arc,
    time::{Duration, Instant},
};

use berth_proto::kubelet::device_plugin::{RegisterRequest, registration_client::RegistrationClient};
use tokio::time::sleep;

use super::{
    Plugin,
    service::{OPTIONS, Service},
    socket::{Inode, Socket},
};
use crate::{
    address::Address,
    connection::Connection,
    kube::kubelet::{REGISTRATION, Unheard},
};

/// How often it is looked whether all is as it was.
const LOOK: Duration = Duration::from_millis(500);
/// How long a kubelet may take to answer. It connects to the plugin before it does.
const PATIENCE: Duration = Duration::from_secs(10);
/// How long after it has registered, or after the kubelet has stopped watching, the plugin waits to be watched.
const UNWATCHED: Duration = Duration::from_secs(3);
/// The pause after a first failure, which doubles with each that follows, and the longest.
const PAUSES: (Duration, Duration) = (Duration::from_secs(1), Duration::from_secs(30));

/// The plugin's standing with the kubelet.
#[derive(Debug)]
pub(super) struct Registration {
    plugin: Arc<Plugin>,
    folder: PathBuf,
    pub(super) socket: Option<Socket>,
    /// The kubelet that knows the plugin.
    known_to: Option<Inode>,
    /// Since when nobody has watched, as far as it is known to a kubelet.
    unwatched_since: Option<Instant>,
    /// Not before this.
    next: Instant,
    pause: Duration,
}

impl Registration {
    pub(super) fn new(plugin: Arc<Plugin>, folder: PathBuf) -> Self {
        Self {
            plugin,
            folder,
            socket: None,
            known_to: None,
            unwatched_since: None,
            next: Instant::now(),
            pause: PAUSES.0,
        }
    }

    /// Keeps the plugin registered.
    pub(super) async fn keep(&mut self) -> Infallible {
        loop {
            // Without devices a kubelet would think that they are gone.
            if self.plugin.devices.borrow().is_some() {
                self.look().await;
            }
            sleep(LOOK).await;
        }
    }

    async fn look(&mut self) {
        if self.socket.as_ref().is_none_or(|socket| !socket.is_there()) {
            if let Some(lost) = self.socket.take() {
                self.plugin.log.say(&format!("{} is gone: the folder was emptied", lost.path().display()));
                self.start_over();
            }
            self.serve();
        }
        let kubelet = Inode::of(&self.folder.join(REGISTRATION));
        if self.known_to.is_some() && kubelet != self.known_to {
            let what = if kubelet.is_some() { "is another one" } else { "is gone" };
            self.plugin.log.say(&format!("{REGISTRATION} {what}: the kubelet was started anew, or stopped"));
            self.start_over();
        }
        self.look_for_watchers();
        if let (Some(kubelet), None, Some(socket)) = (kubelet, self.known_to, &self.socket)
            && self.next <= Instant::now()
        {
            let registered = register(&self.plugin, &self.folder, socket).await;
            self.next = Instant::now() + self.pause;
            self.pause = (self.pause * 2).min(PAUSES.1);
            self.unwatched_since = None;
            match registered {
                Ok(()) => {
                    self.known_to = Some(kubelet);
                    _ = self.plugin.log.is_well("registering");
                    self.plugin.log.say(&format!("registered {} with the kubelet", self.plugin.resource));
                }
                Err(error) => self.plugin.log.once("registering", &format!("not registered: {error}")),
            }
        }
    }

    /// Whatever knew the plugin is not there any more; what comes has refused nothing yet.
    fn start_over(&mut self) {
        (self.known_to, self.pause, self.next) = (None, PAUSES.0, Instant::now());
    }

    fn serve(&mut self) {
        let service = Service(Arc::clone(&self.plugin));
        match Socket::serve(&self.folder, &self.plugin.resource, service) {
            Ok(socket) => {
                _ = self.plugin.log.is_well("serving");
                self.plugin.log.say(&format!(
                    "serving {} at {}",
                    self.plugin.resource,
                    socket.path().display()
                ));
                self.socket = Some(socket);
            }
            Err(error) => {
                let said = format!("no socket can be made in {}: {error}", self.folder.display());
                self.plugin.log.once("serving", &said);
            }
        }
    }

    /// Registers anew if the kubelet knows the plugin and does not watch it.
    fn look_for_watchers(&mut self) {
        if self.known_to.is_none() {
            return;
        }
        if self.plugin.watchers.any() {
            self.unwatched_since = None;
            // It has been well for longer than a pause.
            if self.next + PAUSES.1 < Instant::now() {
                self.pause = PAUSES.0;
            }
            return;
        }
        let since = *self.unwatched_since.get_or_insert_with(Instant::now);
        // Longer each time, should it be slow.
        if since.elapsed() >= UNWATCHED.max(self.pause) {
            self.plugin.log.say("the kubelet does not watch the devices: registering again");
            self.known_to = None;
        }
    }
}

async fn register(plugin: &Plugin, folder: &Path, socket: &Socket) -> Result<(), Unheard> {
    let request = RegisterRequest {
        version: "v1beta1".to_owned(),
        endpoint: socket.name(),
        resource_name: plugin.resource.to_string(),
        options: Some(OPTIONS),
    };
    let kubelet = Connection::new(Address::Unix(folder.join(REGISTRATION)), None, PATIENCE);
    kubelet
        .ask(request, async |channel, request| RegistrationClient::new(channel).register(request).await)
        .await
        .map(drop)
        .map_err(Unheard)
}
