//! What the plugin answers to each call of the runtime.

use std::{mem, path::PathBuf, time::Duration};

use berth_model::CpuSet;
use berth_proto::nri::{
    self, ConfigureRequest, ConfigureResponse, ContainerEvent, CreateContainerRequest,
    CreateContainerResponse, PodSandbox, StopContainerRequest, StopContainerResponse, SynchronizeRequest,
    SynchronizeResponse, UpdateContainerRequest, UpdateContainerResponse,
    ttrpc::{Request, Response},
};
use tokio::time::{Instant, sleep, timeout};

use super::{
    adjust,
    containers::{Change, Container, Containers, Keeping},
    counts::{Counts, Found, Outcome},
    decide::{Decision, Subject},
    keeper::{Keeper, Whom, owners},
    manager::Manager,
    reach::Reach,
    say, ttrpc,
    wish::{Wish, cpu_of, limit},
};

/// How long a runtime waits for an answer that does not say.
const PATIENCE: Duration = Duration::from_secs(2);
/// After this time a container's tasks have mostly started.
const SETTLED: Duration = Duration::from_secs(2);
/// How long the answer to Synchronize takes at most: all pods of the node wait for it.
const SYNCHRONIZE_LIMIT: Duration = Duration::from_secs(1);

/// The calls that are wanted, by the numbers that runtimes have for them. Every pod of the node waits for each call, so no more
/// than it takes to know all containers.
const WANTED: [u32; 5] = [CREATE, POST_START, UPDATE, STOP, REMOVE];
const CREATE: u32 = 4;
const POST_START: u32 = 7;
const UPDATE: u32 = 8;
const STOP: u32 = 10;
const REMOVE: u32 = 11;

/// The plugin, which outlives its connections.
#[derive(Debug)]
pub(super) struct Plugin {
    pub(super) keeper: Keeper,
    pub(super) counts: Counts,
    manager_state: PathBuf,
    pub(super) containers: Containers,
    /// The parts of a Synchronize so far.
    parts: SynchronizeRequest,
    /// How long an answer takes at most.
    within: Duration,
    /// How long the runtime waits for an answer, by its own word.
    patience: Duration,
    /// All containers were told.
    synchronized: bool,
    sees_processes: bool,
}

impl Plugin {
    pub(super) fn new(keeper: Keeper, manager_state: PathBuf, within: Duration, counts: Counts) -> Self {
        Self {
            keeper,
            counts,
            manager_state,
            containers: Containers::default(),
            parts: SynchronizeRequest::default(),
            within,
            patience: PATIENCE,
            synchronized: false,
            sees_processes: false,
        }
    }

    /// A connection begins: nothing was told on it yet.
    ///
    /// `sees_processes`: the numbers of the runtime's processes are theirs here too. Where they are not, nothing is asked of them.
    pub(super) fn begin(&mut self, sees_processes: bool) {
        if !sees_processes {
            self.counts.failures.inc();
            say!(
                "warning: processes of containers are not seen from here; a pod of this plugin needs hostPID"
            );
        }
        self.sees_processes = sees_processes;
        self.parts = SynchronizeRequest::default();
        self.synchronized = false;
    }

    /// Whether the runtime has told of all containers.
    pub(super) fn is_synchronized(&self) -> bool {
        self.synchronized
    }

    /// The answer to a call.
    pub(super) async fn answer(&mut self, request: &Request) -> Response {
        let (start, known) = (Instant::now(), KNOWN.iter().find(|known| **known == request.method));
        let Some(&method) = known else { return ttrpc::unimplemented(request) };
        let response = Box::pin(self.call(method, request)).await;
        self.counts.call(method, start.elapsed().as_secs_f64());
        self.counts.placed.set(i64::try_from(self.containers.placed()).unwrap_or(i64::MAX));
        response.unwrap_or_else(|error| ttrpc::malformed(&error))
    }

