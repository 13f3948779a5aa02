//! `berth run`: asks where a command's tasks should be, and starts it there. Whatever goes wrong, it is started.

use std::{env, os::unix::process::CommandExt as _, process::Command as Program};

use berth_model::CpuSet;
use berth_proto::v1::{
    AdviseRequest, AdviseResponse, HoldSpec, Warning, form, placement_service_client::PlacementServiceClient,
    policy, proof, smt,
};
use tonic::Code;

use super::{Answer, Asker};
use crate::{
    Error, Exit, affinity,
    child::{self, Running},
    cli::Run,
    connection::MAX_ANSWER,
    follow::{self, Places},
    out, render,
};

/// The variable that turns this off, and what it says then; as for Slurm's tasks.
const OFF: (&str, &str) = ("BERTH", "off");

pub(super) async fn answer(args: &Run, asker: &Asker) -> Result<Answer, Error> {
    if env::var(OFF.0).is_ok_and(|value| value == OFF.1) {
        return start(args, &Plan::default()).await;
    }
    let advised = ask(args, asker).await;
    if args.dry_run {
        let response = advised?;
        let plan = Plan::new(args, &response);
        let document = asker.document("AdviseResponse", &response, |_, _| plan.told(args))?;
        return Ok(Answer::of_server(document, response.warnings));
    }
    let plan = match advised {
        Ok(response) => {
            let plan = Plan::new(args, &response);
            if args.require && !plan.is_safe {
                return Err(Error::NotRun(Box::new(Error::NotSafe)));
            }
            asker.warn(&response.warnings);
            plan.doubts(args).into_iter().for_each(|line| out::say(&format!("berth: {line}")));
            plan
        }
        Err(error) if args.require => return Err(Error::NotRun(Box::new(error))),
        Err(error) => {
            out::say(&format!("berth: running the command without advice: {error}"));
            Plan { mask: args.cpus.clone().unwrap_or_default(), ..Plan::default() }
        }
    };
    if !plan.mask.is_empty() {
        match child::bind(&plan.mask) {
            Err(error) if args.require => return Err(error),
            Err(error) => _ = asker.complain(&error),
            Ok(()) => {}
        }
    }
    start(args, &plan).await
}

/// Asks for advice, with the CPUs held where this user may hold any.
async fn ask(args: &Run, asker: &Asker) -> Result<AdviseResponse, Error> {
    let connection = asker.connection.within(args.within);
    let own = affinity::of(std::process::id()).map(|cpus| cpus.to_string());
    let allowed = args.cpus.clone().or(own).unwrap_or_default();
    // Bound as a whole, the command can be given one mask; what OpenMP places itself are single CPUs.
    let (forms, single_cpus) = match args.follow {
        Some(_) => (Vec::new(), false),
        None => (vec![form::Value::Mask.into(), form::Value::PerTask.into()], true),
    };
    let request = |hold| AdviseRequest {
        tasks: args.tasks,
        allowed: allowed.clone(),
        policy: policy::Value::from(args.policy).into(),
        smt: smt::Value::from(args.smt).into(),
        // What starts the others is one of them, but where it is followed as a launcher.
        origin_is_task: args.follow.is_none() && args.tasks > 1,
        can_apply: forms.clone(),
        single_cpus,
        hold,
        ..AdviseRequest::default()
    };
    let once = async |hold| {
        connection
            .ask(request(hold), async |channel, request| {
                let mut client = PlacementServiceClient::new(channel).max_decoding_message_size(MAX_ANSWER);
                client.advise(request).await
            })
            .await
    };
    if args.dry_run {
        return once(None).await;
    }
    match once(Some(HoldSpec::default())).await {
        // Holds are not for this user, or none are kept: the advice still is.
        Err(Error::Refused { status, .. }) if !args.require && is_of_holds(status.code()) => {
            let mut response = once(None).await?;
            let message = format!("the CPUs are not held: {}", status.message());
            response.warnings.push(Warning { message, ..Warning::default() });
            Ok(response)
        }
        other => other,
    }
}

fn is_of_holds(code: Code) -> bool {
    matches!(code, Code::PermissionDenied | Code::Unauthenticated | Code::FailedPrecondition)
}

