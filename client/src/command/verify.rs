//! `berth verify`: asks where tasks are, and does what mends them.

use std::{
    io::{self, IsTerminal as _},
    process::Command,
    time::Duration,
};

use berth_model::CpuSet;
use berth_proto::v1::{
    Fix, VerifyRequest, VerifyResponse, fix::Action, placement_service_client::PlacementServiceClient,
};
use rustix::process::Pid;

use super::{Answer, Asker, view};
use crate::{
    Error, Exit, affinity,
    cli::{Output, Verify},
    connection::MAX_ANSWER,
    out, render,
};

/// Whoever waits for longer is told for how long.
const PATIENCE: Duration = Duration::from_secs(2);

pub(super) async fn answer(args: &Verify, asker: &Asker) -> Result<Answer, Error> {
    let found = ask(args, asker).await?;
    let steps: Vec<&Fix> = steps(&found).collect();
    if !args.fix || steps.is_empty() {
        return told(args, asker, found);
    }
    if asker.output == Output::Table {
        out::write(&render::verify(&found, asker.page)).map_err(Error::Output)?;
        out::write("\n").map_err(Error::Output)?;
    }
    if !args.yes && !agrees(steps.len())? {
        return Ok(Answer::of_this_command("Nothing was changed.\n".to_owned()));
    }
    let failed: Vec<String> = steps.iter().filter_map(|fix| act(fix).err()).collect();
    let left = ask(args, asker).await?;
    if !failed.is_empty() {
        return Err(Error::NotMended { of: steps.len(), failed });
    }
    told(args, asker, left)
}

async fn ask(args: &Verify, asker: &Asker) -> Result<VerifyResponse, Error> {
    let watch = args.watch_for.unwrap_or_default();
    let request = VerifyRequest {
        pids: args.pids.clone(),
        cgroup: args.cgroup.clone().unwrap_or_default(),
        hold: args.hold.clone().unwrap_or_default(),
        all: args.all,
        expected: args.expected.clone().unwrap_or_default(),
        watch_for: prost_types::Duration::try_from(watch).ok(),
        memory: args.memory,
        view: view(args.full),
    };
    if watch > PATIENCE && asker.output == Output::Table && io::stderr().is_terminal() {
        out::say(&format!("berth: looking for {} s", watch.as_secs()));
    }
    // The time to look is no time to wait.
    let patience = asker.connection.within(asker.connection.limit() + watch);
    patience
        .ask(request, async |channel, request| {
            let mut client = PlacementServiceClient::new(channel).max_decoding_message_size(MAX_ANSWER);
            client.verify(request).await
        })
        .await
        .map_err(|error| error.with_mask_flag("--expected"))
}

fn told(args: &Verify, asker: &Asker, response: VerifyResponse) -> Result<Answer, Error> {
    let document = asker.document("VerifyResponse", &response, render::verify)?;
    let is_wrong = response.workloads.iter().any(|workload| !workload.findings.is_empty());
    let exit = if args.check && is_wrong { Exit::PileUp } else { Exit::Answered };
    Ok(Answer { exit, ..Answer::of_server(document, response.warnings) })
}

/// All steps that mend something, in their order.
fn steps(found: &VerifyResponse) -> impl Iterator<Item = &Fix> {
    let findings = found.workloads.iter().flat_map(|workload| &workload.findings);
    findings.flat_map(|finding| &finding.fixes)
}

/// Asks whoever sits at the terminal.
fn agrees(steps: usize) -> Result<bool, Error> {
    if !io::stdin().is_terminal() {
        return Err(Error::NobodyToAsk);
    }
    let what = if steps == 1 { "this step".to_owned() } else { format!("these {steps} steps") };
    out::say(&format!("Do {what}? [y/N]"));
    let mut line = String::new();
    io::stdin().read_line(&mut line).map_err(Error::Output)?;
    Ok(matches!(line.trim().to_ascii_lowercase().as_str(), "y" | "yes"))
}

/// Does one step. Tells what failed, with the command that would have done it.
fn act(fix: &Fix) -> Result<(), String> {
    let done = match &fix.action {
        Some(Action::SetAffinity(set)) => set_affinity(&set.tids, &set.cpus),
        Some(Action::MoveMemory(memory)) => {
            let (pid, from, to) = (memory.pid.to_string(), memory.from.as_str(), memory.to.as_str());
            run(Command::new("migratepages").args([pid.as_str(), from, to]))
        }
        Some(Action::SetCpuset(_)) | None => Err("this version of berth does not do it".to_owned()),
    };
    done.map_err(|cause| format!("{}: {cause}", fix.command))
}

fn set_affinity(tids: &[u32], cpus: &str) -> Result<(), String> {
    let cpus = CpuSet::parse(cpus).map_err(|error| error.to_string())?;
    for &tid in tids {
        let of = i32::try_from(tid).ok().and_then(Pid::from_raw);
        match affinity::set(of, &cpus) {
            // It has ended, and crowds nobody.
            Ok(()) | Err(affinity::Error::Refused(rustix::io::Errno::SRCH)) => {}
            Err(error) => return Err(format!("thread {tid}: {error}")),
        }
    }
    Ok(())
}

fn run(command: &mut Command) -> Result<(), String> {
    match command.status() {
        Ok(status) if status.success() => Ok(()),
        Ok(status) => Err(format!("it ended with {status}")),
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            Err("there is no such command (Debian's package numactl has it)".to_owned())
        }
        Err(error) => Err(error.to_string()),
    }
}
