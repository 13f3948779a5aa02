//! TaskProlog: puts one task where the decision for its step has it.

use std::env;

use berth_model::{Cpu, CpuSet};
use berth_proto::v1::{
    CreateHoldRequest, HoldSpec, Owner, PredictRequest, Process, hold_service_client::HoldServiceClient,
    owner, placement_service_client::PlacementServiceClient, verdict,
};
use rustix::process::Pid;
use tonic::Code;

use super::{
    claim,
    decision::{Place, Question},
    environment::{Environment, Job, Work},
    host,
    lines::Lines,
    masks::{Binding, crowd_of},
    server::{Server, is_refused},
};
use crate::{Error, affinity, child, cli::TaskProlog, command::Asker, connection::MAX_ANSWER};

/// How long a step's hold lasts if the process is not known that it ends with.
const WITHOUT_OWNER: prost_types::Duration = prost_types::Duration { seconds: 60, nanos: 0 };

/// What the job, or else the site, wishes of Berth.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Wish {
    Off,
    On,
    /// And say so on the task's stdout.
    Aloud,
}

impl Wish {
    #[doc(alias = "BERTH")]
    fn of(environment: &Environment, opt_in: bool) -> Self {
        match environment.text("BERTH").unwrap_or("").to_ascii_lowercase().as_str() {
            "off" | "0" | "no" | "false" => Self::Off,
            "verbose" => Self::Aloud,
            "on" | "1" | "yes" | "true" => Self::On,
            _ if opt_in => Self::Off,
            _ => Self::On,
        }
    }
}

/// What was done with the task, as `BERTH_STATUS` begins.
#[derive(Debug)]
enum Done {
    /// It has other CPUs than Slurm gave it.
    Bound { cpus: CpuSet, memory_nodes: CpuSet, alone: bool },
    /// It has Slurm's mask, on purpose. `alone`: no other task of the step has any of it.
    Left { cpus: CpuSet, alone: bool, why: String },
    /// It was only looked at.
    Verified(String),
}

/// `berth slurm task-prolog`: lines for Slurm.
pub(super) async fn run(args: &TaskProlog, asker: &Asker) -> String {
    let environment = Environment::new(env::vars_os());
    let mut lines = Lines::new(&environment);
    let wish = Wish::of(&environment, args.opt_in);
    if wish == Wish::Off {
        lines.status("off");
        return lines.into_text();
    }
    let status = match place(&environment, asker).await {
        Ok(done) => told(&done, &environment, &mut lines),
        Err(why) => format!("failed: the task is where Slurm has put it: {why}"),
    };
    lines.status(&status);
    if wish == Wish::Aloud || asker.page.verbose {
        let task = environment.text("SLURM_PROCID").unwrap_or("?");
        lines.print(&format!("task {task}: {status}"));
    }
    lines.into_text()
}

/// Tells the task of its CPUs; gives the status.
fn told(done: &Done, environment: &Environment, lines: &mut Lines<'_>) -> String {
    let mut tell = |cpus: &CpuSet, memory_nodes: &CpuSet, alone: bool| {
        lines.cpus(cpus, memory_nodes);
        if alone {
            let order: Vec<Cpu> = host::cores_first(cpus);
            lines.openmp(&order, cpus_per_task(environment));
        }
    };
    match done {
        Done::Bound { cpus, memory_nodes, alone } => {
            tell(cpus, memory_nodes, *alone);
            format!("bound: CPUs {cpus}")
        }
        Done::Left { cpus, alone, why } => {
            tell(cpus, &CpuSet::new(), *alone);
            format!("left: CPUs {cpus} as Slurm has bound it: {why}")
        }
        Done::Verified(what) => format!("verified: {what}"),
    }
}

fn cpus_per_task(environment: &Environment) -> u32 {
    environment.number("SLURM_CPUS_PER_TASK").unwrap_or(1)
}

