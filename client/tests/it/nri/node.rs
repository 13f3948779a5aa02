//! A runtime of ours on a real socket, that keeps the rules of a real one: one call at a time, and answers in time, or the container
//! is created as if there were no plugin. Its containers are real processes on the CPUs that the plugin says.

use std::{
    collections::BTreeMap,
    fs,
    os::unix::net::UnixListener,
    process::{Child, Command, Stdio},
    thread,
    time::{Duration, Instant},
};

use berth_model::CpuSet;
use berth_proto::nri::{
    ConfigureRequest, ConfigureResponse, Container, ContainerAdjustment, ContainerEvent, ContainerState,
    ContainerUpdate, CreateContainerRequest, CreateContainerResponse, LinuxContainer, LinuxCpu,
    LinuxResources, OptionalInt64, OptionalUInt64, PodSandbox, RegisterPluginRequest, StopContainerRequest,
    StopContainerResponse, SynchronizeRequest, SynchronizeResponse, UpdateContainerRequest,
    UpdateContainerResponse,
    ttrpc::{Request, Response, Status},
};
use prost::Message;

use super::{
    plugin::{PATIENCE, Place},
    wire::{FROM_PLUGIN, REQUEST_LIMIT, TO_PLUGIN, Wire, framed, message},
};

/// The runtime and its containers. They end with it.
#[derive(Debug)]
pub(super) struct Node {
    listener: UnixListener,
    wire: Option<Wire>,
    next_stream: u32,
    containers: BTreeMap<String, Made>,
    next_id: u32,
    /// The longest that an answer has taken.
    pub(super) slowest: Duration,
}

/// A container.
#[derive(Debug)]
struct Made {
    pod: PodSandbox,
    spec: Container,
    process: Option<Child>,
}

/// A container to be created.
#[derive(Debug, Clone, Default)]
pub(super) struct Wanted {
    pod: PodSandbox,
    container: Container,
}

impl Wanted {
    /// In a pod of that name with these annotations.
    pub(super) fn new(pod: &str, annotations: &[(&str, &str)]) -> Self {
        let annotations =
            annotations.iter().map(|&(key, value)| (key.to_owned(), value.to_owned())).collect();
        let pod = PodSandbox {
            id: format!("pod-{pod}"),
            name: pod.to_owned(),
            namespace: "default".to_owned(),
            annotations,
            ..PodSandbox::default()
        };
        let cpu = LinuxCpu { shares: Some(OptionalUInt64 { value: 2 }), ..LinuxCpu::default() };
        let resources = Some(LinuxResources { cpu: Some(cpu), memory: None });
        let container = Container {
            pod_sandbox_id: pod.id.clone(),
            name: "main".to_owned(),
            env: vec!["PATH=/usr/bin:/bin".to_owned()],
            linux: Some(LinuxContainer { resources, ..LinuxContainer::default() }),
            ..Container::default()
        };
        Self { pod, container }
    }

    fn cpu(&mut self) -> &mut LinuxCpu {
        cpu_of(&mut self.container)
    }

    /// With a CPU limit in thousandths.
    pub(super) fn limit(mut self, milli: i64) -> Self {
        self.cpu().quota = Some(OptionalInt64 { value: milli * 100 });
        self.cpu().period = Some(OptionalUInt64 { value: 100_000 });
        self
    }

    /// With a cpuset that somebody else has set.
    pub(super) fn cpus(mut self, cpus: &str) -> Self {
        cpus.clone_into(&mut self.cpu().cpus);
        self
    }

    /// With an annotation of its own, as a device plugin sets them.
    pub(super) fn annotation(mut self, key: &str, value: &str) -> Self {
        self.container.annotations.insert(key.to_owned(), value.to_owned());
        self
    }

    /// With a variable that its user has set.
    pub(super) fn env(mut self, variable: &str) -> Self {
        self.container.env.push(variable.to_owned());
        self
    }

    /// In a pod whose first process is this one.
    pub(super) fn pod_pid(mut self, pid: u32) -> Self {
        self.pod.pid = pid;
        self
    }
}

fn cpu_of(container: &mut Container) -> &mut LinuxCpu {
    container.linux.get_or_insert_default().resources.get_or_insert_default().cpu.get_or_insert_default()
}

/// What a container's process says of itself.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Itself {
    /// Its own affinity.
    pub(super) affinity: CpuSet,
    /// BERTH_CPUS in its environment.
    pub(super) berth_cpus: String,
}

