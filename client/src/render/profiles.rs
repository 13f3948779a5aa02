//! `berth profiles`.

use berth_proto::v1::ListProfilesResponse;

use super::kernel;
use crate::text::{Column, Page, Table, Text, Tone};

/// The whole answer.
pub(crate) fn profiles(response: &ListProfilesResponse, page: Page) -> String {
    let mut text = Text::new(page);
    if let Some(choice) = &response.choice {
        text.heading("Chosen for this kernel");
        text.fields([("kernel", Tone::Plain, kernel::chosen(choice, "", page.verbose))]);
        choice.evidence.iter().for_each(|sentence| text.item(sentence));
    }
    text.heading("Profiles");
    let mut table = Table::new([Column::words("NAME"), Column::words("RELEASED"), Column::lists("KERNELS")]);
    for profile in &response.profiles {
        let released = if profile.released { "yes" } else { "no" };
        let mut kernels = profile.title.clone();
        if !profile.since.is_empty() {
            kernels += &format!(" (since {})", profile.since.join(", "));
        }
        if page.verbose {
            kernels += &format!("; {}", profile.basis);
            let rules = profile.rules.iter().map(|rule| format!("{}={}", rule.name, rule.value));
            kernels += &format!("; {}", rules.collect::<Vec<_>>().join(" "));
        }
        table.row([profile.name.clone(), released.to_owned(), kernels]);
    }
    text.table(&table);
    text.finish()
}
