//! Prolog and Epilog: a claim for each job on this node, under which the holds of its steps are.

use std::{collections::BTreeMap, env};

use berth_proto::v1::{
    CreateHoldRequest, GetInfoRequest, HoldSpec, Owner, ReleaseHoldRequest,
    hold_service_client::HoldServiceClient, info_service_client::InfoServiceClient,
};
use tonic::Code;

use super::{
    environment::{Environment, Job},
    server::{Server, is_refused},
};
use crate::{command::Asker, out};

/// What is said of a job's holds.
pub(super) fn labels(job: &Job) -> BTreeMap<String, String> {
    BTreeMap::from([("slurm.job".to_owned(), job.id.to_string())])
}

/// `berth slurm prolog`. What it would write, Slurm does not read.
pub(super) async fn open(asker: &Asker) -> String {
    said(try_open(asker).await, "no claim was opened")
}

/// `berth slurm epilog`.
pub(super) async fn close(asker: &Asker) -> String {
    said(try_close(asker).await, "the claim was not closed")
}

/// On stderr, which slurmd has in its log where it keeps it.
fn said(done: Result<(), String>, what: &str) -> String {
    if let Err(why) = done {
        out::say(&format!("berth: {what}: {why}"));
    }
    String::new()
}

async fn try_open(asker: &Asker) -> Result<(), String> {
    let environment = Environment::new(env::vars_os());
    let (job, uid) = (environment.job()?, environment.number("SLURM_JOB_UID")?);
    let server = Server::of(asker);
    let info = server
        .ask(&GetInfoRequest {}, async |channel, request| {
            InfoServiceClient::new(channel).get_info(request).await
        })
        .await
        .map_err(|error| error.to_string())?;
    // No process of the job is there yet that it could end with.
    let ttl = info.limits.and_then(|limits| limits.hold_ttl);
    let hold = HoldSpec {
        owner: Some(Owner { owner: None }),
        ttl,
        name: job.name(),
        labels: labels(&job),
        uid: Some(uid),
        ..HoldSpec::default()
    };
    let request = CreateHoldRequest { hold: Some(hold), ..CreateHoldRequest::default() };
    let made = server
        .ask(&request, async |channel, request| HoldServiceClient::new(channel).create_hold(request).await)
        .await;
    match made {
        // By its name it is known: it was opened before.
        Err(error) if is_refused(&error, &[Code::AlreadyExists]) => Ok(()),
        made => made.map(drop).map_err(|error| error.to_string()),
    }
}

async fn try_close(asker: &Asker) -> Result<(), String> {
    let environment = Environment::new(env::vars_os());
    let (job, uid) = (environment.job()?, environment.number("SLURM_JOB_UID")?);
    let request = ReleaseHoldRequest { id: job.name(), uid: Some(uid) };
    let released = Server::of(asker)
        .ask(&request, async |channel, request| HoldServiceClient::new(channel).release_hold(request).await)
        .await;
    match released {
        // It was never opened, or was closed long ago.
        Err(error) if is_refused(&error, &[Code::NotFound]) => Ok(()),
        released => released.map(drop).map_err(|error| error.to_string()),
    }
}
