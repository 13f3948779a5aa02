//! What a task's hook writes: each line is an order to Slurm.

use std::fmt::Write as _;

use berth_model::{Cpu, CpuSet};

use super::environment::Environment;

/// Variables that say where OpenMP's threads go. If the job has set any of them, they are all its own affair.
const OPENMP: [&str; 5] =
    ["OMP_PLACES", "OMP_PROC_BIND", "GOMP_CPU_AFFINITY", "KMP_AFFINITY", "KMP_HW_SUBSET"];
/// Says what was done with the task.
const STATUS: &str = "BERTH_STATUS";

/// Lines for Slurm.
#[derive(Debug)]
pub(super) struct Lines<'a> {
    environment: &'a Environment,
    text: String,
}

impl<'a> Lines<'a> {
    pub(super) fn new(environment: &'a Environment) -> Self {
        Self { environment, text: String::new() }
    }

    /// Sets a variable of the task, unless the job has.
    fn export(&mut self, name: &str, value: &str) {
        if !self.environment.has(name) {
            let _ = writeln!(self.text, "export {name}={value}");
        }
    }

    /// Says in the task's environment what was done. It is Berth's own: what an outer step was told is not kept.
    pub(super) fn status(&mut self, status: &str) {
        let _ = writeln!(self.text, "export {STATUS}={}", one_line(status));
    }

    /// Says something on the task's stdout.
    pub(super) fn print(&mut self, said: &str) {
        let _ = writeln!(self.text, "print berth: {}", one_line(said));
    }

    /// Tells the task its CPUs and the nodes of its memory.
    pub(super) fn cpus(&mut self, cpus: &CpuSet, memory_nodes: &CpuSet) {
        self.export("BERTH_CPUS", &cpus.to_string());
        if !memory_nodes.is_empty() {
            self.export("BERTH_MEMS", &memory_nodes.to_string());
        }
    }

    /// Tells OpenMP of a task's CPUs, which must be its own. Several are told only if the job says that it has as many threads:
    /// OpenMP binds the first thread too, and whatever that one starts stays there with it.
    pub(super) fn openmp(&mut self, in_order: &[Cpu], cpus_per_task: u32) {
        let named = self
            .environment
            .text("OMP_NUM_THREADS")
            .and_then(|text| text.split(',').next()?.trim().parse().ok());
        let threads: u32 = named.unwrap_or(cpus_per_task);
        let fits = usize::try_from(threads).is_ok_and(|threads| threads <= in_order.len());
        let wanted = in_order.len() == 1 || (threads >= 2 && fits);
        if in_order.is_empty() || !wanted || OPENMP.iter().any(|name| self.environment.has(name)) {
            return;
        }
        let places: Vec<String> = in_order.iter().map(|cpu| format!("{{{}}}", cpu.number())).collect();
        self.export("OMP_PLACES", &places.join(","));
        self.export("OMP_PROC_BIND", "close");
    }

    pub(super) fn into_text(self) -> String {
        self.text
    }
}

/// Slurm reads lines: what a server or an environment says must not become several.
fn one_line(text: &str) -> String {
    text.chars().map(|c| if c.is_control() { ' ' } else { c }).take(500).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn set(list: &str) -> CpuSet {
        CpuSet::parse(list).unwrap()
    }

    fn openmp(environment: &[(&str, &str)], cpus: &str, cpus_per_task: u32) -> String {
        let environment = Environment::of(environment);
        let mut lines = Lines::new(&environment);
        lines.openmp(&set(cpus).iter().collect::<Vec<_>>(), cpus_per_task);
        lines.into_text()
    }

    #[test]
    fn lines_have_no_leading_blank_and_respect_the_job() {
        let environment = Environment::of(&[("BERTH_MEMS", ""), ("BERTH_STATUS", "of an outer step")]);
        let mut lines = Lines::new(&environment);
        lines.cpus(&set("0-3,8"), &set("1"));
        lines.status("bound\nexport PATH=/tmp");
        lines.print("a\r\nb");
        assert_eq!(
            lines.into_text(),
            "export BERTH_CPUS=0-3,8\nexport BERTH_STATUS=bound export PATH=/tmp\nprint berth: a  b\n"
        );
    }

    #[test]
    fn openmp_is_told_of_as_many_places_as_there_are_threads() {
        assert_eq!(openmp(&[], "5", 1), "export OMP_PLACES={5}\nexport OMP_PROC_BIND=close\n");
        let two = "export OMP_PLACES={0},{1}\nexport OMP_PROC_BIND=close\n";
        assert_eq!(openmp(&[], "0-1", 2), two);
        assert_eq!(openmp(&[("OMP_NUM_THREADS", "2,4")], "0-1", 1), two);
        for (environment, cpus_per_task) in [
            (&[][..], 1),
            (&[], 4),
            (&[("OMP_NUM_THREADS", "1")], 2),
            (&[("OMP_PROC_BIND", "false")], 2),
            (&[("GOMP_CPU_AFFINITY", "0")], 2),
        ] {
            assert_eq!(openmp(environment, "0-1", cpus_per_task), "", "{environment:?}");
        }
    }
}
