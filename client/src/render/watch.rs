//! One line for each event of a stream.

use std::collections::BTreeSet;

use berth_proto::v1::{
    Hold, Topology, WatchHoldsResponse, WatchLoadResponse, WatchTopologyResponse,
    hold::{Mode, State},
};

use super::load;
use crate::text::{cpus, numbers, words};

/// Holds that were told of, so that a new one is told from a changed one.
#[derive(Debug, Default)]
pub(crate) struct Seen {
    ids: BTreeSet<String>,
    begun: bool,
}

impl Seen {
    /// A line for each hold of the message.
    pub(crate) fn lines(&mut self, message: &WatchHoldsResponse) -> Vec<String> {
        let mut lines: Vec<String> = missed(message.dropped, "change").into_iter().collect();
        if message.complete {
            let there: BTreeSet<String> = message.holds.iter().map(|hold| hold.id.clone()).collect();
            let gone = self.ids.difference(&there).map(|id| format!("{:9}{id}", "gone"));
            lines.extend(gone.collect::<Vec<_>>());
            self.ids.retain(|id| there.contains(id));
            if message.holds.is_empty() && !self.begun {
                lines.push("no holds".to_owned());
            }
        }
        for hold in &message.holds {
            let known = !self.ids.insert(hold.id.clone());
            let what = match hold.state() {
                State::Ended => {
                    self.ids.remove(&hold.id);
                    "ended"
                }
                State::Violated => "violated",
                _ if message.complete && !known => "there is",
                // All are told over again after a gap; those known already are no event.
                _ if message.complete => continue,
                _ if known => "changed",
                _ => "made",
            };
            lines.push(hold_line(what, hold));
        }
        self.begun = true;
        lines
    }
}

fn hold_line(what: &str, hold: &Hold) -> String {
    let name = if hold.name.is_empty() { String::new() } else { format!(" ({})", hold.name) };
    let what_for = if hold.cpus.is_empty() { "a claim".to_owned() } else { cpus::named(&hold.cpus, false) };
    let mut line = format!("{what:9}{}{name}: {what_for}, user {}", hold.id, hold.uid);
    if hold.mode() == Mode::Exclusive {
        line += ", exclusive";
    }
    let end = words::hold_end(hold.end());
    if !end.is_empty() {
        line += &format!("; {end}");
    }
    if !hold.violations.is_empty() {
        line += &format!("; {}", hold.violations.join(" "));
    }
    line
}

/// A line for a sample.
pub(crate) fn sample(message: &WatchLoadResponse) -> Vec<String> {
    let mut lines: Vec<String> = missed(message.dropped, "sample").into_iter().collect();
    let load = message.load.as_ref();
    let at = numbers::moment(load.and_then(|load| load.taken_at));
    let line = match load {
        Some(load) if !at.is_empty() => {
            let busy = load::busy(load);
            let runnable: Option<u64> = load
                .cpus
                .iter()
                .map(|entry| {
                    let cpus = u64::try_from(cpus::len(&entry.cpus)).ok()?;
                    Some(u64::from(entry.runnable?).saturating_mul(cpus))
                })
                .sum();
            let runnable =
                runnable.map(|n| format!("  {} runnable", numbers::count(n, "task"))).unwrap_or_default();
            format!("{at}  {busy}{runnable}")
        }
        _ => "not known yet: two samples are needed".to_owned(),
    };
    lines.push(line);
    lines
}

/// A line for a generation of the topology.
pub(crate) fn generation(message: &WatchTopologyResponse) -> Vec<String> {
    let mut lines: Vec<String> = missed(message.dropped, "generation").into_iter().collect();
    let none = Topology::default();
    let topology = message.topology.as_ref().unwrap_or(&none);
    let mut line =
        format!("generation {}: online {}", message.generation, cpus::short(&topology.online, false));
    for (label, list) in [
        ("offline", &topology.offline),
        ("isolated", &topology.isolated),
        ("not allowed", &topology.disallowed),
    ] {
        if !list.is_empty() {
            line += &format!(", {label} {}", cpus::short(list, false));
        }
    }
    if !message.changes.is_empty() {
        line += &format!("; {}", message.changes.join(" "));
    }
    lines.push(line);
    lines
}

