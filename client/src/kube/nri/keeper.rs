//! What is asked of berthd: where a container goes, and that its CPUs are kept for it.

use std::{collections::BTreeMap, fs, sync::Arc, time::Duration};

use berth_model::CpuSet;
use berth_proto::v1::{
    AdoptHoldRequest, AdviseRequest, AdviseResponse, CreateHoldRequest, Finding, GetHoldRequest,
    GetInfoRequest, Hold, HoldSpec, ListHoldsRequest, Owner, PredictRequest, Process, ReleaseHoldRequest,
    RenewHoldRequest, VerifyRequest, hold, hold_service_client::HoldServiceClient,
    info_service_client::InfoServiceClient, owner, placement_service_client::PlacementServiceClient, verdict,
};
use tokio::sync::OnceCell;
use tonic::{Code, Request, Response, Status, transport::Channel};

use super::{containers::Placed, given::Given};
use crate::{
    Error, child,
    connection::{Connection, MAX_ANSWER},
};

/// How long CPUs are kept for a container that is not started yet. It is renewed for as long as that takes.
const LEASE: Duration = Duration::from_secs(60);
/// For how long running tasks are looked at: what lasts that long is no passing clash.
const LOOK: Duration = Duration::from_secs(1);
/// The label of a hold that says which container it is for.
const ID: &str = "kube.id";
/// How long CPUs count as given out by the kubelet, should nobody say so any more.
const GIVEN: Duration = Duration::from_secs(600);
/// The label of a hold that says which container the kubelet gave the CPUs to.
const GIVEN_TO: &str = "kube.given";
/// The most characters of a label, all of them ASCII.
const MAX_LABEL: usize = 250;
/// Holds in a page.
const PAGE: u32 = 1000;

/// berthd, to the plugin.
#[derive(Debug, Clone)]
pub(super) struct Keeper {
    connection: Connection,
    /// The longest time of a hold that it gives.
    longest: Arc<OnceCell<Duration>>,
}

/// For whom CPUs are kept.
#[derive(Debug, Clone, Copy)]
pub(super) struct Whom<'a> {
    /// The container's id.
    pub(super) id: &'a str,
    /// Namespace, pod and name.
    pub(super) title: &'a str,
}

impl Whom<'_> {
    /// The hold's name.
    fn name(&self) -> String {
        format!("kube/{}", self.id)
    }
}

impl Keeper {
    pub(super) fn new(connection: Connection) -> Self {
        Self { connection, longest: Arc::default() }
    }

    /// A hold for a container, that ends by itself soon unless it is renewed or gets an owner.
    pub(super) async fn lease(&self, whom: Whom<'_>) -> Result<HoldSpec, Error> {
        let labels = [(ID, whom.id), ("kube.container", whom.title)];
        let labels = labels.map(|(key, value)| (key.to_owned(), short(value)));
        Ok(HoldSpec { name: whom.name(), labels: labels.into(), ..self.without_owner(LEASE).await? })
    }

    /// A hold that ends after this time, or after the longest that berthd gives.
    async fn without_owner(&self, ttl: Duration) -> Result<HoldSpec, Error> {
        let longest = self.longest.get_or_try_init(async || {
            let asked = self.ask(GetInfoRequest {}, async |channel, request| {
                InfoServiceClient::new(channel).get_info(request).await
            });
            let limits = asked.await?.limits;
            Ok::<_, Error>(
                limits.and_then(|limits| limits.hold_ttl?.try_into().ok()).unwrap_or(Duration::MAX),
            )
        });
        let ttl = ttl.min(*longest.await?).try_into().ok();
        Ok(HoldSpec { owner: Some(Owner { owner: None }), ttl, ..HoldSpec::default() })
    }

    pub(super) async fn advise(&self, request: AdviseRequest) -> Result<AdviseResponse, Error> {
        self.ask(request, async |channel, request| placements(channel).advise(request).await).await
    }

    /// Whether so many tasks pile up on these CPUs.
    pub(super) async fn predict(&self, tasks: u32, allowed: String) -> Result<verdict::Value, Error> {
        let request = PredictRequest { tasks, allowed, ..PredictRequest::default() };
        let asked = self.ask(request, async |channel, request| placements(channel).predict(request).await);
        Ok(asked.await?.verdict())
    }

