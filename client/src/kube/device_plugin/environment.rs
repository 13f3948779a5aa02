//! What a container finds in its environment of the CPUs that are held for it.

use std::collections::BTreeMap;

use berth_model::CpuSet;
use berth_proto::v1::Hold;

/// The hold's id, and its CPUs by number if the container is bound to them.
#[doc(alias = "BERTH_HOLD")]
pub(super) fn of(hold: &Hold, bound: bool) -> BTreeMap<String, String> {
    let mut variables = BTreeMap::new();
    let mut set = |name: &str, value: String| _ = variables.insert(name.to_owned(), value);
    set("BERTH_HOLD", hold.id.clone());
    if !bound {
        return variables;
    }
    set("BERTH_CPUS", hold.cpus.clone());
    if !hold.memory_nodes.is_empty() {
        set("BERTH_MEMORY_NODES", hold.memory_nodes.clone());
    }
    // OpenMP binds its first thread too, and whatever that one starts stays there with it: where there is a choice of places, it
    // is not made here.
    let cpus = CpuSet::parse(&hold.cpus).unwrap_or_default();
    if let (1, Some(cpu)) = (cpus.len(), cpus.first()) {
        set("OMP_PLACES", format!("{{{}}}", cpu.number()));
        set("OMP_PROC_BIND", "close".to_owned());
    }
    variables
}

#[cfg(test)]
mod tests {
    use super::*;

    fn told(cpus: &str, bound: bool) -> String {
        let hold = Hold {
            id: "h1".to_owned(),
            cpus: cpus.to_owned(),
            memory_nodes: "0-1".to_owned(),
            ..Hold::default()
        };
        of(&hold, bound).iter().map(|(name, value)| format!("{name}={value} ")).collect()
    }

    #[test]
    fn numbers_are_for_containers_that_are_bound() {
        assert_eq!(told("1-2,5-6", false), "BERTH_HOLD=h1 ");
        assert_eq!(told("1-2,5-6", true), "BERTH_CPUS=1-2,5-6 BERTH_HOLD=h1 BERTH_MEMORY_NODES=0-1 ");
        let one = "BERTH_CPUS=5 BERTH_HOLD=h1 BERTH_MEMORY_NODES=0-1 OMP_PLACES={5} OMP_PROC_BIND=close ";
        assert_eq!(told("5", true), one);
    }
}
