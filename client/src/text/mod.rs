//! Plain text that lines up: what every answer is laid out with.

pub(crate) mod cpus;
pub(crate) mod numbers;
mod page;
mod table;
mod tone;
pub(crate) mod words;
mod wrap;

pub(crate) use page::Text;
pub use page::{Colour, Page};
pub(crate) use table::{Column, Table};
pub(crate) use tone::Tone;
