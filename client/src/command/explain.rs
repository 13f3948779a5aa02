//! `berth explain`.

use berth_proto::v1::{ExplainRequest, placement_service_client::PlacementServiceClient};

use super::{Answer, Asker};
use crate::{Error, cli::Explain, connection::MAX_ANSWER, render};

pub(super) async fn answer(args: &Explain, asker: &Asker) -> Result<Answer, Error> {
    let request = ExplainRequest {
        cpus: args.cpus.clone().unwrap_or_default(),
        allowed: args.allowed.clone().unwrap_or_default(),
        host: args.host.read(None)?,
        kernel: args.kernel.message(),
    };
    let response = asker
        .connection
        .ask(request, async |channel, request| {
            let mut client = PlacementServiceClient::new(channel).max_decoding_message_size(MAX_ANSWER);
            client.explain(request).await
        })
        .await
        .map_err(|error| error.with_mask_flag("--allowed"))?;
    let document = asker.document("ExplainResponse", &response, |response, page| {
        render::explain(&args.host.label(), &args.kernel.kernel.clone().unwrap_or_default(), response, page)
    })?;
    Ok(Answer::of_server(document, response.warnings))
}
