//! What a pod asks for, in its annotations, and what its container's limit demands.

use std::collections::BTreeMap;

use berth_proto::{
    nri::{Container, LinuxCpu, PodSandbox},
    v1::{level, policy},
};

use crate::kube::HOLD_ANNOTATION;

/// The policy, or `off`. A pod that has this annotation asks for its containers to be placed.
const POLICY: &str = "berth.dev/policy";
/// How many tasks run in the container at a time.
const TASKS: &str = "berth.dev/tasks";
/// Of what size its CPUs are its own alone.
const EXCLUSIVE: &str = "berth.dev/exclusive";
/// Whether its memory must come from the nodes of its CPUs.
const MEMORY: &str = "berth.dev/memory";

/// What the kernel takes for a period where none is given, in µs.
#[doc(alias = "cpu.cfs_period_us")]
const PERIOD: u64 = 100_000;

/// What is asked for a container.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Wish {
    pub(super) policy: policy::Value,
    /// How many tasks it is for.
    pub(super) tasks: u32,
    /// No fewer CPUs than this: its CPU limit, rounded up. 0: it has none.
    pub(super) limit: u32,
    /// Whole units of this level are for it alone.
    pub(super) exclusive: Option<level::Value>,
    /// Its memory must come from the nodes advised.
    pub(super) strict_memory: bool,
    /// The hold whose CPUs it is to have.
    pub(super) hold: Option<String>,
}

impl Wish {
    /// What is asked for this container. `None`: nothing.
    ///
    /// # Errors
    ///
    /// What is wrong with the annotations.
    pub(super) fn of(pod: &PodSandbox, container: &Container) -> Result<Option<Self>, String> {
        let asked = Asked { annotations: &pod.annotations, container: &container.name };
        let hold = container.annotations.get(HOLD_ANNOTATION).cloned();
        let policy = match asked.get(POLICY) {
            Some("off") => return Ok(None),
            None if hold.is_none() => return Ok(None),
            None | Some("" | "auto") => policy::Value::Auto,
            Some("spread") => policy::Value::Spread,
            Some("compact") => policy::Value::Compact,
            Some(other) => return Err(wrong(POLICY, other, "auto, spread, compact or off")),
        };
        let limit = limit(cpu_of(container));
        let tasks = match asked.get(TASKS) {
            None => limit,
            Some(text) => match text.parse() {
                Ok(tasks @ 1..=65_536) => tasks,
                _ => return Err(wrong(TASKS, text, "a number from 1 to 65536")),
            },
        };
        if tasks == 0 && hold.is_none() {
            let name = &container.name;
            return Err(format!(
                "{name} has no CPU limit; expected one, or {TASKS}, to say how many tasks it runs"
            ));
        }
        let exclusive = match asked.get(EXCLUSIVE) {
            None | Some("false") => None,
            Some("true" | "pu") => Some(level::Value::Pu),
            Some("core") => Some(level::Value::Core),
            Some("llc") => Some(level::Value::Llc),
            Some("node") => Some(level::Value::Node),
            Some("package") => Some(level::Value::Package),
            Some(other) => {
                return Err(wrong(EXCLUSIVE, other, "true (its CPUs), core, llc, node, package or false"));
            }
        };
        let strict_memory = match asked.get(MEMORY) {
            None | Some("preferred") => false,
            Some("strict") => true,
            Some(other) => return Err(wrong(MEMORY, other, "strict or preferred")),
        };
        Ok(Some(Self { policy, tasks, limit, exclusive, strict_memory, hold }))
    }
}

fn wrong(key: &str, value: &str, expected: &str) -> String {
    format!("{key}: `{value}`; expected {expected}")
}

/// The pod's annotations, as they hold for one of its containers.
struct Asked<'a> {
    annotations: &'a BTreeMap<String, String>,
    container: &'a str,
}

impl<'a> Asked<'a> {
    /// `KEY.CONTAINER` counts before `KEY`.
    fn get(&self, key: &str) -> Option<&'a str> {
        let own = self.annotations.get(&format!("{key}.{}", self.container));
        own.or_else(|| self.annotations.get(key)).map(|value| value.trim())
    }
}

/// What the container may use of the CPUs.
pub(super) fn cpu_of(container: &Container) -> Option<&LinuxCpu> {
    container.linux.as_ref()?.resources.as_ref()?.cpu.as_ref()
}

