//! `berth hold`.

use std::{fs, io, time::Duration};

use berth_proto::v1::{
    AdviseRequest, AdviseResponse, CreateHoldRequest, CreateHoldResponse, GetInfoRequest, Hold as Held,
    HoldSpec, Owner, Process, Warning, form, hold::Mode, hold_service_client::HoldServiceClient,
    info_service_client::InfoServiceClient, owner, placement_service_client::PlacementServiceClient, policy,
    smt,
};
use tokio::time::{Instant, sleep};
use tonic::Code;
use tonic_types::StatusExt as _;

use super::{Answer, Asker, keep};
use crate::{
    Error,
    address::Address,
    child,
    cli::{Form, Hold},
    connection::{Connection, MAX_ANSWER},
    render,
};

/// How long a hold without an owner lasts unless another time is given, or the server's longest is shorter.
const LEASE: Duration = Duration::from_secs(30);
/// How long to wait before asking a busy server again, if it does not say.
const AGAIN: Duration = Duration::from_millis(100);
/// So many connections may break: what listens may be no berthd.
const BROKEN: u32 = 5;
/// Nobody is there, or nobody for this user.
const NOBODY: [io::ErrorKind; 3] =
    [io::ErrorKind::NotFound, io::ErrorKind::ConnectionRefused, io::ErrorKind::PermissionDenied];

/// A hold that was made, with the answer that told it.
pub(super) struct Made {
    pub(super) hold: Held,
    pub(super) warnings: Vec<Warning>,
    /// How long it was to last, if not as long as its owner alone.
    pub(super) ttl: Option<Duration>,
    told: Told,
}

enum Told {
    Advised(Box<AdviseResponse>),
    Created(Box<CreateHoldResponse>),
}

pub(super) async fn answer(args: &Hold, asker: &Asker) -> Result<Answer, Error> {
    if let Some((program, rest)) = args.command.split_first() {
        return keep::while_running(args, program, rest, asker).await;
    }
    let made = make(args, asker).await?;
    let document = match &made.told {
        Told::Advised(response) => {
            asker.document_or_list("AdviseResponse", response.as_ref(), render::held_by_advice, render::lists)
        }
        Told::Created(response) => asker.document_or_list(
            "CreateHoldResponse",
            response.as_ref(),
            |response, page| response.hold.as_ref().map_or_else(String::new, |hold| render::hold(hold, page)),
            |response| response.hold.iter().map(|hold| hold.cpus.clone()).collect(),
        ),
    }?;
    Ok(Answer::of_server(document, made.warnings))
}

/// Asks for the hold, and again while the server is too busy or starts anew and time is left: the request's id keeps it one
/// hold.
pub(super) async fn make(args: &Hold, asker: &Asker) -> Result<Made, Error> {
    let mut spec = spec(args, asker.connection.address());
    let deadline = Instant::now() + asker.connection.limit();
    let mut broken = 0;
    let mut is_bounded = args.ttl.is_some() || spec.ttl.is_none();
    loop {
        let connection = || asker.connection.within(deadline - Instant::now());
        let attempt = async {
            if !is_bounded {
                spec.ttl = lease(&connection()).await?.try_into().ok();
                is_bounded = true;
            }
            once(args, &spec, &connection()).await
        };
        let error = match attempt.await {
            Ok(made) => return Ok(made),
            Err(error) => error,
        };
        broken = match &error {
            Error::Unreachable { kind, .. } => broken + u32::from(!NOBODY.contains(kind)),
            _ => broken.max(1),
        };
        match pause(&error, broken) {
            Some(pause) if Instant::now() + pause < deadline => sleep(pause).await,
            _ => return Err(error),
        }
    }
}

/// How long a hold lasts for which no time was given.
async fn lease(connection: &Connection) -> Result<Duration, Error> {
    let info = connection
        .ask(GetInfoRequest {}, async |channel, request| {
            InfoServiceClient::new(channel).get_info(request).await
        })
        .await?;
    let most = info.limits.and_then(|limits| limits.hold_ttl?.try_into().ok());
    Ok(most.map_or(LEASE, |most| LEASE.min(most)))
}

