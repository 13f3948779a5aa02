//! Which flag fills which field of a request: what the server says of a field concerns the flag.

/// Fields, by the path that a field violation names them with, and their flags. A field stands for all below it.
const FLAGS: &[(&str, &str)] = &[
    ("tasks", "--tasks"),
    ("allowed", "--cpus"),
    ("cpus", "--cpus"),
    ("origin", "--from"),
    ("origin_is_task", "--origin-is-task"),
    ("launch", "--launch"),
    ("policy", "--policy"),
    ("smt", "--smt"),
    ("can_apply", "--form"),
    ("single_cpus", "--form"),
    ("view", "--explain"),
    ("host.xml", "--host-xml"),
    ("host.synthetic", "--host-synthetic"),
    ("host.load", "--host-load"),
    ("host.idle", "--host-idle"),
    ("host.cpu_vendor", "--cpu-vendor"),
    ("host.cpu_family", "--cpu-family"),
    ("host.isolated", "--host-isolated"),
    ("host.offline", "--host-offline"),
    ("kernel.release", "--kernel"),
    ("kernel.version", "--kernel-version"),
    ("kernel.version_signature", "--kernel-signature"),
    ("kernel.profile", "--profile"),
    ("kernel.rules", "--rule"),
    ("kernel", "--kernel"),
    ("host.partitions", "--host-partition"),
    ("host.distances", "--host-distances"),
    ("trace_tasks", "--trace-tasks"),
    ("trace", "--trace"),
    ("scenario.gap", "--gap"),
    ("scenario.children_sleep", "--children-sleep"),
    ("scenario.parent_keeps_running", "--parent-keeps-running"),
    ("scenario.preferred_node", "--preferred-node"),
    ("scenario.mark", "--mark"),
    ("scenario.marked", "--marked"),
    ("scenario.idle_order", "--idle-order"),
    ("scenario.exit_latencies", "--exit-latency"),
    ("scenario.holders", "--holders"),
    ("hold.owner.process", "--pid"),
    ("hold.owner.cgroup", "--cgroup"),
    ("hold.request_id", "--request-id"),
    ("hold.ttl", "--ttl"),
    ("hold.mode", "--exclusive"),
    ("hold.claim", "--under"),
    ("hold.name", "--name"),
    ("hold.labels", "--label"),
    ("claim", "--under"),
    ("ttl", "--ttl"),
    ("uid", "--uid"),
    ("every", "--every"),
    ("pids", "--pid"),
    ("cgroup", "--cgroup"),
    ("expected", "--expected"),
    ("watch_for", "--watch-for"),
];

/// The flag that fills a field, such as `--host-load` for `host.load[2].cpus` or `--launch` for `launch EXEC`. `None`:
/// no flag does.
pub(crate) fn flag_of(field: &str) -> Option<&'static str> {
    let is_of = |name: &str| {
        field.strip_prefix(name).is_some_and(|rest| rest.is_empty() || rest.starts_with(['.', '[', ' ']))
    };
    FLAGS.iter().find(|(name, _)| is_of(name)).map(|(_, flag)| *flag)
}

/// Methods that a sentence may send the reader to, and the commands that call them.
const COMMANDS: &[(&str, &str)] =
    &[("ListHolds", "berth holds"), ("ListProfiles", "berth profiles"), ("GetInfo", "berth info")];

/// A sentence of the server with the fields that it names as the flags that were or can be typed: `` `host.cpu_vendor` ``
/// becomes `` `--cpu-vendor` ``. So do methods as commands.
pub(crate) fn as_typed(sentence: &str) -> String {
    let mut parts: Vec<&str> = sentence.split('`').collect();
    // Between the first and the second mark, the third and the fourth, and so on.
    for quoted in parts.iter_mut().skip(1).step_by(2) {
        *quoted =
            FLAGS.iter().chain(COMMANDS).find(|(name, _)| name == quoted).map_or(*quoted, |(_, flag)| flag);
    }
    parts.join("`")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cli::Cli;
    use clap::CommandFactory as _;

    #[test]
    fn fields_and_what_is_below_them_have_their_flags() {
        for (field, flag) in [
            ("tasks", Some("--tasks")),
            ("origin_is_task", Some("--origin-is-task")),
            ("host.load[2].cpus", Some("--host-load")),
            ("kernel", Some("--kernel")),
            ("kernel.version", Some("--kernel-version")),
            ("can_apply[0]", Some("--form")),
            ("launch FORK_EXEC", Some("--launch")),
            ("scenario.gap", Some("--gap")),
            ("scenario.gap_of", None),
            ("tasksx", None),
        ] {
            assert_eq!(flag_of(field), flag, "{field}");
        }
    }

    #[test]
    fn sentences_name_flags() {
        assert_eq!(as_typed("Give `host.cpu_vendor` and `tasks`."), "Give `--cpu-vendor` and `--tasks`.");
        assert_eq!(as_typed("`zero` is no CPU of `host.load[0]`"), "`zero` is no CPU of `host.load[0]`");
        assert_eq!(as_typed("tasks"), "tasks");
        assert_eq!(as_typed(""), "");
    }

    #[test]
    fn every_flag_named_here_can_be_typed() {
        let cli = Cli::command();
        let known = |flag: &str| {
            let long = flag.trim_start_matches('-');
            let nested = || cli.get_subcommands().flat_map(|command| command.get_subcommands());
            cli.get_subcommands()
                .chain(nested())
                .any(|c| c.get_arguments().any(|a| a.get_long() == Some(long)))
        };
        for (field, flag) in FLAGS {
            assert!(known(flag), "{field}: {flag}");
        }
    }

    #[test]
    fn every_field_named_here_is_in_the_contract() {
        let pool = prost_reflect::DescriptorPool::decode(berth_proto::FILE_DESCRIPTOR_SET).unwrap();
        let requests = [
            "PredictRequest",
            "AdviseRequest",
            "GetTopologyRequest",
            "GetLoadRequest",
            "ListHoldsRequest",
            "RenewHoldRequest",
            "WatchLoadRequest",
            "VerifyRequest",
        ]
        .map(|name| pool.get_message_by_name(&format!("berth.v1.{name}")).unwrap());
        for (field, _) in FLAGS {
            let found = requests.iter().any(|request| {
                let mut message = Some(request.clone());
                field.split('.').all(|part| {
                    let next = message.as_ref().and_then(|m| m.get_field_by_name(part));
                    message = next.as_ref().and_then(|f| f.kind().as_message().cloned());
                    next.is_some()
                })
            });
            assert!(found, "{field}");
        }
    }
}