    /// What is wrong with the tasks of a container, which should be on these CPUs: looked at for a while.
    pub(super) async fn verify(&self, owner: owner::Owner, expected: String) -> Result<Vec<Finding>, Error> {
        let (pids, cgroup) = match owner {
            owner::Owner::Process(process) => (vec![process.pid], String::new()),
            owner::Owner::Cgroup(path) => (Vec::new(), path),
        };
        let watch_for = LOOK.try_into().ok();
        let request = VerifyRequest { pids, cgroup, expected, watch_for, ..VerifyRequest::default() };
        let patient = self.connection.within(self.connection.limit() + LOOK);
        let asked = patient.ask(request, async |channel, request| placements(channel).verify(request).await);
        let workloads = Box::pin(asked).await?.workloads;
        Ok(workloads.into_iter().flat_map(|workload| workload.findings).collect())
    }

    /// The hold of this id.
    pub(super) async fn get(&self, id: &str) -> Result<Hold, Error> {
        let request = GetHoldRequest { id: id.to_owned(), uid: None };
        let asked = self.ask(request, async |channel, request| holds(channel).get_hold(request).await);
        Ok(asked.await?.hold.unwrap_or_default())
    }

    /// The holds of containers, by the container's id.
    pub(super) async fn all(&self) -> Result<BTreeMap<String, Hold>, Error> {
        self.labelled(ID).await
    }

    /// The CPUs that berthd knows to be given out by the kubelet, by namespace, pod and name.
    pub(super) async fn given(&self) -> Result<BTreeMap<String, Given>, Error> {
        let given = |hold: Hold| Given {
            cpus: CpuSet::parse(&hold.cpus).unwrap_or_default(),
            hold: hold.id,
            piles_up: false,
        };
        let holds = self.labelled(GIVEN_TO).await?.into_iter();
        Ok(holds.map(|(title, hold)| (title, given(hold))).collect())
    }

    /// The living holds that have this label, by what it says.
    async fn labelled(&self, label: &str) -> Result<BTreeMap<String, Hold>, Error> {
        let (mut all, mut page_token) = (BTreeMap::new(), String::new());
        loop {
            let uid = Some(rustix::process::geteuid().as_raw());
            let request =
                ListHoldsRequest { page_size: PAGE, page_token, uid, ..ListHoldsRequest::default() };
            let page =
                self.ask(request, async |channel, request| holds(channel).list_holds(request).await).await?;
            let said = |hold: Hold| Some((hold.labels.get(label)?.clone(), hold));
            all.extend(page.holds.into_iter().filter_map(said));
            page_token = page.next_page_token;
            if page_token.is_empty() {
                return Ok(all);
            }
        }
    }

    /// Keeps CPUs that a container has already. They may be others' too.
    pub(super) async fn keep(&self, whom: Whom<'_>, placed: &Placed) -> Result<Hold, Error> {
        let mode = if placed.alone.is_empty() { hold::Mode::Shared } else { hold::Mode::Exclusive };
        let hold = Some(HoldSpec { mode: mode.into(), ..self.lease(whom).await? });
        let (cpus, tasks) = (placed.cpus.union(&placed.alone).to_string(), placed.tasks);
        self.create(CreateHoldRequest { hold, cpus, tasks, ..CreateHoldRequest::default() }).await
    }

    /// Says that the kubelet has given CPUs to a container.
    pub(super) async fn give(&self, title: &str, cpus: &CpuSet) -> Result<Hold, Error> {
        let hold = HoldSpec {
            mode: hold::Mode::Exclusive.into(),
            labels: [(GIVEN_TO.to_owned(), short(title))].into(),
            ..self.without_owner(GIVEN).await?
        };
        let (hold, cpus) = (Some(hold), cpus.to_string());
        self.create(CreateHoldRequest { hold, cpus, foreign: true, ..CreateHoldRequest::default() }).await
    }

    async fn create(&self, request: CreateHoldRequest) -> Result<Hold, Error> {
        let asked = self.ask(request, async |channel, request| holds(channel).create_hold(request).await);
        Ok(asked.await?.hold.unwrap_or_default())
    }

    /// Has a hold end with the container.
    pub(super) async fn adopt(&self, hold: &str, owner: owner::Owner) -> Result<(), Error> {
        let owner = Some(Owner { owner: Some(owner) });
        let request = AdoptHoldRequest { id: hold.to_owned(), owner, ..AdoptHoldRequest::default() };
        self.ask(request, async |channel, request| holds(channel).adopt_hold(request).await).await.map(drop)
    }

    /// Has a lease last as long again as it was given.
    pub(super) async fn renew(&self, hold: &str) -> Result<(), Error> {
        let request = RenewHoldRequest { id: hold.to_owned(), ttl: None, uid: None };
        self.ask(request, async |channel, request| holds(channel).renew_hold(request).await).await.map(drop)
    }

