//! The masks that Slurm has given to the tasks of a step on this node.

use berth_model::CpuSet;

use super::environment::Environment;

/// How the tasks of a step came to their masks.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Binding {
    /// Slurm made them: one for each local task, or fewer, which are then taken in turn.
    Slurms(Vec<CpuSet>),
    /// No more was done than to keep them in the step's cpuset.
    Cpuset,
    /// The user typed masks, maps or ranks.
    Typed,
    /// The user wants none.
    Unwanted,
}

impl Binding {
    /// Reads it from `SLURM_CPU_BIND_*`. Masks that Slurm made begin with `0x`, those that a user typed never do.
    #[doc(alias = "SLURM_CPU_BIND")]
    pub(super) fn of(environment: &Environment) -> Result<Self, String> {
        let kind = environment.text("SLURM_CPU_BIND_TYPE").unwrap_or("");
        let list = environment.text("SLURM_CPU_BIND_LIST").unwrap_or("");
        // Before it may stand what was asked for: `cores,mask_cpu:`.
        match kind.rsplit(',').next().unwrap_or("") {
            "mask_cpu:" if !list.split(',').all(|mask| mask.starts_with("0x")) => Ok(Self::Typed),
            "mask_cpu:" => {
                let read =
                    |mask| CpuSet::parse(mask).map_err(|error| format!("SLURM_CPU_BIND_LIST: {error}"));
                list.split(',').map(read).collect::<Result<_, _>>().map(Self::Slurms)
            }
            "none" => Ok(Self::Unwanted),
            "" | "boards" | "sockets" | "ldoms" | "cores" | "threads" | "one_thread" | "autosocks"
            | "autocores" | "autothreads" | "off" | "verbose" | "quiet" => Ok(Self::Cpuset),
            _ => Ok(Self::Typed),
        }
    }

    /// The mask of each of so many local tasks. `own` is what this very task has.
    pub(super) fn masks(&self, tasks: u32, own: &CpuSet) -> Vec<CpuSet> {
        let of_task = |task: u32| match self {
            Self::Slurms(masks) if !masks.is_empty() => {
                let task = usize::try_from(task).unwrap_or(0);
                masks[task % masks.len()].clone()
            }
            _ => own.clone(),
        };
        (0..tasks).map(of_task).collect()
    }
}

/// Tasks that have one mask in common.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Crowd {
    /// Its number within the step.
    pub(super) number: usize,
    /// The mask.
    pub(super) cpus: CpuSet,
    /// How many tasks have it.
    pub(super) tasks: u32,
    /// Which of them the one asked for is.
    pub(super) index: u32,
}

/// The tasks with the same mask as the one asked for. `None`: masks overlap without being the same, so that what one task is
/// given says nothing of what is left for another.
pub(super) fn crowd_of(task: u32, masks: &[CpuSet]) -> Option<Crowd> {
    let task = usize::try_from(task).ok()?;
    let mut different: Vec<&CpuSet> = Vec::new();
    for mask in masks {
        if !different.contains(&mask) {
            if different.iter().any(|other| other.intersects(mask)) {
                return None;
            }
            different.push(mask);
        }
    }
    let own = masks.get(task).filter(|own| !own.is_empty())?;
    let same = |among: &[CpuSet]| u32::try_from(among.iter().filter(|mask| *mask == own).count()).ok();
    Some(Crowd {
        number: different.iter().position(|mask| *mask == own)?,
        cpus: own.clone(),
        tasks: same(masks)?,
        index: same(&masks[..task])?,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn binding(kind: &str, list: &str) -> Result<Binding, String> {
        Binding::of(&Environment::of(&[("SLURM_CPU_BIND_TYPE", kind), ("SLURM_CPU_BIND_LIST", list)]))
    }

    fn sets(lists: &[&str]) -> Vec<CpuSet> {
        lists.iter().map(|list| CpuSet::parse(list).unwrap()).collect()
    }

    #[test]
    fn slurms_masks_are_told_from_typed_ones() {
        assert_eq!(binding("mask_cpu:", "0x3,0xC"), Ok(Binding::Slurms(sets(&["0-1", "2-3"]))));
        assert_eq!(binding("cores,mask_cpu:", "0x3"), Ok(Binding::Slurms(sets(&["0-1"]))));
        for (kind, list) in [
            ("mask_cpu:", "1,2"),
            ("mask_cpu:", ""),
            ("map_cpu:", "1,0"),
            ("mask_ldom:", "1"),
            ("map_ldom:", "0"),
            ("rank", ""),
            ("rank_ldom", ""),
            ("something newer", ""),
        ] {
            assert_eq!(binding(kind, list), Ok(Binding::Typed), "{kind}{list}");
        }
        assert_eq!(binding("none", ""), Ok(Binding::Unwanted));
        assert_eq!(binding("cores", ""), Ok(Binding::Cpuset));
        assert_eq!(Binding::of(&Environment::default()), Ok(Binding::Cpuset));
        for broken in ["0x", "0x3,0x", "0xg", "0x3 ,0x4x"] {
            assert!(binding("mask_cpu:", broken).is_err(), "{broken}");
        }
    }

    #[test]
    fn a_mask_of_640_cpus_is_read() {
        let mask = format!("0x{}FFFF{}FFFF", "0".repeat(76), "0".repeat(76));
        assert_eq!(binding("mask_cpu:", &mask), Ok(Binding::Slurms(sets(&["0-15,320-335"]))));
    }

    #[test]
    fn masks_are_taken_in_turn() {
        let own = CpuSet::parse("7").unwrap();
        let two = Binding::Slurms(sets(&["0", "1"]));
        assert_eq!(two.masks(5, &own), sets(&["0", "1", "0", "1", "0"]));
        assert_eq!(Binding::Cpuset.masks(2, &own), sets(&["7", "7"]));
    }

    #[test]
    fn who_shares_a_mask_with_whom() {
        let masks = sets(&["0-3", "4-7", "0-3", "4-7", "0-3"]);
        let crowd = |task| crowd_of(task, &masks).map(|crowd| (crowd.number, crowd.tasks, crowd.index));
        assert_eq!(
            [0, 1, 2, 3, 4].map(crowd),
            [(0, 3, 0), (1, 2, 0), (0, 3, 1), (1, 2, 1), (0, 3, 2)].map(Some)
        );
        assert_eq!(crowd(5), None);
        assert_eq!(crowd_of(0, &sets(&["0-3", "3-4"])), None);
        assert_eq!(crowd_of(0, &sets(&["", "3-4"])), None);
    }
}
