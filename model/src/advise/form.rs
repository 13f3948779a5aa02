//! From a placement to the widest form of it that is proven and that the caller can apply.

use super::{
    Error, Kernel, Objective, Policy, Proof, Request, Smt,
    objective::Judge,
    placement::Wish,
    proof::{Outcome, Prover},
    tree::split,
};
use crate::{
    cpuset::{Cpu, CpuSet},
    load::Load,
    predict::{Host, Run, Tally, origins, place},
    topology::Level,
};

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
    /// Where the policy wants them, ascending.
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
    /// Its masks: one for NONE and MASK, several for SPLIT, one for each task with PER_TASK.
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
    /// The worst central run under the likeliest kernel: under the allowed CPUs as one mask, and with the advice.
    pub without: Run,
    /// See [`Advice::without`].
    pub with: Run,
}

/// Finds the widest proven form.
///
/// # Errors
///
/// [`Error::NoFreeCore`] if cores are not to be shared and none is free; [`Error::NoKernel`] without kernels.
pub fn advise(request: &Request<'_>) -> Result<Advice, Error> {
    let likeliest = request.kernels.first().ok_or(Error::NoKernel)?;
    let free = free_for(request)?;
    let wish = Wish {
        topology: request.topology,
        load: request.load,
        ideal: request.ideal,
        allowed: &free,
        tasks: request.tasks,
        smt: request.smt,
        origin: request.launch.origin,
    };
    let judge = Judge {
        topology: request.topology,
        load: request.load,
        allowed: &free,
        policy: request.policy,
        smt: request.smt,
    };
    let placed = wish.placed(request.policy);
    // AUTO is content with any run that does not pile up; the other policies hold the kernel to their shape.
    let any_shape = request.policy == Policy::Auto && request.smt != Smt::FullCores;
    let accept = |part: &Part, run: &Run| any_shape || judge.shape(&run.places) <= judge.shape(&part.placed);
    let prover = Prover {
        topology: request.topology,
        kernels: request.kernels,
        load: request.load,
        launch: request.launch,
    };

    let whole = vec![Part {
        cpus: request.allowed.clone(),
        tasks: request.tasks,
        placed: placed.clone(),
        as_asked: true,
    }];
    let asked = prover.prove(&whole, |_, _| true);
    let mut attempts = Vec::new();
    let mut chosen = None;
    for (form, parts) in forms(request, &placed, &whole) {
        let told = parts == whole && (any_shape || !asked.is_safe());
        let proof = if told { asked.clone() } else { prover.prove(&parts, accept) };
        if proof.is_safe() {
            chosen = Some((form, parts, proof));
            break;
        }
        attempts.push(Attempt { form, parts, proof });
    }
    let (form, parts, mut proof) = match chosen {
        Some(found) => found,
        None => least_bad(&mut attempts).unwrap_or_else(|| (Form::Mask, whole.clone(), asked.clone())),
    };
    // A whole mask that piles up is told in `asked`; one that is safe and misses the policy's shape is an attempt.
    attempts.retain(|attempt| attempt.parts != whole || asked.is_safe());
    if request.with_margin && proof.is_safe() {
        proof.margin = Some(prover.margin(&parts, accept));
    }
    let without = worst_central_run(request, likeliest, &whole);
    let with = worst_central_run(request, likeliest, &parts);
    Ok(Advice {
        optimal: wish.is_optimal(request.policy),
        form,
        parts,
        proof,
        asked,
        attempts,
        objective: judge.objective(&placed),
        without,
        with,
    })
}

/// How good any placement of the request's tasks would be; the CPUs ascending.
pub fn objective(request: &Request<'_>, places: &[Cpu]) -> Objective {
    let judge = Judge {
        topology: request.topology,
        load: request.load,
        allowed: request.allowed,
        policy: request.policy,
        smt: request.smt,
    };
    judge.objective(places)
}

/// The allowed CPUs, without cores of other jobs if those are not to be shared.
fn free_for(request: &Request<'_>) -> Result<CpuSet, Error> {
    if request.smt != Smt::FullCores {
        return Ok(request.allowed.clone());
    }
    let taken = |core: &CpuSet| core.iter().any(|cpu| request.load.runnable(cpu) > 0);
    let whole = |cpu: &Cpu| request.topology.span(Level::Core, *cpu).is_some_and(|core| !taken(core));
    let free: CpuSet = request.allowed.iter().filter(whole).collect();
    if free.is_empty() {
        return Err(Error::NoFreeCore { cores: split(request.topology, Level::Core, request.allowed).len() });
    }
    Ok(free)
}

