//! From a command line to its exit status: answers to stdout, everything else to stderr.

use std::time::Instant;

use crate::{
    Error, Exit,
    address::Address,
    cli::{Cli, Output},
    command::{self, Answer, Asker},
    connection::Connection,
    out,
    text::{Page, numbers},
    tls,
};

/// Carries out a command: asks, writes the answer or the reason why there is none, and says how it went.
pub fn run(cli: &Cli) -> Exit {
    let colour = Page::stderr_colour(cli.global.color);
    match answer(cli) {
        Ok(answer) => {
            let exit = match out::write(&answer.document) {
                Ok(_) => answer.exit,
                Err(error) => out::complain(&Error::Output(error), colour),
            };
            // Below the answer, where a terminal shows them last.
            if cli.global.output != Output::Json {
                answer.warnings.iter().for_each(|warning| out::warn(warning, colour));
            }
            exit
        }
        Err(error) => out::complain(&error, colour),
    }
}

fn answer(cli: &Cli) -> Result<Answer, Error> {
    let global = &cli.global;
    let address = global.server.clone().unwrap_or_else(Address::default_of_this_host);
    let tls = tls::config(&global.tls, &address)?;
    let asker = Asker {
        is_named: global.server.is_some(),
        connection: Connection::new(address, tls, global.timeout),
        output: global.output,
        page: Page::stdout(global.color, global.verbose),
        talk_in_colour: Page::stderr_colour(global.color),
    };
    let runtime =
        tokio::runtime::Builder::new_current_thread().enable_all().build().map_err(Error::Runtime)?;
    let start = Instant::now();
    let answer = runtime.block_on(command::answer(&cli.command, &asker))?;
    if global.verbose && answer.asked {
        let took = numbers::time(start.elapsed());
        out::say(&format!("berth: {} answered in {took}", asker.connection.address()));
    }
    Ok(answer)
}
