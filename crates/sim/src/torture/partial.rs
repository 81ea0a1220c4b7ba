//! `torture partial`: damage in one keyspace, while two others are written and
//! read at full speed.
//!
//! Bytes of the keyspace's tables are flipped, a table loses its end under the open database, or
//! every read of its tables fails with EIO. The reads a second of the other keyspaces and their
//! writes a second are measured separately, and compared with alternating runs without damage; then
//! the process has no descriptors for a second. Owns: the runs, the damage, and the figures. Never
//! does: fail for a figure of speed; the rules that do not depend on time are with the load
//! (`partial_load.rs`).

use super::failing_reads::FailingReads;
use super::partial_load::{Load, Rates, SICK, SPACES, fill};
use super::plan::{Failure, Outcome, scratch};
use super::stop;
use clap::{Args, ValueEnum};
use std::fmt;
use std::path::{Path, PathBuf};
use windrow::{Db, Options, inspect};
use windrow_env::Env;
use windrow_format::names;

/// The distance of flipped bytes in the first half of a damaged table.
const FLIP_EVERY_BYTES: usize = 2048;
/// The lowest acceptable ratio of the others' rate with damage to that without.
const RATIO_MIN: f64 = 0.9;

/// The arguments of a run.
#[derive(Args, Clone, Debug)]
pub struct Plan {
    /// How often the load is run without damage, and with each kind of it.
    #[arg(long, default_value_t = 5)]
    pub rounds: u64,
    /// How long each run is measured.
    #[arg(long, default_value_t = 10)]
    pub seconds: u64,
    /// The seed of the choice of keys.
    #[arg(long, default_value_t = 1)]
    pub seed: u64,
    /// The damages.
    #[arg(long, value_enum, value_delimiter = ',', default_values_t = Damage::ALL)]
    pub case: Vec<Damage>,
    /// The directory of databases while it runs; a failure stays there.
    #[arg(long)]
    pub dir: Option<PathBuf>,
}

/// A damage of one keyspace's tables.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Damage {
    /// Bytes are flipped in the first half of each.
    Flips,
    /// The last one loses its second half under the open database.
    Cut,
    /// Every read of them fails with EIO.
    Eio,
}

impl Damage {
    const ALL: [Damage; 3] = [Damage::Flips, Damage::Cut, Damage::Eio];
}

impl fmt::Display for Damage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Damage::Flips => "flips",
            Damage::Cut => "cut",
            Damage::Eio => "eio",
        })
    }
}

/// The runs of a kind: without damage, or with this one.
struct Runs {
    damage: Option<Damage>,
    rates: Vec<Rates>,
}

impl Runs {
    fn name(&self) -> String {
        self.damage.map_or("none".to_owned(), |damage| damage.to_string())
    }
}

/// Runs the rounds.
///
/// # Errors
/// The rule that was broken.
pub fn run(plan: &Plan) -> Result<Outcome, Failure> {
    let scratch = scratch(plan.dir.clone().unwrap_or_else(std::env::temp_dir), plan.seed)?;
    let damages = [None].into_iter().chain(plan.case.iter().copied().map(Some));
    let mut kinds = Vec::from_iter(damages.map(|damage| Runs { damage, rates: Vec::new() }));
    for round in 0..plan.rounds {
        let mut line = format!("round {round}:");
        for at in 0..kinds.len() {
            // The order changes, since a disk may slow down or warm up.
            let kind = (at + round as usize) % kinds.len();
            let runs = &mut kinds[kind];
            let dir = scratch.path().join(format!("{round}-{}", runs.name()));
            match one_run(&dir, plan, runs.damage) {
                Ok(rates) => {
                    line += &format!(" {} {rates};", runs.name());
                    runs.rates.push(rates);
                }
                Err(why) => {
                    let _ = scratch.keep();
                    let why = format!("round {round}, damage {}: {why}", runs.name());
                    return Err(Failure { why, seed: plan.seed, kept: Some(dir) });
                }
            }
            let _ = std::fs::remove_dir_all(&dir);
        }
        eprintln!("{line}");
        if stop::requested() {
            break;
        }
    }
    Ok(Outcome::Passed(table(plan, &kinds)))
}

/// Formats medians, spreads and ratios as a table.
fn table(plan: &Plan, kinds: &[Runs]) -> String {
    let mut table = format!(
        "{} runs of {} s of each kind: operations a second of the sound keyspaces, median (least \
         to most), and ratio of medians\n\n\
         | damage | reads | ratio | writes | ratio | both at least {RATIO_MIN} | level 0 next door |\n\
         |---|---|---|---|---|---|---|",
        kinds[0].rates.len(),
        plan.seconds
    );
    let figures = |runs: &Runs, of: fn(&Rates) -> f64| {
        Figures::of(runs.rates.iter().map(of)).unwrap_or_default()
    };
    let of_all =
        |runs: &Runs| [figures(runs, |rates| rates.reads), figures(runs, |rates| rates.writes)];
    let sound = of_all(&kinds[0]);
    for runs in kinds {
        let [reads, writes] = of_all(runs);
        let ratios = [reads.median / sound[0].median, writes.median / sound[1].median];
        let verdict = if ratios.iter().all(|ratio| RATIO_MIN <= *ratio) { "yes" } else { "no" };
        let deepest = runs.rates.iter().map(|rates| rates.sick_depth).max().unwrap_or(0);
        table += &format!(
            "\n| {} | {reads} | {:.3} | {writes} | {:.3} | {verdict} | {deepest} |",
            runs.name(),
            ratios[0],
            ratios[1]
        );
    }
    table
}

