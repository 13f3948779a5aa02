//! What a burst takes from the heap: room at the start, and nothing for each task.

use super::{
    bursts::{Bench, cpu, cpus},
    machines::turin,
};
use allocation_counter::measure;
use berth_model::predict::{Burst, GAP, Marks, place};

#[test]
fn no_task_allocates() {
    for profile in ["v5.4", "v6.1", "v6.12", "v6.19"] {
        let (host, mask) = (Bench::named(&turin(), profile), cpus("0-175"));
        let burst = |tasks: u32| Burst::forks(&mask, tasks, cpu(0));
        let with_clock = |tasks: u32| Burst { gap: GAP, marks: Marks::Expected, ..burst(tasks) };
        for burst in [burst(16), with_clock(16)] {
            let count = |tasks: u32| {
                let burst = Burst { tasks, ..burst };
                measure(|| drop(place(host.host(), &burst))).count_total
            };
            // 160 tasks more. What is noted of groups that have a reason for a mark finds its room as it grows.
            let (few, many) = (count(16), count(176));
            assert!(few > 0 && many < few + 4, "{profile}, gap {}: {few}, then {many}", burst.gap);
        }
    }
}
