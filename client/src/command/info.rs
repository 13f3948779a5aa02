//! `berth info`.

use berth_proto::v1::{GetInfoRequest, info_service_client::InfoServiceClient};

use super::{Answer, Asker};
use crate::{Error, render};

/// A server that has no snapshot yet answers this question and no other, so it counts as not there.
pub(super) async fn answer(asker: &Asker) -> Result<Answer, Error> {
    let connection = &asker.connection;
    let response = connection
        .ask(GetInfoRequest {}, async |channel, request| {
            InfoServiceClient::new(channel).get_info(request).await
        })
        .await?;
    if response.snapshot.is_none() {
        return Err(Error::Starting { address: connection.address().clone() });
    }
    let document = asker.document("GetInfoResponse", &response, |response, page| {
        render::info(connection.address(), response, page)
    })?;
    Ok(Answer::of_server(document, response.degraded))
}
