//! Lists of CPUs (and of other things with numbers), cut to a readable length.

use berth_model::CpuSet;

use super::numbers;

/// Characters of a list that are shown unless all of it is asked for.
const READABLE: usize = 72;

/// How many are in a list of the wire; 0 if it cannot be read.
pub(crate) fn len(list: &str) -> usize {
    CpuSet::parse(list).map_or(0, |set| set.len())
}

/// The list, cut after a comma if it is long: `0,16,32, … (64 in all)`.
pub(crate) fn short(list: &str, whole: bool) -> String {
    if whole || list.len() <= READABLE {
        return list.to_owned();
    }
    let fits = list.char_indices().take_while(|(at, _)| *at < READABLE).filter(|(_, c)| *c == ',').last();
    let end = fits.map_or(0, |(at, _)| at);
    format!("{},… ({} in all)", &list[..end], len(list))
}

/// The list and how many it holds: `0-15 (16 CPUs)`. Without the number if it is plain to see.
pub(crate) fn counted(list: &str, whole: bool) -> String {
    let text = short(list, whole);
    match len(list) {
        0 => "none".to_owned(),
        _ if text != list => text,
        1 => text,
        n => format!("{text} ({})", numbers::count(u64::try_from(n).unwrap_or(u64::MAX), "CPU")),
    }
}

/// `CPU 3` or `CPUs 0-15`, cut if it is long.
pub(crate) fn named(list: &str, whole: bool) -> String {
    let noun = if list.contains([',', '-']) { "CPUs" } else { "CPU" };
    format!("{noun} {}", short(list, whole))
}

/// All of several lists as one.
pub(crate) fn union<'a>(lists: impl IntoIterator<Item = &'a str>) -> String {
    let mut all = CpuSet::new();
    for set in lists.into_iter().filter_map(|list| CpuSet::parse(list).ok()) {
        all.extend_from(&set);
    }
    all.to_string()
}

/// Numbers, such as ids of NUMA nodes, as a list.
pub(crate) fn of_numbers(numbers: impl IntoIterator<Item = u32>) -> String {
    numbers.into_iter().filter_map(berth_model::Cpu::try_new).collect::<CpuSet>().to_string()
}

/// What is in the first list and in none of the others.
pub(crate) fn difference<'a>(list: &str, others: impl IntoIterator<Item = &'a str>) -> String {
    let taken = CpuSet::parse(&union(others)).unwrap_or_default();
    CpuSet::parse(list).unwrap_or_default().difference(&taken).to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_lists_are_cut_at_a_comma() {
        let list: String = of_numbers((0..640).step_by(10));
        assert_eq!(short(&list, true), list);
        let cut = short(&list, false);
        assert!(cut.len() < 100 && cut.ends_with(",… (64 in all)"), "{cut}");
        assert_eq!(counted(&list, false), cut);
        assert_eq!(counted("0-15", false), "0-15 (16 CPUs)");
        assert_eq!(counted("7", false), "7");
        assert_eq!(counted("", false), "none");
        assert_eq!(named("0,2", false), "CPUs 0,2");
        assert_eq!(named("3", false), "CPU 3");
    }

    #[test]
    fn lists_are_sets() {
        assert_eq!(union(["0-3", "", "2-7"]), "0-7");
        assert_eq!(difference("0-7", ["0-1", "6"]), "2-5,7");
    }
}
