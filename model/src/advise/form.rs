//! From a placement to the widest form of it that is proven and that the caller can apply.

use super::{
    Error, Objective, Policy, Proof, Request, Smt,
    entries::entries,
    launched::Launched,
    objective::Judge,
    optimum::Found,
    placement::Wish,
    proof::{Outcome, Prover},
    tree::split,
    wishes,
};
use crate::{
    cpuset::{Cpu, CpuSet},
    predict::{Parent, Prediction, best_fullest},
    topology::Level,
};
use std::cmp::Reverse;

/// The form of an advice, widest first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Form {
    /// Do not bind: the kernel does as well by itself.
    None,
    /// One mask for all tasks.
    Mask,
    /// The tasks divided over a few masks.
    Split,
    /// Each task with an entry of its own.
    PerTask,
}

/// A mask and the tasks that go under it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Part {
    /// The CPUs; never empty.
    pub cpus: CpuSet,
    /// How many tasks.
    pub tasks: u32,
    /// Where the policy wants them, ascending: for each task as many as it has CPUs.
    pub placed: Vec<Cpu>,
    /// This is the mask that the caller named, under which the parent may run outside it.
    pub as_asked: bool,
}

/// A form that was tried and not taken.
#[derive(Debug, Clone, PartialEq)]
pub struct Attempt {
    /// The form.
    pub form: Form,
    /// Its masks.
    pub parts: Vec<Part>,
    /// How its proof went.
    pub proof: Proof,
}

/// Where to put the tasks.
#[derive(Debug, Clone, PartialEq)]
pub struct Advice {
    /// The form.
    pub form: Form,
    /// Its masks: one for NONE and MASK, several for SPLIT, with PER_TASK one for each task or one that several share.
    pub parts: Vec<Part>,
    /// Whether it is proven. If not, no form that the caller can apply is, and this one piles up least.
    pub proof: Proof,
    /// Whether the allowed CPUs as one mask are safe.
    pub asked: Proof,
    /// Wider forms that were tried before, widest first; without the allowed CPUs as one mask.
    pub attempts: Vec<Attempt>,
    /// How good the placement behind the form is.
    pub objective: Objective,
    /// Whether no placement has a smaller vector, or for AUTO a smaller first component. If not, one may have.
    pub optimal: bool,
    /// If one may have, the least that the sum of distances can be, where that is known.
    pub bound: Option<u64>,
    /// Whether the tasks fit into as small a part of the host as was wished.
    pub within_met: bool,
    /// The profile under which [`Advice::with`] was found: the first under which the allowed CPUs as one mask pile up,
    /// else the likeliest.
    pub judged_by: &'static str,
    /// What that kernel does with the advice: its central run from the worst origin.
    pub with: Prediction,
}

/// Finds the widest proven form.
///
/// # Errors
///
/// [`Error::NoFreeCore`] if cores are not to be shared and none is free; [`Error::NoKernel`] without kernels.
pub fn advise(request: &Request<'_>) -> Result<Advice, Error> {
    let likeliest = *request.kernels.first().ok_or(Error::NoKernel)?;
    let open = wishes::open(request)?;
    let (regions, within_met) = wishes::regions(request, &open)?;
    let judge = judge(request);
    let (region, Found { places: placed, optimal, bound }) = best_of(request, &judge, regions);
    // AUTO is content with any run that does not pile up; the other policies hold the kernel to their shape. Tasks with
    // several CPUs are held to it by their entries.
    let any_shape =
        request.policy == Policy::Auto && request.smt != Smt::FullCores || request.cpus_per_task > 1;
    let held_to = (!any_shape).then_some(&judge);
    let prover = Prover {
        topology: request.topology,
        kernels: request.kernels,
        load: request.load,
        launch: request.launch,
        marks: request.marks,
        any_shape,
    };

    let whole = vec![Part {
        cpus: request.allowed.clone(),
        tasks: request.tasks,
        placed: placed.clone(),
        as_asked: true,
    }];
    let (asked, shaped) = prover.prove_both(&whole, held_to);
    // Outcomes are told under the kernel that fails the mask, if one does: a likelier one may hide what is at stake.
    let failing = asked.failure.as_ref().map(|failure| failure.profile);
    let judged_by =
        request.kernels.iter().find(|kernel| Some(kernel.profile.name) == failing).unwrap_or(&likeliest);
    let awake = request.load.awake();
    let launched = Launched { request, kernel: judged_by, parts: &[], load: request.load, free: &region };
    let mut attempts = Vec::new();
    let mut chosen = None;
    for (form, parts) in forms(request, &region, &placed, &whole) {
        let mut proof = if parts == whole { shaped.clone() } else { prover.prove(&parts, held_to) };
        if proof.is_safe() {
            let (launched, origin, run) = launched.worst_of(&parts, awake.as_ref());
            if !run.tally.pile_up {
                let with = launched.examined(origin);
                chosen = Some((form, parts, proof, with));
                break;
            }
            // Each part holds by itself, and together they do not.
            proof.refute(judged_by.profile.name, origin, run);
        }
        attempts.push(Attempt { form, parts, proof });
    }
    let (form, parts, mut proof, with) = match chosen {
        Some(found) => found,
        None => {
            let (form, parts, proof) =
                least_bad(&mut attempts).unwrap_or_else(|| (Form::Mask, whole.clone(), asked.clone()));
            let (launched, origin, _) = launched.worst_of(&parts, awake.as_ref());
            let with = launched.examined(origin);
            (form, parts, proof, with)
        }
    };
    // A whole mask that piles up is told in `asked`; one that is safe and misses the policy's shape is an attempt.
    attempts.retain(|attempt| attempt.parts != whole || asked.is_safe());
    if request.with_margin && proof.is_safe() {
        proof.margin = prover.margin(&parts, held_to);
    }
    Ok(Advice {
        optimal,
        bound,
        within_met,
        form,
        parts,
        proof,
        asked,
        attempts,
        objective: judge.objective(&placed),
        judged_by: judged_by.profile.name,
        with,
    })
}

