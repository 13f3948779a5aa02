//! Holds and their store.

use super::{listen::is_writable, prelude::*};
use crate::{auth::Quotas, config::parse::Form};
use std::path::Path;

section! {
    /// CPUs that are kept for an owner.
    Holds "holds";

    /// Keep the store of holds in this folder.
    ///
    /// One berthd at a time may use it. `auto` is /var/lib/berth if that folder is or can be made writable, else berth in
    /// $XDG_STATE_HOME or ~/.local/state, else none. Without one, questions are answered and holds are refused.
    state_dir: Option<PathBuf> = Setting::new("state-dir", "PATH", folder()).or("auto").can_be_off();

    /// How long a hold lasts for which neither an owner nor a time was given.
    hold_ttl: Duration = Setting::new("hold-ttl", "TIME", parse::time(ms(100)..=s(3600))).or("5s").live();

    /// The longest time that a hold can be given.
    max_hold_ttl: Duration =
        Setting::new("max-hold-ttl", "TIME", parse::time(s(1)..=s(365 * 86_400))).or("24h").live();

    /// The most holds of one user at a time. Who may do all has no such limit.
    max_holds: u32 = Setting::new("max-holds", "NUMBER", parse::number(0..=16_384)).or("256").live();

    /// The most CPUs that one user may hold alone, in percent of those online.
    max_exclusive_percent: u32 =
        Setting::new("max-exclusive-percent", "NUMBER", parse::number(0..=100)).or("50").live();
}

impl Holds {
    /// How much one user may hold.
    pub(crate) fn quotas(&self) -> Quotas {
        Quotas { holds: self.max_holds, exclusive_percent: self.max_exclusive_percent }
    }
}

const DEFAULT_FOLDER: &str = "/var/lib/berth";

fn folder() -> Parser<Option<PathBuf>> {
    Parser::new(Form::Text, |text| {
        Ok(match text {
            "auto" => default_folder(),
            "" | parse::NONE => None,
            path => Some(PathBuf::from(path)),
        })
    })
}

/// The first folder that can be written to.
fn default_folder() -> Option<PathBuf> {
    let variable = |name: &str| std::env::var_os(name).filter(|path| !path.is_empty()).map(PathBuf::from);
    let state = variable("XDG_STATE_HOME").or_else(|| variable("HOME").map(|home| home.join(".local/state")));
    let folders = [Some(PathBuf::from(DEFAULT_FOLDER)), state.map(|state| state.join("berth"))];
    folders.into_iter().flatten().find(|folder| can_be_made(folder))
}

/// Nothing is made to find out.
fn can_be_made(folder: &Path) -> bool {
    folder.ancestors().find(|part| part.exists()).is_some_and(is_writable)
}