    async fn call(&mut self, method: &str, request: &Request) -> Result<Response, prost::DecodeError> {
        let payload = &request.payload;
        Ok(match method {
            "Configure" => ttrpc::answer(&self.configure(&read(payload)?)),
            "Synchronize" => ttrpc::answer(&self.synchronize(read(payload)?).await),
            "CreateContainer" => ttrpc::answer(&self.create(read(payload)?).await),
            "PostStartContainer" => {
                self.started(read(payload)?).await;
                Response::default()
            }
            "UpdateContainer" => ttrpc::answer(&self.update(read(payload)?).await),
            "StopContainer" => ttrpc::answer(&self.stop(read(payload)?).await),
            "RemoveContainer" => {
                let event: ContainerEvent = read(payload)?;
                self.forget(&event.container.unwrap_or_default().id).await;
                Response::default()
            }
            // Shutdown.
            _ => Response::default(),
        })
    }

    fn configure(&mut self, request: &ConfigureRequest) -> ConfigureResponse {
        let patience = u64::try_from(request.request_timeout).ok().filter(|&ms| ms > 0);
        self.patience = patience.map_or(PATIENCE, Duration::from_millis);
        let (name, version) = (&request.runtime_name, &request.runtime_version);
        say!("{name} {version} takes the plugin in, and waits {:?} for an answer", self.patience);
        ConfigureResponse { events: WANTED.iter().fold(0, |bits, event| bits | 1 << (event - 1)) }
    }

    /// How long berthd is waited for: an eighth of the time is for everything else.
    pub(super) fn limit(&self) -> Duration {
        self.within.min(self.patience / 2) * 7 / 8
    }

    /// What the kubelet's CPU manager does, as its file says now.
    pub(super) fn manager(&self) -> Manager {
        let manager = Manager::read(&self.manager_state);
        self.counts.policy(manager);
        manager
    }

    async fn synchronize(&mut self, part: SynchronizeRequest) -> SynchronizeResponse {
        let more = part.more;
        self.parts.pods.extend(part.pods);
        self.parts.containers.extend(part.containers);
        if more {
            return SynchronizeResponse { update: Vec::new(), more };
        }
        let all = mem::take(&mut self.parts);
        let limit = SYNCHRONIZE_LIMIT.min(self.patience / 2);
        let update = self.repair(all, Instant::now() + limit).await;
        self.synchronized = true;
        self.counts.connections.inc();
        self.counts.connected.set(1);
        SynchronizeResponse { update, more }
    }

    async fn create(&mut self, request: CreateContainerRequest) -> CreateContainerResponse {
        let (pod, asked) = (request.pod.unwrap_or_default(), request.container.unwrap_or_default());
        let (mut container, reach) = self.seen(&pod, &asked);
        let acts = self.manager().lets_act();
        let decision = match self.wish(&pod, &asked, &container) {
            Some(wish) if !acts => {
                self.observe(&wish, &container).await;
                None
            }
            Some(wish) => {
                self.decide(&asked.id, &wish, &container, self.limit()).await.map(|decision| (wish, decision))
            }
            None => None,
        };
        let mut adjust = None;
        if let Some((wish, decision)) = decision {
            adjust = Some(adjust::placed(&asked, &wish, &decision, &reach));
            container.cpus = decision.placed.cpus.clone();
            container.placed = Some(decision.placed);
        }
        let was_set = container.placed.is_none() && !container.cpus.is_empty();
        self.containers.insert(asked.id.clone(), container);
        if !acts {
            return CreateContainerResponse::default();
        }
        let (own, others): (Vec<_>, Vec<_>) =
            self.containers.changes().into_iter().partition(|change| change.id == asked.id);
        self.containers.made(&others);
        if let Some(change) = own.first() {
            if was_set {
                self.warn(
                    &asked.id,
                    &format!(
                        "it is on CPUs that are another's alone, and its CPUs are set to others than {}",
                        change.cpus
                    ),
                );
            } else {
                adjust = Some(adjust::narrowed(change));
                self.containers.made(&own);
            }
        }
        CreateContainerResponse { adjust, update: others.into_iter().map(adjust::update).collect() }
    }