async fn place(environment: &Environment, asker: &Asker) -> Result<Done, String> {
    let job = environment.job()?;
    let pid = environment.number("SLURM_TASK_PID")?;
    if !host::is_ancestor(pid) {
        return Err(format!("process {pid} of SLURM_TASK_PID did not start this one"));
    }
    let own = affinity::of(pid).ok_or_else(|| format!("process {pid} cannot be seen"))?;
    let server = Server::of(asker);
    let step = match environment.work()? {
        Work::Step(step) => step,
        Work::Batch => return verify("it is the batch script", &own, &server).await,
        Work::Special => return verify("the step is Slurm's own", &own, &server).await,
    };
    let tasks = environment.local_tasks()?;
    let left = |why: &str| Ok(Done::Left { cpus: own.clone(), alone: false, why: why.to_owned() });
    let binding = Binding::of(environment)?;
    match binding {
        Binding::Typed => return left("the user has typed where"),
        Binding::Unwanted => return left("the user wants --cpu-bind=none"),
        Binding::Slurms(_) | Binding::Cpuset => {}
    }
    if tasks == 1 {
        return verify("it is the only task on the node, and may start others", &own, &server).await;
    }
    let local = environment.number("SLURM_LOCALID")?;
    let masks = here(binding.masks(tasks, &own))?;
    match masks.get(usize::try_from(local).unwrap_or(usize::MAX)) {
        Some(mask) if *mask == own => {}
        Some(mask) => return Err(format!("Slurm says that it has CPUs {mask}, and it has {own}")),
        None => return Err(format!("SLURM_LOCALID is {local}, of {tasks} tasks")),
    }
    let Some(crowd) = crowd_of(local, &masks) else {
        return left("masks of the step's tasks overlap without being the same");
    };
    let step = Step { job: &job, number: step, hold_owner: host::parent(pid) };
    if crowd.tasks == 1 {
        // The others are in crowds of their own, or this is a step in which one mask is shared and another is not.
        let all = masks.iter().fold(CpuSet::new(), |all, mask| all.union(mask));
        let held = step.hold(&all, tasks, &server).await;
        let held = held.map_or_else(|error| format!("; not held: {error}"), |()| String::new());
        let why = format!("no other task of the step has any of them{held}");
        return Ok(Done::Left { cpus: own, alone: true, why });
    }
    let question = match Question::new(&crowd, cpus_per_task(environment)) {
        Ok(question) => question,
        Err(why) => return left(&why),
    };
    match step.decide(&question, crowd.number, &server).await? {
        Place::AsItIs(why) => left(&why),
        Place::On { cpus, alone, memory_nodes } => {
            if cpus != own {
                let pid = i32::try_from(pid).ok().and_then(Pid::from_raw);
                affinity::set(pid, &cpus)
                    .map_err(|error| format!("it cannot be bound to CPUs {cpus}: {error}"))?;
            }
            Ok(Done::Bound { cpus, memory_nodes, alone })
        }
    }
}

/// The masks without CPUs that are not there: Slurm may know more of them than are online.
fn here(mut masks: Vec<CpuSet>) -> Result<Vec<CpuSet>, String> {
    let online = host::online().ok_or("which CPUs are online cannot be read")?;
    masks.iter_mut().for_each(|mask| *mask = mask.intersection(&online));
    Ok(masks)
}

/// Looks whether the kernel would fill the mask by itself, should the task start one process for each CPU.
async fn verify(what: &str, own: &CpuSet, server: &Server) -> Result<Done, String> {
    let tasks = u32::try_from(own.len()).unwrap_or(u32::MAX);
    let request =
        PredictRequest { tasks, allowed: own.to_string(), origin_is_task: true, ..PredictRequest::default() };
    let response = server
        .ask(&request, async |channel, request| {
            let mut client = PlacementServiceClient::new(channel).max_decoding_message_size(MAX_ANSWER);
            client.predict(request).await
        })
        .await
        .map_err(|error| error.to_string())?;
    let found = match response.verdict() {
        verdict::Value::NoPileUp => "do not pile up",
        verdict::Value::PileUp => "pile up",
        _ => "may pile up, which is not known",
    };
    let said = format!("{what}; it has CPUs {own}, on which {tasks} processes that it starts {found}");
    Ok(Done::Verified(said))
}

