//! `make fidelity`: holds the kernel model against records of real kernels and prints how well it does.

#![allow(clippy::print_stdout)]

use anyhow::Result;
use berth_fidelity::{record::Record, report::Report};
use clap::Parser;
use std::path::PathBuf;

/// Holds Berth's kernel model against records of real kernels: domains, single steps, whole bursts, verdicts, proofs.
#[derive(Debug, Parser)]
#[command(
    name = "fidelity",
    after_help = "docs/fidelity.md tells what the figures mean and explains what is left."
)]
struct Args {
    /// Folder with records: one gzipped JSON-lines file (*.jsonl.gz) for each boot
    #[arg(default_value = concat!(env!("CARGO_MANIFEST_DIR"), "/../testdata/ground-truth"))]
    records: PathBuf,
    /// Print each miss with its record
    #[arg(short, long)]
    verbose: bool,
    /// Print the total only
    #[arg(short, long)]
    total: bool,
}

fn main() -> Result<()> {
    let args = Args::parse();
    let mut total = Report::default();
    for record in &Record::read_all(&args.records)? {
        if !args.total {
            println!("{}", record.name);
        }
        let report = Report::of(record, &mut |tale| {
            if args.verbose && tale.is_miss() {
                println!("  {tale}");
            }
        })?;
        if !args.total {
            println!("{report}");
        }
        total += &report;
    }
    println!("all, {} cases", total.cases);
    print!("{total}");
    Ok(())
}