async fn once(args: &Hold, spec: &HoldSpec, connection: &Connection) -> Result<Made, Error> {
    let nothing = || Error::NothingHeld { address: connection.address().clone() };
    let ttl = spec.ttl.and_then(|ttl| ttl.try_into().ok());
    if let Some(tasks) = args.tasks {
        let request = advise_request(args, tasks, spec.clone());
        let response = connection
            .ask(request, async |channel, request| {
                let mut client = PlacementServiceClient::new(channel).max_decoding_message_size(MAX_ANSWER);
                client.advise(request).await
            })
            .await?;
        let hold = response.hold.clone().ok_or_else(nothing)?;
        let warnings = response.warnings.clone();
        return Ok(Made { hold, warnings, ttl, told: Told::Advised(Box::new(response)) });
    }
    let request = CreateHoldRequest {
        hold: Some(spec.clone()),
        cpus: args.cpus.clone().unwrap_or_default(),
        ..CreateHoldRequest::default()
    };
    let response = connection
        .ask(request, async |channel, request| HoldServiceClient::new(channel).create_hold(request).await)
        .await?;
    let hold = response.hold.clone().ok_or_else(nothing)?;
    let warnings = response.warnings.clone();
    Ok(Made { hold, warnings, ttl, told: Told::Created(Box::new(response)) })
}

/// How long to wait before the same request may succeed, after so many broken connections or with one answer. `None`: it
/// will not.
fn pause(error: &Error, broken: u32) -> Option<Duration> {
    match error {
        Error::Refused { status, .. } if status.code() == Code::Unavailable => {
            let retry = status.get_details_retry_info().and_then(|info| info.retry_delay);
            Some(retry.unwrap_or(AGAIN))
        }
        // A server was there, and may be starting anew.
        Error::Unreachable { .. } if (1..=BROKEN).contains(&broken) => Some(AGAIN),
        _ => None,
    }
}

fn advise_request(args: &Hold, tasks: u32, spec: HoldSpec) -> AdviseRequest {
    // One mask for all is what this command can apply by itself.
    let forms = if args.bind { &[Form::Mask][..] } else { &args.form };
    AdviseRequest {
        tasks,
        allowed: args.cpus.clone().unwrap_or_default(),
        policy: args.policy.map(policy::Value::from).unwrap_or_default().into(),
        smt: args.smt.map(smt::Value::from).unwrap_or_default().into(),
        can_apply: forms.iter().map(|&form| form::Value::from(form).into()).collect(),
        single_cpus: !forms.is_empty() && forms.iter().all(|form| *form == Form::PerTask),
        hold: Some(spec),
        ..AdviseRequest::default()
    }
}

fn spec(args: &Hold, address: &Address) -> HoldSpec {
    let owner = owner(args, address);
    let ttl = args.ttl.or_else(|| owner.owner.is_none().then_some(LEASE));
    HoldSpec {
        owner: Some(owner),
        request_id: args.request_id.clone().unwrap_or_else(new_id),
        ttl: ttl.and_then(|ttl| ttl.try_into().ok()),
        mode: if args.exclusive { Mode::Exclusive } else { Mode::Shared }.into(),
        claim: args.under.clone().unwrap_or_default(),
        name: args.name.clone().unwrap_or_default(),
        labels: args.label.iter().cloned().collect(),
        ..HoldSpec::default()
    }
}

/// A command's hold is owned by this process until the command runs. Over a network nobody can be named, and it is a lease.
fn owner(args: &Hold, address: &Address) -> Owner {
    let process = |pid, start_time| owner::Owner::Process(Process { pid, start_time });
    let owner = match (&args.pid, &args.cgroup, address) {
        (Some(pid), ..) => Some(process(*pid, child::start_time(*pid).unwrap_or(0))),
        (None, Some(path), _) => Some(owner::Owner::Cgroup(path.clone())),
        (None, None, Address::Unix(_)) if !args.command.is_empty() => Some(process(0, 0)),
        _ => None,
    };
    Owner { owner }
}

