//! Starts a real Slurm: munged, slurmctld and slurmd, all on loopback and in a folder of their own.

use std::{
    collections::BTreeMap,
    fs,
    net::TcpListener,
    os::unix::{fs::PermissionsExt as _, process::CommandExt as _},
    path::{Path, PathBuf},
    process::{Child, Command, Stdio},
    sync::{Mutex, MutexGuard, PoisonError},
    thread,
    time::{Duration, Instant},
};

use tempfile::TempDir;

use crate::{
    berth::{Said, berth},
    berthd::Berthd,
};

/// How long a cluster may take until its node is idle, on a busy machine.
const PATIENCE: Duration = Duration::from_secs(60);
/// An ordinary user. The number needs no name.
pub(super) const USER: u32 = 65_534;

/// Where cpusets of cgroup v1 are.
const CPUSETS: &str = "/sys/fs/cgroup/cpuset";

/// One at a time: a machine with two CPUs has no room for more.
static ALONE: Mutex<()> = Mutex::new(());

/// What tasks run to tell of themselves: no program is started that could be bound elsewhere.
const REPORT: &str = r#"#!/bin/sh
while read -r name value; do [ "$name" = Cpus_allowed_list: ] && cpus=$value; done </proc/self/status
echo "task ${SLURM_LOCALID-}|$cpus|${BERTH_STATUS-unset}|${BERTH_CPUS-unset}|${BERTH_MEMS-unset}|${OMP_PLACES-unset}|${OMP_PROC_BIND-unset}"
"#;

/// How the cluster is set up, beside what all have in common.
#[derive(Debug, Clone)]
pub(super) struct Setup {
    /// Lines of slurm.conf.
    pub(super) more: String,
    /// The node's CPUs.
    pub(super) node: &'static str,
    /// What the hooks ask.
    pub(super) server: String,
    /// Tasks are kept in cpusets.
    pub(super) cgroups: bool,
    /// Environment of slurmd.
    pub(super) environment: Vec<(&'static str, PathBuf)>,
}

impl Setup {
    /// Sixteen CPUs, whatever the machine has: Slurm folds its masks onto those that are there.
    pub(super) fn asking(server: &Berthd) -> Self {
        Self {
            more: "TaskPlugin=task/affinity\n".to_owned(),
            node: "CPUs=16 Sockets=2 CoresPerSocket=4 ThreadsPerCore=2",
            server: server.address(),
            cgroups: false,
            environment: Vec::new(),
        }
    }
}

/// A running Slurm. It ends with its owner.
#[derive(Debug)]
pub(super) struct Cluster {
    folder: TempDir,
    /// In the order in which they were started.
    daemons: Vec<Child>,
    _alone: MutexGuard<'static, ()>,
}

/// What a task said of itself.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Task {
    /// Its affinity mask.
    pub(super) affinity: String,
    pub(super) status: String,
    pub(super) cpus: String,
    pub(super) mems: String,
    pub(super) omp_places: String,
    pub(super) omp_proc_bind: String,
}

/// A program of Slurm's, where Debian and others put it.
fn program(name: &str) -> Option<PathBuf> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let folders = std::env::split_paths(&path).chain(["/usr/sbin".into(), "/usr/bin".into()]);
    folders.map(|folder| folder.join(name)).find(|file| file.is_file())
}

/// Why no Slurm can run here.
fn missing() -> Option<String> {
    if !is_root() {
        return Some("slurmd must be started by root".to_owned());
    }
    let programs = ["munged", "slurmctld", "slurmd", "srun", "sbatch", "sinfo", "scontrol"];
    let missing = programs.into_iter().find(|name| program(name).is_none())?;
    Some(format!("there is no {missing} here (Debian: slurm-wlm munge)"))
}

/// Why slurmd cannot make cpusets here.
fn no_cpusets() -> Option<String> {
    let folder = Path::new(CPUSETS).join(format!("berth-test-{}", std::process::id()));
    let made = fs::create_dir(&folder).and_then(|()| fs::remove_dir(&folder));
    made.err().map(|error| format!("no cpuset of cgroup v1 can be made in {CPUSETS}: {error}"))
}

