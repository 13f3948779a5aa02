//! Help of a command that does not repeat the flags of every command.

use clap::{Arg, Command};

/// The commands, whose help points to that of the whole for the flags that every command takes.
pub(super) fn with_pointers(mut whole: Command) -> Command {
    let global: Vec<Arg> =
        whole.get_arguments().filter(|arg| arg.is_global_set()).map(|arg| arg.clone().hide(true)).collect();
    let flags: Vec<String> =
        global.iter().filter_map(|arg| arg.get_long()).map(|long| format!("--{long}")).collect();
    let pointer = format!("For every command (see `berth --help`):\n  {}", flags.join(" "));
    for name in names(&whole) {
        whole = whole.mut_subcommand(name, |command| pointing(command, &global, &pointer));
    }
    whole
}

/// The command with these flags hidden, and the pointer at the end of its help.
fn pointing(mut command: Command, hidden: &[Arg], pointer: &str) -> Command {
    for name in names(&command) {
        command = command.mut_subcommand(name, |command| pointing(command, hidden, pointer));
    }
    let examples = command.get_after_help().map(|examples| format!("{examples}\n\n")).unwrap_or_default();
    command.args(hidden).after_help(format!("{examples}{pointer}"))
}

fn names(command: &Command) -> Vec<String> {
    command.get_subcommands().map(|command| command.get_name().to_owned()).collect()
}
