//! OpenMP runtimes: the threads of one process.

use super::{Error, Mask};
use crate::cpuset::{Cpu, CpuSet};

/// `OMP_PLACES` and `OMP_PROC_BIND`. Threads are divided over the places evenly, so that each needs as many.
pub(super) fn places(masks: &[Mask]) -> Result<String, Error> {
    if masks.iter().any(|mask| mask.tasks != masks[0].tasks) {
        return Err(Error::Uneven);
    }
    let places: Vec<String> = masks.iter().map(|mask| place(&mask.cpus)).collect();
    let singles: Option<Vec<Cpu>> = masks.iter().map(|mask| only(&mask.cpus)).collect();
    let text = match singles.as_deref().and_then(|cpus| steps(cpus).filter(|_| cpus.len() > 2)) {
        // A place, how often, and how far apart.
        Some((first, step)) => format!("{{{first}}}:{}:{step}", masks.len()),
        None => places.join(","),
    };
    // With `close` thread i is on place i.
    Ok(format!("export OMP_PLACES=\"{text}\"\nexport OMP_PROC_BIND=close"))
}

/// `GOMP_CPU_AFFINITY`: thread i is bound to the i-th CPU of the list.
pub(super) fn gomp(masks: &[Mask]) -> Result<String, Error> {
    let single = |mask: &Mask| only(&mask.cpus).filter(|_| mask.tasks == 1);
    let cpus: Option<Vec<Cpu>> = masks.iter().map(single).collect();
    let cpus = cpus.ok_or(Error::Shared)?;
    let mut words = Vec::new();
    let mut left = &cpus[..];
    while let Some(first) = left.first() {
        let run = (2..=left.len()).take_while(|&len| steps(&left[..len]).is_some()).last();
        let (word, taken) = match run.filter(|&len| len > 2) {
            Some(len) => {
                let (_, step) = steps(&left[..len]).unwrap_or((*first, 1));
                let stride = if step == 1 { String::new() } else { format!(":{step}") };
                (format!("{first}-{}{stride}", left[len - 1]), len)
            }
            None => (first.to_string(), 1),
        };
        words.push(word);
        left = &left[taken..];
    }
    Ok(format!("export GOMP_CPU_AFFINITY=\"{}\"", words.join(" ")))
}

/// A place: its CPUs, in runs of a first one and their number.
fn place(cpus: &CpuSet) -> String {
    let mut runs: Vec<(u32, u32)> = Vec::new();
    for cpu in cpus {
        match runs.last_mut() {
            Some((first, count)) if *first + *count == cpu.number() => *count += 1,
            _ => runs.push((cpu.number(), 1)),
        }
    }
    let word = |(first, count): &(u32, u32)| match count {
        1 => first.to_string(),
        _ => format!("{first}:{count}"),
    };
    format!("{{{}}}", runs.iter().map(word).collect::<Vec<_>>().join(","))
}

fn only(cpus: &CpuSet) -> Option<Cpu> {
    cpus.first().filter(|_| cpus.len() == 1)
}

/// The first CPU and the step to each next one, if these are alike and upwards.
fn steps(cpus: &[Cpu]) -> Option<(Cpu, u32)> {
    let [first, second, ..] = cpus else { return None };
    let step = second.number().checked_sub(first.number()).filter(|step| *step > 0)?;
    let alike = cpus.windows(2).all(|pair| pair[1].number().checked_sub(pair[0].number()) == Some(step));
    alike.then_some((*first, step))
}
