//! The exhaustive loops: for each feature's workload a crash at every
//! operation with every damage, a crash at every operation of every recovery,
//! a fault at every operation, and every size of a device that is too small;
//! and kills at every operation of a repair (`killed_repairs.rs`) and of a backup (`killed_backups.rs`).
//!
//! Owns: the list of cases. Never does: judge (`trial.rs`).

use crate::faults::Work;
use crate::features::{FEATURES, Feature};
use crate::share::{Share, each};
use crate::trial::{Death, Trial};
use crate::{killed_backups, killed_repairs};
use windrow_env::testing::{Fault, FaultKind, FileDamage, NameDamage, Ops, PowerLoss, When};

/// Ways to die at each operation.
pub const DAMAGES: u64 = 32;
/// If the share of the cases is small, faults are run this many times as often as crashes.
const FAULTS_PER_CRASH: u64 = 20;
/// Sizes of a device that is too small, and the bytes between them.
const CAPACITIES: u64 = 400;
const CAPACITY_STEP_BYTES: u64 = 1_000;
/// The most files that may be open.
const DESCRIPTORS_MAX: u64 = 24;

/// The options that workloads run under: the differences from the smallest ones.
const SETTINGS: &[&[(&str, &str)]] = &[
    &[],
    &[
        (
            "preset",
            "windrow shape=garnering(t=2,c=0.7) level0=partitioned(lanes=4,k=2,depth=4) \
             pick=sst_log(columns,omega=0.2,levels=2,depth=3) cut=overlap(f=3)",
        ),
        ("level_base_bytes", "4KiB"),
    ],
    &[
        ("preset", "l2sm shape=leveling(t=2) level0=tiered(k=2) pick=sst_log(paper,omega=0.3)"),
        ("level_base_bytes", "4KiB"),
        ("compression", "lz4"),
        ("partition_bytes", "4KiB"),
        ("block_bytes", "256"),
    ],
];

/// Returns every way to die, for the crash at `operation`: each damage to files with each to names,
/// mixtures, and kills.
fn damages(operation: u64) -> impl Iterator<Item = Death> {
    use FileDamage as F;
    use NameDamage as N;
    const FILES: [F; 4] = [F::DropAll, F::KeepAll, F::Prefix, F::Sectors];
    const NAMES: [N; 4] = [N::DropAll, N::KeepAll, N::Prefix, N::Subset];
    (0..DAMAGES).map(move |number| {
        let seed = operation * DAMAGES + number;
        let (file, name) = ((number % 4) as usize, (number / 4 % 4) as usize);
        match number {
            0..16 => Death::PowerCut(PowerLoss {
                seed,
                files: Some(FILES[file]),
                names: Some(NAMES[name]),
            }),
            16..28 => Death::PowerCut(PowerLoss { seed, ..PowerLoss::default() }),
            _ => Death::Killed(seed),
        }
    })
}

/// Runs a workload up to a crash.
fn crashed_at(work: &Work, operation: u64) -> Result<Trial, String> {
    let mut trial = Trial::new(work.settings);
    trial.fs().crash_at(operation);
    trial.run(&work.feature.deeds()?)?;
    if trial.fs().is_dead() { Ok(trial) } else { Err("did not crash".to_owned()) }
}

/// Crashes at every operation, with every damage.
fn crashes(work: &Work, share: Share) -> Result<u64, String> {
    each("a crash", work.measure()?.mutating, |operation| {
        let mut trial = None;
        let mut done = 0;
        for (number, death) in (0..).zip(damages(operation)) {
            // Each damage is used at some operations, however small the share is.
            if !share.has(operation + number) {
                continue;
            }
            if trial.is_none() {
                trial = Some(crashed_at(work, operation)?);
            }
            let mut after = trial.as_ref().expect("just made").forked(death);
            // Some cases are checked thoroughly, the others briefly.
            let looked = if number % 8 == 0 { after.reopen() } else { after.glance() };
            looked.map_err(|e| format!("{death:?}: {e}"))?;
            done += 1;
        }
        Ok(done)
    })
}

/// Crashes at every operation of the recovery from every crash.
fn crashes_in_recovery(work: &Work, share: Share) -> Result<u64, String> {
    each("a crash, and one in the recovery from it", work.measure()?.mutating, |operation| {
        if !share.has(operation) {
            return Ok(0);
        }
        let death = damages(operation).nth((operation % DAMAGES) as usize).expect("a damage");
        let fallen = crashed_at(work, operation)?.forked(death);
        let mut whole = fallen.copied();
        let begin = whole.fs().operations();
        drop(whole.open()?);
        let end = whole.fs().operations();
        for second in begin..end {
            let mut trial = fallen.copied();
            trial.fs().crash_at(second);
            let place = |e| format!("{death:?}, at operation {second}: {e}");
            drop(trial.open().map_err(place)?);
            let loss = PowerLoss { seed: second, ..PowerLoss::default() };
            trial.forked(Death::PowerCut(loss)).glance().map_err(place)?;
        }
        Ok(end - begin)
    })
}

