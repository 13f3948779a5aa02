//! `berth renew`.

use berth_proto::v1::{RenewHoldRequest, hold_service_client::HoldServiceClient};

use super::{Answer, Asker};
use crate::{Error, cli::Renew, render};

pub(super) async fn answer(args: &Renew, asker: &Asker) -> Result<Answer, Error> {
    let request = RenewHoldRequest {
        id: args.id.clone(),
        ttl: args.ttl.and_then(|ttl| ttl.try_into().ok()),
        uid: args.uid,
    };
    let response = asker
        .connection
        .ask(request, async |channel, request| HoldServiceClient::new(channel).renew_hold(request).await)
        .await?;
    let document = asker.document("RenewHoldResponse", &response, |response, page| {
        response.hold.as_ref().map_or_else(String::new, |hold| render::hold(hold, page))
    })?;
    Ok(Answer::of_server(document, Vec::new()))
}
