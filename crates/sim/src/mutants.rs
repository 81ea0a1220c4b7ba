//! The hunt for mutants: the harness that must notice each mutant, and how soon.
//!
//! A harness that finds nothing proves nothing unless it is known to find something. So each
//! safeguard of the engine is taken out in turn ([`windrow_base::mutants`]) and the harness that
//! guards it must fail. Before that all harnesses must pass on the unchanged engine. A harness that
//! cannot fail is detected by a canary, an obvious fault that it must report.
//!
//! Owns: the choice of harnesses, and the hunt. Never does: define a mutant.

use crate::crash;
use crate::exhaustive;
use crate::probes::PROBES;
use crate::rot::{self, CLOSED, CRASHES, Density, Plan, Script, Specimen};
use crate::scenario::Settings;
use crate::together;
use crate::{killed_backups, killed_repairs};
use std::fmt;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::time::Duration;
use windrow_base::mutants::{self, Mutant, MutantRow};
use windrow_testkit::sweep;
use windrow_testkit::variant::Variant;

/// A prime: steps of it visit a plan's damages evenly, and each of them once.
const STRIDE: u64 = 1_000_003;
/// A damage is one of tens of thousands, and takes a tenth of a seed's time.
const DAMAGES_PER_SEED: u64 = 10;
/// One in this number of cases of the exhaustive loops is run.
const EXHAUSTIVE_STEP: u64 = 61;

/// The most databases of the harness on threads, and the time that they may take.
const TOGETHER_MOST: u64 = 200;
const TOGETHER_TIME: Duration = Duration::from_secs(300);

/// One in this number of killed repairs is run; there are fewer of them.
const REPAIRS_STEP: u64 = 5;
/// One in this number of killed backups in whose next run the power goes is run, and all of those behind
/// which it does.
const BACKUPS_STEP: u64 = 5;

/// A harness.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Detector {
    /// Seeds of the crash harness.
    Crashes,
    /// Crashes and faults at operations of every feature's workload.
    Exhaustive,
    /// Damages to databases at rest.
    Damages,
    /// Bytes that are where they should not be.
    Misplaced,
    /// Damages, and the result of a repair after each.
    Repairs,
    /// Repairs that are killed and run again.
    KilledRepairs,
    /// Backups that are killed and run again, before the power goes.
    KilledBackups,
    /// One small scenario for each promise that needs no larger harness.
    Probes,
    /// All acts at once, on threads.
    Together,
}

impl Detector {
    /// All of them.
    pub const ALL: [Detector; 9] = [
        Detector::Crashes,
        Detector::Exhaustive,
        Detector::Damages,
        Detector::Misplaced,
        Detector::Repairs,
        Detector::KilledRepairs,
        Detector::KilledBackups,
        Detector::Probes,
        Detector::Together,
    ];
}

impl fmt::Display for Detector {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Detector::Crashes => "crashes",
            Detector::Exhaustive => "exhaustive loops",
            Detector::Damages => "damages",
            Detector::Misplaced => "misplaced writes",
            Detector::Repairs => "repairs",
            Detector::KilledRepairs => "killed repairs",
            Detector::KilledBackups => "killed backups",
            Detector::Probes => "probes",
            Detector::Together => "everything at once",
        })
    }
}

/// A mutant that was noticed.
#[derive(Clone, Debug)]
pub struct Caught {
    /// The harness that noticed it.
    pub by: Detector,
    /// The number of its cases that were run.
    pub cases: u64,
    /// The message of the failure.
    pub why: String,
}

/// Returns the harnesses that are run for a mutant, in this order.
pub fn detectors(mutant: Mutant) -> &'static [Detector] {
    use Detector::{
        Crashes, Damages, Exhaustive, KilledBackups, KilledRepairs, Misplaced, Probes, Repairs,
        Together,
    };
    match mutant as u32 {
        49 | 56 | 60 | 65 => &[Damages, Misplaced],
        50..=52 => &[Misplaced, Damages],
        29 => &[Probes, Crashes],
        54 | 55 | 57 | 59 | 61 | 63 => &[Probes, Damages, Misplaced, Crashes],
        66 => &[Repairs],
        171..=173 => &[KilledRepairs],
        194 => &[KilledBackups],
        177 => &[Together],
        175 | 178 | 179 => &[Probes, Together],
        40..=48 | 67 => &[Damages, Misplaced, Crashes],
        76..=78 | 81 | 83 | 86 | 97 | 120..=128 | 130.. => &[Probes, Crashes],
        _ => &[Crashes, Exhaustive],
    }
}