/// An id that no other call has. Without one the request is only not repeatable.
fn new_id() -> String {
    let id = fs::read_to_string("/proc/sys/kernel/random/uuid").unwrap_or_default();
    id.trim().to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cli::{Cli, Command};
    use clap::Parser as _;
    use tonic::Status;
    use tonic_types::ErrorDetails;

    fn typed(line: &str) -> Hold {
        match Cli::try_parse_from(["berth", "hold"].into_iter().chain(line.split_whitespace()))
            .unwrap()
            .command
        {
            Command::Hold(args) => args,
            _ => unreachable!("it says hold"),
        }
    }

    fn spec_of(line: &str, address: &str) -> HoldSpec {
        spec(&typed(line), &address.parse().unwrap())
    }

    #[test]
    fn a_hold_without_an_owner_is_a_lease() {
        let spec = spec_of("-n 2 --name a --label job=7 --exclusive", "unix:/b.sock");
        assert_eq!(spec.owner, Some(Owner { owner: None }));
        assert_eq!(spec.ttl, Some(prost_types::Duration { seconds: 30, nanos: 0 }));
        assert_eq!((spec.name.as_str(), spec.labels["job"].as_str()), ("a", "7"));
        assert_eq!(spec.mode(), Mode::Exclusive);
    }

    #[test]
    fn a_commands_hold_is_its_processs_and_over_tcp_a_lease() {
        let own = Some(owner::Owner::Process(Process { pid: 0, start_time: 0 }));
        let spec = spec_of("-n 2 -- true", "unix:/b.sock");
        assert_eq!((spec.owner, spec.ttl), (Some(Owner { owner: own }), None));
        let spec = spec_of("-n 2 -- true", "127.0.0.1:1");
        assert_eq!((spec.owner, spec.ttl.map(|ttl| ttl.seconds)), (Some(Owner { owner: None }), Some(30)));
    }

    #[test]
    fn a_process_is_named_with_its_start() {
        let pid = std::process::id();
        let spec = spec_of(&format!("-n 2 --pid {pid}"), "unix:/b.sock");
        let start_time = child::start_time(pid).unwrap();
        let process = owner::Owner::Process(Process { pid, start_time });
        assert_eq!((spec.owner, spec.ttl), (Some(Owner { owner: Some(process) }), None));
    }

    #[test]
    fn each_call_has_an_id_unless_one_is_given() {
        let id = || spec_of("-n 2", "unix:/b.sock").request_id;
        assert!(!id().is_empty());
        assert_ne!(id(), id());
        assert_eq!(spec_of("-n 2 --request-id r1", "unix:/b.sock").request_id, "r1");
    }

    #[test]
    fn a_busy_server_is_asked_again_and_a_refusal_is_not() {
        let refused = |status| Error::Refused { status: Box::new(status), mask: "--cpus" };
        assert_eq!(pause(&refused(Status::unavailable("busy")), 1), Some(AGAIN));
        let delay = Duration::from_millis(250);
        let told =
            Status::with_error_details(Code::Unavailable, "", ErrorDetails::with_retry_info(Some(delay)));
        assert_eq!(pause(&refused(told), 1), Some(delay));
        assert_eq!(pause(&refused(Status::resource_exhausted("full")), 1), None);
    }

    #[test]
    fn a_server_that_starts_anew_is_waited_for_and_none_is_not() {
        let unreachable = |kind| Error::Unreachable {
            address: "unix:/b.sock".parse().unwrap(),
            cause: String::new(),
            kind,
        };
        assert_eq!(pause(&unreachable(io::ErrorKind::BrokenPipe), BROKEN), Some(AGAIN));
        assert_eq!(pause(&unreachable(io::ErrorKind::Other), BROKEN + 1), None);
        for nobody in NOBODY {
            assert_eq!(pause(&unreachable(nobody), 0), None);
            assert_eq!(pause(&unreachable(nobody), 1), Some(AGAIN));
        }
    }

    #[test]
    fn what_to_hold_must_be_said_and_be_one_thing() {
        for line in [
            "",
            "--ttl 5s",
            "--claim -n 2",
            "--claim --cpus 0",
            "--cpus 0 --policy spread",
            "-n 1 --bind",
            "-n 1 --pid 1 -- true",
            "--claim --bind -- true",
            "-n 1 --label job",
            "-n 1 --label =7",
        ] {
            let typed = ["berth", "hold"].into_iter().chain(line.split_whitespace());
            assert!(Cli::try_parse_from(typed).is_err(), "{line}");
        }
        typed("--cpus 0-3");
        typed("--claim --name job");
        typed("-n 2 --cpus 0-3 --bind --or-run -- sh -c true");
    }
}
