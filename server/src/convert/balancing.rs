//! What load balancing does to an outcome, to the wire.

use super::time;
use berth_model::{
    predict::{Afterwards, Effect, Split},
    topology::{Level, Topology},
};
use berth_proto::v1::{self, balancing};
use std::time::Duration;

/// What load balancing does to an outcome.
#[derive(Debug)]
pub(crate) struct Balancing {
    /// Absent for kernels that balance by load.
    pub(crate) afterwards: Option<Afterwards>,
    /// The most lopsided split that it would let stand.
    pub(crate) split: Option<Split>,
}

impl Balancing {
    /// CPU time that the tasks get once it has done what it will.
    pub(crate) fn cpu_use(&self) -> Option<f64> {
        self.afterwards.as_ref().map(|afterwards| afterwards.central.tally.cpu_use)
    }

    pub(crate) fn to_wire(&self, topology: &Topology) -> v1::Balancing {
        let Some(afterwards) = &self.afterwards else {
            let because = "Kernels before v5.5 balance by load, which is not modelled.".to_owned();
            return v1::Balancing { because, ..v1::Balancing::default() };
        };
        let Afterwards { central, effect, fullest: (least, most), .. } = afterwards;
        let takes = central.takes_ms.filter(|_| central.moves > 0 && *effect == Effect::Repairs);
        let millis = |ms| Some(time::duration_to_wire(Duration::from_millis(ms)));
        v1::Balancing {
            effect: to_effect(*effect).into(),
            takes: takes.map(|(least, most)| v1::TimeRange { least: millis(least), most: millis(most) }),
            most_on_one_cpu: Some(v1::CountRange { least: *least, most: *most }),
            lets_stand: self.split.iter().filter_map(|split| to_split(split, topology)).collect(),
            because: because(afterwards),
        }
    }
}

/// What it does, in a sentence.
fn because(afterwards: &Afterwards) -> String {
    let Afterwards { central, effect, fullest: (least, most), hangs_on_marks } = afterwards;
    let moved = match central.moves {
        0 => "No task is moved".to_owned(),
        1 => "1 task is moved".to_owned(),
        moves => format!("{moves} tasks are moved"),
    };
    let outcome = match effect {
        Effect::NothingToDo => "no CPU holds more than it need.".to_owned(),
        Effect::Repairs => format!("the fullest CPU comes down to {}.", central.tally.fullest),
        Effect::LetsStand if least == most => format!("the fullest CPU keeps {most}."),
        Effect::LetsStand => format!("the fullest CPU keeps {least} to {most}."),
        Effect::MakesWorse => {
            format!(
                "the fullest CPU comes to {most}: groups are evened out by tasks, however few of their CPUs are allowed."
            )
        }
        Effect::PingPongs => format!("and back again: the fullest CPU has {least} to {most}."),
    };
    let marks =
        if *hangs_on_marks { " How far it goes hangs on marks that user space cannot read." } else { "" };
    format!("{moved}; {outcome}{marks}")
}

fn to_effect(effect: Effect) -> balancing::Effect {
    match effect {
        Effect::NothingToDo => balancing::Effect::NothingToDo,
        Effect::Repairs => balancing::Effect::Repairs,
        Effect::LetsStand => balancing::Effect::LetsStand,
        Effect::MakesWorse => balancing::Effect::MakesWorse,
        Effect::PingPongs => balancing::Effect::PingPongs,
    }
}

/// A split that is lopsided, if its groups are the units of a level.
fn to_split(split: &Split, topology: &Topology) -> Option<v1::Split> {
    let (most, least) = (split.tasks.first()?, split.tasks.last()?);
    let is_lopsided = most - least > 1;
    let level = [(Level::Package, v1::level::Value::Package), (Level::Node, v1::level::Value::Node)];
    let named = level.into_iter().find(|(level, _)| {
        let units = topology.units(*level);
        units.len() == split.groups.len() && units.iter().all(|unit| split.groups.contains(&unit.cpus))
    });
    let (_, level) = named.filter(|_| is_lopsided)?;
    Some(v1::Split { level: level.into(), tasks: split.tasks.clone() })
}
