//! Tasks per package, NUMA node and LLC: one row for all places with equal numbers.

use berth_proto::v1::{PlaceCount, Prediction, level};

use crate::text::{Column, Page, Table, Text, cpus, numbers, words};

/// Places of one level that have the same numbers.
struct Alike<'a> {
    level: level::Value,
    places: Vec<&'a PlaceCount>,
}

impl Alike<'_> {
    fn first(&self) -> Option<&PlaceCount> {
        self.places.first().copied()
    }
}

/// A level of the hardware and its places.
pub(super) type Level<'a> = (level::Value, &'a [PlaceCount]);

/// The levels of a prediction, the widest first.
pub(super) fn levels(prediction: &Prediction) -> [Level<'_>; 3] {
    [
        (level::Value::Package, &prediction.packages),
        (level::Value::Node, &prediction.nodes),
        (level::Value::Llc, &prediction.llcs),
    ]
}

/// A prediction's levels without those that are the same places over again.
pub(super) struct Distinct<'a> {
    /// The levels that say something of their own.
    pub(super) levels: Vec<Level<'a>>,
    /// Each level that does not, and the one above that it is the same as.
    same: Vec<(level::Value, level::Value)>,
}

impl<'a> Distinct<'a> {
    pub(super) fn of(prediction: &'a Prediction) -> Self {
        let mut distinct = Self { levels: Vec::new(), same: Vec::new() };
        for (level, places) in levels(prediction) {
            match distinct.levels.last() {
                Some((above, those)) if !places.is_empty() && same_places(those, places) => {
                    distinct.same.push((level, *above));
                }
                _ => distinct.levels.push((level, places)),
            }
        }
        distinct
    }

    /// Says which levels are left out, and why.
    pub(super) fn note(&self, text: &mut Text) {
        for (above, _) in &self.levels {
            let same =
                self.same.iter().filter(|(_, of)| of == above).map(|(level, _)| words::level(*level).0);
            let same: Vec<String> = same.map(|level| format!("by {level}")).collect();
            if !same.is_empty() {
                let (above, _) = words::level(*above);
                text.sentence(&format!("It is the same {} as by {above}.", same.join(" and ")));
            }
        }
    }
}

fn same_places(a: &[PlaceCount], b: &[PlaceCount]) -> bool {
    a.len() == b.len() && a.iter().zip(b).all(|(a, b)| a.cpus == b.cpus)
}

/// `node 3`, or `nodes 1-9, each`.
pub(super) fn label(level: level::Value, ids: impl IntoIterator<Item = u32>, page: Page) -> String {
    let ids = cpus::of_numbers(ids);
    let (one, many) = words::level(level);
    match cpus::len(&ids) {
        1 => format!("{one} {ids}"),
        _ => format!("{many} {}, each", cpus::short(&ids, page.verbose)),
    }
}

/// The table, and a sentence for each level that is left out.
pub(super) fn table(text: &mut Text, prediction: &Prediction) {
    let page = text.page();
    let distinct = Distinct::of(prediction);
    let rows: Vec<Alike<'_>> =
        distinct.levels.iter().flat_map(|&(level, places)| fold(level, places)).collect();
    let before = rows.iter().any(|row| row.first().is_some_and(|place| place.before > 0));
    let mut table = Table::new([
        Column::words("PLACE"),
        Column::numbers("ALLOWED"),
        Column::numbers("TASKS"),
        Column::numbers("RANGE"),
        Column::numbers("BEFORE"),
        Column::numbers("IDLE"),
        Column::lists("CPUS"),
    ]);
    for row in &rows {
        let Some(place) = row.first() else { continue };
        let range = place.range.filter(|range| range.least != range.most).map(numbers::range);
        let list = cpus::union(row.places.iter().map(|place| place.cpus.as_str()));
        table.row([
            label(row.level, row.places.iter().map(|place| place.id), page),
            place.allowed.to_string(),
            place.tasks.to_string(),
            range.unwrap_or_default(),
            if before { place.before.to_string() } else { String::new() },
            place.idle.to_string(),
            cpus::short(&list, page.verbose),
        ]);
    }
    text.table(&table);
    distinct.note(text);
}

fn fold(level: level::Value, places: &[PlaceCount]) -> Vec<Alike<'_>> {
    let key = |place: &PlaceCount| (place.allowed, place.tasks, place.before, place.idle, place.range);
    let mut rows: Vec<Alike<'_>> = Vec::new();
    for place in places {
        match rows.iter_mut().find(|row| row.first().map(key) == Some(key(place))) {
            Some(row) => row.places.push(place),
            None => rows.push(Alike { level, places: vec![place] }),
        }
    }
    rows
}