impl Node {
    /// A runtime that listens.
    pub(super) fn listen(place: &Place) -> Self {
        let _ = fs::remove_file(place.socket());
        let listener = UnixListener::bind(place.socket()).expect("nobody has it");
        listener.set_nonblocking(true).expect("it can be set");
        let (containers, slowest) = (BTreeMap::new(), Duration::ZERO);
        Self { listener, wire: None, next_stream: 1, containers, next_id: 0, slowest }
    }

    /// The runtime is gone, and its containers run on: what a new one finds.
    pub(super) fn restart(self, place: &Place) -> Self {
        let Self { listener, wire, containers, next_id, .. } = self;
        drop((listener, wire));
        Self { containers, next_id, ..Self::listen(place) }
    }

    /// Takes the next connection of the plugin.
    pub(super) fn accept(&mut self) {
        let start = Instant::now();
        let stream = loop {
            match self.listener.accept() {
                Ok((stream, _)) => break stream,
                Err(_) => assert!(start.elapsed() < PATIENCE, "the plugin does not connect"),
            }
            thread::sleep(Duration::from_millis(5));
        };
        stream.set_nonblocking(false).expect("it can be set");
        (self.wire, self.next_stream) = (Some(Wire::new(stream)), 1);
    }

    /// The plugin's wire, for who does not keep the rules.
    pub(super) fn wire(&mut self) -> &mut Wire {
        self.wire.as_mut().expect("the plugin is connected")
    }

    /// Breaks the connection.
    pub(super) fn hang_up(&mut self) {
        self.wire = None;
    }

    /// Hears how the plugin registers.
    pub(super) fn heard(&mut self) -> RegisterPluginRequest {
        let packet = self.wire().receive().expect("it registers");
        assert_eq!((packet.connection, packet.stream), (FROM_PLUGIN, 1));
        let call = packet.call();
        assert_eq!((&*call.service, &*call.method), ("nri.pkg.api.v1alpha1.Runtime", "RegisterPlugin"));
        RegisterPluginRequest::decode(&*call.payload).expect("a registration")
    }

    /// Answers the registration.
    pub(super) fn welcome(&mut self) {
        self.wire().send(&framed(FROM_PLUGIN, &message(1, 2, &[])));
    }

    /// Refuses it, and says nothing more.
    pub(super) fn refuse(&mut self, why: &str) {
        let status = Some(Status { code: 2, message: why.to_owned() });
        let body = Response { status, payload: Vec::new() }.encode_to_vec();
        self.wire().send(&framed(FROM_PLUGIN, &message(1, 2, &body)));
    }

    /// Takes the plugin in, from its connection until it knows all containers.
    pub(super) fn take_in(&mut self) {
        self.accept();
        self.heard();
        self.welcome();
        self.configure();
        self.synchronize();
    }

    /// Which events the plugin wants.
    pub(super) fn configure(&mut self) -> i32 {
        let request = ConfigureRequest {
            runtime_name: "node".to_owned(),
            runtime_version: "1".to_owned(),
            registration_timeout: 5000,
            request_timeout: i64::try_from(REQUEST_LIMIT.as_millis()).expect("it fits"),
            nri_version: "v0.12.2".to_owned(),
            ..ConfigureRequest::default()
        };
        let response: ConfigureResponse = self.call("Configure", &request).expect("it is configured");
        response.events
    }

    /// Tells of all containers, and makes the changes that are answered.
    pub(super) fn synchronize(&mut self) {
        let mut pods: BTreeMap<&str, &PodSandbox> = BTreeMap::new();
        for made in self.containers.values() {
            pods.insert(&made.pod.id, &made.pod);
        }
        let pods = pods.into_values().cloned().collect();
        let there =
            self.containers.values().filter(|made| made.spec.state() != ContainerState::ContainerStopped);
        let containers = there.map(|made| made.spec.clone()).collect();
        let request = SynchronizeRequest { pods, containers, more: false };
        let response: SynchronizeResponse = self.call("Synchronize", &request).expect("it is synchronized");
        assert!(!response.more);
        self.make(&response.update);
    }

    /// A call, and its answer. An answer that is late fails the test, as it would cost the connection.
    pub(super) fn call<A: Message + Default>(
        &mut self,
        method: &str,
        request: &impl Message,
    ) -> Result<A, Status> {
        let answer = self.call_raw(method, request.encode_to_vec())?;
        Ok(A::decode(&*answer).expect("an answer of its kind"))
    }

