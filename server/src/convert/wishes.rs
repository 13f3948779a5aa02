//! Where in the host tasks may be, from the wire.

use super::{Faults, predict::known_enum};
use berth_model::{
    advise::{Exclusive, Near, Within},
    cpuset::Cpu,
    topology::{self, Topology},
};
use berth_proto::v1::{self, level, near::Place};

/// What is wished for, but for what depends on the host.
#[derive(Debug, Clone, Default)]
pub(crate) struct Wishes {
    pub(crate) within: Option<Within>,
    near: Option<Place>,
    pub(crate) exclusive: Option<Exclusive>,
}

impl Wishes {
    pub(crate) fn from_wire(request: &v1::AdviseRequest, faults: &mut Faults) -> Self {
        Self {
            within: request.within.as_ref().and_then(|wish| within(*wish, faults)),
            near: request.near.as_ref().and_then(|near| near.place.clone()),
            exclusive: exclusive(request.exclusive, faults),
        }
    }

    /// The place to be near to, on this host.
    pub(crate) fn near(&self, topology: &Topology, faults: &mut Faults) -> Option<Near> {
        match self.near.as_ref()? {
            Place::Cpu(number) => {
                let near = Cpu::try_new(*number).and_then(|cpu| Near::cpu(topology, cpu));
                if near.is_none() {
                    let online = super::cpus::shorten(topology.online());
                    faults.add("near.cpu", format!("CPU {number} is not online; expected one of {online}"));
                }
                near
            }
            Place::Node(id) => {
                let near = Near::node(topology, *id);
                if near.is_none() {
                    let all = topology.nodes().iter().filter_map(|node| Cpu::try_new(node.id)).collect();
                    let nodes = super::cpus::shorten(&all);
                    faults.add("near.node", format!("there is no NUMA node {id}; expected one of {nodes}"));
                }
                near
            }
            Place::Pci(_) => None,
        }
    }
}

/// A unit of the model's. `None` for single CPUs, for the whole host, and for none.
fn unit(level: level::Value) -> Option<topology::Level> {
    match level {
        level::Value::Unspecified | level::Value::Pu | level::Value::Machine => None,
        level::Value::Core => Some(topology::Level::Core),
        level::Value::Llc => Some(topology::Level::Llc),
        level::Value::Node => Some(topology::Level::Node),
        level::Value::Package => Some(topology::Level::Package),
    }
}

fn within(wish: v1::Within, faults: &mut Faults) -> Option<Within> {
    known_enum("within.level", wish.level, level::Value::try_from(wish.level).is_ok(), faults);
    let level = wish.level();
    match level {
        level::Value::Pu => {
            let said = "PU is no part that tasks fit into; expected CORE, LLC, NODE, PACKAGE or MACHINE";
            faults.add("within.level", said);
        }
        level::Value::Unspecified if wish.required => {
            faults.add(
                "within.level",
                "required, and not said what; expected CORE, LLC, NODE, PACKAGE or MACHINE",
            );
        }
        _ => {}
    }
    unit(level).map(|level| Within { level, required: wish.required })
}

fn exclusive(number: i32, faults: &mut Faults) -> Option<Exclusive> {
    let level = level::Value::try_from(number);
    known_enum("exclusive", number, level.is_ok(), faults);
    match level.ok()? {
        level::Value::Unspecified => None,
        level::Value::Pu => Some(Exclusive::Cpus),
        level::Value::Machine => Some(Exclusive::Host),
        other => unit(other).map(Exclusive::Units),
    }
}
