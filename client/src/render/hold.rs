//! Holds: one with all that is known of it, and many as a table.

use std::time::{Duration, SystemTime};

use berth_proto::v1::{
    AdviseResponse, Hold, ListHoldsResponse, Owner, ReleaseHoldResponse,
    hold::{Mode, State},
    owner,
};

use super::{advice, outcome::Field, proof};
use crate::text::{Column, Page, Table, Text, Tone, cpus, numbers, words};

/// Rows before the rest is only counted.
const ROWS: usize = 200;

/// One hold.
pub(crate) fn hold(hold: &Hold, page: Page) -> String {
    let mut text = Text::new(page);
    block(&mut text, hold, SystemTime::now());
    text.finish()
}

/// A hold that was made with an advice.
pub(crate) fn held_by_advice(response: &AdviseResponse, page: Page) -> String {
    let mut text = Text::new(page);
    if let Some(hold) = &response.hold {
        block(&mut text, hold, SystemTime::now());
    }
    if let Some(advised) = &response.advice {
        let (form, meaning) = words::form(advised.form());
        text.heading("Advice for its tasks");
        let mut fields = vec![("form", Tone::Plain, format!("{form}: {meaning}"))];
        fields.extend(advised.proof.iter().map(|proof| {
            let (tone, words) = proof::result(proof);
            ("proof", tone, words)
        }));
        text.fields(fields);
        if advised.parts.len() > 1 || !advised.tasks.is_empty() {
            text.gap();
            advice::table(&mut text, advised);
        }
    }
    text.finish()
}

fn block(text: &mut Text, hold: &Hold, now: SystemTime) {
    text.heading("Hold");
    text.fields(fields(hold, now, text.page().verbose));
    hold.violations.iter().for_each(|sentence| text.item(sentence));
}

fn fields(hold: &Hold, now: SystemTime, whole: bool) -> Vec<Field> {
    let plain = |label, text| (label, Tone::Plain, text);
    let (tone, state) = words::hold_state(hold.state());
    let end = words::hold_end(hold.end());
    let state = if end.is_empty() { state.to_owned() } else { format!("{state}: {end}") };
    let cpus = if hold.cpus.is_empty() {
        "none yet: it is a claim".to_owned()
    } else {
        cpus::counted(&hold.cpus, whole)
    };
    let tasks = if hold.tasks == 0 { String::new() } else { numbers::grouped(hold.tasks.into()) };
    let labels: Vec<String> = hold.labels.iter().map(|(key, value)| format!("{key}={value}")).collect();
    let parts = hold.parts.iter().map(|part| format!("{} on {}", part.tasks, cpus::short(&part.cpus, whole)));
    let parts = if hold.parts.len() > 1 { parts.collect::<Vec<_>>().join(", ") } else { String::new() };
    let foreign = if hold.foreign { "given out by another manager" } else { "" };
    vec![
        plain("id", hold.id.clone()),
        plain("name", hold.name.clone()),
        plain("CPUs", cpus),
        plain("memory nodes", hold.memory_nodes.clone()),
        plain("tasks", tasks),
        plain("masks", parts),
        plain("mode", words::hold_mode(hold.mode()).to_owned()),
        plain("user", hold.uid.to_string()),
        plain("ends with", owner_in_words(hold.owner.as_ref())),
        plain("expires", expiry(hold, now)),
        plain("claim", hold.claim.clone()),
        ("state", tone, state),
        plain("note", foreign.to_owned()),
        plain("made at", numbers::moment(hold.created_at)),
        plain("labels", labels.join(" ")),
    ]
}

/// `process 4711`, `cgroup /a/b`, or nothing but its expiry.
fn owner_in_words(owner: Option<&Owner>) -> String {
    match owner.and_then(|owner| owner.owner.as_ref()) {
        Some(owner::Owner::Process(process)) => format!("process {}", process.pid),
        Some(owner::Owner::Cgroup(path)) => format!("cgroup {path}"),
        None => "its expiry".to_owned(),
    }
}

/// The moment, and how far away it is.
fn expiry(hold: &Hold, now: SystemTime) -> String {
    match (hold.expires_at, left(hold, now)) {
        (Some(at), Some(left)) => format!("{} (in {})", numbers::moment(Some(at)), numbers::time(left)),
        (Some(at), None) => numbers::moment(Some(at)),
        (None, _) => "never".to_owned(),
    }
}

/// How long it has still to live. `None`: it has no expiry, or has ended, or its time is over.
fn left(hold: &Hold, now: SystemTime) -> Option<Duration> {
    let at = SystemTime::try_from(hold.expires_at?).ok()?;
    if hold.state() == State::Ended { None } else { at.duration_since(now).ok() }
}

/// Many holds, a row for each.
pub(crate) fn holds(response: &ListHoldsResponse, page: Page) -> String {
    list(&response.holds, SystemTime::now(), page)
}

fn list(holds: &[Hold], now: SystemTime, page: Page) -> String {
    let mut text = Text::new(page);
    if holds.is_empty() {
        text.sentence("No holds.");
        return text.finish();
    }
    let mut table = Table::new([
        Column::words("HOLD"),
        Column::words("NAME"),
        Column::numbers("USER"),
        Column::words("ENDS WITH"),
        Column::numbers("LEFT"),
        Column::words("MODE"),
        Column::words("STATE"),
        Column::numbers("TASKS"),
        Column::lists("CPUS"),
    ]);
    let shown = if page.verbose { holds.len() } else { ROWS };
    for hold in holds.iter().take(shown) {
        let plain = |text: String| (Tone::Plain, text);
        let (tone, state) = words::hold_state(hold.state());
        let mode = if hold.mode() == Mode::Exclusive { "exclusive" } else { "" };
        table.toned_row([
            plain(hold.id.clone()),
            plain(hold.name.clone()),
            plain(hold.uid.to_string()),
            plain(owner_in_words(hold.owner.as_ref())),
            plain(left(hold, now).map(numbers::time).unwrap_or_default()),
            plain(mode.to_owned()),
            (tone, state.to_owned()),
            plain(if hold.tasks == 0 { String::new() } else { hold.tasks.to_string() }),
            plain(if hold.cpus.is_empty() {
                "(a claim)".to_owned()
            } else {
                cpus::short(&hold.cpus, page.verbose)
            }),
        ]);
    }
    text.table(&table);
    if holds.len() > shown {
        text.sentence(&format!("{} more with --verbose.", holds.len() - shown));
    }
    text.finish()
}