    /// Lets CPUs go. That they were let go before is no error.
    pub(super) async fn release(&self, hold: String) -> Result<(), Error> {
        let request = ReleaseHoldRequest { id: hold, uid: None };
        match self.ask(request, async |channel, request| holds(channel).release_hold(request).await).await {
            Err(error) if is(&error, Code::NotFound) => Ok(()),
            released => released.map(drop),
        }
    }

    /// Lets go what may have been kept for a container, by an answer that did not come.
    pub(super) async fn release_of(&self, whom: Whom<'_>) -> Result<(), Error> {
        self.release(whom.name()).await
    }

    async fn ask<Q, A>(
        &self,
        question: Q,
        call: impl AsyncFnOnce(Channel, Request<Q>) -> Result<Response<A>, Status>,
    ) -> Result<A, Error> {
        Box::pin(self.connection.ask(question, call)).await
    }
}

fn placements(channel: Channel) -> PlacementServiceClient<Channel> {
    PlacementServiceClient::new(channel).max_decoding_message_size(MAX_ANSWER)
}

fn holds(channel: Channel) -> HoldServiceClient<Channel> {
    HoldServiceClient::new(channel).max_decoding_message_size(MAX_ANSWER)
}

/// As much of a text as fits into a label.
pub(super) fn short(text: &str) -> String {
    text.chars().filter(char::is_ascii).take(MAX_LABEL).collect()
}

/// Whether the server was there and answered with this.
pub(super) fn is(error: &Error, code: Code) -> bool {
    matches!(error, Error::Refused { status, .. } if status.code() == code)
}

/// Who a container's hold may end with, the best first: its cgroup, which what is started in it later belongs to as well; its first
/// process. Empty: that process is not seen from here.
pub(super) fn owners(pid: u32, id: &str) -> Vec<owner::Owner> {
    let Some(start_time) = child::start_time(pid) else { return Vec::new() };
    let cgroups = fs::read_to_string(format!("/proc/{pid}/cgroup")).unwrap_or_default();
    let cgroup = cgroup_of(&cgroups, id).map(|path| owner::Owner::Cgroup(path.to_owned()));
    let process = owner::Owner::Process(Process { pid, start_time });
    cgroup.into_iter().chain([process]).collect()
}

/// The cgroup of a container, from the text of /proc/PID/cgroup: one that is named after it.
fn cgroup_of<'a>(cgroups: &'a str, id: &str) -> Option<&'a str> {
    let paths = cgroups.lines().filter_map(|line| line.splitn(3, ':').nth(2));
    let mut own = paths.filter(|path| !id.is_empty() && path.contains(id) && !path.contains("/.."));
    own.next()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cgroup_is_a_containers_own_if_it_is_named_after_it() {
        let v1 = "3:cpuset:/kubepods/burstable/pod7/c0ffee\n1:name=systemd:/kubepods/burstable/pod7/c0ffee\n0::/\n";
        assert_eq!(cgroup_of(v1, "c0ffee"), Some("/kubepods/burstable/pod7/c0ffee"));
        let v2 = "0::/kubepods.slice/kubepods-pod7.slice/cri-containerd-c0ffee.scope\n";
        assert_eq!(
            cgroup_of(v2, "c0ffee"),
            Some("/kubepods.slice/kubepods-pod7.slice/cri-containerd-c0ffee.scope")
        );
        for (elsewhere, id) in [
            ("0::/../../pod7/c0ffee\n", "c0ffee"),
            ("0::/system.slice/cron.service\n", "c0ffee"),
            ("0::/\n", ""),
            ("", "c0ffee"),
        ] {
            assert_eq!(cgroup_of(elsewhere, id), None, "{elsewhere}");
        }
    }

    #[test]
    fn a_process_that_is_not_seen_owns_nothing() {
        assert_eq!(owners(u32::MAX, "c0ffee"), []);
        let own = owners(std::process::id(), "no such container");
        assert!(matches!(own[..], [owner::Owner::Process(Process { start_time: 1.., .. })]), "{own:?}");
    }

    #[test]
    fn labels_are_as_long_as_berthd_takes_them() {
        assert_eq!(short(&"t\u{e9}".repeat(300)), "t".repeat(MAX_LABEL));
        assert_eq!(Whom { id: "c0ffee", title: "" }.name(), "kube/c0ffee");
    }
}
