//! How Slurm is told of the hooks.

use std::{
    env, fs,
    io::{self, Write as _},
    os::unix::fs::{OpenOptionsExt as _, PermissionsExt as _},
    path::{Path, PathBuf},
};

use crate::{Error, address::Address, cli::SlurmInstall, command::Asker};

/// Where the scripts lie if nothing else is said.
const FOLDER: &str = "/etc/slurm/berth";
/// By this line a script is known as one of ours.
const MARK: &str = "# Written by `berth slurm install`.";

/// A hook's name in slurm.conf, and its command.
const HOOKS: [(&str, &str); 3] = [("Prolog", "prolog"), ("Epilog", "epilog"), ("TaskProlog", "task-prolog")];

/// Prints scripts and lines of slurm.conf, or writes the scripts and prints the lines.
pub(super) fn run(args: &SlurmInstall, asker: &Asker) -> Result<String, Error> {
    let folder = absolute(args.write.as_deref().unwrap_or_else(|| Path::new(FOLDER)), "--write")?;
    let berth = match &args.berth {
        Some(path) => absolute(path, "--berth")?,
        None => absolute(&env::current_exe().map_err(Error::Runtime)?, "--berth")?,
    };
    let server = match asker.connection.address() {
        // That of the nodes, where Slurm runs: what is here now, such as a user's own, says nothing of it.
        _ if !asker.is_named => Address::of_the_system(),
        Address::Unix(path) => Address::Unix(absolute(path, "--server")?),
        other => other.clone(),
    };
    let script = |command: &str| script(&berth, &server, command, args.opt_in);
    let mut document = String::new();
    if args.write.is_some() {
        fs::create_dir_all(&folder).map_err(|source| Error::NotWritten { path: folder.clone(), source })?;
        for (_, command) in HOOKS {
            write(&folder.join(command), &script(command))?;
        }
        document += "# For slurm.conf on every node, then `scontrol reconfigure`:\n";
    } else {
        for (_, command) in HOOKS {
            let path = folder.join(command);
            document += &format!("# {}, mode 0755:\n{}\n", path.display(), script(command));
        }
        document += "# For slurm.conf:\n";
    }
    for (name, command) in HOOKS {
        document += &format!("{name}={}\n", folder.join(command).display());
    }
    Ok(document)
}

/// A script that ends with 0 even if the program is not there, or is killed.
fn script(berth: &Path, server: &Address, command: &str, opt_in: bool) -> String {
    let berth = quoted(&berth.display().to_string());
    let server = quoted(&server.to_string());
    let opt_in = if opt_in && command == "task-prolog" { " --opt-in" } else { "" };
    // Of what may be said of a missing program or a crash, nothing is for the job.
    let quiet = if command == "task-prolog" { " 2>/dev/null" } else { "" };
    format!(
        "#!/bin/sh\n{MARK}\n{{ {berth} slurm {command} --server {server}{opt_in} </dev/null || :; }}{quiet}\nexit 0\n"
    )
}

fn quoted(text: &str) -> String {
    format!("'{}'", text.replace('\'', r"'\''"))
}

/// A path that slurm.conf and scripts can hold.
fn absolute(path: &Path, flag: &'static str) -> Result<PathBuf, Error> {
    let unusable = || Error::PathUnusable { flag, path: path.to_owned() };
    let absolute = std::path::absolute(path).map_err(|_| unusable())?;
    let is_plain = |c: char| !c.is_whitespace() && !c.is_control() && !"#\"\\%".contains(c);
    match absolute.to_str() {
        Some(text) if text.chars().all(is_plain) => Ok(absolute),
        _ => Err(unusable()),
    }
}

/// Writes a script as a whole, in the place of an older one of ours alone.
fn write(path: &Path, script: &str) -> Result<(), Error> {
    let failed = |source| Error::NotWritten { path: path.to_owned(), source };
    match fs::read(path) {
        Ok(before) if !before.windows(MARK.len()).any(|part| part == MARK.as_bytes()) => {
            let source =
                io::Error::new(io::ErrorKind::AlreadyExists, "there is another file, which is left as it is");
            return Err(failed(source));
        }
        Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(failed(error)),
        _ => {}
    }
    // A slurmd that starts it just then sees the old one or the new one.
    let new = path.with_extension(format!("new-{}", std::process::id()));
    let written = fs::OpenOptions::new()
        .write(true)
        .create_new(true)
        .mode(0o755)
        .open(&new)
        .and_then(|mut file| {
            file.write_all(script.as_bytes())?;
            // Whatever the umask says: ordinary users run it.
            file.set_permissions(fs::Permissions::from_mode(0o755))?;
            file.sync_all()
        })
        .and_then(|()| fs::rename(&new, path));
    written.map_err(|source| {
        let _ = fs::remove_file(&new);
        failed(source)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quotes_in_paths_stay_quotes() {
        assert_eq!(quoted("/a'b"), r"'/a'\''b'");
    }

    #[test]
    fn a_file_of_somebody_else_is_left_alone() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("prolog");
        fs::write(&path, "#!/bin/sh\nexit 3\n").unwrap();
        assert!(write(&path, "new").unwrap_err().to_string().contains("another file"));
        fs::write(&path, format!("#!/bin/sh\n{MARK}\n")).unwrap();
        write(&path, "new").unwrap();
        assert_eq!(fs::read_to_string(&path).unwrap(), "new");
        assert_eq!(fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o755);
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 1);
    }

    #[test]
    fn paths_that_slurm_cannot_read_are_refused() {
        for path in ["/a b", "/a#b", "/a\nb", "/a\"b", "/a%b"] {
            assert!(absolute(Path::new(path), "--write").is_err(), "{path}");
        }
        assert_eq!(absolute(Path::new("/usr/bin/berth"), "--berth").unwrap(), Path::new("/usr/bin/berth"));
    }
}
