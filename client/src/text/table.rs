//! Tables without rules: columns that line up, one of which may take what room is left.

use super::{Page, Tone, wrap::wrap};

/// The least that the column for lists is given.
const LEAST: usize = 16;
const GAP: &str = "  ";

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    Word,
    Number,
    List,
}

/// A column.
#[derive(Debug, Clone)]
pub(crate) struct Column {
    title: String,
    kind: Kind,
}

impl Column {
    /// Words, to the left.
    pub(crate) fn words(title: &str) -> Self {
        Self { title: title.to_owned(), kind: Kind::Word }
    }

    /// Numbers, to the right.
    pub(crate) fn numbers(title: &str) -> Self {
        Self { title: title.to_owned(), kind: Kind::Number }
    }

    /// Long texts and lists of CPUs, broken to fit the page. At most one column of a table.
    pub(crate) fn lists(title: &str) -> Self {
        Self { title: title.to_owned(), kind: Kind::List }
    }
}

/// A table.
#[derive(Debug)]
pub(crate) struct Table {
    columns: Vec<Column>,
    rows: Vec<Vec<(Tone, String)>>,
}

impl Table {
    pub(crate) fn new(columns: impl IntoIterator<Item = Column>) -> Self {
        Self { columns: columns.into_iter().collect(), rows: Vec::new() }
    }

    /// A row, a text for each column.
    pub(crate) fn row<T: Into<String>>(&mut self, cells: impl IntoIterator<Item = T>) {
        self.toned_row(cells.into_iter().map(|cell| (Tone::Plain, cell.into())));
    }

    /// A row whose texts have tones.
    pub(crate) fn toned_row(&mut self, cells: impl IntoIterator<Item = (Tone, String)>) {
        self.rows.push(cells.into_iter().collect());
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.rows.is_empty()
    }

    /// The table as lines, indented by two. Columns in which nothing stands are left out.
    pub(crate) fn layout(&self, page: Page) -> String {
        if self.is_empty() {
            return String::new();
        }
        let shown: Vec<usize> = (0..self.columns.len()).filter(|&c| !self.is_blank(c)).collect();
        let widths = self.widths(&shown, page);
        let title = |&c: &usize| (Tone::Heading, self.columns[c].title.clone());
        let mut out = self.lines(&shown, &widths, &shown.iter().map(title).collect::<Vec<_>>(), page);
        for row in &self.rows {
            let cell = |&c: &usize| row.get(c).cloned().unwrap_or((Tone::Plain, String::new()));
            out += &self.lines(&shown, &widths, &shown.iter().map(cell).collect::<Vec<_>>(), page);
        }
        out
    }

    fn is_blank(&self, column: usize) -> bool {
        self.rows.iter().all(|row| row.get(column).is_none_or(|(_, text)| text.is_empty()))
    }

    fn widths(&self, shown: &[usize], page: Page) -> Vec<usize> {
        let widest = |&c: &usize| {
            let cells = self.rows.iter().filter_map(|row| row.get(c)).map(|(_, text)| text.chars().count());
            cells.chain([self.columns[c].title.chars().count()]).max().unwrap_or(0)
        };
        let mut widths: Vec<usize> = shown.iter().map(widest).collect();
        if let Some(list) = shown.iter().position(|&c| self.columns[c].kind == Kind::List) {
            let taken: usize = widths.iter().sum::<usize>() - widths[list] + GAP.len() * widths.len();
            widths[list] = widths[list].min(page.width.saturating_sub(taken).max(LEAST));
        }
        widths
    }

    /// One row, as many lines as its longest list needs.
    fn lines(&self, shown: &[usize], widths: &[usize], cells: &[(Tone, String)], page: Page) -> String {
        let kinds = || shown.iter().map(|&c| self.columns[c].kind);
        let broken: Vec<Vec<String>> = cells
            .iter()
            .zip(kinds().zip(widths))
            .map(
                |((_, text), (kind, &width))| {
                    if kind == Kind::List { wrap(text, width) } else { vec![text.clone()] }
                },
            )
            .collect();
        let height = broken.iter().map(Vec::len).max().unwrap_or(0);
        let mut out = String::new();
        for i in 0..height {
            let mut line = String::new();
            for (((lines, (tone, _)), kind), &width) in broken.iter().zip(cells).zip(kinds()).zip(widths) {
                let text = lines.get(i).map_or("", String::as_str);
                let pad = " ".repeat(width.saturating_sub(text.chars().count()));
                let text = if text.is_empty() {
                    String::new()
                } else {
                    tone.paint(text, page.colour && *tone != Tone::Plain)
                };
                line += GAP;
                line += &if kind == Kind::Number { format!("{pad}{text}") } else { format!("{text}{pad}") };
            }
            out += line.trim_end();
            out.push('\n');
        }
        out
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sample() -> Table {
        let mut table = Table::new([
            Column::words("PLACE"),
            Column::lists("CPUS"),
            Column::numbers("TASKS"),
            Column::numbers("BEFORE"),
        ]);
        table.row(["package 0", "0-159,320-479,640-799", "160", ""]);
        table.row(["package 1", "160-175", "16", ""]);
        table
    }

    #[test]
    fn columns_line_up_and_blank_ones_vanish() {
        let page = Page { width: 60, colour: false, verbose: false };
        let expected = "  PLACE      CPUS                   TASKS
  package 0  0-159,320-479,640-799    160
  package 1  160-175                   16
";
        assert_eq!(sample().layout(page), expected);
    }

    #[test]
    fn the_list_takes_what_room_is_left() {
        let mut table = Table::new([Column::words("PLACE"), Column::lists("CPUS"), Column::numbers("TASKS")]);
        table.row(["package 2", "0-159,320-479,640-799,1000-1015", "1"]);
        let expected = "  PLACE      CPUS              TASKS
  package 2  0-159,320-479,        1
             640-799,
             1000-1015
";
        assert_eq!(table.layout(Page { width: 36, colour: false, verbose: false }), expected);
    }

    #[test]
    fn colours_do_not_move_columns() {
        let page = |colour| Page { width: 60, colour, verbose: false };
        let mut table = Table::new([Column::words("A"), Column::numbers("B")]);
        table.toned_row([(Tone::Bad, "PILE_UP".to_owned()), (Tone::Plain, "1".to_owned())]);
        let plain: String = strip(&table.layout(page(true)));
        assert_eq!(plain, table.layout(page(false)));
    }

    fn strip(text: &str) -> String {
        let mut parts = text.split('\u{1b}');
        let first = parts.next().unwrap_or_default().to_owned();
        parts.fold(first, |all, part| all + part.split_once('m').map_or("", |(_, rest)| rest))
    }
}
