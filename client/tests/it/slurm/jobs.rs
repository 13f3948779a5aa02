//! Jobs of a real Slurm, with a berthd that takes the host for a large one whose kernel piles tasks up.

use std::{fs, thread, time::Duration};

use super::{
    cluster::{Cluster, Setup, Task, USER, open_to_all, read_each, read_tasks, text},
    two_cpus, unsafe_host,
};
use berth_model::{Cpu, CpuSet};

use crate::{
    berth::machine,
    berthd::Berthd,
    front::{Front, Manner},
};

fn affinities(tasks: &[Task]) -> Vec<&str> {
    tasks.iter().map(|task| task.affinity.as_str()).collect()
}

/// Every task has this mask and a status that begins so.
fn assert_all(tasks: &[Task], count: usize, affinity: &str, status: &str) {
    assert_eq!(affinities(tasks), vec![affinity; count], "{tasks:?}");
    assert!(tasks.iter().all(|task| task.status.starts_with(status)), "{status}: {tasks:?}");
}

fn start() -> Option<(Berthd, Cluster)> {
    let server = two_cpus().then(unsafe_host)?;
    let cluster = Cluster::start(&Setup::asking(&server))?;
    Some((server, cluster))
}

#[test]
fn tasks_are_where_one_decision_has_them() {
    let Some((server, cluster)) = start() else { return };
    let before = cluster.tasks_of("-n 4", 0, &[("BERTH", "off")]);
    let after = cluster.tasks("-n 4");
    println!("before {:?}, after {:?}", affinities(&before), affinities(&after));
    assert_all(&before, 4, "0-1", "off");
    assert_eq!(before[0].cpus, "unset");
    assert_eq!(affinities(&after), ["0", "0", "1", "1"]);
    for task in &after {
        assert_eq!(task.status, format!("bound: CPUs {}", task.affinity));
        assert_eq!((&task.cpus, task.mems.as_str()), (&task.affinity, "0"));
        // Two have each CPU: OpenMP is not told that it is one's own.
        assert_eq!((task.omp_places.as_str(), task.omp_proc_bind.as_str()), ("unset", "unset"));
    }

    // As an ordinary user too, and aloud if wished.
    let said = cluster.run("srun", USER, |srun| {
        srun.args(["-n", "4"]).arg(cluster.path("report")).env("BERTH", "verbose");
    });
    let said = said.answer();
    assert_eq!(affinities(&read_tasks(&said)), ["0", "0", "1", "1"]);
    assert!(said.contains("\nberth: task 3: bound: CPUs 1\n") || said.starts_with("berth: task"), "{said}");

    // One hold for the step, under the job's claim, and nothing is left of either.
    let holds =
        format!("{} --server {} holds --all -o json", cluster.path("berth").display(), server.address());
    let script = format!("srun -n 4 sh -c 'sleep 0.2; test $SLURM_LOCALID != 0 || {holds}'");
    let said = cluster.batch("-n 4", &script);
    let holds: serde_json::Value = serde_json::from_str(&said).expect("one JSON document");
    let holds = holds["holds"].as_array().expect("a list");
    let [claim, hold] = &holds[..] else { panic!("{holds:?}") };
    assert!(claim["name"].as_str().expect("it has one").starts_with("slurm/berth-test/"), "{claim}");
    assert_eq!((claim["cpus"].as_str(), hold["cpus"].as_str()), (Some(""), Some("0-1")));
    assert_eq!((&hold["claim"], &hold["tasks"]), (&claim["id"], &4.into()));
    assert_eq!(cluster.drained(), 0);
    let left = server.berth(["holds", "--all", "-o", "json"]).json();
    assert_eq!(left["holds"], serde_json::json!([]), "epilogs have closed all claims");
}

