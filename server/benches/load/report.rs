//! What was promised, and whether it was kept.

use std::process::ExitCode;

/// The lines about bounds, to be told again at the end.
#[derive(Default)]
pub(crate) struct Report {
    lines: Vec<String>,
    missed: usize,
}

impl Report {
    pub(crate) fn title(&self, title: &str) {
        println!("\n{title}");
    }

    pub(crate) fn bound(&mut self, what: &str, measured: &str, kept: bool, bound: &str) {
        self.missed += usize::from(!kept);
        let line =
            format!("{} {what:9} {measured} (promised: {bound})", if kept { "kept  " } else { "MISSED" });
        println!("  {line}");
        self.lines.push(line);
    }

    /// A figure without a bound.
    pub(crate) fn say(&mut self, line: &str) {
        println!("  {line}");
        self.lines.push(format!("       {line}"));
    }

    pub(crate) fn print_end(&self) -> ExitCode {
        println!("\nIn short");
        self.lines.iter().for_each(|line| println!("  {line}"));
        if self.missed == 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE }
    }
}