/// Makes every operation fail once, and from there on for ever: in every way, or in one of the
/// three where time is short.
fn faults(work: &Work, share: Share) -> Result<u64, String> {
    use FaultKind::{Interrupted, Io, NoSpace, TooManyFiles};
    let share = Share { step: share.step.min(3).max(share.step / FAULTS_PER_CRASH), ..share };
    let extent = work.measure()?;
    let mut done = 0;
    let sorts = [
        (&[Io, NoSpace, Interrupted][..], Ops::MUTATING, extent.mutating),
        (&[Io, TooManyFiles, Interrupted][..], Ops::READING, extent.reading),
    ];
    for (kinds, on, count) in sorts {
        for (number, kind) in (0..).zip(kinds) {
            for for_ever in [false, true] {
                let what = format!("{kind:?}, for ever: {for_ever}");
                done += each(&what, count, |index| {
                    if !share.has(index + number) {
                        return Ok(0);
                    }
                    let when = match for_ever {
                        true => When::OperationFrom(index),
                        false => When::Operation(index),
                    };
                    work.check_fault(&Fault::new(*kind, on, when)).map(|()| 1)
                })?;
            }
        }
    }
    Ok(done)
}

/// Tries every size of a device that is too small, and every number of descriptors.
fn limits(work: &Work, share: Share) -> Result<u64, String> {
    let full = each("a full device", CAPACITIES, |step| {
        if !share.has(step) {
            return Ok(0);
        }
        work.check_full(step * CAPACITY_STEP_BYTES).map(|()| 1)
    })?;
    let few = each("few descriptors", DESCRIPTORS_MAX, |count| {
        if !share.has(count) {
            return Ok(0);
        }
        work.check_descriptors(count as usize).map(|()| 1)
    })?;
    Ok(full + few)
}

/// One of the loops, and its name.
type Loop = (&'static str, fn(&Work, Share) -> Result<u64, String>);

const LOOPS: [Loop; 4] = [
    ("crashes", crashes),
    ("crashes in recovery", crashes_in_recovery),
    ("faults", faults),
    ("full devices and few descriptors", limits),
];

/// Loops that have databases of their own, by name.
type Extra = (&'static str, fn(u64, &dyn Fn(&str)) -> Result<(), String>);

const EXTRA: [Extra; 2] =
    [(killed_repairs::NAME, killed_repairs::all), (killed_backups::NAME, killed_backups::all)];

/// Runs all loops over all workloads, every `step`-th case of each (1: all, and under several sets
/// of options); every operation still fails in some way. `only`: the workload of this name.
/// `report` gets a line when a loop is done.
///
/// # Errors
/// The first fault, and where; a workload that does not exist.
pub fn all(step: u64, only: Option<&str>, report: &dyn Fn(&str)) -> Result<(), String> {
    if let Some(name) = only
        && !FEATURES.iter().any(|feature| feature.name == name)
        && !EXTRA.iter().any(|(extra, _)| *extra == name)
    {
        let features = FEATURES.iter().map(|feature| feature.name);
        let names: Vec<&str> = features.chain(EXTRA.map(|(name, _)| name)).collect();
        return Err(format!("there is no workload `{name}`, but {}", names.join(", ")));
    }
    let chosen = |feature: &Feature| only.is_none_or(|name| name == feature.name);
    for (number, feature) in FEATURES.iter().enumerate().filter(|(_, feature)| chosen(feature)) {
        let chosen = match step {
            1 => SETTINGS,
            _ => &SETTINGS[number % SETTINGS.len()..][..1],
        };
        for settings in chosen {
            let work = Work { feature: *feature, settings };
            for (name, run) in LOOPS {
                let share = Share { first: number as u64, step };
                let place = |e| format!("{}, {name}, {settings:?}: {e}", feature.name);
                let done = run(&work, share).map_err(place)?;
                report(&format!("{}: {name}: {done}", feature.name));
            }
        }
    }
    let chosen = EXTRA.iter().filter(|(extra, _)| only.is_none_or(|name| name == *extra));
    chosen.into_iter().try_for_each(|(_, run)| run(step, report))
}
