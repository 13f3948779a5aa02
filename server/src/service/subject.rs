//! The host that a question is about: this one as the newest snapshot has it, or another one, read and built for
//! this question alone and then forgotten.

use super::{Context, modelled};
use crate::{
    convert::{
        Failure, Faults, Warnings,
        host::{self, Changes, HostAsked, LoadAsked, Source},
        kernel::KernelAsked,
    },
    ingest::{self, Hardware},
    snapshot::{Choice, Load, Machine, Snapshot},
};
use berth_model::topology;
use std::sync::Arc;

/// The host that a question is about.
#[derive(Debug)]
pub(crate) struct Subject {
    pub(crate) snapshot: Arc<Snapshot>,
    /// It was made for this question: so much the longer may the rest take.
    pub(crate) is_transient: bool,
}

impl Context {
    /// The host that a request is about, under the kernel that it names. Nothing if there is none because of a fault,
    /// which is noted.
    ///
    /// # Errors
    ///
    /// If there is no snapshot yet, or the host could not be read for another reason than its description.
    pub(crate) async fn subject(
        &self,
        asked: HostAsked,
        kernel: KernelAsked,
        faults: &mut Faults,
        warnings: &mut Warnings,
    ) -> Result<Option<Subject>, Failure> {
        let HostAsked { source, load, changes } = asked;
        let (field, read) = match source {
            Source::Here => return self.here(load, changes, kernel, faults, warnings).await.map(Some),
            Source::Xml(xml) => ("host.xml", self.reader.xml(&xml).await),
            Source::Synthetic(text) => ("host.synthetic", self.reader.synthetic(&text).await),
        };
        let mut hardware = match read {
            Ok(hardware) => hardware,
            Err(error) if error.is_of_description() => {
                faults.add(field, error.to_string());
                return Ok(None);
            }
            Err(ingest::Error::Busy { limit }) => {
                self.metrics.sheds.of("descriptions").inc();
                return Err(Failure::Overloaded { limit, of: "descriptions of other hosts" });
            }
            Err(error) => return Err(Failure::internal(chain(&error))),
        };
        changes.make(&mut hardware, faults);
        let unknown = "Nothing tells this host's kernel: every released one is possible.".to_owned();
        let choice = kernel.on(|| Choice::nothing_told(unknown))?;
        let built = self.foreign.run(move |_| Machine::try_new(hardware, choice)).await?;
        let Some(machine) = faults.take(field, built) else { return Ok(None) };
        let load = match load {
            LoadAsked::Given(given) => {
                Load::Given(Arc::new(host::load_for(&given, &machine.topology, faults, warnings)))
            }
            LoadAsked::Measured | LoadAsked::Idle => Load::Given(Arc::default()),
        };
        let snapshot = Snapshot {
            machine: Arc::new(machine),
            load,
            sampled: false,
            holds: Arc::default(),
            topology_generation: 0,
            changes: Arc::default(),
            here: None,
        };
        Ok(Some(Subject { snapshot: Arc::new(snapshot), is_transient: true }))
    }

    /// This host, with what the request replaces of it.
    async fn here(
        &self,
        load: LoadAsked,
        changes: Changes,
        kernel: KernelAsked,
        faults: &mut Faults,
        warnings: &mut Warnings,
    ) -> Result<Subject, Failure> {
        let newest = self.snapshot()?;
        let other_kernel = kernel.other_than(&newest.machine.choice)?;
        let is_changed = !changes.are_none();
        let machine = if changes.are_none() {
            match other_kernel {
                Some(choice) => {
                    let machine = Arc::clone(&newest.machine);
                    Some(self.build(move || machine.under(choice)).await?)
                }
                None => None,
            }
        } else {
            let mut hardware: Hardware = newest.machine.hardware();
            changes.make(&mut hardware, faults);
            let choice = other_kernel.unwrap_or_else(|| newest.machine.choice.clone());
            Some(self.build(move || Machine::try_new(hardware, choice)).await?)
        };
        let topology = machine.as_ref().map_or(&newest.machine.topology, |machine| &machine.topology);
        let load = match load {
            LoadAsked::Measured => newest.load.clone(),
            LoadAsked::Idle => Load::Given(Arc::default()),
            LoadAsked::Given(given) => {
                Load::Given(Arc::new(host::load_for(&given, topology, faults, warnings)))
            }
        };
        let is_transient = machine.is_some();
        let machine = machine.map_or_else(|| Arc::clone(&newest.machine), Arc::new);
        // A host of which something was replaced is no generation of this one.
        let topology_generation = if is_changed { 0 } else { newest.topology_generation };
        let snapshot = Arc::new(Snapshot { machine, load, topology_generation, ..(*newest).clone() });
        Ok(Subject { snapshot, is_transient })
    }

    /// Builds this host anew. It has CPUs, so that it can be built.
    async fn build(
        &self,
        build: impl FnOnce() -> Result<Machine, topology::Error> + Send + 'static,
    ) -> Result<Machine, Failure> {
        self.foreign.run(move |_| build()).await?.map_err(Failure::internal)
    }
}

impl Subject {
    /// # Errors
    ///
    /// If the model does not cover the host's kernel.
    pub(crate) fn modelled(&self) -> Result<(), Failure> {
        modelled(&self.snapshot.machine.choice)
    }
}

/// An error with what caused it.
fn chain(error: &dyn std::error::Error) -> String {
    let causes = std::iter::successors(Some(error), |error| error.source());
    causes.map(ToString::to_string).collect::<Vec<_>>().join(": ")
}
