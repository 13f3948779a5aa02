//! The question restated, with what the server took it to mean.

use berth_proto::v1::{ProfileChoice, Snapshot};

use super::kernel;
use crate::{
    cli::{HostArgs, HostLoadArgs, KernelArgs, Launch, LaunchArgs, Policy, ScenarioArgs},
    text::{Text, Tone, cpus, numbers},
};

/// What was asked, in words.
#[derive(Debug)]
pub(crate) struct Question {
    pub(crate) tasks: u32,
    origin: Option<u32>,
    origin_is_task: bool,
    launch: Launch,
    host: String,
    kernel: String,
    policy: Option<Policy>,
    load_given: bool,
    idle: bool,
    scenario: String,
}

impl Question {
    pub(crate) fn new(tasks: &LaunchArgs, kernel: &KernelArgs, host: &HostArgs, load: &HostLoadArgs) -> Self {
        Self {
            tasks: tasks.tasks,
            origin: tasks.from,
            origin_is_task: tasks.origin_is_task,
            launch: tasks.launch,
            host: host.label(),
            kernel: kernel.kernel.clone().unwrap_or_default(),
            policy: None,
            load_given: load.host_load.is_some(),
            idle: load.host_idle,
            scenario: String::new(),
        }
    }

    /// The same with how the tasks should lie towards each other.
    pub(crate) fn with_policy(self, policy: Policy) -> Self {
        Self { policy: Some(policy), ..self }
    }

    /// The same under given circumstances.
    pub(crate) fn under(self, scenario: &ScenarioArgs) -> Self {
        Self { scenario: scenario.label(), ..self }
    }

    /// The block that an answer starts with.
    pub(super) fn head(
        &self,
        text: &mut Text,
        allowed: &str,
        profile: Option<&ProfileChoice>,
        snapshot: Option<&Snapshot>,
    ) {
        let verbose = text.page().verbose;
        let plain = |label, words: String| (label, Tone::Plain, words);
        text.heading("Question");
        text.fields([
            plain("tasks", numbers::grouped(self.tasks.into())),
            plain("policy", self.policy.map(Policy::name).unwrap_or_default().to_owned()),
            plain("allowed", cpus::counted(allowed, verbose)),
            plain("parent", self.parent()),
            plain("host", self.host.clone()),
            plain("load", self.load(snapshot)),
            plain("given", self.scenario.clone()),
            plain(
                "kernel",
                profile.map(|choice| kernel::chosen(choice, &self.kernel, verbose)).unwrap_or_default(),
            ),
        ]);
        if verbose {
            profile.iter().flat_map(|choice| &choice.evidence).for_each(|sentence| text.item(sentence));
        }
    }

    fn parent(&self) -> String {
        let how = match self.launch {
            Launch::Fork => "forks",
            Launch::Exec => "places them as they exec",
            Launch::ForkExec => "forks, and they exec at once,",
        };
        let place = match self.origin {
            Some(cpu) => format!("on CPU {cpu}"),
            None => "on any CPU it may be on; the worst is shown".to_owned(),
        };
        let part = if self.origin_is_task { "is the first of them; " } else { "" };
        format!("{part}{how} {place}")
    }

    /// On another host the load is what was given; on this one the snapshot tells.
    fn load(&self, snapshot: Option<&Snapshot>) -> String {
        if self.load_given {
            return "as given with --host-load".to_owned();
        }
        if self.idle {
            return "none, as given with --host-idle".to_owned();
        }
        match snapshot {
            Some(s) if s.topology_generation == 0 => "none".to_owned(),
            Some(s) if s.load_generation == 0 => "not known yet".to_owned(),
            Some(s) => {
                let age = numbers::wire_time(s.load_age);
                let stale = if s.load_stale { ", too old to rely on" } else { "" };
                let age = if age.is_empty() { String::new() } else { format!(", {age} old") };
                format!("as measured (sample {}{age}{stale})", s.load_generation)
            }
            None => String::new(),
        }
    }
}
