//! `berth watch`.

use berth_proto::v1::{
    WatchHoldsRequest, WatchLoadRequest, WatchTopologyRequest, hold_service_client::HoldServiceClient,
    load_service_client::LoadServiceClient, topology_service_client::TopologyServiceClient,
};
use prost::Message;

use super::{Answer, Asker, view};
use crate::{
    Error, Exit,
    cli::{Output, Until, WatchHolds, WatchLoad, WatchTopology, Watched},
    connection::{MAX_ANSWER, Next},
    json,
    out::{self, Reader},
    render::{self, Seen},
};

pub(super) async fn answer(what: &Watched, asker: &Asker) -> Result<Answer, Error> {
    match what {
        Watched::Holds(args) => holds(args, asker).await,
        Watched::Load(args) => load(args, asker).await,
        Watched::Topology(args) => topology(args, asker).await,
    }?;
    Ok(Answer { document: String::new(), warnings: Vec::new(), exit: Exit::Answered, asked: true })
}

async fn holds(args: &WatchHolds, asker: &Asker) -> Result<(), Error> {
    let mut seen = Seen::default();
    let mut teller = Teller::new("WatchHoldsResponse", &args.until, asker);
    let request = WatchHoldsRequest { uid: asker.whose(args.all, args.uid) };
    asker
        .connection
        .follow(
            request,
            async |channel, request| {
                let mut client = HoldServiceClient::new(channel).max_decoding_message_size(MAX_ANSWER);
                client.watch_holds(request).await
            },
            |message| teller.tell(&message, |message| seen.lines(message)),
        )
        .await
}

async fn load(args: &WatchLoad, asker: &Asker) -> Result<(), Error> {
    let mut teller = Teller::new("WatchLoadResponse", &args.until, asker);
    let request = WatchLoadRequest {
        cpus: args.cpus.clone().unwrap_or_default(),
        every: args.every.and_then(|every| every.try_into().ok()),
        view: view(args.full),
    };
    asker
        .connection
        .follow(
            request,
            async |channel, request| {
                let mut client = LoadServiceClient::new(channel).max_decoding_message_size(MAX_ANSWER);
                client.watch_load(request).await
            },
            |message| {
                teller.warn(&message.warnings);
                teller.tell(&message, render::sample)
            },
        )
        .await
}

async fn topology(args: &WatchTopology, asker: &Asker) -> Result<(), Error> {
    let mut teller = Teller::new("WatchTopologyResponse", &args.until, asker);
    let request = WatchTopologyRequest { view: view(args.full) };
    asker
        .connection
        .follow(
            request,
            async |channel, request| {
                let mut client = TopologyServiceClient::new(channel).max_decoding_message_size(MAX_ANSWER);
                client.watch_topology(request).await
            },
            |message| {
                teller.warn(&message.warnings);
                teller.tell(&message, render::generation)
            },
        )
        .await
}

/// Writes the messages of a stream as they come.
struct Teller<'a> {
    name: &'static str,
    left: Option<u64>,
    asker: &'a Asker,
    /// What was warned of last, not to be said with each message over again.
    warned: Vec<berth_proto::v1::Warning>,
}

impl<'a> Teller<'a> {
    fn new(name: &'static str, until: &Until, asker: &'a Asker) -> Self {
        Self { name, left: until.count, asker, warned: Vec::new() }
    }

    fn warn(&mut self, warnings: &[berth_proto::v1::Warning]) {
        if self.asker.output == Output::Table {
            let new = |warning: &&berth_proto::v1::Warning| {
                !self.warned.iter().any(|old| old.reason == warning.reason && old.cpus == warning.cpus)
            };
            let new: Vec<_> = warnings.iter().filter(new).cloned().collect();
            self.asker.warn(&new);
            self.warned = warnings.to_vec();
        }
    }

    fn tell<M: Message>(
        &mut self,
        message: &M,
        lines: impl FnOnce(&M) -> Vec<String>,
    ) -> Result<Next, Error> {
        let text = match self.asker.output {
            Output::Json => json::line(self.name, message)?,
            Output::Table => lines(message).into_iter().map(|line| line + "\n").collect(),
            Output::List => return Err(Error::NoList),
        };
        let reader = out::write(&text).map_err(Error::Output)?;
        self.left = self.left.map(|left| left - 1);
        Ok(if reader == Reader::Gone || self.left == Some(0) { Next::Stop } else { Next::GoOn })
    }
}
