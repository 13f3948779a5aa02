//! The decision trace, as a reader checks it beside the specification.

use crate::{
    bursts::{Bench, STREAM, cpu, cpus, threads},
    machines::{turin, xeon, zen3},
    strategies,
};
use berth_model::{
    predict::{
        Burst, Entry, place,
        trace::{TaskTrace, Verdict, trace},
    },
    profile,
    topology::{Shape, Topology},
};
use proptest::prelude::*;

fn traces(bench: &Bench, burst: &Burst<'_>) -> Vec<TaskTrace> {
    let mut traces = Vec::new();
    trace(
        bench.host(),
        burst,
        &[],
        |_| true,
        |task| {
            traces.push(task);
            true
        },
    );
    traces
}

/// One line a level: its name with its weight, the CPU it is seen from, the rule with its numbers.
fn lines(task: &TaskTrace) -> String {
    let mut text = format!("task {} from CPU {}\n", task.task, task.from);
    for step in &task.steps {
        let name = format!("{}{}", step.kind.name(), step.span.len());
        let to = match &step.decision {
            Verdict::Go { chosen, .. } => format!(" to CPU {chosen}"),
            Verdict::Stay | Verdict::Pass => String::new(),
        };
        text += &format!("  {name} of {}: {}{to}\n", step.cpu, step.because);
    }
    text + &format!("  = CPU {}\n", task.cpu)
        + &if task.because.is_empty() { String::new() } else { format!("  {}\n", task.because) }
}

/// The step-by-step check of vector 7.2: mel-v5, NPS2, from CPU 16. The third, fifth and seventh fork are the ones that
/// the specification goes through; thresholds are 4 at the NUMA level of 128 CPUs and 8 at that of 256.
#[test]
fn mel_v5_nps2_from_cpu_16_step_by_step() {
    let bench = Bench::named(&zen3(2), "mel-v5");
    let allowed = cpus(STREAM);
    let traces = traces(&bench, &threads(&allowed, 8, 16));
    let shown: String = [0, 3, 5, 7].map(|task| lines(&traces[task])).concat();
    assert_eq!(
        shown,
        "\
task 0 from CPU 16
  = CPU 16
  It is the parent, which stays on CPU 16.
task 3 from CPU 16
  NUMA256 of 16: 3 + 1 < 8: stay
  NUMA128 of 16: not 3 + 1 < 4; idle 62 < 64: go to CPU 32
  NODE64 of 32: idle 16 >= 16: stay
  MC16 of 32: no other group has an allowed CPU: stay
  SMT2 of 32: no other group has an allowed CPU: stay
  = CPU 32
task 5 from CPU 16
  NUMA256 of 16: 5 + 1 < 8: stay
  NUMA128 of 16: not 3 + 1 < 4; idle 62 >= 62: stay
  NODE64 of 16: idle 15 >= 15: stay
  MC16 of 16: no other group has an allowed CPU: stay
  SMT2 of 16: no other group has an allowed CPU: stay
  = CPU 16
task 7 from CPU 16
  NUMA256 of 16: not 7 + 1 < 8; idle 124 < 128: go to CPU 64
  NUMA128 of 64: 0 + 1 < 4: stay
  NODE64 of 64: idle 16 >= 16: stay
  MC16 of 64: no other group has an allowed CPU: stay
  SMT2 of 64: no other group has an allowed CPU: stay
  = CPU 64
"
    );
    let third = &traces[3].steps[1];
    let groups: Vec<String> =
        third.groups.iter().map(|g| format!("{} {} {} {}", g.cpus, g.allowed, g.running, g.idle)).collect();
    assert_eq!(groups, ["0-31,128-159 2 3 62", "32-63,160-191 2 0 64"]);
    assert_eq!((third.local, third.idlest, third.imb_numa_nr), (Some(0), Some(1), Some(4)));
    assert_eq!(third.decision, Verdict::Go { chosen: cpu(32), tied: cpus("48") });
}