/// What became of a hold that was to be released.
pub(crate) fn released(id: &str, response: &ReleaseHoldResponse) -> String {
    let Some(hold) = &response.hold else { return format!("{id} had ended before\n") };
    let which = if hold.name.is_empty() { hold.id.clone() } else { format!("{} ({})", hold.name, hold.id) };
    let what = if hold.cpus.is_empty() { "a claim".to_owned() } else { cpus::named(&hold.cpus, false) };
    let more = match response.also_released {
        0 => String::new(),
        n => format!(", and with it {} under it", numbers::count(n, "hold")),
    };
    format!("released {which}: {what}{more}\n")
}

#[cfg(test)]
mod tests {
    use std::time::UNIX_EPOCH;

    use berth_proto::v1::{Advice, HeldPart, Part, Process, Proof, form, hold::End, proof::Result};

    use super::*;

    const PAGE: Page = Page { width: 100, colour: false, verbose: false };
    const NOW: u64 = 1_780_000_000;

    fn job() -> Hold {
        let process = Process { pid: 4711, start_time: 99 };
        let at = |seconds: i64| Some(prost_types::Timestamp { seconds, nanos: 0 });
        let part = |cpus: &str, tasks: u32, first_task: u32| HeldPart {
            cpus: cpus.to_owned(),
            tasks,
            first_task,
            ..HeldPart::default()
        };
        Hold {
            id: "h-17".to_owned(),
            name: "job17".to_owned(),
            uid: 1000,
            owner: Some(Owner { owner: Some(owner::Owner::Process(process)) }),
            cpus: "0-7,16-17".to_owned(),
            memory_nodes: "0-1".to_owned(),
            tasks: 10,
            parts: vec![part("0-7", 8, 0), part("16-17", 2, 8)],
            mode: Mode::Exclusive.into(),
            state: State::Violated.into(),
            violations: vec!["CPU 17 is offline.".to_owned()],
            created_at: at(1_779_999_000),
            expires_at: at(1_780_000_025),
            labels: [("cluster".to_owned(), "a".to_owned())].into(),
            ..Hold::default()
        }
    }

    fn lease() -> Hold {
        Hold {
            id: "h-18".to_owned(),
            cpus: "8".to_owned(),
            tasks: 1,
            state: State::Active.into(),
            ..Hold::default()
        }
    }

    fn now() -> SystemTime {
        UNIX_EPOCH + Duration::from_secs(NOW)
    }

    #[test]
    fn one_hold_tells_all() {
        let mut text = Text::new(PAGE);
        block(&mut text, &job(), now());
        insta::assert_snapshot!(text.finish());
    }

    #[test]
    fn many_holds_are_rows() {
        let claim = Hold {
            id: "h-19".to_owned(),
            name: "later".to_owned(),
            state: State::Active.into(),
            ..Hold::default()
        };
        insta::assert_snapshot!(list(&[job(), lease(), claim], now(), PAGE));
        assert_eq!(list(&[], now(), PAGE), "  No holds.\n");
    }

    #[test]
    fn an_ended_hold_says_why_and_has_no_time_left() {
        let ended = Hold { state: State::Ended.into(), end: End::ProcessDied.into(), ..job() };
        let mut text = Text::new(PAGE);
        block(&mut text, &ended, now());
        let text = text.finish();
        assert!(text.contains("ENDED: its process died"), "{text}");
        assert!(!text.contains("(in "), "{text}");
    }

    #[test]
    fn an_advice_stands_below_its_hold() {
        let part = |cpus: &str, tasks: u32| Part { cpus: cpus.to_owned(), tasks, ..Part::default() };
        let advice = Advice {
            form: form::Value::Split.into(),
            parts: vec![part("0-7", 8), part("16-17", 2)],
            proof: Some(Proof { result: Result::Safe.into(), ..Proof::default() }),
            ..Advice::default()
        };
        let response = AdviseResponse { advice: Some(advice), ..AdviseResponse::default() };
        insta::assert_snapshot!(held_by_advice(&response, PAGE), @r"
        Advice for its tasks
          form   SPLIT: a stated number of tasks under each of a few masks
          proof  SAFE: no run piles up

          TASKS  WHICH  CPUS
              8  0-7    0-7 (8 CPUs)
              2  0-1    16-17 (2 CPUs)
        ");
    }

    #[test]
    fn what_was_released_is_said() {
        let response = |hold, also_released| ReleaseHoldResponse { hold, also_released };
        assert_eq!(released("job17", &response(Some(job()), 0)), "released job17 (h-17): CPUs 0-7,16-17\n");
        let claim = Hold { id: "h-19".to_owned(), ..Hold::default() };
        assert_eq!(
            released("h-19", &response(Some(claim), 2)),
            "released h-19: a claim, and with it 2 holds under it\n"
        );
        assert_eq!(released("x", &response(None, 0)), "x had ended before\n");
    }
}
