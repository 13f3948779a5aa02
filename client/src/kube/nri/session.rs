//! One connection to the runtime, from dialling to its end.

use std::{path::Path, time::Duration};

use berth_proto::nri::{RegisterPluginRequest, ttrpc::Request};
use prost::Message as _;
use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    net::UnixStream,
    time::{Instant, MissedTickBehavior, interval, sleep_until, timeout},
};

use super::{
    mux::{self, Connection, Frames},
    plugin::Plugin,
    say,
    ttrpc::{self, Message, Messages},
};

/// How long registration takes at most. The runtime takes plugins in one after the other, and gives each of them seconds.
const REGISTRATION_LIMIT: Duration = Duration::from_secs(10);
/// How long writing an answer takes at most: the runtime may have stopped reading.
const WRITE_LIMIT: Duration = Duration::from_secs(2);
/// How often holds are looked after.
const TENDING: Duration = Duration::from_secs(10);
/// The only call of this plugin, so the first of the odd numbers.
const REGISTRATION: u32 = 1;

/// As whom the plugin registers.
#[derive(Debug, Clone)]
pub(super) struct Name {
    /// Its place among plugins: two digits.
    pub(super) index: String,
    /// Its name.
    pub(super) name: String,
}

/// Why a connection ended.
#[derive(Debug, thiserror::Error)]
pub(super) enum End {
    /// Nobody listens.
    #[error("no runtime listens: {0}")]
    NoRuntime(std::io::Error),
    /// The socket broke.
    #[error("the connection broke: {0}")]
    Broken(#[from] std::io::Error),
    /// The runtime closed the connection.
    #[error("the runtime has closed the connection")]
    Closed,
    /// The runtime does not take the plugin.
    #[error("the runtime refuses the plugin: {0}")]
    Refused(String),
    /// Registration took too long.
    #[error("the runtime has not taken the plugin in within {REGISTRATION_LIMIT:?}")]
    Silent,
    /// The runtime does not read.
    #[error("the runtime has not read an answer within {WRITE_LIMIT:?}")]
    NotRead,
    /// What came are no frames.
    #[error(transparent)]
    Frame(#[from] mux::Error),
    /// What came are no messages.
    #[error(transparent)]
    Message(#[from] ttrpc::Error),
}

/// Registers at the runtime, and answers its calls until the connection ends.
pub(super) async fn run(socket: &Path, name: &Name, plugin: &mut Plugin) -> End {
    let stream = match UnixStream::connect(socket).await {
        Ok(stream) => stream,
        Err(error) => return End::NoRuntime(error),
    };
    // Processes of another namespace have no numbers here.
    let sees_processes = stream.peer_cred().is_ok_and(|runtime| runtime.pid().is_some_and(|pid| pid > 0));
    plugin.begin(sees_processes);
    let mut session = Session {
        stream,
        frames: Frames::default(),
        calls: Messages::default(),
        answers: Messages::default(),
    };
    let Err(end) = session.serve(name, plugin).await;
    end
}

#[derive(Debug)]
struct Session {
    stream: UnixStream,
    frames: Frames,
    /// Of the runtime.
    calls: Messages,
    /// To this plugin's registration.
    answers: Messages,
}

impl Session {
    async fn serve(&mut self, name: &Name, plugin: &mut Plugin) -> Result<std::convert::Infallible, End> {
        self.register(name).await?;
        let registered = Instant::now() + REGISTRATION_LIMIT;
        let mut tending = interval(TENDING);
        tending.set_missed_tick_behavior(MissedTickBehavior::Delay);
        loop {
            tokio::select! {
                biased;
                read = self.stream.read_buf(self.frames.buffer()) => {
                    if read? == 0 {
                        return Err(End::Closed);
                    }
                    self.take(plugin).await?;
                }
                () = sleep_until(registered), if !plugin.is_synchronized() => return Err(End::Silent),
                _ = tending.tick(), if plugin.is_synchronized() => self.tend(plugin).await,
            }
        }
    }

    /// Looks after holds, until the runtime calls.
    async fn tend(&self, plugin: &mut Plugin) {
        tokio::select! {
            biased;
            _ = self.stream.readable() => {}
            () = plugin.tend() => {}
        }
    }

    async fn register(&mut self, Name { index, name }: &Name) -> Result<(), End> {
        let plugin = RegisterPluginRequest {
            plugin_name: name.clone(),
            plugin_idx: index.clone(),
            nri_version: String::new(),
        };
        let request = Request {
            service: "nri.pkg.api.v1alpha1.Runtime".to_owned(),
            method: "RegisterPlugin".to_owned(),
            payload: plugin.encode_to_vec(),
            timeout_nano: i64::try_from(REGISTRATION_LIMIT.as_nanos()).unwrap_or(0),
        };
        self.write(Connection::Runtime, &Message::Call { stream: REGISTRATION, request }).await
    }

    /// Answers what has come. The runtime may call before it answers the registration.
    async fn take(&mut self, plugin: &mut Plugin) -> Result<(), End> {
        while let Some((connection, bytes)) = self.frames.next()? {
            match connection {
                Connection::Plugin => self.calls.take(&bytes),
                Connection::Runtime => self.answers.take(&bytes),
            }
            while let Some(message) = self.answers.next()? {
                heard(message)?;
            }
            while let Some(message) = self.calls.next()? {
                // An answer to a call that was never made is nothing to us.
                if let Message::Call { stream, request } = message {
                    let response = plugin.answer(&request).await;
                    self.write(Connection::Plugin, &Message::Answer { stream, response }).await?;
                }
            }
        }
        Ok(())
    }

    async fn write(&mut self, connection: Connection, message: &Message) -> Result<(), End> {
        let frames = mux::framed(connection, &message.to_bytes());
        timeout(WRITE_LIMIT, self.stream.write_all(&frames))
            .await
            .map_err(|_| End::NotRead)?
            .map_err(End::Broken)
    }
}

/// The answer to the registration.
fn heard(message: Message) -> Result<(), End> {
    match message {
        // A runtime that refuses leaves the connection open, and never says another word.
        Message::Answer { stream: REGISTRATION, response } => match response.status {
            Some(status) if status.code != 0 => Err(End::Refused(status.message)),
            _ => {
                say!("the runtime has answered the registration");
                Ok(())
            }
        },
        _ => Ok(()),
    }
}
