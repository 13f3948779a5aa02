//! `berth health`.

use tonic_health::pb::{
    HealthCheckRequest, health_check_response::ServingStatus, health_client::HealthClient,
};

use super::{Answer, Asker};
use crate::{Error, Exit, cli::Output};

/// A server that does not serve has answered, and counts as not there all the same.
pub(super) async fn answer(service: Option<&str>, asker: &Asker) -> Result<Answer, Error> {
    let request = HealthCheckRequest { service: service.unwrap_or_default().to_owned() };
    let connection = &asker.connection;
    let response = connection
        .ask(request, async |channel, request| HealthClient::new(channel).check(request).await)
        .await?;
    let status = response.status();
    let word = status.as_str_name();
    let document = match asker.output {
        Output::Json => format!("{{\"status\": \"{word}\"}}\n"),
        _ => format!("{word}: {} at {}\n", service.unwrap_or("berthd"), connection.address()),
    };
    let exit = if status == ServingStatus::Serving { Exit::Answered } else { Exit::NoAnswer };
    Ok(Answer { exit, ..Answer::of_server(document, Vec::new()) })
}