    /// What is asked for a container, if that can be read and nobody else has set its CPUs.
    pub(super) fn wish(
        &self,
        pod: &PodSandbox,
        asked: &nri::Container,
        container: &Container,
    ) -> Option<Wish> {
        let wish = Wish::of(pod, asked).and_then(|wish| match wish {
            // Under the kubelet's CPU manager it has.
            Some(_) if !container.cpus.is_empty() && self.manager().lets_act() => Err(format!(
                "its CPUs are set already, to {}: to set them again would fail its creation",
                container.cpus
            )),
            wish => Ok(wish),
        });
        wish.unwrap_or_else(|why| {
            self.left(&container.title, Outcome::Left, &why);
            None
        })
    }

    /// Decides where a container goes, within a time.
    pub(super) async fn decide(
        &self,
        id: &str,
        wish: &Wish,
        container: &Container,
        limit: Duration,
    ) -> Option<Decision> {
        let whom = Whom { id, title: &container.title };
        let reach = container.reach.difference(&self.containers.alone(id));
        let subject = Subject { whom, wish, reach: &reach };
        let decided = timeout(limit, subject.decide(&self.keeper, &self.containers)).await;
        let Ok(decided) = decided else {
            self.left(
                &container.title,
                Outcome::NoAnswer,
                &format!("no answer from berthd within {limit:?}"),
            );
            // It may answer yet.
            let (keeper, id, title) = (self.keeper.clone(), id.to_owned(), container.title.clone());
            tokio::spawn(async move { keeper.release_of(Whom { id: &id, title: &title }).await });
            return None;
        };
        let decision = decided.map_err(|why| self.left(&container.title, Outcome::Left, &why)).ok()?;
        let (cpus, tasks) = (&decision.placed.cpus, decision.placed.tasks);
        say!("{}: {tasks} tasks on CPUs {cpus}", container.title);
        if decision.proven {
            self.counts.outcome(Outcome::Placed);
        } else {
            self.counts.outcome(Outcome::Unproven);
            say!(
                "warning: {}: no mask for {tasks} tasks is proven; CPUs {cpus} have the smallest predicted pile-up",
                container.title
            );
        }
        if decision.exclusive_refused {
            self.counts.exclusive_refused.inc();
        }
        decision.notes.iter().for_each(|note| say!("warning: {}: {note}", container.title));
        Some(decision)
    }

    /// Says how the kubelet's CPUs for a container will be filled.
    async fn observe(&self, wish: &Wish, container: &Container) {
        let cpus = container.has();
        let asked = self.keeper.predict(wish.tasks.max(1), cpus.to_string());
        match timeout(self.limit(), asked).await {
            Err(_) => self.left(&container.title, Outcome::NoAnswer, "berthd does not answer in time"),
            Ok(Err(error)) => self.left(&container.title, Outcome::NoAnswer, &error.to_string()),
            Ok(Ok(verdict)) => {
                let piles_up = verdict == berth_proto::v1::verdict::Value::PileUp;
                self.counts.outcome(if piles_up { Outcome::PileUp } else { Outcome::Observed });
                if piles_up {
                    say!(
                        "warning: {}: {} tasks on CPUs {cpus} pile up, and the kubelet gives out CPUs",
                        container.title,
                        wish.tasks
                    );
                }
            }
        }
    }

    /// A container runs.
    async fn started(&mut self, event: ContainerEvent) {
        let (pod, asked) = (event.pod.unwrap_or_default(), event.container.unwrap_or_default());
        if self.containers.get(&asked.id).is_none() {
            self.containers.insert(asked.id.clone(), self.seen(&pod, &asked).0);
        }
        let pid = self.pid(asked.pid);
        if let Some(container) = self.containers.get_mut(&asked.id) {
            container.pid = pid;
        }
        self.verify(&asked.id);
        let limit = self.limit();
        if timeout(limit, self.keep(&asked.id)).await.is_err() {
            self.warn(
                &asked.id,
                &format!("no answer from berthd within {limit:?}; its hold is looked after later"),
            );
        }
    }