#[test]
fn what_may_start_others_is_looked_at_and_left_alone() {
    let Some((_server, cluster)) = start() else { return };
    assert_all(&cluster.tasks("-n 1"), 1, "0-1", "verified: it is the only task on the node");
    assert_all(&cluster.tasks("-n 1 -c 4"), 1, "0-1", "verified: it is the only task on the node");
    // The batch script, which has no step id, and a step in it.
    let report = cluster.path("report");
    let said = cluster.batch("-n 4", &format!("{0}; srun -n 4 {0}", text(&report)));
    let (script, steps) = said.split_once('\n').expect("the script says something first");
    assert_all(&read_tasks(script), 1, "0-1", "verified: it is the batch script");
    assert_eq!(affinities(&read_tasks(steps)), ["0", "0", "1", "1"]);
    assert_eq!(cluster.drained(), 0);
}

#[test]
fn what_the_user_says_is_respected() {
    let Some((_server, cluster)) = start() else { return };
    assert_all(
        &cluster.tasks("-n 4 --cpu-bind=none"),
        4,
        "0-1",
        "left: CPUs 0-1 as Slurm has bound it: the user wants",
    );
    for typed in ["mask_cpu:2,1", "mask_cpu:0x2,0x1", "map_cpu:1,0"] {
        let tasks = cluster.tasks(&format!("-n 2 --cpu-bind={typed}"));
        assert_eq!(affinities(&tasks), ["1", "0"], "{typed}");
        assert!(
            tasks.iter().all(|task| task.status.contains("the user has typed where")),
            "{typed}: {tasks:?}"
        );
    }
    let tasks = cluster.tasks("-n 2 --cpu-bind=rank");
    assert!(tasks.iter().all(|task| task.status.contains("the user has typed where")), "{tasks:?}");
    for off in ["off", "OFF", "0"] {
        assert_all(&cluster.tasks_of("-n 4", 0, &[("BERTH", off)]), 4, "0-1", "off");
    }
    let mine = [("BERTH_CPUS", "mine"), ("OMP_PROC_BIND", "false")];
    let tasks = cluster.tasks_of("-n 4", 0, &mine);
    assert_eq!(affinities(&tasks), ["0", "0", "1", "1"]);
    assert!(tasks.iter().all(|task| task.cpus == "mine" && task.omp_proc_bind == "false"), "{tasks:?}");
    assert_eq!(cluster.drained(), 0);
}

/// A node with two CPUs: Slurm gives each task its own.
#[test]
fn masks_that_are_disjoint_stay() {
    let Some(server) = two_cpus().then(unsafe_host) else { return };
    let node = "CPUs=2 Sockets=1 CoresPerSocket=2 ThreadsPerCore=1";
    let Some(cluster) = Cluster::start(&Setup { node, ..Setup::asking(&server) }) else { return };
    let tasks = cluster.tasks("-n 2 --cpu-bind=cores");
    assert_eq!(affinities(&tasks), ["0", "1"]);
    for task in &tasks {
        assert!(task.status.ends_with("no other task of the step has any of them"), "{task:?}");
        assert_eq!(task.omp_places, format!("{{{}}}", task.affinity));
        assert_eq!(task.omp_proc_bind, "close");
    }
    // What the job has set of OpenMP is all its own affair.
    let tasks = cluster.tasks_of("-n 2", 0, &[("OMP_PROC_BIND", "spread")]);
    assert!(
        tasks.iter().all(|task| task.omp_places == "unset" && task.omp_proc_bind == "spread"),
        "{tasks:?}"
    );
    // Each wants more than its share.
    let tasks = cluster.tasks("-n 2 -c 2 --overcommit --overlap");
    assert!(tasks.iter().all(|task| !task.status.starts_with("bound")), "{tasks:?}");
    assert_eq!(cluster.drained(), 0);
}

