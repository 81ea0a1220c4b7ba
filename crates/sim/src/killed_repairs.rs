//! Repairs that are killed at every operation and run again: once, also at every operation of the
//! second repair, and again and again after a few more operations each time; and repairs in which a
//! write fails (`failing.rs`). The final result is never less than one run saves.
//!
//! Owns: which databases are damaged how, and when repairs of them are killed. Never does: decide
//! whether one run saves all that could be saved; `rot` judges single repairs.

mod failing;
mod specimen;

use crate::share::{Share, each};
use crate::trial::{Death, forked};
use specimen::{Damage, Specimen, made};
use windrow_env::testing::{FileDamage, NameDamage, PowerLoss};

/// The name of these loops among the workloads.
pub const NAME: &str = "killed_repairs";

/// The number of times that a repair is killed before it may end.
const KILLS_MAX: u64 = 5;
/// The damages of each database.
const SPECIMENS: &[&[Damage]] = &[
    &[],
    &[Damage::Blocks],
    &[Damage::Indexes],
    &[Damage::MissingTable],
    &[Damage::Manifest],
    &[Damage::NoCurrent],
    &[Damage::Log],
    &[Damage::Blocks, Damage::Log],
    &[Damage::Blocks, Damage::NoManifest],
    &[Damage::Indexes, Damage::NoCurrent, Damage::Log],
    &[Damage::Blocks, Damage::Manifest, Damage::Log],
];

/// Returns the death of a repair. Every fourth is a kill. The others are power losses that lose, in
/// turn, a drawn part of the unsynced data, all of it, or the unsynced names only.
fn death(number: u64) -> Death {
    let all = (Some(FileDamage::DropAll), Some(NameDamage::DropAll));
    let kept = (Some(FileDamage::KeepAll), Some(NameDamage::DropAll));
    let (files, names) = [(None, None), all, kept][(number % 3) as usize];
    match number % 4 {
        0 => Death::Killed(number),
        _ => Death::PowerCut(PowerLoss { seed: number, files, names }),
    }
}

/// Kills a repair once, at every operation, with three deaths each.
fn once(specimen: &Specimen, share: Share) -> Result<u64, String> {
    each("a killed repair", specimen.operations * 3, |case| {
        if !share.has(case) {
            return Ok(0);
        }
        let world = forked(&specimen.handles, case);
        let left = specimen.killed(&world, case / 3, death(case))?;
        specimen.must_be_sane(&left)?;
        specimen.must_save(&left).map(|()| 1)
    })
}

/// Kills a repair at every operation, and the next one at every operation again.
fn twice(specimen: &Specimen, share: Share) -> Result<u64, String> {
    let count = specimen.operations + 10;
    let share = Share { step: share.step * share.step * 9, ..share };
    each("a repair killed twice", count * count, |case| {
        if !share.has(case) {
            return Ok(0);
        }
        let world = forked(&specimen.handles, case);
        let left = specimen.killed(&world, case / count, death(case))?;
        let left = specimen.killed(&left, case % count, death(case + 1))?;
        specimen.must_save(&left).map(|()| 1)
    })
}

/// Kills repairs again and again, each after one operation more than the last.
fn again(specimen: &Specimen, share: Share) -> Result<u64, String> {
    let share = Share { step: share.step * 2 - 1, ..share };
    each("a repair killed again and again", specimen.operations * 2, |case| {
        if !share.has(case) {
            return Ok(0);
        }
        let mut left = forked(&specimen.handles, case);
        for kill in 0..KILLS_MAX {
            left = specimen.killed(&left, case / 2 + kill, death(case + kill))?;
        }
        specimen.must_save(&left).map(|()| 1)
    })
}

/// Runs all loops over all specimens, `step` as in [`crate::exhaustive::all`].
///
/// # Errors
/// The first fault, and where.
pub fn all(step: u64, report: &dyn Fn(&str)) -> Result<(), String> {
    for (number, damages) in SPECIMENS.iter().enumerate() {
        let specimen = Specimen::new(made()?, damages)?;
        let share = Share { first: number as u64, step };
        let place = |e| format!("{NAME}, {damages:?}: {e}");
        // Every case at a step of 1, and a share that contains each kind at any other.
        let few = Share { step: step * 4 - 3, ..share };
        let done = [
            once(&specimen, share),
            twice(&specimen, share),
            again(&specimen, share),
            failing::once(&specimen, few),
        ];
        let done = done.into_iter().collect::<Result<Vec<u64>, _>>().map_err(place)?;
        report(&format!("{NAME}: {damages:?}: {done:?} of {} operations", specimen.operations));
    }
    for (number, damages) in failing::SPECIMENS.iter().enumerate() {
        let specimen = Specimen::new(failing::made_of_logs()?, damages)?;
        let share = Share { first: number as u64, step };
        let place = |e| format!("{NAME}, full logs, {damages:?}: {e}");
        let done = failing::once(&specimen, share).map_err(place)?;
        report(&format!("{NAME}: full logs, {damages:?}: {done} with a failure"));
    }
    Ok(())
}
