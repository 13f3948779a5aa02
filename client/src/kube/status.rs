//! `berth kube status`: each part of a node by itself, and what one knows of the other.

use serde_json::json;

use super::{device_plugin, kubelet, nri};
use crate::{
    Error,
    cli::{KubeStatus, Output},
    command::{Answer, Asker},
    text::{Page, Text, Tone},
};

/// One thing that was looked at.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Fact {
    /// What it is, such as "kubelet".
    pub(super) about: &'static str,
    /// How it is.
    pub(super) tone: Tone,
    /// The same in words, with its numbers.
    pub(super) said: String,
}

impl Fact {
    /// It is as it should be.
    pub(super) fn good(about: &'static str, said: impl Into<String>) -> Self {
        Self { about, tone: Tone::Good, said: said.into() }
    }

    /// It is not there, which may be meant.
    pub(super) fn doubtful(about: &'static str, said: impl Into<String>) -> Self {
        Self { about, tone: Tone::Doubtful, said: said.into() }
    }

    /// It does not work.
    pub(super) fn bad(about: &'static str, said: impl Into<String>) -> Self {
        Self { about, tone: Tone::Bad, said: said.into() }
    }
}

/// Looks at everything. What cannot be looked at is an answer too.
pub(super) async fn answer(args: &KubeStatus, asker: &Asker) -> Result<Answer, Error> {
    let mut facts = vec![berthd(asker).await];
    facts.extend(kubelet::facts(&args.kubelet, asker.connection.limit()).await);
    facts.extend(device_plugin::facts(args, asker).await);
    facts.extend(nri::facts(&args.node, &asker.connection).await);
    let document = match asker.output {
        Output::Json => as_json(&facts)?,
        _ => table(&facts, asker.page),
    };
    Ok(Answer::of_this_command(document))
}

/// Whether berthd answers questions.
async fn berthd(asker: &Asker) -> Fact {
    use berth_proto::v1::{GetInfoRequest, info_service_client::InfoServiceClient};
    let connection = &asker.connection;
    let info = connection
        .ask(GetInfoRequest {}, async |channel, request| {
            InfoServiceClient::new(channel).get_info(request).await
        })
        .await;
    match info {
        Ok(info) if info.snapshot.is_none() => {
            Fact::bad("berthd", "starting: it has not read this host's topology yet")
        }
        Ok(info) => {
            let flaws = info.degraded.iter().map(|flaw| format!(" {}", flaw.message));
            let said = format!("serving: version {} at {}.", info.version, connection.address());
            Fact::good("berthd", said + &flaws.collect::<String>())
        }
        Err(error) => Fact::bad("berthd", error.to_string()),
    }
}

fn table(facts: &[Fact], page: Page) -> String {
    let mut text = Text::new(page);
    text.heading("Node");
    text.fields(facts.iter().map(|fact| (fact.about, fact.tone, fact.said.clone())));
    text.finish()
}

fn as_json(facts: &[Fact]) -> Result<String, Error> {
    let fact = |fact: &Fact| json!({"about": fact.about, "ok": fact.tone != Tone::Bad, "said": fact.said});
    let document = json!({"facts": facts.iter().map(fact).collect::<Vec<_>>()});
    let text = serde_json::to_string_pretty(&document).map_err(|error| Error::Json(error.to_string()))?;
    Ok(text + "\n")
}