/// Slurm keeps tasks in a cpuset of the step's, with masks inside it or without.
#[test]
fn tasks_in_a_cpuset_are_bound_inside_it() {
    let Some(server) = two_cpus().then(unsafe_host) else { return };
    for plugins in ["task/cgroup", "task/affinity,task/cgroup"] {
        let setup = Setup {
            more: format!("TaskPlugin={plugins}\n"),
            node: "CPUs=2 Sockets=1 CoresPerSocket=2 ThreadsPerCore=1",
            cgroups: true,
            ..Setup::asking(&server)
        };
        let Some(cluster) = Cluster::start(&setup) else { return };
        let report = cluster.path("report");
        let steps =
            format!("srun -n 4 --overcommit {0}; srun -n 2 --overcommit --exact -c 1 {0}", text(&report));
        let said = cluster.batch("-n 2", &steps);
        let tasks = read_each(&said);
        assert_eq!(affinities(&tasks[..4]), ["0", "0", "1", "1"], "{plugins}: {tasks:?}");
        // What Slurm gave is never left.
        let inside = |task: &Task| ["0", "1", "0-1"].contains(&task.affinity.as_str());
        assert!(tasks[4..].iter().all(inside), "{plugins}: {tasks:?}");
        // An ordinary user may hold CPUs of its own cpuset alone, which are the step's.
        let tasks = cluster.tasks_of("-n 2", USER, &[]);
        let held = |task: &Task| task.status.starts_with("left: ") && !task.status.contains("not held");
        assert!(tasks.iter().all(held), "{plugins}: {tasks:?}");
        assert_eq!(cluster.drained(), 0);
    }
}

/// A berthd that is not there, dies, does not answer, or answers what makes no sense: jobs run as Slurm has them.
#[test]
fn jobs_run_whatever_berthd_does() {
    let Some(server) = two_cpus().then(unsafe_host) else { return };
    let front = Front::before(&server);
    let Some(cluster) = Cluster::start(&Setup { server: front.address(), ..Setup::asking(&server) }) else {
        return;
    };
    let report = cluster.path("report");
    for manner in Manner::BAD {
        front.behave(manner);
        let tasks = cluster.tasks("-n 4");
        assert_all(&tasks, 4, "0-1", "failed: the task is where Slurm has put it: ");
        println!("{manner:?}: {}", tasks[0].status);
        assert_eq!(cluster.drained(), 0, "{manner:?}");
    }
    let said = cluster.batch("-n 4", &format!("{0}; srun -n 4 {0}", text(&report)));
    assert_all(&read_each(&said), 5, "0-1", "failed: ");
    // It is there again, and what the jobs of before could not open is not missed.
    front.behave(Manner::Good);
    assert_eq!(affinities(&cluster.tasks("-n 4")), ["0", "0", "1", "1"]);

    // Its death in the middle of a job, between Prolog and TaskProlog and between that and Epilog.
    let mut job =
        cluster.srun_in_background(&["-n", "4", "sh", "-c", &format!("sleep 1; {}", text(&report))]);
    thread::sleep(Duration::from_millis(600));
    drop(server);
    assert!(job.wait().expect("srun ends").success());
    assert_all(&cluster.tasks("-n 4"), 4, "0-1", "failed: ");
    let drained = cluster.drained();
    println!("nodes drained after all failures: {drained}");
    assert_eq!(drained, 0);

    // Nor is it missed that there is no berth any more, or none that can be run.
    for broken in ["", "#!/bin/sh\nkill -9 $$\n", "#!/bin/sh\nexit 3\n", "no program"] {
        let program = cluster.path("berth");
        let _ = fs::remove_file(&program);
        if !broken.is_empty() {
            fs::write(&program, broken).expect("it can be written");
            open_to_all(&program);
        }
        assert_eq!(affinities(&cluster.tasks("-n 4")), ["0-1"; 4], "{broken}");
        assert_eq!(cluster.drained(), 0, "{broken}");
    }
}

