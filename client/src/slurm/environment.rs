//! What Slurm tells a hook, all of it in the environment.

use std::{
    collections::HashMap,
    ffi::{OsStr, OsString},
};

/// The environment of a hook. Of a task's hook it is the job's, with anything in it.
#[derive(Debug, Default)]
pub(super) struct Environment(HashMap<OsString, OsString>);

/// One run of a job on this node.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Job {
    cluster: String,
    node: String,
    pub(super) id: u32,
    restarts: u32,
}

/// What a task's hook is run for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Work {
    /// The batch script.
    Batch,
    /// A step of Slurm's own: that of an interactive allocation, or an extern one.
    Special,
    /// A task of the step of that number.
    Step(u32),
}

/// Steps from this number on are Slurm's own.
const FIRST_SPECIAL: u32 = 0xffff_fff0;
/// So much of a name is taken over.
const LONGEST: usize = 64;

impl Environment {
    pub(super) fn new(variables: impl IntoIterator<Item = (OsString, OsString)>) -> Self {
        Self(variables.into_iter().collect())
    }

    /// The value of a variable; `None` also if it is no text.
    pub(super) fn text(&self, name: &str) -> Option<&str> {
        self.0.get(OsStr::new(name))?.to_str()
    }

    /// Whether the variable is there, with any value or none.
    pub(super) fn has(&self, name: &str) -> bool {
        self.0.contains_key(OsStr::new(name))
    }

    /// A number, which must be there.
    pub(super) fn number(&self, name: &str) -> Result<u32, String> {
        let text = self.text(name).ok_or_else(|| format!("{name} is not set"))?;
        text.parse().map_err(|_| format!("{name} is no number"))
    }

    /// The job. Its node's name tells slurmds apart that share a host.
    pub(super) fn job(&self) -> Result<Job, String> {
        let name = |variable| -> String { self.text(variable).unwrap_or("").chars().take(LONGEST).collect() };
        let restarts = ["SLURM_JOB_RESTART_COUNT", "SLURM_RESTART_COUNT"];
        Ok(Job {
            cluster: name("SLURM_CLUSTER_NAME"),
            node: name("SLURMD_NODENAME"),
            id: self.number("SLURM_JOB_ID")?,
            restarts: restarts.iter().find_map(|name| self.number(name).ok()).unwrap_or(0),
        })
    }

    pub(super) fn work(&self) -> Result<Work, String> {
        match self.text("SLURM_STEP_ID") {
            None | Some("") => Ok(Work::Batch),
            Some(_) => match self.number("SLURM_STEP_ID")? {
                FIRST_SPECIAL.. => Ok(Work::Special),
                step => Ok(Work::Step(step)),
            },
        }
    }

    /// How many tasks of the step are on this node.
    pub(super) fn local_tasks(&self) -> Result<u32, String> {
        let names = ["SLURM_STEP_TASKS_PER_NODE", "SLURM_TASKS_PER_NODE"];
        let name = names.into_iter().find(|name| self.has(name)).unwrap_or(names[0]);
        let text = self.text(name).ok_or_else(|| format!("{name} is not set"))?;
        let node = self.number("SLURM_NODEID")?;
        let tasks = tasks_on(text, node).ok_or_else(|| format!("{name} says nothing of node {node}"))?;
        if tasks == 0 { Err(format!("{name} says that node {node} has no tasks")) } else { Ok(tasks) }
    }
}

impl Job {
    /// The name of its claim.
    pub(super) fn name(&self) -> String {
        format!("slurm/{}/{}/{}.{}", self.cluster, self.node, self.id, self.restarts)
    }
}

/// The entry of a node in a text such as `4(x2),3`: nodes 0 and 1 have four, node 2 has three.
fn tasks_on(text: &str, node: u32) -> Option<u32> {
    let mut first = 0_u32;
    for part in text.split(',') {
        let (tasks, nodes) = match part.split_once("(x") {
            Some((tasks, nodes)) => (tasks, nodes.strip_suffix(')')?.parse().ok()?),
            None => (part, 1),
        };
        first = first.checked_add(nodes)?;
        if node < first {
            return tasks.parse().ok();
        }
    }
    None
}

#[cfg(test)]
impl Environment {
    pub(super) fn of(variables: &[(&str, &str)]) -> Self {
        Self::new(variables.iter().map(|&(name, value)| (name.into(), value.into())))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tasks_of_each_node() {
        let of = |text| (0..4).map(|node| tasks_on(text, node)).collect::<Vec<_>>();
        assert_eq!(of("4(x2),3"), [Some(4), Some(4), Some(3), None]);
        assert_eq!(of("2"), [Some(2), None, None, None]);
        for broken in ["", "x", "4(x", "4(x2", "(x2)", "4(xx)", "-1", "4(x99999999999)"] {
            assert_eq!(tasks_on(broken, 0), None, "{broken}");
        }
        assert_eq!(tasks_on("1(x4294967295),1(x4294967295)", 4_294_967_295), None);
    }

    #[test]
    fn a_job_is_named_by_all_that_tells_it_apart() {
        let mut known =
            vec![("SLURM_JOB_ID", "12"), ("SLURM_CLUSTER_NAME", "lab"), ("SLURMD_NODENAME", "n1")];
        let name = |known: &[_]| Environment::of(known).job().unwrap().name();
        assert_eq!(name(&known), "slurm/lab/n1/12.0");
        known.push(("SLURM_RESTART_COUNT", "2"));
        assert_eq!(name(&known), "slurm/lab/n1/12.2");
        let long = "x".repeat(5000);
        known[1].1 = &long;
        known[2].1 = &long;
        assert!(name(&known).len() < 200);
        for broken in [&[][..], &[("SLURM_JOB_ID", "")], &[("SLURM_JOB_ID", "-4")]] {
            assert!(Environment::of(broken).job().is_err());
        }
    }

    #[test]
    fn what_a_hook_is_run_for() {
        let work = |step| Environment::of(&[("SLURM_STEP_ID", step)]).work();
        assert_eq!(work(""), Ok(Work::Batch));
        assert_eq!(Environment::default().work(), Ok(Work::Batch));
        assert_eq!(work("0"), Ok(Work::Step(0)));
        for special in ["4294967290", "4294967291", "4294967292"] {
            assert_eq!(work(special), Ok(Work::Special));
        }
        assert!(work("extern").is_err());
    }
}
