//! `berth profiles`.

use berth_proto::v1::{ListProfilesRequest, info_service_client::InfoServiceClient};

use super::{Answer, Asker};
use crate::{Error, cli::Profiles, render};

pub(super) async fn answer(args: &Profiles, asker: &Asker) -> Result<Answer, Error> {
    let request = ListProfilesRequest { all: args.all, kernel: args.kernel.message() };
    let response = asker
        .connection
        .ask(request, async |channel, request| InfoServiceClient::new(channel).list_profiles(request).await)
        .await?;
    let document = asker.document("ListProfilesResponse", &response, render::profiles)?;
    Ok(Answer::of_server(document, Vec::new()))
}