/// A slurmd that takes the host for one of 640 CPUs, as berthd does. It counts CPUs core by core, and its masks are the OS's
/// numbers all the same.
#[test]
fn masks_of_640_cpus_are_the_oss_numbers() {
    let Some(server) = two_cpus().then(unsafe_host) else { return };
    let xml = machine("seeds/turin-2s-l3-as-numa.xml").canonicalize().expect("it is there");
    let setup = Setup {
        node: "CPUs=640 Sockets=2 CoresPerSocket=160 ThreadsPerCore=2",
        environment: vec![("HWLOC_XMLFILE", xml)],
        ..Setup::asking(&server)
    };
    let Some(cluster) = Cluster::start(&setup) else { return };
    let topology = server.berth(["topology", "--full", "-o", "json"]).json();
    let numbers = Numbers::of(&topology);

    // Tasks that may use all of it are bound within what is here of it.
    let tasks = cluster.tasks("-n 4 --exclusive --cpu-bind=ldoms");
    assert_eq!(affinities(&tasks), ["0", "0", "1", "1"], "{tasks:?}");

    let show =
        "scontrol show job -d $SLURM_JOB_ID | grep -o 'CPU_IDs=[^ ]*'; echo MASKS=$SLURM_CPU_BIND_LIST";
    for args in ["-n 2 -c 64 --cpu-bind=none", "-n 1 -c 6", "-n 1 -c 320"] {
        let said = cluster.run("srun", 0, |srun| {
            srun.args(args.split_whitespace()).args(["sh", "-c", show]);
        });
        let said = said.answer();
        let field = |name: &str| {
            let text = said.lines().find_map(|line| line.strip_prefix(name));
            CpuSet::parse(text.unwrap_or_else(|| panic!("{name} {said}"))).expect("CPUs")
        };
        let (ids, masks) = (field("CPU_IDs="), field("MASKS="));
        println!("{args}: Slurm's CPUs {ids} are the OS's {masks}");
        assert_eq!(masks, numbers.of_slurm(&ids), "{args}: {ids}");
        assert_ne!(masks, ids, "{args}: they are counted otherwise");
    }

    // Tasks whose CPUs are not here cannot start: what slurmd made for them is a core for each.
    cluster.run("srun", 0, |srun| _ = srun.args(["-n", "20", "--exclusive", "--cpu-bind=cores", "true"]));
    let log = cluster.slurmd_log();
    let (_, made) = log.rsplit_once("mask_cpu, 0x").expect("slurmd says its masks");
    let made = made.lines().next().expect("there is one").trim_start_matches("0x");
    let cores: Vec<CpuSet> = made
        .split(',')
        .map(|mask| CpuSet::parse(&format!("0x{}", mask.trim_start_matches("0x"))).expect("a mask"))
        .collect();
    assert_eq!(cores.len(), 20);
    for core in &cores {
        let cpus: Vec<u32> = core.iter().map(Cpu::number).collect();
        assert!(matches!(cpus[..], [first, second] if second == first + 320), "{core}");
    }
    assert_eq!(cluster.drained(), 0);
}

/// The OS's numbers of CPUs, in the order in which Slurm counts them: by package, core and thread.
struct Numbers(Vec<u32>);

impl Numbers {
    fn of(topology: &serde_json::Value) -> Self {
        let mut cores: Vec<(u64, Vec<u32>)> = topology["topology"]["cores"]
            .as_array()
            .expect("a list")
            .iter()
            .map(|core| {
                let cpus = CpuSet::parse(core["cpus"].as_str().expect("a text")).expect("a list");
                (core["package"].as_u64().expect("a number"), cpus.iter().map(Cpu::number).collect())
            })
            .collect();
        cores.sort();
        Self(cores.into_iter().flat_map(|(_, cpus)| cpus).collect())
    }

    fn of_slurm(&self, ids: &CpuSet) -> CpuSet {
        ids.iter().filter_map(|id| Cpu::try_new(*self.0.get(id.index())?)).collect()
    }
}
