//! Who asks for holds: a peer, with what is known of processes and cgroups.

use crate::{
    auth::{Held, Peer, Quotas, Role, effective_cpuset},
    convert::{Failure, cpus::shorten, hold_spec::Known},
    ledger::Owners,
    snapshot::Snapshot,
};
use berth_model::{
    cpuset::CpuSet,
    hold::{Mode, Process, Uid},
};
use std::sync::Arc;
use tonic::Request;

/// The caller of a request.
#[derive(Debug, Clone)]
pub(crate) struct Caller {
    peer: Peer,
    owners: Arc<Owners>,
}

impl Caller {
    pub(crate) fn of<T>(request: &Request<T>, owners: &Arc<Owners>) -> Self {
        Self { peer: Peer::of(request), owners: Arc::clone(owners) }
    }

    pub(crate) fn peer(&self) -> &Peer {
        &self.peer
    }

    /// Whether it may see what belongs to this uid.
    pub(crate) fn may_see(&self, uid: u32) -> bool {
        self.peer.may_see(uid)
    }

    /// The user whose hold a request names: the caller, or another one for an admin. None: the caller has no uid.
    ///
    /// # Errors
    ///
    /// If it names another one and is no admin.
    pub(crate) fn whose(&self, field: &str, named: Option<u32>) -> Result<Option<Uid>, Failure> {
        let own = self.peer.uid();
        if named.is_some() && named != own {
            self.peer.require(Role::Admin, &format!("`{field}` of another user"))?;
        }
        Ok(named.or(own).map(Uid))
    }

    /// The user that a new hold will belong to.
    ///
    /// # Errors
    ///
    /// As [`Caller::whose`], or if it has no uid.
    pub(crate) fn holder(&self, field: &str, named: Option<u32>) -> Result<Uid, Failure> {
        let nobody = || Failure::NotKnown {
            caller: self.peer.to_string(),
            expected: "a uid, as over the unix socket",
        };
        self.whose(field, named)?.ok_or_else(nobody)
    }

    /// The CPUs that it may hold, if these are not all.
    ///
    /// # Errors
    ///
    /// If it has ended.
    pub(crate) fn own_cpus(&self) -> Result<Option<CpuSet>, Failure> {
        effective_cpuset(&self.peer)
    }

    /// Goes on only if all these CPUs are among its own.
    ///
    /// # Errors
    ///
    /// If some are not.
    pub(crate) fn check_cpus(
        field: &'static str,
        cpus: &CpuSet,
        own: Option<&CpuSet>,
    ) -> Result<(), Failure> {
        let outside = own.map_or_else(CpuSet::new, |own| cpus.difference(own));
        if outside.is_empty() {
            return Ok(());
        }
        let own = own.map(shorten).unwrap_or_default();
        Err(Failure::OutsideCpuset { field, cpus: shorten(&outside), own })
    }

    /// Goes on only if it may have one more hold, of these CPUs.
    ///
    /// # Errors
    ///
    /// If that is more than its quota.
    pub(crate) fn check_quota(
        &self,
        quotas: Quotas,
        uid: Uid,
        mode: Mode,
        cpus: &CpuSet,
        snapshot: &Snapshot,
    ) -> Result<(), Failure> {
        let (holds, exclusive) = snapshot.holds.of_user(uid);
        let exclusive = if mode == Mode::Exclusive { exclusive.union(cpus) } else { exclusive };
        let held = Held { holds: holds + 1, exclusive_cpus: exclusive.len() };
        quotas.check(&self.peer, held, snapshot.machine.topology.online().len())
    }
}

impl Known for Caller {
    fn process(&self, pid: u32) -> Option<Process> {
        self.owners.process(pid)
    }

    fn caller(&self) -> Option<Process> {
        self.peer.process()
    }

    fn has_cgroup(&self, path: &str) -> bool {
        self.owners.has_cgroup(path)
    }

    fn may_name(&self, process: Process) -> bool {
        let own = |uid| self.owners.uid_of(process) == Some(uid);
        let session = |uid| self.peer.process().is_some_and(|of| self.owners.started(process, of, uid));
        self.peer.is_admin() || self.peer.uid().is_some_and(|uid| own(uid) || session(uid))
    }

    fn may_name_cgroup(&self, path: &str) -> bool {
        self.peer.is_admin() || self.peer.uid().is_some_and(|uid| self.owners.is_of(path, uid))
    }
}
