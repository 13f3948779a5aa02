//! Programs of others that tests ask Berth with or hold it against; `scripts/tools.sh` gets them.

use std::{
    path::{Path, PathBuf},
    process::Command,
};

/// Where they are kept, below the target folder.
pub(crate) fn folder() -> PathBuf {
    Path::new(env!("CARGO_TARGET_TMPDIR")).with_file_name("tools").join("bin")
}

/// One of them. None, and said so, if it has not been got: `make test` does not go that far without.
pub(crate) fn tool(name: &str) -> Option<Command> {
    let program = folder().join(name);
    if !program.exists() {
        eprintln!("skipped: there is no {}; scripts/tools.sh gets it", program.display());
        return None;
    }
    Some(Command::new(program))
}

/// What a program said, if it ended well.
#[track_caller]
pub(crate) fn said(command: &mut Command) -> String {
    let output = command.output().expect("it starts");
    let (out, error) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    assert!(output.status.success(), "{command:?}: {}\n{out}{error}", output.status);
    out.into_owned()
}
