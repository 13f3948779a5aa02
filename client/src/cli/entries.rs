//! Entries of CPUs and something said of them: `0-3:1,8:2`.

/// The CPUs of each entry, and what stands behind its colon. CPUs without a colon belong to the next entry: `0,4,8:1` is one.
/// It stands after the last colon, so an entry with a stride is `0-30:2:1`. Whether the CPUs can be read is for the server to
/// say.
///
/// # Errors
///
/// An entry lacks its CPUs or what is said of them; `what` names that, and `form` says what would be accepted.
pub(super) fn read<'a>(text: &'a str, what: &str, form: &str) -> Result<Vec<(String, &'a str)>, String> {
    let mut entries = Vec::new();
    let mut waiting: Vec<&str> = Vec::new();
    for part in text.split(',').map(str::trim) {
        let Some((cpus, said)) = part.rsplit_once(':') else {
            waiting.push(part);
            continue;
        };
        if cpus.is_empty() {
            return Err(format!("`{part}` has no CPUs; write {form}"));
        }
        waiting.push(cpus);
        entries.push((std::mem::take(&mut waiting).join(","), said));
    }
    if waiting.is_empty() {
        Ok(entries)
    } else {
        Err(format!("`{}` has no {what}; write {form}", waiting.join(",")))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn entries_are_cpus_and_what_is_said() {
        let entry = |cpus: &str, said| (cpus.to_owned(), said);
        assert_eq!(read("0-3:1,8:2", "", ""), Ok(vec![entry("0-3", "1"), entry("8", "2")]));
        assert_eq!(read("0,4,8:1, 9:0", "", ""), Ok(vec![entry("0,4,8", "1"), entry("9", "0")]));
        assert_eq!(read("0-30:2:1", "", ""), Ok(vec![entry("0-30:2", "1")]));
    }

    #[test]
    fn what_is_missing_is_named() {
        assert_eq!(read("0-3:1,8", "number", "C:N"), Err("`8` has no number; write C:N".to_owned()));
        assert_eq!(read("", "number", "C:N"), Err("`` has no number; write C:N".to_owned()));
        assert_eq!(read(":3", "number", "C:N"), Err("`:3` has no CPUs; write C:N".to_owned()));
    }
}