fn judge<'a>(request: &Request<'a>) -> Judge<'a> {
    let Request { topology, load, allowed, policy, smt, cpus_per_task, near, .. } = *request;
    Judge { topology, load, allowed, policy, smt, cpus_per_task, near }
}

/// The best placement in any of the regions, and the region. AUTO, of which vectors say little, is asked in one: where the
/// parent is, else nearest to where the tasks should be, else the emptiest.
fn best_of(request: &Request<'_>, judge: &Judge<'_>, regions: Vec<CpuSet>) -> (CpuSet, Found) {
    let idle =
        |region: &CpuSet| -> Vec<Cpu> { region.iter().filter(|&cpu| request.load.taken(cpu) == 0).collect() };
    let distances = |region: &CpuSet| -> Vec<u32> {
        let far = |cpu: Cpu| request.near.map_or(0, |near| near.distance(request.topology, cpu));
        let mut distances: Vec<u32> = idle(region).into_iter().map(far).collect();
        distances.sort_unstable();
        distances
    };
    let place = |region: CpuSet| {
        let found = wish(request, &without_launcher(request, &region)).placed(request.policy);
        (region, found)
    };
    if request.policy != Policy::Auto || request.cpus_per_task > 1 {
        let places = regions.into_iter().map(place);
        // The first of the best; it is known to be that if each is known to be the best of its region.
        let judged = places.map(|(region, found)| (judge.objective(&found.places), region, found));
        let best = judged.reduce(|mut best, mut next| {
            let optimal = best.2.optimal && next.2.optimal;
            (best.2.optimal, next.2.optimal) = (optimal, optimal);
            if next.0 < best.0 { next } else { best }
        });
        return best.map_or_else(|| place(request.allowed.clone()), |(_, region, found)| (region, found));
    }
    let key = |region: &CpuSet| {
        let is_elsewhere = request.launch.origin.is_some_and(|origin| !region.contains(origin));
        let nearest: u64 = distances(region).into_iter().take(request.cpus()).map(u64::from).sum();
        (is_elsewhere, nearest, Reverse(idle(region).len()))
    };
    let region = regions.into_iter().min_by_key(key).unwrap_or_else(|| request.allowed.clone());
    // No further away than need be for a CPU for each task.
    match (request.near, distances(&region).get(request.cpus().saturating_sub(1))) {
        (Some(near), Some(&most)) => {
            place(region.iter().filter(|&cpu| near.distance(request.topology, cpu) <= most).collect())
        }
        _ => place(region),
    }
}

fn wish<'a>(request: &Request<'a>, room: &'a CpuSet) -> Wish<'a> {
    let Request { topology, load, ideal, allowed, tasks, cpus_per_task, smt, near, launch, .. } = *request;
    let origin = launch.origin;
    Wish { topology, load, ideal, counted: allowed, allowed: room, tasks, cpus_per_task, smt, near, origin }
}

/// Without the launcher's CPU, if that is known and costs nothing: a task put there would share it while it runs.
fn without_launcher(request: &Request<'_>, free: &CpuSet) -> CpuSet {
    let launcher =
        request.launch.origin.filter(|_| matches!(request.launch.parent, Parent::Waits | Parent::Runs));
    let wanted = request.tasks.saturating_mul(request.cpus_per_task);
    let best = |cpus: &CpuSet| best_fullest(cpus.iter().map(|cpu| request.load.taken(cpu)), wanted);
    let others = launcher.map_or_else(CpuSet::new, |cpu| free.difference(&cpu.into()));
    if !others.is_empty() && best(&others) == best(free) { others } else { free.clone() }
}

/// How good any placement of the request's tasks would be; the CPUs ascending.
pub fn objective(request: &Request<'_>, places: &[Cpu]) -> Objective {
    judge(request).objective(places)
}

/// The most masks that tasks are divided over; more are no simpler than an entry for each task.
const MAX_PARTS: usize = 256;