/// The forms that the caller can apply, widest first.
fn forms(request: &Request<'_>, placed: &[Cpu], whole: &[Part]) -> Vec<(Form, Vec<Part>)> {
    let applies = |form: Form| request.can_apply.is_empty() || request.can_apply.contains(&form);
    let mut forms = Vec::new();
    if !request.asked && applies(Form::None) {
        forms.push((Form::None, whole.to_vec()));
    }
    if request.asked && applies(Form::Mask) {
        forms.push((Form::Mask, whole.to_vec()));
    }
    let one_mask = |placed: &[Cpu], cpus: CpuSet| Part {
        tasks: u32::try_from(placed.len()).unwrap_or(u32::MAX),
        cpus,
        placed: placed.to_vec(),
        as_asked: false,
    };
    if applies(Form::Mask) {
        forms.push((Form::Mask, vec![one_mask(placed, placed.iter().copied().collect())]));
    }
    // An entry of PER_TASK may be a mask of several CPUs, shared with other tasks: the same as a SPLIT to the kernel.
    let entries = applies(Form::PerTask) && !request.single_cpus;
    if applies(Form::Split) || entries {
        let form = if applies(Form::Split) { Form::Split } else { Form::PerTask };
        for level in [Level::Package, Level::Node, Level::Llc] {
            let tight = split(request.topology, level, &placed.iter().copied().collect());
            let wide = split(request.topology, level, request.allowed);
            for masks in [wide, tight] {
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
    if applies(Form::PerTask) || forms.is_empty() {
        forms.push((Form::PerTask, placed.iter().map(|&cpu| one_mask(&[cpu], CpuSet::from(cpu))).collect()));
    }
    forms
}

/// Of forms that all failed, the one whose failing run has the fewest tasks on its fullest CPU; the widest of equals.
fn least_bad(attempts: &mut Vec<Attempt>) -> Option<(Form, Vec<Part>, Proof)> {
    let fullest = |attempt: &Attempt| match (&attempt.proof.outcome, &attempt.proof.failure) {
        (Outcome::Cut, _) => 0,
        (_, Some(failure)) => failure.run.tally.fullest,
        (_, None) => u32::MAX,
    };
    let best = attempts.iter().enumerate().min_by_key(|(index, attempt)| (fullest(attempt), *index))?.0;
    let Attempt { form, parts, proof } = attempts.remove(best);
    Some((form, parts, proof))
}

fn host<'h>(request: &Request<'h>, kernel: &Kernel<'h>, load: &'h Load) -> Host<'h> {
    Host { topology: request.topology, domains: kernel.domains, profile: kernel.profile, load }
}

/// The central run of parts launched one after the other, from the worst origin of the first.
fn worst_central_run(request: &Request<'_>, kernel: &Kernel<'_>, parts: &[Part]) -> Run {
    let central = |first: Option<Cpu>| {
        let mut load = request.load.clone();
        let mut places = Vec::with_capacity(request.tasks as usize);
        for (index, part) in parts.iter().enumerate() {
            let given = request.launch.origin.filter(|&cpu| part.as_asked || part.cpus.contains(cpu));
            let start = first.filter(|_| index == 0).or(given).or_else(|| part.cpus.first());
            let Some(origin) = start else { continue };
            let new =
                place(host(request, kernel, &load), &request.launch.burst(&part.cpus, part.tasks, origin));
            for &cpu in &new {
                load.add(cpu, 1);
            }
            places.extend(new);
        }
        let origin = first.or(request.launch.origin).or_else(|| request.allowed.first());
        let all =
            request.launch.burst(request.allowed, request.tasks, origin.unwrap_or_else(|| Cpu::from(0)));
        let tally: Tally = all.tally(host(request, kernel, request.load), &places);
        Run { places, tally }
    };
    if request.launch.origin.is_some() {
        return central(None);
    }
    let first =
        parts.first().map(|part| origins(host(request, kernel, request.load), kernel.symmetry, &part.cpus));
    let runs = first.into_iter().flatten().map(|origin| central(Some(origin.cpu)));
    // The first of the worst.
    let worst =
        runs.enumerate().max_by(|(i, a), (j, b)| a.tally.severity().cmp(&b.tally.severity()).then(j.cmp(i)));
    worst.map_or_else(|| central(None), |(_, run)| run)
}