/// The rates of some runs, per second.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
struct Figures {
    least: f64,
    median: f64,
    most: f64,
}

impl Figures {
    /// Returns the figures of these rates; `None` if there are none.
    fn of(rates: impl Iterator<Item = f64>) -> Option<Figures> {
        let mut rates = Vec::from_iter(rates);
        rates.sort_by(f64::total_cmp);
        let (&least, &most) = (rates.first()?, rates.last()?);
        let median = f64::midpoint(rates[(rates.len() - 1) / 2], rates[rates.len() / 2]);
        Some(Figures { least, median, most })
    }
}

impl fmt::Display for Figures {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:.0} ({:.0} to {:.0})", self.median, self.least, self.most)
    }
}

fn options() -> Options {
    let mut options = Options::default();
    options.settings.memory_bytes = 32 << 20;
    options.settings.memtable_bytes = 1 << 20;
    options.settings.file_bytes = 256 << 10;
    options
}

fn text(error: impl fmt::Display) -> String {
    error.to_string()
}

/// Fills a database, damages it if asked to, and loads it.
fn one_run(dir: &Path, plan: &Plan, damage: Option<Damage>) -> Result<Rates, String> {
    let db = Db::open_with(dir, options()).map_err(text)?;
    SPACES.iter().try_for_each(|name| fill(&db, name))?;
    db.flush().and_then(|()| db.wait_idle()).map_err(text)?;
    let tables = tables_of(&db, SICK);
    db.close().map_err(text)?;
    let [.., last] = &tables[..] else {
        return Err("there are no tables to damage".into());
    };
    let path = |name: &String| dir.join(name);
    let kept = match damage {
        Some(Damage::Flips) => tables.iter().map(|name| keep(path(name))).collect(),
        Some(Damage::Cut) => keep(path(last)).map(|kept| vec![kept]),
        Some(Damage::Eio) | None => Ok(Vec::new()),
    }?;
    if damage == Some(Damage::Flips) {
        kept.iter().try_for_each(flip)?;
    }
    // In every run, so that nothing else differs.
    let fs = FailingReads::new(tables);
    let mut failing = options();
    let threads = failing.settings.background_threads as usize;
    failing.components.env = Some(Env { fs: fs.files(), ..Env::os(threads) });
    let db = Db::open_with(dir, failing).map_err(text)?;
    match damage {
        Some(Damage::Cut) => kept.iter().try_for_each(cut)?,
        Some(Damage::Eio) => fs.fail(true),
        Some(Damage::Flips) | None => {}
    }
    let load = Load::new(&db, plan.seed, damage.is_some())?;
    let rates = load.run(plan.seconds)?;
    if damage == Some(Damage::Eio) && fs.failures() == 0 {
        return Err("no read of a table failed with EIO: this tests nothing".into());
    }
    // Not earlier: the damage stays as long as the load runs.
    fs.fail(false);
    kept.iter().try_for_each(|(path, bytes)| std::fs::write(path, bytes)).map_err(text)?;
    db.close().map_err(text)?;
    let db = Db::open_with(dir, options()).map_err(text)?;
    load.check(&db)?;
    db.close().map_err(text)?;
    Ok(rates)
}

/// Returns the names of a keyspace's table files, by number.
fn tables_of(db: &Db, name: &str) -> Vec<String> {
    let tree = inspect::trees(db).into_iter().find(|(space, _)| space == name);
    let files = tree.iter().flat_map(|(_, version)| version.files());
    let mut numbers = Vec::from_iter(files.map(|(_, _, file)| file.number));
    numbers.sort_unstable();
    numbers.into_iter().map(names::table).collect()
}

type Kept = (PathBuf, Vec<u8>);

fn keep(path: PathBuf) -> Result<Kept, String> {
    let bytes = std::fs::read(&path).map_err(text)?;
    Ok((path, bytes))
}

/// Flips bytes in the first half of a table, which holds its first blocks.
fn flip((path, bytes): &Kept) -> Result<(), String> {
    let mut bytes = bytes.clone();
    let half = bytes.len() / 2;
    bytes[64..half].iter_mut().step_by(FLIP_EVERY_BYTES).for_each(|byte| *byte ^= 0x40);
    std::fs::write(path, bytes).map_err(text)
}

/// Cuts off a table's second half, so that reads of it meet the file's end.
fn cut((path, bytes): &Kept) -> Result<(), String> {
    let file = std::fs::OpenOptions::new().write(true).open(path).map_err(text)?;
    file.set_len(bytes.len() as u64 / 2).map_err(text)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn figures_are_of_sorted_rates() {
        let of = |rates: &[f64]| Figures::of(rates.iter().copied());
        assert_eq!(of(&[]), None);
        assert_eq!(of(&[3.0, 1.0, 2.0]), Some(Figures { least: 1.0, median: 2.0, most: 3.0 }));
        assert_eq!(of(&[4.0, 1.0]), Some(Figures { least: 1.0, median: 2.5, most: 4.0 }));
    }

    #[test]
    fn reads_and_writes_are_compared_each_by_itself() {
        let plan = Plan { rounds: 1, seconds: 1, seed: 1, case: vec![Damage::Cut], dir: None };
        let runs = |damage, reads, writes| Runs {
            damage,
            rates: vec![Rates { reads, writes, sick_depth: 40 }],
        };
        let kinds = [runs(None, 100.0, 200.0), runs(Some(Damage::Cut), 130.0, 170.0)];
        let table = table(&plan, &kinds);
        let last = table.lines().last().unwrap();
        assert_eq!(last, "| cut | 130 (130 to 130) | 1.300 | 170 (170 to 170) | 0.850 | no | 40 |");
    }
}
