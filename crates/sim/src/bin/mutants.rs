//! `mutants`: takes the safeguards out of the engine, one at a time, and checks that the harnesses
//! notice. Prints a table of the harness that noticed each mutant, and exits with 1 if all
//! harnesses that guard a safeguard missed its mutant.
//!
//! Most mutants are patches, so the program is built from a patched copy of the source:
//!
//! ```text
//! cargo run -p windrow-xtask -- mutants
//! cargo run -p windrow-xtask -- mutants --only 13
//! ```
//!
//! Owns: arguments and the table. Never does: run a harness itself.

#![allow(
    clippy::disallowed_methods,
    reason = "a program for people: it starts itself for each mutant, and says how long that took"
)]

use clap::Parser;
use std::process::{Command, ExitCode};
use std::time::Instant;
use windrow_base::mutants::{MutantRow, TABLE};
use windrow_sim::mutants::{Detector, detectors, hunt};

/// Whether this is a build of the patched copy.
const PATCHED: bool = option_env!("WINDROW_MUTANTS_PATCHED").is_some();

/// Characters of a failure that the table shows.
const WORDS: usize = 110;

/// Takes safeguards out of the engine and checks which harness notices.
#[derive(Parser)]
#[command(name = "mutants")]
struct Args {
    /// Cases of each harness, at most
    #[arg(long, default_value_t = 2_000)]
    seeds: u64,
    /// Only the mutants of these numbers
    #[arg(long, value_delimiter = ',')]
    only: Option<Vec<u32>>,
    /// Ask every harness that is there for a mutant, and not only until one notices
    #[arg(long)]
    each: bool,
    /// Print the mutants and what should notice them
    #[arg(long)]
    list: bool,
    /// Hunt one mutant in this process, and print its row (0: the engine as it is)
    #[arg(long, hide = true)]
    alone: Option<u32>,
    /// By the harness of this place alone
    #[arg(long, hide = true)]
    by: Option<usize>,
}

fn main() -> ExitCode {
    let args = Args::parse();
    if args.list {
        TABLE.iter().for_each(|entry| println!("{}", described(entry)));
        return ExitCode::SUCCESS;
    }
    if !PATCHED {
        eprintln!(
            "most mutants are not in this build: run `cargo run -p windrow-xtask -- mutants`"
        );
        return ExitCode::from(2);
    }
    if let Some(number) = args.alone {
        return alone(&args, number);
    }
    let begin = Instant::now();
    let asked =
        |entry: &&MutantRow| args.only.as_ref().is_none_or(|only| only.contains(&entry.number));
    let asked: Vec<&MutantRow> = TABLE.iter().filter(asked).collect();
    println!("| mutant | breaks | noticed by | cases | says |\n|---|---|---|---|---|");
    let survivors: Vec<&str> =
        asked.iter().filter(|entry| !is_noticed(&args, entry)).map(|entry| entry.name).collect();
    let sound = args.only.is_some() || is_sound(&args);
    println!("\n{} mutants, {} s", asked.len(), begin.elapsed().as_secs());
    if survivors.is_empty() && sound {
        return ExitCode::SUCCESS;
    }
    println!("not noticed: {}", survivors.join(", "));
    ExitCode::FAILURE
}

fn described(entry: &MutantRow) -> String {
    let by: Vec<String> = detectors(entry.mutant).iter().map(ToString::to_string).collect();
    let origin = entry.origin.map(|origin| format!(" ({origin})")).unwrap_or_default();
    let MutantRow { number, name, promises, rule, what, .. } = entry;
    format!("{number:>3} {name} [{promises}; {rule}] {what}{origin}: {}", by.join(", then "))
}

/// Whether a mutant was noticed: by each harness that guards it, if `each` is set.
fn is_noticed(args: &Args, entry: &MutantRow) -> bool {
    match args.each {
        false => in_a_process_of_its_own(args, entry, None),
        true => {
            let by = 0..detectors(entry.mutant).len();
            by.filter(|by| !in_a_process_of_its_own(args, entry, Some(*by))).count() == 0
        }
    }
}

/// Hunts in a process of its own, since a mutant may hang or end it. Returns whether it was
/// noticed.
fn in_a_process_of_its_own(args: &Args, entry: &MutantRow, by: Option<usize>) -> bool {
    let program = std::env::current_exe().expect("the program knows its name");
    let (seeds, number) = (args.seeds.to_string(), entry.number.to_string());
    let output = Command::new(program)
        .args(["--seeds", &seeds, "--alone", &number])
        .args(by.iter().flat_map(|by| ["--by".to_owned(), by.to_string()]))
        .output()
        .expect("the program starts itself");
    let text = String::from_utf8_lossy(&output.stdout);
    let row = text.lines().find_map(|line| line.strip_prefix("caught "));
    let hung =
        !output.status.success() && String::from_utf8_lossy(&output.stderr).contains("hangs");
    let row = row.map(str::to_owned).or(hung.then(|| "the watch | - | a case hangs".to_owned()));
    let says = row.as_deref().unwrap_or("**nobody** | - | -");
    println!("| {} {} | {} | {says} |", entry.number, entry.name, entry.promises);
    row.is_some()
}

/// Runs one hunt, for the process that waits for it.
fn alone(args: &Args, number: u32) -> ExitCode {
    // A panic that is caught is part of the row.
    std::panic::set_hook(Box::new(|_| {}));
    let entry = TABLE.iter().find(|entry| entry.number == number);
    let asked: &[Detector] = match entry {
        Some(entry) => detectors(entry.mutant),
        None => &Detector::ALL,
    };
    let asked = args.by.map_or(asked, |by| &asked[by..=by]);
    match hunt(entry, asked, args.seeds) {
        Some(caught) => {
            let why = caught.why.replace(['\n', '|'], " ");
            let words: String = why.chars().take(WORDS).collect();
            println!("caught {} | {} | {}", caught.by, caught.cases, words.trim());
            ExitCode::SUCCESS
        }
        None => ExitCode::from(3),
    }
}

/// Checks that the unchanged engine passes every harness (otherwise their findings prove nothing).
fn is_sound(args: &Args) -> bool {
    let noticed = hunt(None, &Detector::ALL, args.seeds);
    if let Some(caught) = &noticed {
        println!("\nwithout a mutant, {} case {}: {}", caught.by, caught.cases - 1, caught.why);
    }
    noticed.is_none()
}
