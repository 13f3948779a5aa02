//! The contract's values in words. Those that people also type or search for keep the contract's spelling.

use berth_proto::v1::{balancing, confidence, cpu_load, form, hold, level, proof, verdict};

use super::Tone;

/// A verdict.
pub(crate) fn verdict(verdict: verdict::Value) -> (Tone, &'static str) {
    let tone = match verdict {
        verdict::Value::NoPileUp => Tone::Good,
        verdict::Value::PileUp => Tone::Bad,
        verdict::Value::Unknown => Tone::Doubtful,
    };
    (tone, verdict.as_str_name())
}

/// The outcome of a proof.
pub(crate) fn proof(result: proof::Result) -> (Tone, &'static str) {
    let tone = match result {
        proof::Result::Safe => Tone::Good,
        proof::Result::Unsafe => Tone::Bad,
        proof::Result::NotProven | proof::Result::Cut => Tone::Doubtful,
    };
    (tone, result.as_str_name())
}

/// How sure it is which profile a kernel follows.
pub(crate) fn confidence(confidence: confidence::Value) -> &'static str {
    match confidence {
        confidence::Value::Unknown => "a guess: nothing is known of the kernel",
        confidence::Value::Assumed => "assumed",
        confidence::Value::Inferred => "inferred from the nearest lower release",
        confidence::Value::Known => "known from the release",
        confidence::Value::Stated => "as stated",
    }
}

/// A form, and what it asks of the launcher.
pub(crate) fn form(form: form::Value) -> (&'static str, &'static str) {
    let meaning = match form {
        form::Value::Unspecified => "",
        form::Value::None => "do not bind, the kernel does as well by itself",
        form::Value::Mask => "one affinity mask for all tasks",
        form::Value::Split => "a stated number of tasks under each of a few masks",
        form::Value::PerTask => "an entry for each task",
    };
    (form.as_str_name(), meaning)
}

/// What load balancing does.
pub(crate) fn balancing(effect: balancing::Effect) -> &'static str {
    match effect {
        balancing::Effect::Unknown => "",
        balancing::Effect::NothingToDo => "load balancing has nothing to do",
        balancing::Effect::Repairs => "load balancing repairs it",
        balancing::Effect::LetsStand => "load balancing lets it stand",
        balancing::Effect::MakesWorse => "load balancing crowds some CPUs further",
        balancing::Effect::PingPongs => "load balancing moves tasks to and fro",
    }
}

/// A level of the hardware, and more than one of it.
pub(crate) fn level(level: level::Value) -> (&'static str, &'static str) {
    match level {
        level::Value::Unspecified => ("place", "places"),
        level::Value::Pu => ("CPU", "CPUs"),
        level::Value::Core => ("core", "cores"),
        level::Value::Llc => ("LLC", "LLCs"),
        level::Value::Node => ("node", "nodes"),
        level::Value::Package => ("package", "packages"),
        level::Value::Machine => ("host", "hosts"),
    }
}

/// Where counts of runnable tasks come from.
pub(crate) fn load_source(source: cpu_load::Source) -> &'static str {
    match source {
        cpu_load::Source::Unknown => "",
        cpu_load::Source::Given => "as given",
        cpu_load::Source::SchedDebug => "counted by the scheduler",
        cpu_load::Source::TaskStates => "counted over the states of all threads",
        cpu_load::Source::Estimated => "estimated from utilisation",
        cpu_load::Source::Reported => "reported by another agent",
    }
}

/// What a hold is in.
pub(crate) fn hold_state(state: hold::State) -> (Tone, &'static str) {
    let tone = match state {
        hold::State::Active => Tone::Good,
        hold::State::Violated => Tone::Bad,
        hold::State::Ended | hold::State::Unknown => Tone::Doubtful,
    };
    (tone, state.as_str_name())
}

/// Why a hold ended.
pub(crate) fn hold_end(end: hold::End) -> &'static str {
    match end {
        hold::End::NotEnded => "",
        hold::End::Released => "released",
        hold::End::ProcessDied => "its process died",
        hold::End::CgroupEmpty => "its cgroup is empty",
        hold::End::Expired => "its time was over",
        hold::End::TasksSeen => "its tasks were seen running",
        hold::End::ClaimEnded => "its claim ended",
        hold::End::Rebooted => "the host was booted anew",
    }
}

/// How a hold may overlap with others.
pub(crate) fn hold_mode(mode: hold::Mode) -> &'static str {
    match mode {
        hold::Mode::Shared => "shared: others may be given the CPUs where there is no better choice",
        hold::Mode::Exclusive => "exclusive: nobody else is given the CPUs",
    }
}