/// The CPU limit, rounded up. 0: there is none.
#[doc(alias = "cpu.cfs_quota_us")]
pub(super) fn limit(cpu: Option<&LinuxCpu>) -> u32 {
    let Some(cpu) = cpu else { return 0 };
    let quota = cpu.quota.as_ref().and_then(|quota| u64::try_from(quota.value).ok()).unwrap_or(0);
    let period = cpu.period.as_ref().map(|period| period.value).filter(|&period| period > 0);
    u32::try_from(quota.div_ceil(period.unwrap_or(PERIOD))).unwrap_or(u32::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;
    use berth_proto::nri::{LinuxContainer, LinuxResources, OptionalInt64, OptionalUInt64};

    fn cpu(quota: Option<i64>, period: Option<u64>) -> LinuxCpu {
        LinuxCpu {
            quota: quota.map(|value| OptionalInt64 { value }),
            period: period.map(|value| OptionalUInt64 { value }),
            ..LinuxCpu::default()
        }
    }

    fn asked(
        of_pod: &[(&str, &str)],
        of_container: &[(&str, &str)],
        quota: Option<i64>,
    ) -> Result<Option<Wish>, String> {
        let map = |pairs: &[(&str, &str)]| pairs.iter().map(|&(k, v)| (k.to_owned(), v.to_owned())).collect();
        let resources = LinuxResources { cpu: Some(cpu(quota, Some(100_000))), memory: None };
        let pod = PodSandbox { annotations: map(of_pod), ..PodSandbox::default() };
        let container = Container {
            name: "main".to_owned(),
            annotations: map(of_container),
            linux: Some(LinuxContainer { resources: Some(resources), ..LinuxContainer::default() }),
            ..Container::default()
        };
        Wish::of(&pod, &container)
    }

    #[test]
    fn a_limit_is_rounded_up() {
        for (quota, period, expected) in [
            (Some(100_000), Some(100_000), 1),
            (Some(150_000), Some(100_000), 2),
            (Some(50_000), Some(100_000), 1),
            (Some(250_000), None, 3),
            (Some(10_000), Some(0), 1),
            (Some(400_000), Some(50_000), 8),
            (Some(0), Some(100_000), 0),
            (Some(-1), Some(100_000), 0),
            (None, Some(100_000), 0),
            (Some(i64::MAX), Some(1), u32::MAX),
        ] {
            assert_eq!(limit(Some(&cpu(quota, period))), expected, "{quota:?} {period:?}");
        }
        assert_eq!(limit(None), 0);
    }

    #[test]
    fn only_pods_that_ask_are_placed() {
        assert_eq!(asked(&[], &[], Some(200_000)), Ok(None));
        assert_eq!(asked(&[(TASKS, "4"), (EXCLUSIVE, "core")], &[], Some(200_000)), Ok(None));
        assert_eq!(asked(&[(POLICY, "off")], &[(HOLD_ANNOTATION, "7")], Some(200_000)), Ok(None));
        let wish = asked(&[(POLICY, "spread")], &[], Some(150_000)).unwrap().unwrap();
        assert_eq!((wish.policy, wish.tasks, wish.limit, wish.hold), (policy::Value::Spread, 2, 2, None));
        let wish = asked(&[], &[(HOLD_ANNOTATION, "7")], None).unwrap().unwrap();
        assert_eq!((wish.policy, wish.tasks, wish.hold.as_deref()), (policy::Value::Auto, 0, Some("7")));
    }

    #[test]
    fn a_container_may_be_named() {
        let pod = [
            (POLICY, "off"),
            ("berth.dev/policy.main", "compact"),
            (TASKS, "9"),
            ("berth.dev/tasks.main", " 3 "),
            ("berth.dev/tasks.other", "x"),
            (EXCLUSIVE, "core"),
            (MEMORY, "strict"),
        ];
        let wish = asked(&pod, &[], Some(100_000)).unwrap().unwrap();
        assert_eq!((wish.policy, wish.tasks, wish.limit), (policy::Value::Compact, 3, 1));
        assert_eq!((wish.exclusive, wish.strict_memory), (Some(level::Value::Core), true));
    }

    #[test]
    fn what_cannot_be_read_is_named() {
        for (key, value, says) in [
            (POLICY, "sideways", "expected auto, spread, compact or off"),
            (TASKS, "0", "expected a number from 1 to 65536"),
            (TASKS, "65537", "expected a number from 1 to 65536"),
            (TASKS, "two", "expected a number from 1 to 65536"),
            (EXCLUSIVE, "yes", "expected true (its CPUs), core"),
            (MEMORY, "near", "expected strict or preferred"),
        ] {
            let error = asked(&[(POLICY, "auto"), (key, value)], &[], Some(100_000)).unwrap_err();
            assert!(error.contains(&format!("{key}: `{value}`")) && error.contains(says), "{error}");
        }
        let error = asked(&[(POLICY, "auto")], &[], None).unwrap_err();
        assert!(error.contains("main has no CPU limit"), "{error}");
    }
}