/// What is done with the command.
#[derive(Debug, Default, PartialEq, Eq)]
struct Plan {
    /// The mask of all of it; empty if it is not bound.
    mask: String,
    /// The mask of each task, where one for all will not do.
    each: Vec<String>,
    /// Variables that are set.
    variables: Vec<(&'static str, String)>,
    is_safe: bool,
}

impl Plan {
    fn new(args: &Run, response: &AdviseResponse) -> Self {
        let advice = response.advice.clone().unwrap_or_default();
        let is_safe = advice.proof.as_ref().is_some_and(|proof| proof.result() == proof::Result::Safe);
        let masks = render::lists(response);
        let is_bound = advice.form() != form::Value::None || args.cpus.is_some();
        let all = masks.iter().filter_map(|mask| CpuSet::parse(mask).ok());
        let all = all.fold(CpuSet::new(), |all, mask| all.union(&mask)).to_string();
        let each = if masks.len() > 1 { masks } else { Vec::new() };
        let mut variables = vec![("OMP_NUM_THREADS", args.tasks.to_string())];
        if !each.is_empty() && args.follow.is_none() {
            let places: Vec<String> = each.iter().map(|cpus| format!("{{{}}}", expanded(cpus))).collect();
            variables.push(("OMP_PLACES", places.join(",")));
            variables.push(("OMP_PROC_BIND", "close".to_owned()));
        }
        variables.retain(|(name, _)| env::var_os(name).is_none());
        variables.push(("BERTH_CPUS", all.clone()));
        variables.extend(response.hold.as_ref().map(|hold| ("BERTH_HOLD", hold.id.clone())));
        Self { mask: if is_bound { all } else { String::new() }, each, variables, is_safe }
    }

    /// What whoever started it should know.
    fn doubts(&self, args: &Run) -> Vec<String> {
        let mut doubts = Vec::new();
        if !self.each.is_empty() && args.follow.is_none() {
            let said = "no one mask is safe for these tasks: each has CPUs of its own in OMP_PLACES; where the command is no OpenMP program, --follow 1s puts them there";
            doubts.push(said.to_owned());
        }
        doubts
    }

    /// What would be done, as a command to type.
    fn told(&self, args: &Run) -> String {
        let quoted = args.command.iter().map(|word| quoted(&word.to_string_lossy()));
        let mut words: Vec<String> = Vec::new();
        if !self.mask.is_empty() {
            words.extend(["taskset".to_owned(), "-c".to_owned(), self.mask.clone()]);
        }
        let set = |(name, value): &(&str, String)| format!("{name}={}", quoted_value(value));
        words.push("env".to_owned());
        words.extend(self.variables.iter().map(set));
        words.extend(quoted);
        let mut text = words.join(" ") + "\n";
        if args.follow.is_some() && !self.each.is_empty() {
            text += "and its tasks, as they start, in turn under\n";
            for (mask, tasks) in Places::new(&self.each).told() {
                text += &format!("  {mask}  ({tasks} each round)\n");
            }
        }
        text
    }
}

/// A list of CPUs as OpenMP takes it, which knows no `-`.
fn expanded(cpus: &str) -> String {
    let set = CpuSet::parse(cpus).unwrap_or_default();
    set.iter().map(|cpu| cpu.to_string()).collect::<Vec<_>>().join(",")
}

fn quoted_value(value: &str) -> String {
    if value.contains('{') { format!("'{value}'") } else { quoted(value) }
}

/// A word as a shell reads it.
fn quoted(word: &str) -> String {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "-_./:=,@%+".contains(c);
    if !word.is_empty() && word.chars().all(is_plain) {
        return word.to_owned();
    }
    format!("'{}'", word.replace('\'', r"'\''"))
}

/// Becomes the command, or starts it and follows it.
async fn start(args: &Run, plan: &Plan) -> Result<Answer, Error> {
    let Some((program, rest)) = args.command.split_first() else {
        return Err(Error::Json("there is no command".to_owned()));
    };
    if args.dry_run {
        return Ok(Answer::of_this_command(plan.told(args)));
    }
    let variables = plan.variables.iter().map(|(name, value)| (*name, value.clone()));
    match args.follow {
        Some(time) if !plan.each.is_empty() => {
            follow::adopt_orphans();
            let mut running = Running::start(program, rest, variables)?;
            let pid = running.pid();
            let ended = tokio::select! {
                biased;
                ended = running.wait() => Some(ended),
                () = follow::spread(pid, &plan.each, &plan.mask, time) => None,
            };
            let exit: Exit = match ended {
                Some(ended) => ended,
                None => running.wait().await,
            }
            .map_err(Error::Runtime)?;
            Ok(Answer { document: String::new(), warnings: Vec::new(), exit, asked: false })
        }
        _ => {
            let source = Program::new(program).args(rest).envs(variables).exec();
            Err(Error::NotStarted { program: program.clone(), source })
        }
    }
}