fn is_root() -> bool {
    fs::metadata("/proc/self").is_ok_and(|own| std::os::unix::fs::MetadataExt::uid(&own) == 0)
}

impl Cluster {
    /// `None`, with a printed reason, where none can run.
    pub(super) fn start(setup: &Setup) -> Option<Self> {
        if let Some(why) = missing() {
            eprintln!("skipped: {why}");
            return None;
        }
        if let Some(why) = setup.cgroups.then(no_cpusets).flatten() {
            eprintln!("skipped: {why}");
            return None;
        }
        let alone = ALONE.lock().unwrap_or_else(PoisonError::into_inner);
        let folder = tempfile::tempdir().expect("there is room for a cluster");
        open_to_all(folder.path());
        let mut cluster = Self { folder, daemons: Vec::new(), _alone: alone };
        cluster.install(&setup.server);
        cluster.start_munged();
        cluster.configure(setup);
        cluster.start_daemon("slurmctld", ["-D", "-c"], &[]);
        cluster.start_daemon("slurmd", ["-D"], &setup.environment);
        cluster.wait("the node is not idle", || cluster.node_state() == "idle");
        Some(cluster)
    }

    pub(super) fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    /// The hooks as an administrator has them written, with a `berth` where every user can run it.
    fn install(&self, server: &str) {
        let program = self.path("berth");
        fs::copy(env!("CARGO_BIN_EXE_berth"), &program).expect("there is room for it");
        let folder = self.path("hooks");
        let args =
            ["--server", server, "slurm", "install", "--write", text(&folder), "--berth", text(&program)];
        let lines = berth(args).answer();
        fs::write(self.path("hooks.conf"), lines).expect("it can be written");
        fs::write(self.path("report"), REPORT).expect("it can be written");
        open_to_all(&self.path("report"));
    }

    fn start_munged(&mut self) {
        let folder = self.path("munge");
        fs::create_dir(&folder).expect("it is not there");
        fs::set_permissions(&folder, fs::Permissions::from_mode(0o711)).expect("it is ours");
        let key = folder.join("key");
        fs::write(&key, [7; 128]).expect("it can be written");
        fs::set_permissions(&key, fs::Permissions::from_mode(0o400)).expect("it is ours");
        let mut munged = Command::new(program("munged").expect("it was found"));
        munged.args(["--foreground", "--force", "--num-threads=1"]);
        for (flag, file) in
            [("socket", "socket"), ("pid-file", "pid"), ("log-file", "log"), ("seed-file", "seed")]
        {
            munged.arg(format!("--{flag}={}", folder.join(file).display()));
        }
        munged.arg(format!("--key-file={}", key.display()));
        self.daemons.push(quiet(&mut munged).spawn().expect("munged starts"));
        let socket = folder.join("socket");
        self.wait("munged does not listen", || socket.exists());
    }

