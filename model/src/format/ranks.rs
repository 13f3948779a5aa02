//! Launchers of ranks: one entry for each task, in order.

use super::{Error, Mask};
use crate::cpuset::{Cpu, CpuSet};
use std::collections::HashMap;

/// `srun --cpu-bind=mask_cpu:`, in the numbers that Slurm gives to CPUs. srun repeats a mask that is followed by an asterisk.
pub(super) fn cpu_bind(masks: &[Mask], slurm_cpus: &[Cpu]) -> Result<String, Error> {
    if slurm_cpus.is_empty() {
        return Err(Error::NoNumbering);
    }
    let number: HashMap<Cpu, Cpu> = slurm_cpus.iter().copied().zip((0..).map_while(Cpu::try_new)).collect();
    let theirs = |mask: &Mask| -> Result<String, Error> {
        let numbered = mask.cpus.iter().map(|cpu| number.get(&cpu).copied().ok_or(Error::NotSlurms(cpu)));
        let hex = numbered.collect::<Result<CpuSet, Error>>()?.to_hex();
        Ok(if mask.tasks == 1 { hex } else { format!("{hex}*{}", mask.tasks) })
    };
    let masks: Result<Vec<String>, Error> = masks.iter().map(theirs).collect();
    Ok(format!("--cpu-bind=mask_cpu:{}", masks?.join(",")))
}

/// A rankfile of Open MPI 4, with the kernel's numbers.
pub(super) fn rankfile(masks: &[Mask]) -> String {
    let mut lines = vec!["# mpirun --mca rmaps_rank_file_physical 1 --rankfile THIS_FILE".to_owned()];
    let mut rank = 0u32;
    for mask in masks {
        for _ in 0..mask.tasks {
            lines.push(format!("rank {rank}=localhost slot={}", mask.cpus));
            rank += 1;
        }
    }
    lines.join("\n")
}
