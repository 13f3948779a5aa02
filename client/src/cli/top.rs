//! `berth top`.

use clap::Args;

use super::examples;

/// `berth top`.
#[derive(Debug, Args)]
#[command(after_help = examples::TOP)]
pub struct Top {
    /// Letters of ASCII alone. Default where the locale is not UTF-8
    #[arg(long)]
    pub ascii: bool,
}