    fn configure(&self, setup: &Setup) {
        let host = fs::read_to_string("/proc/sys/kernel/hostname").expect("the kernel has one");
        let host = host.trim().split('.').next().expect("it has a first part");
        let [controller, node] = free_ports();
        let at = |name| self.path(name).display().to_string();
        for folder in ["state", "spool"] {
            fs::create_dir(self.path(folder)).expect("it is not there");
        }
        let hooks = fs::read_to_string(self.path("hooks.conf")).expect("it was written");
        let conf = format!(
            "ClusterName=berth-test\nSlurmUser=root\nSlurmctldHost={host}(127.0.0.1)\n\
             SlurmctldPort={controller}\nSlurmdPort={node}\n\
             CommunicationParameters=NoCtldInAddrAny,NoInAddrAny\n\
             AuthType=auth/munge\nAuthInfo=socket={}\nCryptoType=crypto/munge\n\
             StateSaveLocation={}\nSlurmdSpoolDir={}\nSlurmctldPidFile={}\nSlurmdPidFile={}\n\
             SlurmctldLogFile={}\nSlurmdLogFile={}\nSlurmctldDebug=info\nSlurmdDebug=debug\n\
             ProctrackType=proctrack/linuxproc\nSelectType=select/cons_tres\nSelectTypeParameters=CR_Core\n\
             JobAcctGatherType=jobacct_gather/none\nAccountingStorageType=accounting_storage/none\n\
             SlurmdParameters=config_overrides\nSwitchType=switch/none\nMpiDefault=none\nReturnToService=0\n\
             SchedulerParameters=batch_sched_delay=1,sched_interval=1,sched_min_interval=100000\n\
             PrologEpilogTimeout=20\nKillWait=5\n{}{hooks}\
             NodeName={host} NodeAddr=127.0.0.1 {} RealMemory=1000 State=UNKNOWN\n\
             PartitionName=main Nodes=ALL Default=YES MaxTime=INFINITE State=UP\n",
            at("munge/socket"),
            at("state"),
            at("spool"),
            at("slurmctld.pid"),
            at("slurmd.pid"),
            at("slurmctld.log"),
            at("slurmd.log"),
            setup.more,
            setup.node,
        );
        fs::write(self.path("slurm.conf"), conf).expect("it can be written");
        if setup.cgroups {
            let conf = "CgroupPlugin=cgroup/v1\nCgroupMountpoint=/sys/fs/cgroup\nConstrainCores=yes\n";
            fs::write(self.path("cgroup.conf"), conf).expect("it can be written");
        }
    }

