//! `berth explain`: the facts behind an answer, as a scheduler developer wants them.

use berth_proto::v1::{CpuDomains, Domain, ExplainResponse, ProfileChoice, Rule};

use super::kernel;
use crate::text::{Column, Page, Table, Text, Tone, cpus, numbers};

/// Groups of a domain that have a row before the rest is only counted.
const GROUPS: usize = 24;
/// Groups of one CPU each that have a row before they share a line.
const SINGLE: usize = 4;

/// The whole answer. `host` says in words which host was asked about, `release` is the kernel as typed.
pub(crate) fn explain(host: &str, release: &str, response: &ExplainResponse, page: Page) -> String {
    let mut text = Text::new(page);
    text.heading("Host");
    let chosen = response.profile.as_ref().map(|choice| kernel::chosen(choice, release, page.verbose));
    text.fields([
        ("host", Tone::Plain, host.to_owned()),
        ("kernel", Tone::Plain, chosen.unwrap_or_default()),
    ]);
    response.profile.iter().flat_map(|choice| &choice.evidence).for_each(|sentence| text.item(sentence));
    response.settings.iter().for_each(|settings| kernel::settings(&mut text, settings));
    rules(&mut text, response.profile.as_ref(), &response.rules);
    response.cpus.iter().for_each(|of| domains(&mut text, of));
    text.finish()
}

fn rules(text: &mut Text, choice: Option<&ProfileChoice>, rules: &[Rule]) {
    if rules.is_empty() {
        return;
    }
    text.heading(&format!("Rules of {}", choice.map_or("the kernel", |choice| &choice.name)));
    let mut table = Table::new([
        Column::words("RULE"),
        Column::words("VALUE"),
        Column::words("SINCE"),
        Column::words("COMMIT"),
        Column::lists("MEANING"),
    ]);
    for rule in rules {
        let set = choice.is_some_and(|choice| choice.overridden.contains_key(&rule.name));
        let value = if set { format!("{} (set)", rule.value) } else { rule.value.clone() };
        table.row([rule.name.clone(), value, rule.since.clone(), rule.commit.clone(), rule.meaning.clone()]);
    }
    text.table(&table);
}

fn domains(text: &mut Text, of: &CpuDomains) {
    text.heading(&format!("Domains of CPU {}, from the lowest", of.cpu));
    let whole = text.page().verbose;
    if of.partition.is_empty() {
        text.sentence("None: the CPU is isolated, and load balancing leaves it alone.");
    } else {
        text.fields([("partition", Tone::Plain, cpus::counted(&of.partition, whole))]);
    }
    let mut table = Table::new([
        Column::words("DOMAIN"),
        Column::numbers("WEIGHT"),
        Column::numbers("DISTANCE"),
        Column::numbers("IMBALANCE_PCT"),
        Column::numbers("IMB_NUMA_NR"),
        Column::numbers("GROUPS"),
        Column::words(""),
        Column::lists("SPAN"),
    ]);
    let number = |n: Option<u32>| n.map(|n| n.to_string()).unwrap_or_default();
    for domain in &of.domains {
        table.toned_row([
            (Tone::Plain, domain.name.clone()),
            (Tone::Plain, domain.weight.to_string()),
            (Tone::Plain, number(Some(domain.distance).filter(|&distance| distance > 0))),
            (Tone::Plain, number(Some(domain.imbalance_pct).filter(|&percent| percent > 0))),
            (Tone::Plain, number(domain.imb_numa_nr)),
            (Tone::Plain, domain.groups.len().to_string()),
            (Tone::Doubtful, if domain.vanished { "vanishes" } else { "" }.to_owned()),
            (Tone::Plain, cpus::short(&domain.span, whole)),
        ]);
    }
    text.table(&table);
    of.domains.iter().for_each(|one| domain(text, of.cpu, one));
}

fn domain(text: &mut Text, cpu: u32, domain: &Domain) {
    let distance = match domain.distance {
        0 => String::new(),
        distance => format!(" up to distance {distance}"),
    };
    text.heading(&format!("{}{distance} of CPU {cpu}", domain.name));
    let vanishes = if domain.vanished { format!("vanishes: {}", domain.because) } else { String::new() };
    text.fields([("it", Tone::Doubtful, vanishes), ("flags", Tone::Plain, domain.flags.join(" "))]);
    // What vanishes decides nothing.
    if domain.vanished && !text.page().verbose {
        return;
    }
    groups(text, domain);
    if !domain.thresholds.is_empty() {
        let mut table = Table::new([
            Column::words("THRESHOLD"),
            Column::numbers("VALUE"),
            Column::lists("WHAT HAPPENS AT IT"),
        ]);
        for threshold in &domain.thresholds {
            table.row([threshold.name.clone(), threshold.value.to_string(), threshold.meaning.clone()]);
        }
        text.table(&table);
    }
}

