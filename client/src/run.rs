//! From a command line to its exit status: answers to stdout, everything else to stderr.

use std::{
    io::{self, Write as _},
    time::Instant,
};

use berth_proto::v1::Warning;

use crate::{
    Error, Exit,
    address::Address,
    cli::{Cli, Output},
    command::{self, Answer, Asker},
    connection::Connection,
    flags::as_typed,
    text::{Page, Tone, numbers},
};

/// Carries out a command: asks, writes the answer or the reason why there is none, and says how it went.
pub fn run(cli: &Cli) -> Exit {
    let colour = Page::stderr_colour(cli.global.color);
    match answer(cli) {
        Ok(answer) => {
            let exit = match write(&answer.document) {
                Ok(()) => answer.exit,
                Err(error) => complain(&Error::Output(error), colour),
            };
            // Below the answer, where a terminal shows them last.
            if cli.global.output == Output::Table {
                answer.warnings.iter().for_each(|warning| say(&told(warning, colour)));
            }
            exit
        }
        Err(error) => complain(&error, colour),
    }
}

fn answer(cli: &Cli) -> Result<Answer, Error> {
    let global = &cli.global;
    let address = global.server.clone().unwrap_or_else(Address::default_of_this_host);
    let asker = Asker {
        connection: Connection::new(address, global.timeout),
        output: global.output,
        page: Page::stdout(global.color, global.verbose),
    };
    let runtime =
        tokio::runtime::Builder::new_current_thread().enable_all().build().map_err(Error::Runtime)?;
    let start = Instant::now();
    let answer = runtime.block_on(command::answer(&cli.command, &asker))?;
    if global.verbose && answer.asked {
        say(&format!("berth: {} answered in {}", asker.connection.address(), numbers::time(start.elapsed())));
    }
    Ok(answer)
}

fn told(warning: &Warning, colour: bool) -> String {
    format!("{}: {}", Tone::Doubtful.paint("warning", colour), as_typed(&warning.message))
}

fn complain(error: &Error, colour: bool) -> Exit {
    say(&format!("{}: {error}", Tone::Bad.paint("berth", colour)));
    error.advice().iter().for_each(|line| say(&format!("  {line}")));
    error.exit()
}

/// A reader that has seen enough, such as `head`, is no failure.
fn write(document: &str) -> io::Result<()> {
    let mut out = io::stdout().lock();
    match out.write_all(document.as_bytes()).and_then(|()| out.flush()) {
        Err(error) if error.kind() == io::ErrorKind::BrokenPipe => Ok(()),
        written => written,
    }
}

/// Nobody can be told that stderr is gone.
fn say(line: &str) {
    let _ = writeln!(io::stderr(), "{line}");
}
