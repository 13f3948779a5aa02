//! `berth release`.

use berth_proto::v1::{ListHoldsRequest, ReleaseHoldRequest, hold_service_client::HoldServiceClient};

use super::{Answer, Asker, holds};
use crate::{Error, cli::Release, render};

/// Every hold is tried; the first that is refused is the error, after what was released has been shown.
pub(super) async fn answer(args: &Release, asker: &Asker) -> Result<Answer, Error> {
    let ids = if args.all_mine { mine(asker).await? } else { args.ids.clone() };
    let mut answer = Answer::of_server(String::new(), Vec::new());
    for id in &ids {
        let request = ReleaseHoldRequest { id: id.clone(), uid: args.uid };
        let released = asker
            .connection
            .ask(request, async |channel, request| {
                HoldServiceClient::new(channel).release_hold(request).await
            })
            .await;
        match released {
            Ok(response) => {
                answer.document += &asker.document("ReleaseHoldResponse", &response, |response, _| {
                    render::released(id, response)
                })?;
            }
            Err(error) if ids.len() == 1 => return Err(error),
            Err(error) => answer.exit = asker.complain(&error),
        }
    }
    Ok(answer)
}

/// Claims first: what is under them ends with them.
async fn mine(asker: &Asker) -> Result<Vec<String>, Error> {
    let request = ListHoldsRequest { uid: asker.whose(false, None), ..ListHoldsRequest::default() };
    let mut holds = holds::whole_list(&request, asker).await?.holds;
    holds.sort_by_key(|hold| !hold.cpus.is_empty());
    Ok(holds.into_iter().map(|hold| hold.id).collect())
}