    /// The same with bytes.
    pub(super) fn call_raw(&mut self, method: &str, payload: Vec<u8>) -> Result<Vec<u8>, Status> {
        let stream = self.next_stream;
        self.next_stream += 2;
        let request = Request {
            service: "nri.pkg.api.v1alpha1.Plugin".to_owned(),
            method: method.to_owned(),
            payload,
            timeout_nano: i64::try_from(REQUEST_LIMIT.as_nanos()).expect("it fits"),
        };
        let (wire, start) = (self.wire.as_mut().expect("the plugin is connected"), Instant::now());
        wire.send(&framed(TO_PLUGIN, &message(stream, 1, &request.encode_to_vec())));
        let packet = wire.receive().expect("it answers");
        assert_eq!(packet.stream, stream, "{method} is answered");
        self.slowest = self.slowest.max(start.elapsed());
        packet.answer()
    }

    /// Creates a container: its id, and what the plugin has adjusted.
    pub(super) fn create(&mut self, wanted: Wanted) -> (String, Option<ContainerAdjustment>) {
        let Wanted { pod, mut container } = wanted;
        self.next_id += 1;
        container.id = format!("{:064x}", self.next_id);
        let id = container.id.clone();
        let mut adjust = None;
        if self.wire.is_some() {
            let request =
                CreateContainerRequest { pod: Some(pod.clone()), container: Some(container.clone()) };
            let response: CreateContainerResponse =
                self.call("CreateContainer", &request).expect("it may be created");
            assert!(
                response.update.iter().all(|update| update.container_id != id),
                "its creation would fail"
            );
            adjust = response.adjust;
            self.make(&response.update);
        }
        if let Some(adjust) = &adjust {
            container.annotations.extend(adjust.annotations.clone());
            container.env.extend(adjust.env.iter().map(|set| format!("{}={}", set.key, set.value)));
            let resources = adjust.linux.as_ref().and_then(|linux| linux.resources.as_ref());
            if let Some(cpu) = resources.and_then(|resources| resources.cpu.as_ref()) {
                let own = cpu_of(&mut container);
                assert!(own.cpus.is_empty() || cpu.cpus.is_empty(), "set twice, cpus fail its creation");
                if !cpu.cpus.is_empty() {
                    own.cpus.clone_from(&cpu.cpus);
                }
                if !cpu.mems.is_empty() {
                    own.mems.clone_from(&cpu.mems);
                }
            }
        }
        container.set_state(ContainerState::ContainerCreated);
        self.containers.insert(id.clone(), Made { pod, spec: container, process: None });
        (id, adjust)
    }

    /// Starts a container as a real process on its CPUs: what that says of itself.
    pub(super) fn start(&mut self, id: &str) -> Itself {
        let folder = tempfile::tempdir().expect("there is room");
        let file = folder.path().join("itself");
        let made = self.containers.get_mut(id).expect("it is created");
        let cpus = cpu_of(&mut made.spec).cpus.clone();
        let script = "while read -r name value; do [ \"$name\" = Cpus_allowed_list: ] && echo \"$value\"; done </proc/self/status \
            >\"$0.tmp\"; echo \"$BERTH_CPUS\" >>\"$0.tmp\"; mv \"$0.tmp\" \"$0\"; exec sleep 600";
        let mut command = match cpus.as_str() {
            "" => Command::new("/bin/sh"),
            cpus => {
                let mut taskset = Command::new("taskset");
                taskset.args(["-c", cpus, "/bin/sh"]);
                taskset
            }
        };
        let env = made.spec.env.iter().filter_map(|set| set.split_once('='));
        command.arg("-c").arg(script).arg(&file).env_clear().envs(env).stdin(Stdio::null());
        let process = command.spawn().expect("a shell starts");
        made.spec.pid = process.id();
        made.spec.set_state(ContainerState::ContainerRunning);
        made.process = Some(process);
        let start = Instant::now();
        while !file.exists() {
            assert!(start.elapsed() < PATIENCE, "the container says nothing: CPUs `{cpus}`");
            thread::sleep(Duration::from_millis(5));
        }
        let said = fs::read_to_string(file).expect("it can be read");
        let (affinity, berth_cpus) = said.split_once('\n').expect("two lines");
        let event = ContainerEvent { pod: Some(made.pod.clone()), container: Some(made.spec.clone()) };
        if self.wire.is_some() {
            let _: ContainerEvent = self.call("PostStartContainer", &event).expect("it is heard");
        }
        let affinity = CpuSet::parse(affinity.trim()).expect("a list");
        Itself { affinity, berth_cpus: berth_cpus.trim().to_owned() }
    }