/// A step, for which there is one decision.
#[derive(Debug)]
struct Step<'a> {
    job: &'a Job,
    number: u32,
    /// slurmstepd, which ends with the step.
    hold_owner: Option<u32>,
}

impl Step<'_> {
    /// What is kept, the same for all tasks. `what` tells decisions of one step apart.
    fn spec(&self, what: &str, claim: String) -> HoldSpec {
        let process =
            self.hold_owner.and_then(|pid| Some(Process { pid, start_time: child::start_time(pid)? }));
        let ttl = process.is_none().then_some(WITHOUT_OWNER);
        // Slurm counts its jobs from one again if it has lost its state.
        let began = process.map_or(0, |process| process.start_time);
        let mut labels = claim::labels(self.job);
        labels.insert("slurm.step".to_owned(), self.number.to_string());
        HoldSpec {
            owner: Some(Owner { owner: process.map(owner::Owner::Process) }),
            request_id: format!("{}/{}@{began}/{what}", self.job.name(), self.number),
            ttl,
            claim,
            labels,
            ..HoldSpec::default()
        }
    }

    /// Has it decided where the tasks of a crowd go, or hears what was decided.
    async fn decide(&self, question: &Question<'_>, crowd: usize, server: &Server) -> Result<Place, String> {
        let response = self
            .under_claim(async |claim| {
                let request = question.request(self.spec(&crowd.to_string(), claim));
                server
                    .ask(&request, async |channel, request| {
                        let mut client =
                            PlacementServiceClient::new(channel).max_decoding_message_size(MAX_ANSWER);
                        client.advise(request).await
                    })
                    .await
            })
            .await?;
        question.place(&response)
    }

    /// Keeps what Slurm has given the tasks.
    async fn hold(&self, cpus: &CpuSet, tasks: u32, server: &Server) -> Result<(), String> {
        let held = self.under_claim(async |claim| {
            let hold = Some(self.spec("as-bound", claim));
            let request =
                CreateHoldRequest { hold, cpus: cpus.to_string(), tasks, ..CreateHoldRequest::default() };
            server
                .ask(&request, async |channel, request| {
                    HoldServiceClient::new(channel).create_hold(request).await
                })
                .await
        });
        held.await.map(drop)
    }

    /// Asks with the job's claim; without one if there is none: the server was not there when it was to be opened, or it is over.
    async fn under_claim<A>(&self, ask: impl AsyncFn(String) -> Result<A, Error>) -> Result<A, String> {
        const NO_CLAIM: [Code; 3] = [Code::NotFound, Code::FailedPrecondition, Code::AlreadyExists];
        let answer = match ask(self.job.name()).await {
            Err(error) if is_refused(&error, &NO_CLAIM) => ask(String::new()).await,
            answer => answer,
        };
        answer.map_err(|error| error.to_string())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_job_wishes_comes_before_what_the_site_does() {
        let wish = |berth: &str, opt_in| Wish::of(&Environment::of(&[("BERTH", berth)]), opt_in);
        for off in ["off", "OFF", "0", "no", "false"] {
            assert_eq!((wish(off, false), wish(off, true)), (Wish::Off, Wish::Off), "{off}");
        }
        assert_eq!((wish("on", true), wish("verbose", true)), (Wish::On, Wish::Aloud));
        assert_eq!((wish("", false), wish("", true)), (Wish::On, Wish::Off));
        assert_eq!((wish("what?", false), wish("what?", true)), (Wish::On, Wish::Off));
    }
}
