//! What the runtime is told to do with a container.

use std::collections::BTreeMap;

use berth_model::CpuSet;
use berth_proto::nri::{
    Container, ContainerAdjustment, ContainerUpdate, KeyValue, LinuxContainerAdjustment,
    LinuxContainerUpdate, LinuxCpu, LinuxResources,
};

use super::{
    containers::{Change, Keeping},
    counts::Outcome,
    decide::Decision,
    reach::Reach,
    wish::{Wish, cpu_of},
};

/// The CPUs that a container was given: by this it is known again.
pub(super) const CPUS: &str = "berth.dev/cpus";
/// Whether its mask is proven.
const STATUS: &str = "berth.dev/status";

/// A container that was placed: its cpuset, and the same told to it.
pub(super) fn placed(
    asked: &Container,
    wish: &Wish,
    decision: &Decision,
    reach: &Reach,
) -> ContainerAdjustment {
    let cpus = decision.placed.cpus.to_string();
    // A kubelet that gives out memory has said so already.
    let is_set = cpu_of(asked).is_some_and(|cpu| !cpu.mems.is_empty());
    let mems = if wish.strict_memory && !is_set { memory(decision, reach) } else { CpuSet::new() };
    let outcome = if decision.proven { Outcome::Placed } else { Outcome::Unproven };
    let mut env = vec![("BERTH_CPUS", cpus.clone())];
    if !mems.is_empty() {
        env.push(("BERTH_MEMS", mems.to_string()));
    }
    if let Keeping::Lease(hold) = &decision.placed.hold {
        env.push(("BERTH_HOLD", hold.clone()));
    }
    let annotations = [(CPUS, cpus.clone()), (STATUS, outcome.name().to_owned())];
    ContainerAdjustment {
        annotations: annotations.map(|(key, value)| (key.to_owned(), value)).into(),
        env: env.into_iter().filter(|(name, _)| !has(asked, name)).map(variable).collect(),
        linux: Some(LinuxContainerAdjustment { resources: Some(resources(cpus, mems.to_string())) }),
    }
}

/// A container that others' CPUs are kept from.
pub(super) fn narrowed(change: &Change) -> ContainerAdjustment {
    let resources = Some(resources(change.cpus.to_string(), String::new()));
    let linux = Some(LinuxContainerAdjustment { resources });
    ContainerAdjustment { annotations: BTreeMap::new(), env: Vec::new(), linux }
}

/// Another cpuset for a container that is there. The list is never empty: that would change nothing.
pub(super) fn update(change: Change) -> ContainerUpdate {
    let resources = Some(resources(change.cpus.to_string(), String::new()));
    ContainerUpdate {
        container_id: change.id,
        linux: Some(LinuxContainerUpdate { resources }),
        ignore_failure: false,
    }
}

/// The nodes to take memory from, of those that the kernel lets the pod use. Empty: any.
fn memory(decision: &Decision, reach: &Reach) -> CpuSet {
    decision.memory_nodes.intersection(&reach.memory_nodes)
}

/// Whether its user has set a variable.
fn has(asked: &Container, name: &str) -> bool {
    asked.env.iter().any(|variable| variable.split_once('=').is_some_and(|(set, _)| set == name))
}

fn variable((key, value): (&str, String)) -> KeyValue {
    KeyValue { key: key.to_owned(), value }
}

fn resources(cpus: String, mems: String) -> LinuxResources {
    LinuxResources { cpu: Some(LinuxCpu { cpus, mems, ..LinuxCpu::default() }), memory: None }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kube::nri::containers::Placed;
    use berth_proto::v1::policy;

    fn set(list: &str) -> CpuSet {
        CpuSet::parse(list).unwrap()
    }

    fn decision(proven: bool) -> Decision {
        let placed =
            Placed { cpus: set("2-3"), alone: CpuSet::new(), tasks: 2, hold: Keeping::Lease("7".to_owned()) };
        Decision { placed, memory_nodes: set("0-1"), proven, notes: Vec::new(), exclusive_refused: false }
    }

    fn told(
        strict_memory: bool,
        env: &[&str],
        mems: &str,
    ) -> (LinuxCpu, Vec<String>, BTreeMap<String, String>) {
        let policy = policy::Value::Auto;
        let wish = Wish { policy, tasks: 2, limit: 2, exclusive: None, strict_memory, hold: None };
        let asked =
            Container { env: env.iter().map(|&set| set.to_owned()).collect(), ..Container::default() };
        let reach = Reach { cpus: set("0-7"), memory_nodes: set(mems) };
        let adjust = placed(&asked, &wish, &decision(true), &reach);
        let cpu = adjust.linux.unwrap().resources.unwrap().cpu.unwrap();
        let env = adjust.env.into_iter().map(|set| format!("{}={}", set.key, set.value)).collect();
        (cpu, env, adjust.annotations)
    }

    #[test]
    fn a_container_is_told_where_it_is() {
        let (cpu, env, annotations) = told(false, &["PATH=/bin"], "0-1");
        assert_eq!((cpu.cpus.as_str(), cpu.mems.as_str()), ("2-3", ""));
        assert_eq!((cpu.shares, cpu.quota, cpu.period), (None, None, None), "nothing else is touched");
        assert_eq!(env, ["BERTH_CPUS=2-3", "BERTH_HOLD=7"]);
        assert_eq!((annotations[CPUS].as_str(), annotations[STATUS].as_str()), ("2-3", "placed"));
    }

    #[test]
    fn what_its_user_has_set_stays() {
        assert_eq!(told(false, &["BERTH_CPUS=mine", "BERTH_HOLD="], "0").1, [""; 0]);
    }

    #[test]
    fn memory_is_bound_on_demand_and_as_far_as_the_kernel_allows() {
        let (cpu, env, _) = told(true, &[], "1-3");
        assert_eq!((cpu.mems.as_str(), env[1].as_str()), ("1", "BERTH_MEMS=1"));
        let (cpu, env, _) = told(true, &[], "2-3");
        assert_eq!((cpu.mems.as_str(), env.len()), ("", 2), "none of the nodes may be used");
    }
}