    /// Where the container's tasks may run, against where it was placed; and a little later where they do.
    fn verify(&self, id: &str) {
        let Some(container) = self.containers.get(id).filter(|container| !container.cpus.is_empty()) else {
            return;
        };
        let found = match Reach::of(container.pid) {
            None => Found::Unseen,
            Some(reach) if reach.cpus.is_subset(&container.cpus) => Found::AsPlaced,
            Some(reach) => {
                self.warn(id, &format!("it may use CPUs {}, and was to have {}", reach.cpus, container.cpus));
                Found::Elsewhere
            }
        };
        self.counts.found(found);
        if found == Found::AsPlaced {
            self.look_later(id, container);
        }
        let alone = container.placed.as_ref().map(|placed| &placed.alone).filter(|alone| !alone.is_empty());
        for (other, neighbour) in self.containers.iter().filter(|(other, _)| *other != id) {
            let intrudes =
                |alone: &&CpuSet| Reach::of(neighbour.pid).is_some_and(|reach| reach.cpus.intersects(alone));
            if let Some(alone) = alone.filter(intrudes) {
                self.warn(
                    other,
                    &format!("it may use some of CPUs {alone}, which are {}'s alone", container.title),
                );
            }
        }
    }

    /// Has berthd look at the container's tasks once they run. The runtime does not wait for that.
    fn look_later(&self, id: &str, container: &Container) {
        let Some(owner) = owners(container.pid, id).into_iter().next() else { return };
        let (keeper, counts) = (self.keeper.clone(), self.counts.clone());
        let (title, expected) = (container.title.clone(), container.cpus.to_string());
        tokio::spawn(async move {
            sleep(SETTLED).await;
            // Where berthd is away or sees no processes, there is nothing to tell.
            let Ok(findings) = keeper.verify(owner, expected).await else { return };
            for finding in findings {
                if finding.reason == "PILED_UP" {
                    counts.found(Found::PiledUp);
                }
                say!("warning: {title}: {}: {}", finding.reason, finding.message);
            }
        });
    }

    async fn update(&mut self, request: UpdateContainerRequest) -> UpdateContainerResponse {
        let (pod, mut asked) = (request.pod.unwrap_or_default(), request.container.unwrap_or_default());
        if self.containers.get(&asked.id).is_none() {
            self.containers.insert(asked.id.clone(), self.seen(&pod, &asked).0);
        }
        let cpu = request.linux_resources.unwrap_or_default().cpu.unwrap_or_default();
        let Some(container) = self.containers.get_mut(&asked.id) else {
            return UpdateContainerResponse::default();
        };
        let cpus = CpuSet::parse(&cpu.cpus).unwrap_or_default();
        if cpu.quota.as_ref().is_some_and(|quota| quota.value != 0) {
            let resources = asked.linux.get_or_insert_default().resources.get_or_insert_default();
            let now = resources.cpu.get_or_insert_default();
            (now.quota, now.period) = (cpu.quota, cpu.period);
            container.limit = limit(cpu_of(&asked));
        }
        if !cpus.is_empty() {
            // Whoever says so knows what for.
            (container.cpus, container.before) = (cpus, None);
            if let Some(placed) = container.placed.take() {
                let said = format!(
                    "it was placed on CPUs {}, and is put on {} by somebody else",
                    placed.cpus, container.cpus
                );
                self.warn(&asked.id, &said);
                self.release(&asked.id, placed.hold).await;
            }
            return UpdateContainerResponse::default();
        }
        let needs = usize::try_from(container.limit).unwrap_or(usize::MAX).min(container.reach.len());
        let too_small = container.placed.as_ref().is_some_and(|placed| placed.cpus.len() < needs);
        if !too_small || !self.manager().lets_act() {
            return UpdateContainerResponse::default();
        }
        let update = self.place_anew(&pod, &asked).await;
        UpdateContainerResponse { update }
    }