    /// The first process of a container that runs.
    pub(super) fn pid(&self, id: &str) -> u32 {
        self.containers.get(id).expect("it is there").spec.pid
    }

    /// Changes what a container may use, as the plugin lets it.
    pub(super) fn update(&mut self, id: &str, cpu: LinuxCpu) {
        let made = self.containers.get(id).expect("it is there");
        let request = UpdateContainerRequest {
            pod: Some(made.pod.clone()),
            container: Some(made.spec.clone()),
            linux_resources: Some(LinuxResources { cpu: Some(cpu.clone()), memory: None }),
        };
        let response: UpdateContainerResponse =
            self.call("UpdateContainer", &request).expect("it may be updated");
        let made = self.containers.get_mut(id).expect("it is there");
        let own = cpu_of(&mut made.spec);
        if cpu.quota.as_ref().is_some_and(|quota| quota.value != 0) {
            (own.quota, own.period) = (cpu.quota, cpu.period);
        }
        let asked = ContainerUpdate { container_id: id.to_owned(), linux: None, ignore_failure: false };
        if !cpu.cpus.is_empty() {
            self.set(&asked.container_id, &cpu.cpus);
        }
        self.make(&response.update);
    }

    /// Ends a container.
    pub(super) fn stop(&mut self, id: &str) {
        let made = self.containers.get_mut(id).expect("it is there");
        if let Some(process) = &mut made.process {
            process.kill().expect("it runs");
            process.wait().expect("it ends");
        }
        made.spec.set_state(ContainerState::ContainerStopped);
        let request =
            StopContainerRequest { pod: Some(made.pod.clone()), container: Some(made.spec.clone()) };
        if self.wire.is_some() {
            let response: StopContainerResponse = self.call("StopContainer", &request).expect("it is heard");
            self.make(&response.update);
        }
    }

    /// Removes a container.
    pub(super) fn remove(&mut self, id: &str) {
        let made = self.containers.remove(id).expect("it is there");
        let event = ContainerEvent { pod: Some(made.pod.clone()), container: Some(made.spec.clone()) };
        if self.wire.is_some() {
            let _: ContainerEvent = self.call("RemoveContainer", &event).expect("it is heard");
        }
    }

    /// The cpuset of a container.
    pub(super) fn cpus(&mut self, id: &str) -> String {
        cpu_of(&mut self.containers.get_mut(id).expect("it is there").spec).cpus.clone()
    }

    /// The affinity of a container's process.
    pub(super) fn affinity(&self, id: &str) -> String {
        let pid = self.containers[id].spec.pid;
        let status = fs::read_to_string(format!("/proc/{pid}/status")).expect("it runs");
        let list = status.lines().find_map(|line| line.strip_prefix("Cpus_allowed_list:"));
        list.expect("it has an affinity").trim().to_owned()
    }

    /// Makes changes of containers. One that is not there is passed over.
    fn make(&mut self, updates: &[ContainerUpdate]) {
        for update in updates {
            let resources = update.linux.as_ref().and_then(|linux| linux.resources.as_ref());
            let cpus = resources.and_then(|resources| resources.cpu.as_ref()).map_or("", |cpu| &cpu.cpus);
            assert!(!cpus.is_empty(), "it would change nothing: {update:?}");
            if self.containers.contains_key(&update.container_id) {
                self.set(&update.container_id.clone(), cpus);
            }
        }
    }

    fn set(&mut self, id: &str, cpus: &str) {
        let made = self.containers.get_mut(id).expect("it is there");
        cpus.clone_into(&mut cpu_of(&mut made.spec).cpus);
        if made.spec.pid != 0 {
            let pid = made.spec.pid.to_string();
            let set = Command::new("taskset").args(["-apc", cpus, &pid]).stdout(Stdio::null()).status();
            assert!(set.expect("taskset runs").success(), "{id} cannot be on CPUs {cpus}");
        }
    }
}

impl Drop for Made {
    fn drop(&mut self) {
        if let Some(process) = &mut self.process {
            let _ = process.kill();
            let _ = process.wait();
        }
    }
}
