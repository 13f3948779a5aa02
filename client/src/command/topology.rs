//! `berth topology`.

use berth_proto::v1::{GetTopologyRequest, topology_service_client::TopologyServiceClient};

use super::{Answer, Asker, view};
use crate::{Error, cli::Topology, connection::MAX_ANSWER, render};

pub(super) async fn answer(args: &Topology, asker: &Asker) -> Result<Answer, Error> {
    let request = GetTopologyRequest { host: args.host.read(None)?, view: view(args.full) };
    let response = asker
        .connection
        .ask(request, async |channel, request| {
            let mut client = TopologyServiceClient::new(channel).max_decoding_message_size(MAX_ANSWER);
            client.get_topology(request).await
        })
        .await?;
    let document = asker.document_or_list(
        "GetTopologyResponse",
        &response,
        |response, page| render::topology(&args.host.label(), response, page),
        |response| response.topology.iter().map(|topology| topology.online.clone()).collect(),
    )?;
    Ok(Answer::of_server(document, response.warnings))
}
