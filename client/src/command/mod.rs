//! One file per command: makes the request, asks, and has the answer written.

mod advise;
mod completions;
mod explain;
mod health;
mod hold;
mod holds;
mod info;
mod keep;
mod load;
mod man;
mod map;
mod predict;
mod profiles;
mod release;
mod renew;
mod run;
mod top;
mod topology;
mod verify;
mod watch;

use berth_proto::v1::{ProfileChoice, Warning, view};
use prost::Message;

use crate::{
    Error, Exit,
    address::Address,
    cli::{Command, KernelArgs, Output},
    connection::Connection,
    json, kube, out, slurm,
    text::Page,
};

/// What every command needs: whom to ask, and how to write the answer.
#[derive(Debug)]
pub(crate) struct Asker {
    pub(crate) connection: Connection,
    /// Whether the address was given, and not found.
    pub(crate) is_named: bool,
    pub(crate) output: Output,
    pub(crate) page: Page,
    /// Whether standard error takes colours.
    pub(crate) talk_in_colour: bool,
}

impl Asker {
    /// The response as it was asked for: in the contract's JSON, or as `render` lays it out.
    fn document<M: Message>(
        &self,
        name: &str,
        response: &M,
        render: impl FnOnce(&M, Page) -> String,
    ) -> Result<String, Error> {
        match self.output {
            Output::Json => json::document(name, response),
            Output::Table => Ok(render(response, self.page)),
            Output::List => Err(Error::NoList),
        }
    }

    /// The same for an answer that has CPUs to list, one text for each line.
    fn document_or_list<M: Message>(
        &self,
        name: &str,
        response: &M,
        render: impl FnOnce(&M, Page) -> String,
        list: impl FnOnce(&M) -> Vec<String>,
    ) -> Result<String, Error> {
        match self.output {
            Output::List => Ok(list(response).into_iter().map(|line| line + "\n").collect()),
            _ => self.document(name, response, render),
        }
    }

    /// Says each warning on standard error.
    fn warn(&self, warnings: &[Warning]) {
        warnings.iter().for_each(|warning| out::warn(warning, self.talk_in_colour));
    }

    /// Says why a part of the command failed, and how it ends therefore.
    fn complain(&self, error: &Error) -> Exit {
        out::complain(error, self.talk_in_colour)
    }

    /// The user whose holds are meant: the one given, else the calling one, whom the server knows by number where it is asked
    /// over a unix socket. `None`: all that the server shows.
    fn whose(&self, all: bool, given: Option<u32>) -> Option<u32> {
        match self.connection.address() {
            _ if all => None,
            Address::Unix(_) => given.or_else(|| Some(rustix::process::getuid().as_raw())),
            _ => given,
        }
    }
}

/// What a command has to say.
#[derive(Debug)]
pub(crate) struct Answer {
    /// For stdout.
    pub(crate) document: String,
    /// For stderr, if the document does not hold them.
    pub(crate) warnings: Vec<Warning>,
    /// How it went.
    pub(crate) exit: Exit,
    /// A server was asked.
    pub(crate) asked: bool,
}

impl Answer {
    fn of_server(document: String, warnings: Vec<Warning>) -> Self {
        Self { document, warnings, exit: Exit::Answered, asked: true }
    }

    pub(crate) fn of_this_command(document: String) -> Self {
        Self { document, warnings: Vec::new(), exit: Exit::Answered, asked: false }
    }
}

/// Carries out a command.
pub(crate) async fn answer(command: &Command, asker: &Asker) -> Result<Answer, Error> {
    if asker.output == Output::List && !has_list(command) {
        return Err(Error::NoList);
    }
    match command {
        Command::Topology(args) => topology::answer(args, asker).await,
        Command::Load(args) => load::answer(args, asker).await,
        Command::Map(args) => map::answer(args, asker).await,
        Command::Top(args) => Box::pin(top::answer(args, asker)).await,
        Command::Predict(args) => predict::answer(args, asker).await,
        Command::Advise(args) => advise::answer(args, asker).await,
        Command::Health { service } => health::answer(service.as_deref(), asker).await,
        Command::Info => info::answer(asker).await,
        Command::Profiles(args) => profiles::answer(args, asker).await,
        Command::Explain(args) => explain::answer(args, asker).await,
        Command::Run(args) => Box::pin(run::answer(args, asker)).await,
        Command::Hold(args) => hold::answer(args, asker).await,
        Command::Renew(args) => renew::answer(args, asker).await,
        Command::Release(args) => release::answer(args, asker).await,
        Command::Holds(args) => holds::answer(args, asker).await,
        Command::Verify(args) => verify::answer(args, asker).await,
        Command::Watch(args) => watch::answer(&args.what, asker).await,
        Command::Slurm(what) => slurm::answer(what, asker).await,
        Command::Kube(what) => kube::answer(what, asker).await,
        Command::Completions { shell } => Ok(completions::answer(*shell)),
        Command::Man { folder } => man::answer(folder.as_deref()),
    }
}

/// Whether the command has CPUs to list.
fn has_list(command: &Command) -> bool {
    matches!(command, Command::Advise(_) | Command::Hold(_) | Command::Holds(_) | Command::Topology(_))
}

/// What would tell which of several kernels it is.
fn several_kernels(profile: Option<&ProfileChoice>, args: &KernelArgs) -> Option<Warning> {
    let untold = profile.is_some_and(|choice| !choice.others.is_empty()) && args.profile.is_none();
    let more = match (&args.kernel, &args.kernel_version) {
        (None, _) => "--kernel \"$(uname -r)\" and --kernel-version \"$(uname -v)\"",
        (Some(_), None) => "--kernel-version \"$(uname -v)\"",
        (Some(_), Some(_)) => return None,
    };
    let message =
        format!("It may be one of several kernels, and the worst counts: {more} of that host tell which.");
    untold.then(|| Warning { message, ..Warning::default() })
}

fn view(full: bool) -> i32 {
    if full { view::Value::Full.into() } else { view::Value::Basic.into() }
}