fn missed(dropped: u64, noun: &str) -> Option<String> {
    (dropped > 0).then(|| format!("{} missed", numbers::count(dropped, noun)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use berth_proto::v1::{CpuLoad, Load, hold::End};

    fn hold(id: &str, state: State) -> Hold {
        Hold { id: id.to_owned(), cpus: "0-3".to_owned(), uid: 7, state: state.into(), ..Hold::default() }
    }

    fn told(seen: &mut Seen, complete: bool, dropped: u64, holds: Vec<Hold>) -> Vec<String> {
        seen.lines(&WatchHoldsResponse { holds, complete, dropped, ..WatchHoldsResponse::default() })
    }

    #[test]
    fn holds_are_told_as_they_come_change_and_go() {
        let mut seen = Seen::default();
        assert_eq!(
            told(&mut seen, true, 0, vec![hold("a", State::Active)]),
            ["there is a: CPUs 0-3, user 7"]
        );
        let exclusive =
            Hold { mode: Mode::Exclusive.into(), name: "n".to_owned(), ..hold("b", State::Active) };
        assert_eq!(
            told(&mut seen, false, 0, vec![exclusive]),
            ["made     b (n): CPUs 0-3, user 7, exclusive"]
        );
        assert_eq!(
            told(&mut seen, false, 0, vec![hold("b", State::Active)]),
            ["changed  b: CPUs 0-3, user 7"]
        );
        let violated =
            Hold { violations: vec!["CPU 3 is offline.".to_owned()], ..hold("b", State::Violated) };
        assert_eq!(
            told(&mut seen, false, 0, vec![violated]),
            ["violated b: CPUs 0-3, user 7; CPU 3 is offline."]
        );
        let ended = Hold { end: End::Expired.into(), ..hold("a", State::Ended) };
        assert_eq!(
            told(&mut seen, false, 0, vec![ended]),
            ["ended    a: CPUs 0-3, user 7; its time was over"]
        );
    }

    #[test]
    fn after_a_gap_only_what_is_new_or_gone_is_told() {
        let mut seen = Seen::default();
        assert_eq!(told(&mut seen, true, 0, Vec::new()), ["no holds"]);
        told(&mut seen, false, 0, vec![hold("a", State::Active), hold("b", State::Active)]);
        assert_eq!(
            told(&mut seen, true, 5, vec![hold("b", State::Active), hold("c", State::Active)]),
            ["5 changes missed", "gone     a", "there is c: CPUs 0-3, user 7"]
        );
    }

    #[test]
    fn a_sample_is_one_line() {
        let entry = |cpus: &str, runnable, utilisation| CpuLoad {
            cpus: cpus.to_owned(),
            runnable: Some(runnable),
            utilisation: Some(utilisation),
            ..CpuLoad::default()
        };
        let load = Load {
            known: true,
            cpus: vec![entry("0-2", 0, 0.0), entry("3", 2, 1.0)],
            taken_at: Some(prost_types::Timestamp { seconds: 1_780_000_000, nanos: 0 }),
            ..Load::default()
        };
        let message = WatchLoadResponse { load: Some(load), dropped: 1, ..WatchLoadResponse::default() };
        assert_eq!(
            sample(&message),
            ["1 sample missed", "2026-05-28T20:26:40Z  1.0 of 4 CPUs busy  2 tasks runnable"]
        );
        assert_eq!(sample(&WatchLoadResponse::default()), ["not known yet: two samples are needed"]);
    }

    #[test]
    fn a_generation_is_one_line() {
        let topology = Topology { online: "0-2".to_owned(), offline: "3".to_owned(), ..Topology::default() };
        let message = WatchTopologyResponse {
            topology: Some(topology),
            generation: 2,
            changes: vec!["CPU 3 went offline.".to_owned()],
            ..WatchTopologyResponse::default()
        };
        assert_eq!(generation(&message), ["generation 2: online 0-2, offline 3; CPU 3 went offline."]);
    }
}
