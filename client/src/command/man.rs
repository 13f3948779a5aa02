//! `berth man`: the help texts as manual pages.

use std::{
    fs, io,
    path::{Path, PathBuf},
};

use clap::Command;
use clap_mangen::{
    Man,
    roff::{Roff, roman},
};

use super::Answer;
use crate::{Error, cli::Cli};

/// Where it belongs, as each page's first line says.
const MANUAL: &str = "Berth";
/// No date, as roff takes it: an argument that is empty would be none.
const NO_DATE: &str = "\"\"";

/// Writes each command's page into the folder, as `berth-advise.1`; without a folder that of the whole is the answer. No server
/// is asked.
pub(super) fn answer(folder: Option<&Path>) -> Result<Answer, Error> {
    let mut whole = Cli::explained().disable_help_subcommand(true);
    whole.build();
    let Some(folder) = folder else {
        let page = page(whole).map_err(Error::Output)?.1;
        return Ok(Answer::of_this_command(page));
    };
    fs::create_dir_all(folder).map_err(|source| Error::NotWritten { path: folder.to_owned(), source })?;
    let commands = with_commands(whole);
    let count = commands.len();
    for command in commands {
        let (name, page) = page(command).map_err(Error::Output)?;
        let path = folder.join(name);
        fs::write(&path, page).map_err(|source| Error::NotWritten { path, source })?;
    }
    Ok(Answer::of_this_command(format!("{count} pages are in {}.\n", folder.display())))
}

/// A command and all below it.
fn with_commands(command: Command) -> Vec<Command> {
    let below: Vec<Command> =
        command.get_subcommands().filter(|below| !below.is_hide_set()).cloned().collect();
    [command].into_iter().chain(below.into_iter().flat_map(with_commands)).collect()
}

/// The page of a command, and the name of its file.
fn page(command: Command) -> io::Result<(PathBuf, String)> {
    let has_commands = command.has_subcommands();
    let has_flags = command.get_arguments().any(|arg| !arg.is_hide_set());
    let more = command.get_after_help().map(ToString::to_string).unwrap_or_default();
    let man =
        Man::new(command).source(concat!("berth ", env!("CARGO_PKG_VERSION"))).date(NO_DATE).manual(MANUAL);
    let mut page = Vec::new();
    man.render_title(&mut page)?;
    man.render_name_section(&mut page)?;
    man.render_synopsis_section(&mut page)?;
    man.render_description_section(&mut page)?;
    if has_flags {
        man.render_options_section(&mut page)?;
    }
    if has_commands {
        man.render_subcommands_section(&mut page)?;
    }
    as_they_are(&more).to_writer(&mut page)?;
    Ok((man.get_filename().into(), String::from_utf8_lossy(&page).into_owned()))
}

/// What a help text ends with, line by line: a section for each line that is not indented.
fn as_they_are(text: &str) -> Roff {
    let mut roff = Roff::new();
    let mut is_open = false;
    for line in text.trim_end().lines() {
        let is_heading = !line.is_empty() && !line.starts_with(' ');
        if is_heading {
            if is_open {
                roff.control("fi", []);
            }
            roff.control("SH", [line.trim_end_matches(':').to_uppercase().as_str()]).control("nf", []);
            is_open = true;
        } else {
            roff.text([roman(line.strip_prefix("  ").unwrap_or(line))]);
        }
    }
    if is_open {
        roff.control("fi", []);
    }
    roff
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_stay_lines() {
        let page = as_they_are("Examples:\n  berth load\n    .x\n\nExit status:\n    0  well\n").to_roff();
        let lines: Vec<&str> = page.lines().filter(|line| !line.is_empty()).collect();
        let wanted = [
            ".SH EXAMPLES",
            ".nf",
            "berth load",
            "  .x",
            ".fi",
            ".SH \"EXIT STATUS\"",
            ".nf",
            "  0  well",
            ".fi",
        ];
        assert_eq!(lines, wanted);
    }
}
