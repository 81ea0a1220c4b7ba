//! The full sweep of damages: every bit, length, sector and pair of sectors of a closed database
//! and of crashed ones, misplaced writes by seed, and `repair` after the same damages.
//!
//! ```text
//! cargo run --release -p windrow-sim --bin rot                   # everything of "small"
//! cargo run --release -p windrow-sim --bin rot -- --variant all --part 20
//! cargo run --release -p windrow-sim --bin rot -- --case 12345 --variant lz4 --script closed
//! ```
//!
//! Exits with 1 if a read was wrong, an entry was missing in silence, or anything panicked. Owns:
//! the command line and the sums. Never does: damage or judge a database itself.

#![allow(
    clippy::disallowed_methods,
    clippy::disallowed_types,
    reason = "a harness that measures how long it takes"
)]

use clap::Parser;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::process::ExitCode;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Instant;
use windrow_sim::rot::{
    self, CLOSED, CRASHES, Case, Density, Outcome, Plan, Repaired, Script, Specimen,
};
use windrow_testkit::sweep;
use windrow_testkit::variant::Variant;

/// Failures of each sweep that are printed.
const SHOWN: u64 = 10;

/// Damages small databases in every way, and reads, verifies and repairs them.
#[derive(Parser)]
struct Args {
    /// Option set (a preset's name is one), or `all`.
    #[arg(long, default_value = "small")]
    variant: String,
    /// Image: `closed`, the name of a crash, or `all`.
    #[arg(long, default_value = "all")]
    script: String,
    /// Checks one damage in this number.
    #[arg(long, default_value_t = 1)]
    part: u64,
    /// Of preallocated zeros, one bit of each byte only.
    #[arg(long)]
    one_bit_of_zeros: bool,
    /// Misplaced writes by seed, of each image.
    #[arg(long, default_value_t = 0)]
    misplaced: u64,
    /// Repairs one damage in this number; 0 repairs none.
    #[arg(long, default_value_t = 0)]
    repair_part: u64,
    /// Checks the damage of this index only, and repairs it.
    #[arg(long)]
    case: Option<u64>,
}

/// A sum, and the number of failed cases.
struct Counted<T> {
    sum: T,
    failed: u64,
    panicked: u64,
}

fn main() -> ExitCode {
    let args = Args::parse();
    let variants: Vec<&Variant> =
        Variant::simulated().filter(|v| args.variant == "all" || args.variant == v.name).collect();
    let scripts: Vec<&Script> = [&CLOSED]
        .into_iter()
        .chain(CRASHES)
        .filter(|script| args.script == "all" || args.script == script.name)
        .collect();
    if variants.is_empty() || scripts.is_empty() {
        eprintln!("no such option set or image");
        return ExitCode::from(2);
    }
    let mut failed = 0;
    for variant in variants {
        for script in &scripts {
            match run(&args, variant, script) {
                Ok(count) => failed += count,
                Err(why) => println!("{}, {}: skipped: {why}", variant.name, script.name),
            }
        }
    }
    println!("failed in all: {failed}");
    if failed == 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

/// Runs every sweep of one image. Returns the number of failed cases.
fn run(args: &Args, variant: &Variant, script: &Script) -> Result<u64, String> {
    let specimen = Specimen::new(variant, script)?;
    let density = if args.one_bit_of_zeros { Density::FullButZeros } else { Density::Full };
    let plan = Plan::new(&specimen, density);
    let name = format!("{}, {}", variant.name, script.name);
    let bytes: u64 = specimen.files().map(|(_, len)| len).sum();
    println!("{name}: {} files, {bytes} bytes, {} damages", specimen.files().count(), plan.len());
    if let Some(index) = args.case {
        let case = plan.case(index);
        println!(
            "{case}: {:?}\n{:?}",
            rot::check(&specimen, &case),
            rot::check_repair(&specimen, &case)
        );
        return Ok(0);
    }
    let parts = plan.len().div_ceil(args.part);
    let at = |index: u64| plan.case(index * args.part);
    let mut failed = 0;
    let checked = |case: &Case| rot::check(&specimen, case);
    failed += sweep_all(&format!("{name}: swept"), parts, at, checked, Outcome::plus);
    if args.misplaced > 0 {
        let at = |seed: u64| rot::misplaced(&specimen, seed);
        let title = format!("{name}: misplaced");
        failed += sweep_all(&title, args.misplaced, at, checked, Outcome::plus);
    }
    if let Some(count) = plan.len().checked_div(args.repair_part) {
        let at = |index: u64| plan.case(index * args.repair_part);
        let repaired = |case: &Case| rot::check_repair(&specimen, case);
        failed += sweep_all(&format!("{name}: repaired"), count, at, repaired, Repaired::plus);
    }
    Ok(failed)
}

/// Checks every case and prints the sums. Returns the number of failed cases.
fn sweep_all<T: Default + Send + std::fmt::Debug>(
    title: &str,
    count: u64,
    case: impl Fn(u64) -> Case + Sync,
    check: impl Fn(&Case) -> Result<T, String> + Sync,
    plus: impl Fn(T, T) -> T + Sync,
) -> u64 {
    let begin = Instant::now();
    let shown = AtomicU64::new(0);
    let one = |index: u64| -> Result<Counted<T>, String> {
        let case = case(index);
        let result = catch_unwind(AssertUnwindSafe(|| check(&case)));
        let panicked = u64::from(result.is_err());
        let result = result.unwrap_or_else(|panic| Err(sweep::panic_text(&*panic)));
        let failed = u64::from(result.is_err());
        let sum = result.unwrap_or_else(|why| {
            if shown.fetch_add(1, Ordering::Relaxed) < SHOWN {
                println!("{title}: {index} {case}: {why}");
            }
            T::default()
        });
        Ok(Counted { sum, failed, panicked })
    };
    let add = |a: Counted<T>, b: Counted<T>| Counted {
        sum: plus(a.sum, b.sum),
        failed: a.failed + b.failed,
        panicked: a.panicked + b.panicked,
    };
    let total = sweep::run(0..count, one, add).ok().flatten();
    let Some(total) = total else { return 0 };
    println!(
        "{title}: {:?}, {} failed ({} panicked), {:.1} s",
        total.sum,
        total.failed,
        total.panicked,
        begin.elapsed().as_secs_f64()
    );
    total.failed
}