/// The groups in ring order, the local one first. Very many single CPUs are one line.
fn groups(text: &mut Text, domain: &Domain) {
    let whole = text.page().verbose;
    if domain.groups.len() > SINGLE && domain.groups.iter().all(|group| group.weight == 1) {
        let allowed = domain.groups.iter().filter(|group| group.allowed > 0);
        let allowed = cpus::union(allowed.map(|group| group.cpus.as_str()));
        text.fields([
            (
                "groups",
                Tone::Plain,
                format!("one CPU each, in ring order {}", cpus::short(&ring(domain), whole)),
            ),
            ("allowed", Tone::Plain, cpus::counted(&allowed, whole)),
        ]);
        return;
    }
    let mut table = Table::new([
        Column::numbers("RING"),
        Column::numbers("GROUP_WEIGHT"),
        Column::numbers("ALLOWED"),
        Column::words("BALANCED BY"),
        Column::lists("CPUS"),
    ]);
    let shown = if whole { domain.groups.len() } else { GROUPS };
    for (ring, group) in domain.groups.iter().take(shown).enumerate() {
        table.row([
            ring.to_string(),
            group.weight.to_string(),
            group.allowed.to_string(),
            cpus::short(&group.balance_cpus, whole),
            cpus::short(&group.cpus, whole),
        ]);
    }
    text.table(&table);
    if let Some(more) = domain.groups.len().checked_sub(shown).filter(|&more| more > 0) {
        let more = u64::try_from(more).unwrap_or(u64::MAX);
        text.sentence(&format!("{} with --verbose.", numbers::count(more, "more group")));
    }
}

/// The groups' CPUs in their order, those that follow each other as a range: `4-15,0-3`.
fn ring(domain: &Domain) -> String {
    let mut runs: Vec<(u32, u32)> = Vec::new();
    for cpu in domain.groups.iter().filter_map(|group| group.cpus.parse::<u32>().ok()) {
        match runs.last_mut() {
            Some((_, last)) if last.checked_add(1) == Some(cpu) => *last = cpu,
            _ => runs.push((cpu, cpu)),
        }
    }
    let run = |(first, last): &(u32, u32)| {
        if first == last { first.to_string() } else { format!("{first}-{last}") }
    };
    runs.iter().map(run).collect::<Vec<_>>().join(",")
}

#[cfg(test)]
mod tests {
    use berth_proto::v1::{DomainGroup, KernelSettings, Threshold};

    use super::*;
    use crate::render::samples;

    const PAGE: Page = Page { width: 100, colour: false, verbose: false };

    fn group(cpus: &str, weight: u32, allowed: u32) -> DomainGroup {
        DomainGroup { cpus: cpus.to_owned(), weight, allowed, ..DomainGroup::default() }
    }

    fn response() -> ExplainResponse {
        let single = |cpu: u32| group(&cpu.to_string(), 1, 1);
        let mc = Domain {
            name: "MC".to_owned(),
            span: "0-15".to_owned(),
            weight: 16,
            flags: ["BALANCE_FORK", "SHARE_LLC"].map(str::to_owned).to_vec(),
            imbalance_pct: 117,
            groups: (4..16).chain(0..4).map(single).collect(),
            ..Domain::default()
        };
        let pkg = Domain {
            name: "PKG".to_owned(),
            span: "0-15".to_owned(),
            weight: 16,
            vanished: true,
            because: "it spans the same CPUs as MC".to_owned(),
            groups: vec![group("0-15", 16, 16)],
            ..Domain::default()
        };
        let numa = Domain {
            name: "NUMA".to_owned(),
            span: "0-319".to_owned(),
            weight: 320,
            distance: 32,
            flags: vec!["SERIALIZE".to_owned()],
            imbalance_pct: 117,
            imb_numa_nr: Some(4),
            groups: vec![
                DomainGroup { balance_cpus: "0-15".to_owned(), ..group("0-159", 160, 160) },
                group("160-319", 160, 16),
            ],
            thresholds: vec![Threshold {
                name: "tasks kept local".to_owned(),
                value: 4,
                meaning: "Up to so many tasks stay on the local group.".to_owned(),
            }],
            ..Domain::default()
        };
        let rule = Rule {
            name: "stats".to_owned(),
            value: "all".to_owned(),
            meaning: "Statistics of a group count its CPUs outside the mask too.".to_owned(),
            since: "5.7".to_owned(),
            commit: "57abff067a08".to_owned(),
        };
        ExplainResponse {
            cpus: vec![
                CpuDomains { cpu: 0, partition: "0-319".to_owned(), domains: vec![mc, pkg, numa] },
                CpuDomains { cpu: 7, ..CpuDomains::default() },
            ],
            profile: Some(ProfileChoice {
                evidence: vec!["The release was given as 6.12.95.".to_owned()],
                overridden: [("stats".to_owned(), "all".to_owned())].into(),
                ..samples::profile()
            }),
            rules: vec![rule],
            settings: Some(KernelSettings {
                numa_balancing: Some(true),
                hz: Some(250),
                ..KernelSettings::default()
            }),
            ..ExplainResponse::default()
        }
    }

    #[test]
    fn domains_rules_and_settings_are_told() {
        insta::assert_snapshot!(explain("turin.xml", "6.12.95", &response(), PAGE));
    }

    #[test]
    fn an_empty_answer_is_no_failure() {
        assert_eq!(explain("this one", "", &ExplainResponse::default(), PAGE), "Host\n  host  this one\n");
    }
}
