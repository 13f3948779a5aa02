//! A host's hardware with what each kernel that it may run makes of it.

use super::Choice;
use crate::ingest::{Facts, Hardware};
use berth_model::{
    domains::Domains,
    load,
    predict::{Host, Symmetry},
    profile::Profile,
    topology::{Error, Topology},
};

/// The hardware under one kernel.
#[derive(Debug)]
pub(crate) struct Under {
    pub(crate) profile: Profile,
    pub(crate) domains: Domains,
    pub(crate) symmetry: Symmetry,
}

impl Under {
    fn new(topology: &Topology, profile: Profile) -> Self {
        let domains = Domains::build(topology, &profile);
        let symmetry = Symmetry::new(topology, &domains);
        Self { profile, domains, symmetry }
    }
}

/// A host's hardware, built once and read often.
#[derive(Debug)]
pub(crate) struct Machine {
    pub(crate) topology: Topology,
    pub(crate) facts: Facts,
    pub(crate) choice: Choice,
    /// One for each profile of the choice, in its order.
    pub(crate) kernels: Vec<Under>,
    /// The domains under the rules that advice assumes.
    pub(crate) ideal: Domains,
}

impl Machine {
    /// Builds it. Takes milliseconds on large hosts: not for an async thread.
    pub(crate) fn try_new(hardware: Hardware, choice: Choice) -> Result<Self, Error> {
        let topology = Topology::try_new(hardware.description)?;
        let kernels = choice.profiles.iter().map(|profile| Under::new(&topology, *profile)).collect();
        let ideal = Domains::build(&topology, Profile::ideal());
        Ok(Self { facts: hardware.facts, kernels, ideal, choice, topology })
    }

    /// The same hardware under other kernels.
    pub(crate) fn under(&self, choice: Choice) -> Result<Self, Error> {
        Self::try_new(self.hardware(), choice)
    }

    /// What it was made of: a start for a changed one.
    pub(crate) fn hardware(&self) -> Hardware {
        Hardware { description: self.topology.describe(), facts: self.facts.clone() }
    }

    /// One kernel of it with what runs, as the model wants it.
    pub(crate) fn host<'a>(&'a self, under: &'a Under, load: &'a load::Load) -> Host<'a> {
        Host { topology: &self.topology, domains: &under.domains, profile: &under.profile, load }
    }
}
