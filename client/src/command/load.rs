//! `berth load`.

use berth_proto::v1::{GetLoadRequest, load_service_client::LoadServiceClient};

use super::{Answer, Asker, view};
use crate::{Error, cli::Load, connection::MAX_ANSWER, render};

pub(super) async fn answer(args: &Load, asker: &Asker) -> Result<Answer, Error> {
    let request = GetLoadRequest { cpus: args.cpus.clone().unwrap_or_default(), view: view(args.full) };
    let response = asker
        .connection
        .ask(request, async |channel, request| {
            let mut client = LoadServiceClient::new(channel).max_decoding_message_size(MAX_ANSWER);
            client.get_load(request).await
        })
        .await?;
    let document = asker
        .document("GetLoadResponse", &response, |response, page| render::load(response, args.full, page))?;
    Ok(Answer::of_server(document, response.warnings))
}