    fn start_daemon(
        &mut self,
        name: &str,
        args: impl IntoIterator<Item = &'static str>,
        environment: &[(&'static str, PathBuf)],
    ) {
        let mut daemon = Command::new(program(name).expect("it was found"));
        daemon.args(args).arg("-f").arg(self.path("slurm.conf")).envs(environment.iter().cloned());
        self.daemons.push(quiet(&mut daemon).spawn().expect("it starts"));
    }

    fn wait(&self, what: &str, mut done: impl FnMut() -> bool) {
        let start = Instant::now();
        while !done() {
            let log = |name| fs::read_to_string(self.path(name)).unwrap_or_default();
            assert!(
                start.elapsed() < PATIENCE,
                "{what}:\n{}\n{}\n{}",
                log("munge/log"),
                log("slurmctld.log"),
                log("slurmd.log")
            );
            thread::sleep(Duration::from_millis(50));
        }
    }

    /// A command of Slurm's as this user sees it.
    fn command(&self, name: &str, user: u32) -> Command {
        let mut command = Command::new(program(name).expect("it was found"));
        let kept = ["PATH", "LANG"].into_iter().filter_map(|name| Some((name, std::env::var_os(name)?)));
        let kept: BTreeMap<_, _> = kept.collect();
        command.env_clear().envs(kept).env("SLURM_CONF", self.path("slurm.conf")).current_dir("/");
        if user != 0 {
            command.uid(user).gid(user);
        }
        command
    }

    /// Runs a command of Slurm's.
    pub(super) fn run(&self, name: &str, user: u32, change: impl FnOnce(&mut Command)) -> Said {
        let mut command = self.command(name, user);
        change(&mut command);
        let output = command.stdin(Stdio::null()).output().expect("it runs");
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        Said {
            status: output.status.code().unwrap_or(-1),
            stdout: text(&output.stdout),
            stderr: text(&output.stderr),
        }
    }

    /// Starts `srun` with these arguments as root.
    pub(super) fn srun_in_background(&self, args: &[&str]) -> Child {
        self.command("srun", 0)
            .args(args)
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .expect("srun starts")
    }

    /// What the tasks of a step say of themselves, in their order; the step must end well.
    pub(super) fn tasks(&self, args: &str) -> Vec<Task> {
        self.tasks_of(args, 0, &[])
    }

    /// The same for a user with these variables.
    pub(super) fn tasks_of(&self, args: &str, user: u32, variables: &[(&str, &str)]) -> Vec<Task> {
        let said = self.run("srun", user, |srun| {
            srun.args(args.split_whitespace()).arg(self.path("report")).envs(variables.iter().copied());
        });
        read_tasks(&said.answer())
    }

    /// Runs a script with sbatch, and gives what it wrote.
    pub(super) fn batch(&self, args: &str, script: &str) -> String {
        let out = self.path("batch.out");
        let said = self.run("sbatch", 0, |sbatch| {
            sbatch.args(["--wait", "-o", text(&out)]).args(args.split_whitespace()).arg("--wrap").arg(script);
        });
        let written = fs::read_to_string(&out).unwrap_or_default();
        assert_eq!(said.status, 0, "{said:?}\n{written}");
        written
    }

    pub(super) fn node_state(&self) -> String {
        self.run("sinfo", 0, |sinfo| _ = sinfo.args(["-h", "-N", "-o", "%T"])).stdout.trim().to_owned()
    }

    /// How many nodes are drained or down, once no job is left.
    pub(super) fn drained(&self) -> usize {
        let mut state = String::new();
        self.wait("jobs do not end", || {
            state = self.node_state();
            // `planned`: the scheduler has looked at a job that was about to start there.
            !["alloc", "mix", "comp", "plan"].iter().any(|busy| state.starts_with(busy))
        });
        if state != "idle" {
            let reasons = self.run("sinfo", 0, |sinfo| _ = sinfo.args(["-R", "-h"])).stdout;
            eprintln!("{state}: {reasons}");
        }
        // One that was not heard of lately is `idle*`.
        state.lines().filter(|state| !state.starts_with("idle")).count()
    }

    /// slurmd's log so far.
    pub(super) fn slurmd_log(&self) -> String {
        fs::read_to_string(self.path("slurmd.log")).unwrap_or_default()
    }
}

impl Drop for Cluster {
    fn drop(&mut self) {
        self.run("scancel", 0, |scancel| _ = scancel.args(["-u", "root"]));
        for daemon in self.daemons.iter_mut().rev() {
            let _ = daemon.kill();
            let _ = daemon.wait();
        }
        if thread::panicking() {
            eprintln!("{}", self.slurmd_log());
        }
    }
}

/// What tasks of one step said of themselves, in their order.
pub(super) fn read_tasks(said: &str) -> Vec<Task> {
    let tasks: BTreeMap<u32, Task> = read(said).collect();
    tasks.into_values().collect()
}

/// What tasks of several steps said of themselves, each step's in their order.
pub(super) fn read_each(said: &str) -> Vec<Task> {
    let tasks: Vec<(u32, Task)> = read(said).collect();
    let mut steps: Vec<BTreeMap<u32, Task>> = vec![BTreeMap::new()];
    for (number, task) in tasks {
        if steps.last().is_some_and(|step| step.contains_key(&number)) {
            steps.push(BTreeMap::new());
        }
        steps.last_mut().expect("there is one").insert(number, task);
    }
    steps.into_iter().flat_map(BTreeMap::into_values).collect()
}

fn read(said: &str) -> impl Iterator<Item = (u32, Task)> {
    said.lines().filter_map(|line| line.strip_prefix("task ")).map(|line| {
        let fields: Vec<String> = line.split('|').map(str::to_owned).collect();
        let [number, affinity, status, cpus, mems, omp_places, omp_proc_bind] =
            fields.try_into().expect("all that is asked");
        let number = number.parse().expect("Slurm numbers them");
        (number, Task { affinity, status, cpus, mems, omp_places, omp_proc_bind })
    })
}

fn quiet(command: &mut Command) -> &mut Command {
    command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null())
}

pub(crate) fn open_to_all(path: &Path) {
    fs::set_permissions(path, fs::Permissions::from_mode(0o755)).expect("it is ours");
}

pub(super) fn text(path: &Path) -> &str {
    path.to_str().expect("it is text")
}

/// Ports that nobody listens on now.
fn free_ports<const N: usize>() -> [u16; N] {
    let listeners: [TcpListener; N] =
        std::array::from_fn(|_| TcpListener::bind("127.0.0.1:0").expect("there is a free port"));
    listeners.map(|listener| listener.local_addr().expect("it has one").port())
}