    /// Places a container whose limit has outgrown its CPUs.
    async fn place_anew(&mut self, pod: &PodSandbox, asked: &nri::Container) -> Vec<nri::ContainerUpdate> {
        let Some(container) = self.containers.get_mut(&asked.id) else { return Vec::new() };
        let placed = container.placed.take();
        let mut container = container.clone();
        if let Some(placed) = placed {
            self.release(&asked.id, placed.hold).await;
        }
        let wish = Wish::of(pod, asked).ok().flatten();
        // The device plugin's hold is too small.
        let wish = wish.map(|wish| Wish { tasks: wish.tasks.max(wish.limit), hold: None, ..wish });
        let decision = match &wish {
            Some(wish) => self.decide(&asked.id, wish, &container, self.limit()).await,
            None => None,
        };
        let all = || container.reach.difference(&self.containers.alone(&asked.id));
        (container.cpus, container.placed) = match decision {
            Some(decision) => (decision.placed.cpus.clone(), Some(decision.placed)),
            // Never fewer than its limit.
            None => (all(), None),
        };
        let own = Change { id: asked.id.clone(), cpus: container.cpus.clone() };
        self.containers.insert(asked.id.clone(), container);
        let changes = self.containers.changes();
        self.containers.made(&changes);
        [own].into_iter().chain(changes).map(adjust::update).collect()
    }

    async fn stop(&mut self, request: StopContainerRequest) -> StopContainerResponse {
        self.forget(&request.container.unwrap_or_default().id).await;
        if !self.manager().lets_act() {
            return StopContainerResponse::default();
        }
        let changes = self.containers.changes();
        self.containers.made(&changes);
        StopContainerResponse { update: changes.into_iter().map(adjust::update).collect() }
    }

    /// A container is no more.
    async fn forget(&mut self, id: &str) {
        if let Some(Container { placed: Some(placed), .. }) = self.containers.remove(id) {
            self.release(id, placed.hold).await;
        }
    }

    /// Lets the CPUs of a container go. The device plugin's are for it to let go.
    async fn release(&self, id: &str, hold: Keeping) {
        let (Keeping::Lease(hold) | Keeping::Own(hold)) = hold else { return };
        let released = timeout(self.limit(), self.keeper.release(hold)).await;
        match released {
            Ok(Ok(())) => {}
            Ok(Err(error)) => self.warn(id, &format!("its hold is not released: {error}")),
            Err(_) => self.warn(id, "its hold is not released: berthd does not answer in time"),
        }
    }

    /// A container as the runtime tells of it, and what it could have at most.
    pub(super) fn seen(&self, pod: &PodSandbox, asked: &nri::Container) -> (Container, Reach) {
        let (cpu, reach) = (cpu_of(asked), Reach::of_pod(self.pid(pod.pid)));
        let container = Container {
            title: format!("{}/{}/{}", pod.namespace, pod.name, asked.name),
            pid: self.pid(asked.pid),
            limit: limit(cpu),
            reach: reach.cpus.clone(),
            cpus: cpu.and_then(|cpu| CpuSet::parse(&cpu.cpus).ok()).unwrap_or_default(),
            placed: None,
            before: None,
        };
        (container, reach)
    }

    /// A process of the runtime's, as it is numbered here. 0: it is not seen.
    fn pid(&self, pid: u32) -> u32 {
        if self.sees_processes { pid } else { 0 }
    }

    fn left(&self, title: &str, outcome: Outcome, why: &str) {
        self.counts.outcome(outcome);
        say!("warning: {title} is left as it is: {why}");
    }

    /// Says that something is wrong with a container.
    pub(super) fn warn(&self, id: &str, what: &str) {
        self.counts.failures.inc();
        let title = self.containers.get(id).map_or(id, |container| container.title.as_str());
        say!("warning: {title}: {what}");
    }
}

/// The calls that are answered.
const KNOWN: [&str; 8] = [
    "Configure",
    "Synchronize",
    "CreateContainer",
    "PostStartContainer",
    "UpdateContainer",
    "StopContainer",
    "RemoveContainer",
    "Shutdown",
];

fn read<Q: prost::Message + Default>(payload: &[u8]) -> Result<Q, prost::DecodeError> {
    Q::decode(payload)
}
