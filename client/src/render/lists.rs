//! An advice as CPUs alone.

use berth_proto::v1::{AdviseResponse, form};

/// One cpulist if all tasks share it, else one for each task in order. With NONE the CPUs that were allowed: to bind to them
/// changes nothing.
pub(crate) fn lists(response: &AdviseResponse) -> Vec<String> {
    let Some(advice) = &response.advice else { return Vec::new() };
    match (advice.form(), advice.parts.as_slice()) {
        (form::Value::None, _) => vec![response.allowed.clone()],
        (form::Value::Mask, [part]) => vec![part.cpus.clone()],
        (_, []) => advice.tasks.iter().map(|task| task.cpus.clone()).collect(),
        (_, parts) => parts
            .iter()
            .flat_map(|part| std::iter::repeat_n(part.cpus.clone(), usize::try_from(part.tasks).unwrap_or(0)))
            .collect(),
    }
}

#[cfg(test)]
mod tests {
    use berth_proto::v1::{Advice, Part, TaskEntry};

    use super::*;

    fn of(form: form::Value, parts: &[(&str, u32)], tasks: &[&str]) -> Vec<String> {
        let part = |&(cpus, tasks): &(&str, u32)| Part { cpus: cpus.to_owned(), tasks, ..Part::default() };
        let entry = |cpus: &&str| TaskEntry { cpus: (*cpus).to_owned(), ..TaskEntry::default() };
        let advice = Advice {
            form: form.into(),
            parts: parts.iter().map(part).collect(),
            tasks: tasks.iter().map(entry).collect(),
            ..Advice::default()
        };
        lists(&AdviseResponse {
            advice: Some(advice),
            allowed: "0-7".to_owned(),
            ..AdviseResponse::default()
        })
    }

    #[test]
    fn one_mask_is_one_line_and_several_are_a_line_for_each_task() {
        assert_eq!(of(form::Value::Mask, &[("0-3", 4)], &[]), ["0-3"]);
        assert_eq!(of(form::Value::None, &[], &[]), ["0-7"]);
        assert_eq!(of(form::Value::Split, &[("0-1", 2), ("4", 1)], &[]), ["0-1", "0-1", "4"]);
        assert_eq!(of(form::Value::PerTask, &[], &["0", "4"]), ["0", "4"]);
    }
}
