//! One file per command: makes the request, asks, and has the answer written.

mod advise;
mod completions;
mod info;
mod load;
mod predict;
mod profiles;
mod topology;

use berth_proto::v1::{ProfileChoice, Warning, view};
use prost::Message;

use crate::{
    Error, Exit,
    cli::{Command, KernelArgs, Output},
    connection::Connection,
    json,
    text::Page,
};

/// What every command needs: whom to ask, and how to write the answer.
#[derive(Debug)]
pub(crate) struct Asker {
    pub(crate) connection: Connection,
    pub(crate) output: Output,
    pub(crate) page: Page,
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
}

/// Carries out a command.
pub(crate) async fn answer(command: &Command, asker: &Asker) -> Result<Answer, Error> {
    match command {
        Command::Topology(args) => topology::answer(args, asker).await,
        Command::Load(args) => load::answer(args, asker).await,
        Command::Predict(args) => predict::answer(args, asker).await,
        Command::Advise(args) => advise::answer(args, asker).await,
        Command::Info => info::answer(asker).await,
        Command::Profiles(args) => profiles::answer(args, asker).await,
        Command::Completions { shell } => Ok(completions::answer(*shell)),
    }
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