/// The report that Berth began with: the tolerance of eight is used up, and forbidden idle CPUs draw the task away.
#[test]
fn the_task_that_leaves_a_package_of_idle_cpus() {
    let bench = Bench::named(&turin(), "v6.12");
    let allowed = cpus("0-175");
    let traces = traces(&bench, &Burst::forks(&allowed, 176, cpu(0)));
    let last = &traces[175].steps[0];
    assert_eq!(last.because, "17 + 1 > min(160, 8), so no difference is tolerated; idle 303 < 304: go");
    let shown =
        |index: usize| (last.groups[index].allowed, last.groups[index].running, last.groups[index].idle);
    assert_eq!((shown(0), shown(1)), ((160, 17, 303), (16, 159, 304)));
}

/// v5.3 and v5.4 compare loads.
#[test]
fn v5_4_by_load() {
    let bench = Bench::named(&xeon(), "v5.4");
    let every = bench.topology.online().clone();
    let traces = traces(&bench, &Burst::forks(&every, 16, cpu(0)));
    let first: Vec<&str> = [0, 9, 10].map(|task: usize| traces[task].steps[0].because.as_str()).to_vec();
    assert_eq!(first, ["load 0 + 256 >= 25: stay", "load 0 + 256 >= 256: stay", "load 281 >= 0 + 256: go"]);
    let exec = Burst { entry: Entry::Exec, ..Burst::forks(&every, 1, cpu(0)) };
    assert_eq!(self::traces(&bench, &exec)[0].steps[0].because, "spare 112 * 1024 > 100 * 1024: stay");
}

#[test]
fn descents_that_do_not_happen_say_why() {
    let mut description = Shape { packages: 2, cores: 4, ..Shape::default() }.describe();
    description.isolated = cpus("2-3");
    let bench = Bench::named(&Topology::try_new(description).unwrap(), "v6.12");
    let because = |allowed: &str, origin: u32| {
        let allowed = cpus(allowed);
        let traced = traces(&bench, &Burst::forks(&allowed, 1, cpu(origin))).remove(0);
        (traced.fell_back, traced.because)
    };
    assert_eq!(because("5", 0), (false, "CPU 5 is the only one allowed.".to_owned()));
    assert_eq!(because("2-3", 2), (false, "CPU 2 has no domain that balances new tasks.".to_owned()));
    assert_eq!(
        because("2-3", 0),
        (
            true,
            "No domain of CPU 0 that balances new tasks holds an allowed CPU. CPU 0 is not allowed: a CPU of the same \
             NUMA node is taken, else any."
                .to_owned()
        )
    );
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 200, failure_persistence: None, ..ProptestConfig::default() })]

    /// What is traced is what is placed, each level goes on where the one above led, and it can be ended early.
    #[test]
    fn a_trace_tells_what_was_decided(
        topology in strategies::topology(),
        profile in prop::sample::select(profile::all().iter().collect::<Vec<_>>()),
        origin in any::<prop::sample::Index>(),
        exec in any::<bool>(),
        tasks in 1u32..20,
    ) {
        let bench = Bench::new(&topology, profile);
        let mask = topology.online().clone();
        let cpus: Vec<_> = mask.iter().collect();
        let entry = if exec { Entry::Exec } else { Entry::Fork };
        let burst = Burst { entry, ..Burst::forks(&mask, tasks, *origin.get(&cpus)) };
        let traced = traces(&bench, &burst);
        prop_assert_eq!(traced.iter().map(|task| task.cpu).collect::<Vec<_>>(), place(bench.host(), &burst));
        for task in &traced {
            let mut at = task.from;
            for step in &task.steps {
                prop_assert_eq!(step.cpu, at);
                let (said, goes) = match &step.decision {
                    Verdict::Stay => ("stay", None),
                    Verdict::Go { chosen, .. } => ("go", Some(*chosen)),
                    Verdict::Pass => ("it does not balance new tasks", None),
                };
                prop_assert!(step.because.ends_with(said), "{}", step.because);
                at = goes.unwrap_or(at);
            }
            prop_assert_eq!(at, task.cpu);
        }
        let mut seen = Vec::new();
        trace(bench.host(), &burst, &[], |task| task % 3 == 1, |task| {
            seen.push(task);
            seen.len() < 2
        });
        let wanted: Vec<TaskTrace> = traced.into_iter().filter(|task| task.task % 3 == 1).take(2).collect();
        prop_assert_eq!(seen, wanted);
    }
}