/// Runs the engine with a mutant (none: unchanged) through these harnesses, `cases` of each, until
/// one notices.
pub fn hunt(entry: Option<&MutantRow>, detectors: &[Detector], cases: u64) -> Option<Caught> {
    mutants::set(entry.map(|entry| entry.mutant));
    let caught = detectors.iter().find_map(|by| {
        let found = catch_unwind(AssertUnwindSafe(|| ask(*by, cases)));
        let found = found.unwrap_or_else(|panic| Err((0, sweep::panic_text(&*panic))));
        found.err().map(|(case, why)| Caught { by: *by, cases: case + 1, why })
    });
    mutants::set(None);
    caught
}

/// The failure of a harness: the case, and its message.
type Failure = (u64, String);

fn ask(detector: Detector, cases: u64) -> Result<(), Failure> {
    match detector {
        Detector::Crashes => {
            let settings = Settings::default();
            let case = |seed| crash::run(seed, &settings).map(drop).map_err(|e| e.to_string());
            run(cases, case)
        }
        Detector::Exhaustive => {
            exhaustive::all(EXHAUSTIVE_STEP, None, &|_| ()).map_err(|why| (0, why))
        }
        Detector::KilledRepairs => {
            killed_repairs::all(REPAIRS_STEP, &|_| ()).map_err(|why| (0, why))
        }
        Detector::KilledBackups => {
            killed_backups::all(BACKUPS_STEP, &|_| ()).map_err(|why| (0, why))
        }
        Detector::Damages => damages(cases, &|specimen, plan, index| {
            rot::check(specimen, &plan.case(index)).map(drop)
        }),
        Detector::Repairs => damages(cases, &|specimen, plan, index| {
            rot::check_repair(specimen, &plan.case(index)).map(drop)
        }),
        Detector::Misplaced => misplaced(cases * DAMAGES_PER_SEED),
        Detector::Together => {
            let ran = together::threads::run(0, cases.min(TOGETHER_MOST), TOGETHER_TIME);
            ran.map(drop).map_err(|seed| (seed, "something was lost or wrong".to_owned()))
        }
        Detector::Probes => {
            // One after the other: a probe is quick, and its number is stable.
            (0..PROBES.len()).try_for_each(|at| {
                let (name, probe) = PROBES[at];
                run(1, |_| probe()).map_err(|(_, why)| (at as u64, format!("{name}: {why}")))
            })
        }
    }
}

fn run(cases: u64, case: impl Fn(u64) -> Result<(), String> + Sync) -> Result<(), Failure> {
    sweep::run(0..cases, case, |(), ()| ()).map(drop)
}

/// Makes the databases that are damaged.
fn specimens() -> Result<Vec<Specimen>, Failure> {
    let closed = [("small", CLOSED)]
        .into_iter()
        .chain(["partitioned index", "tiny blocks"].map(|variant| (variant, CLOSED.enlarged())));
    let scripts: Vec<(&str, Script)> =
        closed.chain(CRASHES.iter().map(|script| ("small", *script))).collect();
    let make = |(name, script): &(&str, Script)| Specimen::new(Variant::named(name), script);
    scripts.iter().map(make).collect::<Result<_, _>>().map_err(|why| (0, why))
}

/// Checks damages of every database in turn, spread evenly over all of them.
fn damages(
    cases: u64,
    check: &(dyn Fn(&Specimen, &Plan, u64) -> Result<(), String> + Sync),
) -> Result<(), Failure> {
    let specimens = specimens()?;
    let plan = |specimen| Plan::new(specimen, Density::Thin { pairs_step: 7 });
    let plans: Vec<Plan> = specimens.iter().map(plan).collect();
    let count = specimens.len() as u64;
    run(cases, |case| {
        let at = (case % count) as usize;
        // Whole files first; there are few.
        let whole = plans[at].whole_files().nth((case / count) as usize);
        let index = whole.unwrap_or(case / count * STRIDE % plans[at].len());
        check(&specimens[at], &plans[at], index)
            .map_err(|why| format!("{}: {why}", plans[at].case(index)))
    })
}

fn misplaced(cases: u64) -> Result<(), Failure> {
    let specimens = specimens()?;
    let count = specimens.len() as u64;
    run(cases, |seed| {
        let specimen = &specimens[(seed % count) as usize];
        let case = rot::misplaced(specimen, seed);
        rot::check(specimen, &case).map(drop).map_err(|why| format!("{case}: {why}"))
    })
}