/// The forms that the caller can apply, widest first.
fn forms(request: &Request<'_>, region: &CpuSet, placed: &[Cpu], whole: &[Part]) -> Vec<(Form, Vec<Part>)> {
    let applies = |form: Form| request.can_apply.is_empty() || request.can_apply.contains(&form);
    let mut forms = if request.cpus_per_task > 1 {
        own_cpus(request, placed, applies).into_iter().collect()
    } else {
        wide_forms(request, region, placed, whole, applies)
    };
    // Nothing of what the caller can apply is to be had as such: the mask as it is, whatever it is called.
    if forms.is_empty() {
        forms.extend(request.can_apply.first().map(|&form| (form, whole.to_vec())));
    }
    forms
}

/// The widest form under which tasks with several CPUs have them for themselves; if the caller can apply none, one mask.
fn own_cpus(
    request: &Request<'_>,
    placed: &[Cpu],
    applies: impl Fn(Form) -> bool,
) -> Option<(Form, Vec<Part>)> {
    let part = |tasks: u32, placed: Vec<Cpu>| Part {
        cpus: placed.iter().copied().collect(),
        tasks,
        placed,
        as_asked: false,
    };
    let own = || entries(request.topology, placed, request.cpus_per_task);
    let own = || own().into_iter().map(|placed| part(1, placed)).collect();
    match request.tasks {
        1 if applies(Form::Mask) => Some((Form::Mask, own())),
        _ if applies(Form::PerTask) => Some((Form::PerTask, own())),
        tasks if applies(Form::Split) && tasks as usize <= MAX_PARTS => Some((Form::Split, own())),
        tasks if applies(Form::Mask) => Some((Form::Mask, vec![part(tasks, placed.to_vec())])),
        _ => None,
    }
}

fn wide_forms(
    request: &Request<'_>,
    region: &CpuSet,
    placed: &[Cpu],
    whole: &[Part],
    applies: impl Fn(Form) -> bool,
) -> Vec<(Form, Vec<Part>)> {
    let mut forms = Vec::new();
    let as_asked = if request.asked { Form::Mask } else { Form::None };
    let is_whole = region == request.allowed;
    if !request.kept && is_whole && applies(as_asked) {
        forms.push((as_asked, whole.to_vec()));
    }
    let one_mask = |placed: &[Cpu], cpus: CpuSet| Part {
        tasks: u32::try_from(placed.len()).unwrap_or(u32::MAX),
        cpus,
        placed: placed.to_vec(),
        as_asked: false,
    };
    if applies(Form::Mask) {
        if !request.kept && !is_whole {
            forms.push((Form::Mask, vec![one_mask(placed, region.clone())]));
        }
        forms.push((Form::Mask, vec![one_mask(placed, placed.iter().copied().collect())]));
    }
    // An entry of PER_TASK may be a mask of several CPUs, shared with other tasks: the same as a SPLIT to the kernel.
    let entries = applies(Form::PerTask) && !request.single_cpus;
    if applies(Form::Split) || entries {
        let form = if applies(Form::Split) { Form::Split } else { Form::PerTask };
        for level in [Level::Package, Level::Node, Level::Llc] {
            let tight = split(request.topology, level, &placed.iter().copied().collect());
            let wide = (!request.kept).then(|| split(request.topology, level, region));
            for masks in wide.into_iter().chain([tight]).filter(|masks| masks.len() <= MAX_PARTS) {
                let in_mask =
                    |mask: &CpuSet| placed.iter().copied().filter(|&cpu| mask.contains(cpu)).collect();
                let parts = masks.into_iter().map(|mask| (in_mask(&mask), mask));
                let parts = parts.filter(|(placed, _): &(Vec<Cpu>, CpuSet)| !placed.is_empty());
                let parts: Vec<Part> = parts.map(|(placed, mask)| one_mask(&placed, mask)).collect();
                let known = forms.iter().any(|(_, other): &(Form, Vec<Part>)| *other == parts);
                if parts.len() > 1 && !known {
                    forms.push((form, parts));
                }
            }
        }
    }
    if applies(Form::PerTask) {
        forms.push((Form::PerTask, placed.iter().map(|&cpu| one_mask(&[cpu], CpuSet::from(cpu))).collect()));
    }
    forms
}

/// Of forms that all failed, the one whose failing run has the fewest tasks on its fullest CPU; the widest of equals.
fn least_bad(attempts: &mut Vec<Attempt>) -> Option<(Form, Vec<Part>, Proof)> {
    let fullest = |attempt: &Attempt| match (&attempt.proof.outcome, &attempt.proof.failure) {
        (Outcome::Cut | Outcome::Misshapen, _) => 0,
        (_, Some(failure)) => failure.run.tally.fullest,
        (_, None) => u32::MAX,
    };
    let best = attempts.iter().enumerate().min_by_key(|(index, attempt)| (fullest(attempt), *index))?.0;
    let Attempt { form, parts, proof } = attempts.remove(best);
    Some((form, parts, proof))
}
