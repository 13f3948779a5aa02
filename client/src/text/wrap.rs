//! Breaking lines.

/// The text in lines of at most `width` characters, broken after spaces, or after commas where there is no space. A
/// word that is longer than a line stands alone on one.
pub(crate) fn wrap(text: &str, width: usize) -> Vec<String> {
    let mut lines = Vec::new();
    let mut line = String::new();
    for word in words(text) {
        let long = line.chars().count() + word.trim_end().chars().count() > width;
        if long && !line.is_empty() {
            lines.push(line.trim_end().to_owned());
            line.clear();
        }
        line.push_str(word);
    }
    lines.push(line.trim_end().to_owned());
    lines
}

/// The pieces that may stand on a line of their own: words with the space after them, and the parts of long lists with
/// the comma after them.
fn words(text: &str) -> impl Iterator<Item = &str> {
    /// A list that is longer than this may be broken at its commas.
    const LONG: usize = 24;
    let parts = |word| {
        let breaks: &[char] = if str::len(word) > LONG { &[',', ' '] } else { &[' '] };
        word.split_inclusive(breaks)
    };
    text.split_inclusive(' ').flat_map(parts)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_break_at_spaces_and_long_lists_at_commas() {
        assert_eq!(wrap("a bc def", 4), ["a bc", "def"]);
        assert_eq!(wrap("", 4), [""]);
        assert_eq!(wrap("unbreakable", 4), ["unbreakable"]);
        assert_eq!(wrap("on 0,2,4", 6), ["on", "0,2,4"], "a short list stays whole");
        assert_eq!(wrap("0-15,320-335,480-495,640-655", 13), ["0-15,320-335,", "480-495,", "640-655"]);
    }
}
