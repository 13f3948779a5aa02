//! Vector 7.5: NAS mg.D on two Xeons of 40 CPUs and one LLC each, unpinned, from CPU 0 that runs the parent. Which splits
//! load balancing lets stand is not of a fork's making, and is held elsewhere.

use crate::{
    bursts::{Bench, cpu},
    machines::xeon,
};
use berth_model::{
    domains::Kind,
    predict::{Burst, Children, Parent},
    profile::{self, NumaForkRule},
    topology::Level,
};

/// profile | fork threshold at the NUMA level | nodes of 16 children | of 20 children
const TABLE: &str = "\
v5.3                    | load, m = 256                   | 13/3 | 15/5
v5.7                    | any idle CPU                    | 16/0 | 20/0
v5.8                    | any idle CPU                    | 16/0 | 20/0
v5.12                   | n < 20                          | 16/0 | 19/1
v5.13                   | n < 20                          | 16/0 | 19/1
v5.13-revert-c6f886546cb8 | n < 20                        | 16/0 | 19/1
mel-v3                  | n < 10                          | 9/7  | 10/10
mel-v4                  | n <= 20                         | 16/0 | 20/0
mel-v4-ps               | n <= 10                         | 10/6 | 10/10
mel-v5                  | n + 1 < 10                      | 8/8  | 10/10
v5.18rc4-baseline       | n + 1 <= 10                     | 9/7  | 10/10
v5.18rc4-revert-c6f886546cb8 | n + 1 <= 10                | 9/7  | 10/10
v5.18                   | n + 1 <= 10                     | 9/7  | 10/10
v5.18rc4-this_series    | d <= 2 while n + 1 <= 5, else 0 | 8/8  | 10/10
v5.18rc4-this_series-revert-c6f886546cb8 | d <= 2 while n + 1 <= 5, else 0 | 8/8 | 10/10
v6.0                    | d <= 2 while n + 1 <= 5, else 0 | 8/8  | 10/10
v6.1                    | d <= 2 while n + 1 <= 5, else 0 | 8/8  | 10/10
v6.12                   | d <= 2 while n + 1 <= 5, else 0 | 8/8  | 10/10
v6.19                   | d <= 2 while n + 1 <= 5, else 0 | 8/8  | 10/10
";

/// The rule of the NUMA level with its numbers; unpinned, an allowed CPU is any of the group.
fn threshold(bench: &Bench) -> String {
    let numa = bench.domains.of(cpu(0)).find(|domain| matches!(domain.kind(), Kind::Numa { .. })).unwrap();
    let (w, i) = (numa.weight(), numa.imb_numa_nr());
    match bench.profile.numa_fork {
        NumaForkRule::ByLoad => format!("load, m = {}", 1024 * (numa.imbalance_pct() - 100) / 100),
        NumaForkRule::AnyIdle => "any idle CPU".to_owned(),
        NumaForkRule::Span25 => format!("n < {}", w >> 2),
        NumaForkRule::Less => format!("n < {i}"),
        NumaForkRule::NotMore => format!("n <= {i}"),
        NumaForkRule::PlusOneLess | NumaForkRule::PlusOneLessAllowed => format!("n + 1 < {i}"),
        NumaForkRule::PlusOneNotMore | NumaForkRule::PlusOneNotMoreAllowed => format!("n + 1 <= {i}"),
        NumaForkRule::Adjusted | NumaForkRule::AdjustedAllowed => {
            format!("d <= 2 while n + 1 <= {i}, else 0")
        }
    }
}

fn per_node(bench: &Bench, tasks: u32, children: Children) -> String {
    let every = bench.topology.online().clone();
    let burst = Burst { parent: Parent::Runs, children, ..Burst::forks(&every, tasks, cpu(0)) };
    let split = bench.split(Level::Node, &bench.places(&burst));
    format!("{}/{}", split[0], split[1])
}

#[test]
fn thresholds_and_splits() {
    for line in TABLE.lines() {
        let columns: Vec<&str> = line.split('|').map(str::trim).collect();
        let [profile, fork, sixteen, twenty] = columns[..] else { panic!("{line}") };
        let bench = Bench::named(&xeon(), profile);
        let children = Children::Running;
        let found = [threshold(&bench), per_node(&bench, 16, children), per_node(&bench, 20, children)];
        assert_eq!(found, [fork, sixteen, twenty], "{profile}");
    }
}

/// In the report the helpers sleep as they are forked: each finds the machine as the first did, and stays with the parent.
#[test]
fn helpers_that_sleep_stay_with_the_parent() {
    for profile in profile::all() {
        let bench = Bench::new(&xeon(), profile);
        assert_eq!(per_node(&bench, 16, Children::Asleep), "16/0", "{}", profile.name);
    }
}
