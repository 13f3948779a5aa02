//! `berth man`.

use std::{fs, io, path::Path};

use clap::CommandFactory as _;

use super::Answer;
use crate::{Error, cli::Cli};

/// The pages, from what `--help` says. No server is asked.
pub(super) fn answer(folder: Option<&Path>) -> Result<Answer, Error> {
    let command = Cli::command();
    let Some(folder) = folder else {
        let mut page = Vec::new();
        clap_mangen::Man::new(command).render(&mut page).map_err(Error::Output)?;
        return Ok(Answer::of_this_command(String::from_utf8_lossy(&page).into_owned()));
    };
    let failed = |source: io::Error| Error::NotWritten { path: folder.to_owned(), source };
    fs::create_dir_all(folder).map_err(failed)?;
    clap_mangen::generate_to(command, folder).map_err(failed)?;
    let pages = fs::read_dir(folder).map_err(failed)?.count();
    Ok(Answer::of_this_command(format!("{pages} pages are in {}.\n", folder.display())))
}
