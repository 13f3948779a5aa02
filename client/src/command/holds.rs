//! `berth holds`.

use berth_proto::v1::{
    GetHoldRequest, GetHoldResponse, Hold as Held, ListHoldsRequest, ListHoldsResponse,
    hold_service_client::HoldServiceClient,
};

use super::{Answer, Asker};
use crate::{Error, cli::Holds, connection::MAX_ANSWER, render};

/// Holds in a page: the most that a server gives.
const PAGE: u32 = 1000;
/// How often a list is begun anew because the holds changed between two of its pages.
const TRIES: usize = 3;

pub(super) async fn answer(args: &Holds, asker: &Asker) -> Result<Answer, Error> {
    if args.ids.is_empty() {
        return list(args, asker).await;
    }
    let mut document = String::new();
    for id in &args.ids {
        let request = GetHoldRequest { id: id.clone(), uid: args.uid };
        let response = asker
            .connection
            .ask(request, async |channel, request| HoldServiceClient::new(channel).get_hold(request).await)
            .await?;
        document += &asker.document_or_list(
            "GetHoldResponse",
            &response,
            |GetHoldResponse { hold }, page| {
                hold.as_ref().map_or_else(String::new, |hold| render::hold(hold, page))
            },
            |response| response.hold.as_slice().iter().map(cpus).collect(),
        )?;
    }
    Ok(Answer::of_server(document, Vec::new()))
}

async fn list(args: &Holds, asker: &Asker) -> Result<Answer, Error> {
    let request = ListHoldsRequest {
        page_size: PAGE,
        cpus: args.cpus.clone().unwrap_or_default(),
        claim: args.under.clone().unwrap_or_default(),
        uid: asker.whose(args.all, args.uid),
        ..ListHoldsRequest::default()
    };
    let response = whole_list(&request, asker).await?;
    let document = asker.document_or_list("ListHoldsResponse", &response, render::holds, |response| {
        response.holds.iter().map(cpus).collect()
    })?;
    Ok(Answer::of_server(document, Vec::new()))
}

/// Every page, of one generation unless the holds change all the time.
pub(super) async fn whole_list(
    request: &ListHoldsRequest,
    asker: &Asker,
) -> Result<ListHoldsResponse, Error> {
    let mut whole = ListHoldsResponse::default();
    for _ in 0..TRIES {
        whole = page(request, String::new(), asker).await?;
        let generation = whole.holds_generation;
        let mut steady = true;
        while steady && !whole.next_page_token.is_empty() {
            let next = page(request, std::mem::take(&mut whole.next_page_token), asker).await?;
            steady = next.holds_generation == generation;
            whole.holds.extend(next.holds);
            whole.next_page_token = next.next_page_token;
        }
        if steady {
            return Ok(whole);
        }
    }
    Ok(whole)
}

async fn page(request: &ListHoldsRequest, token: String, asker: &Asker) -> Result<ListHoldsResponse, Error> {
    let request = ListHoldsRequest { page_token: token, ..request.clone() };
    asker
        .connection
        .ask(request, async |channel, request| {
            let mut client = HoldServiceClient::new(channel).max_decoding_message_size(MAX_ANSWER);
            client.list_holds(request).await
        })
        .await
}

fn cpus(hold: &Held) -> String {
    hold.cpus.clone()
}
