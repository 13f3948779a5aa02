//! What decided between placements: the objective and the runners-up.

use berth_proto::v1::{Objective, ObjectiveComponent, RunnerUp};

use super::advice;
use crate::text::{Column, Table, Text, words};

/// Numbers of a component that are shown before the rest is left out.
const NUMBERS: usize = 8;

/// The vector of the placement behind the advice.
pub(super) fn objective(text: &mut Text, objective: Option<&Objective>) {
    let Some(objective) = objective else { return };
    text.heading("Objective (compared from the top, smaller is better)");
    let mut table = Table::new([Column::words("COMPONENT"), Column::lists("VALUES")]);
    for component in &objective.components {
        table.row([component.name.clone(), values(component, text.page().verbose)]);
    }
    text.table(&table);
    if objective.optimal {
        text.sentence("No placement is better.");
    } else {
        text.sentence("A better placement may exist.");
    }
}

/// The best of each other policy and form.
pub(super) fn runners_up(text: &mut Text, runners_up: &[RunnerUp]) {
    if runners_up.is_empty() {
        return;
    }
    text.heading("Runners-up");
    let mut table =
        Table::new([Column::words("POLICY"), Column::words("FORM"), Column::lists("WHICH, AND WHY NOT")]);
    for runner in runners_up {
        let parts = advice::in_words(&runner.parts);
        let gap = if parts.is_empty() || runner.because.is_empty() { "" } else { "; " };
        table.row([
            runner.policy().as_str_name().to_owned(),
            words::form(runner.form()).0.to_owned(),
            format!("{parts}{gap}{}", runner.because),
        ]);
    }
    text.table(&table);
}

/// The numbers in order, equal neighbours as one: `2, 1 (15 times)`.
fn values(component: &ObjectiveComponent, whole: bool) -> String {
    let mut runs: Vec<(u64, usize)> = Vec::new();
    for &value in &component.values {
        match runs.last_mut() {
            Some((last, times)) if *last == value => *times += 1,
            _ => runs.push((value, 1)),
        }
    }
    let shown = if whole { runs.len() } else { NUMBERS };
    let word = |(value, times): &(u64, usize)| match times {
        1 => value.to_string(),
        _ => format!("{value} ({times} times)"),
    };
    let mut words: Vec<String> = runs.iter().take(shown).map(word).collect();
    if runs.len() > shown {
        words.push(format!("… ({} in all)", component.values.len()));
    }
    words.join(", ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn equal_numbers_are_counted_and_long_vectors_cut() {
        let of = |values: Vec<u64>| ObjectiveComponent { name: String::new(), values };
        assert_eq!(values(&of(vec![2, 1, 1, 1]), false), "2, 1 (3 times)");
        assert_eq!(values(&of((0..20).collect()), false), "0, 1, 2, 3, 4, 5, 6, 7, … (20 in all)");
        assert_eq!(values(&of(Vec::new()), false), "");
    }
}
