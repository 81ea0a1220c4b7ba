//! Backups and prunes that are killed at every operation and run again, and a power loss after that: behind
//! the second run, or at every operation of it. A killed run may leave names that are not durable, and
//! removals that are not; the next run relies on both. It prunes in one half of the cases and not in the
//! other, since a removal syncs the folder, and with it the names that were found.
//!
//! Each listed backup restores to its moment, at all times, and to a moment before it where it has changes. No power loss changes the list that a run has
//! left when it returned.
//!
//! Owns: when runs are killed, and the judgement of the backups. Never does: damage what is stored
//! (`probes/backing_up.rs` does).

use crate::share::{Share, each};
use crate::trial::{Death, forked};
use std::path::Path;
use windrow::backup::{
    BackupDirectory, BackupOptions, Moment, backup_numbers, prune_backups, restore_backup_in,
    restore_to_in, verify_backup,
};
use windrow::{Db, Follower, Options, WriteSync};
use windrow_base::Result as Outcome;
use windrow_env::testing::{FileDamage, Handles, NameDamage, PowerLoss, env};
use windrow_testkit::variant;
use windrow_testkit::world::DIR;

/// The name of these loops among the workloads.
pub const NAME: &str = "killed_backups";

const BACKUPS: &str = "/world/backups";
const COPY: &str = "/world/restored";

/// Backups that a run keeps which prunes, and one that does not.
const KEPT: [usize; 2] = [2, 100];
/// Keys of each round of writes.
const KEYS: u32 = 40;
/// Power losses of each case.
const LOSSES: u64 = 6;

/// All entries of a database.
type Entries = Vec<(Vec<u8>, Vec<u8>)>;

/// A database at rest with backups of two earlier moments, and the entries of each moment.
struct Specimen {
    handles: Handles,
    /// Of backups 1 and 2, and of all later ones.
    moments: [Entries; 3],
    /// A sequence number between backups 2 and 3, and its entries: of the changes that 3 has with it.
    between: (u64, Entries),
    /// The number of operations of a run.
    operations: u64,
}

fn text(error: windrow::Error) -> String {
    error.to_string()
}

fn options(handles: &Handles) -> Result<Options, String> {
    let mut options = variant::options_of([].into_iter()).map_err(text)?;
    options.components.env = Some(handles.env());
    options.settings.changes_bytes = 16 << 20;
    Ok(options)
}

fn entries(db: &Db) -> Result<Entries, String> {
    let entries = db.iter().map(|entry| entry.map(|(key, value)| (key.to_vec(), value.to_vec())));
    entries.collect::<Outcome<_>>().map_err(text)
}

/// Backs up what a follower reads, and prunes. Returns the number of the backup, and those that are listed
/// then.
fn run(handles: &Handles, keep: usize) -> Outcome<(u64, Vec<u64>)> {
    let env = handles.env();
    let backups = BackupDirectory::open_in(&env, Path::new(BACKUPS))?;
    let options = options(handles).map_err(windrow::Error::invalid)?;
    let follower = Follower::open_with(DIR, options)?;
    let made = follower.backup(&backups, BackupOptions::default())?;
    prune_backups(&backups, keep)?;
    Ok((made.number, backup_numbers(&backups)?))
}

/// Returns the power loss of a number: with the worst for names and files that were not synced, with each
/// alone, or drawn.
fn loss(number: u64) -> PowerLoss {
    use FileDamage as F;
    use NameDamage as N;
    let (files, names) = match number % LOSSES {
        0 => (Some(F::DropAll), Some(N::DropAll)),
        1 => (Some(F::KeepAll), Some(N::DropAll)),
        2 => (Some(F::DropAll), Some(N::KeepAll)),
        _ => (None, None),
    };
    PowerLoss { seed: number, files, names }
}

impl Specimen {
    fn new() -> Result<Specimen, String> {
        let (env, handles) = env(1);
        let backups = BackupDirectory::open_in(&env, Path::new(BACKUPS)).map_err(text)?;
        let db = Db::open_with(DIR, options(&handles)?).map_err(text)?;
        let write = |round: u32| {
            let value = round.to_string().repeat(20);
            (round * KEYS / 2..round * KEYS / 2 + KEYS).try_for_each(|key| {
                db.put_with(key.to_be_bytes(), &value, WriteSync::Yes).map_err(text)
            })
        };
        let mut moments = [const { Entries::new() }; 3];
        for (round, moment) in (0..2).zip(&mut moments) {
            write(round)?;
            db.compact().map_err(text)?;
            *moment = entries(&db)?;
            db.backup(&backups, BackupOptions::default()).map_err(text)?;
        }
        // The runs copy a table, and a part of the log.
        write(2)?;
        db.flush().map_err(text)?;
        let between = (db.snapshot().seq(), entries(&db)?);
        write(3)?;
        moments[2] = entries(&db)?;
        // Without a close: the log stays in force.
        handles.fs.halt();
        drop((backups, db));
        handles.jobs.discard();
        let handles = Death::Killed(1).after(&handles);
        let once = forked(&handles, 1);
        let begin = once.fs.operations();
        let done = run(&once, KEPT[0]).map_err(text)?;
        let operations = once.fs.operations() - begin;
        if done != (3, vec![2, 3]) || operations < 20 {
            return Err(format!("{done:?} in {operations} operations"));
        }
        Ok(Specimen { handles, moments, between, operations })
    }

    /// Kills a run after this number of operations, unless it ends before.
    fn killed(
        &self,
        handles: &Handles,
        (after, keep): (u64, usize),
        death: Death,
    ) -> Result<Handles, String> {
        handles.fs.crash_at(handles.fs.operations() + after);
        let done = run(handles, keep);
        handles.jobs.discard();
        match done {
            Err(error) if !handles.fs.is_dead() => Err(format!("run again: {error}")),
            _ => Ok(death.after(handles)),
        }
    }

    /// Returns the entries of the restored database, which is removed.
    fn copied(&self, handles: &Handles) -> Result<Entries, String> {
        let copy = Db::open_with(COPY, options(handles)?).map_err(text)?;
        let found = entries(&copy)?;
        copy.close().map_err(text)?;
        for name in handles.fs.files(Path::new(COPY)) {
            handles.fs.remove_file(&Path::new(COPY).join(name));
        }
        Ok(found)
    }

    /// Checks every backup that is listed, and the changes between two. Returns their numbers.
    fn judge(&self, handles: &Handles) -> Result<Vec<u64>, String> {
        let env = handles.env();
        let backups = BackupDirectory::open_read_only_in(&env, Path::new(BACKUPS)).map_err(text)?;
        let numbers = backup_numbers(&backups).map_err(text)?;
        for &number in &numbers {
            let wrong = |why| format!("backup {number} of {numbers:?}: {why}");
            verify_backup(&backups, number).map_err(|error| wrong(error.to_string()))?;
            restore_backup_in(&env, &backups, Some(number), Path::new(COPY)).map_err(text)?;
            if self.copied(handles)? != self.moments[number.clamp(1, 3) as usize - 1] {
                return Err(wrong("it restores to another moment".to_owned()));
            }
        }
        if numbers.contains(&2) && numbers.contains(&3) {
            let to = (Moment::Seq(self.between.0), None);
            restore_to_in(&env, &backups, to, Path::new(COPY)).map_err(text)?;
            if self.copied(handles)? != self.between.1 {
                return Err(format!("the changes of 3 of {numbers:?} restore to another moment"));
            }
        }
        // Two were durable at the beginning.
        match numbers.len() {
            2.. => Ok(numbers),
            _ => Err(format!("only {numbers:?} are left")),
        }
    }

    /// Runs to the end, loses the power, and checks that the same backups are there.
    fn must_keep(&self, handles: &Handles, keep: usize, loss: PowerLoss) -> Result<(), String> {
        let (number, listed) = run(handles, keep).map_err(|error| format!("at last: {error}"))?;
        handles.jobs.discard();
        if listed.last() != Some(&number) || keep < listed.len() {
            return Err(format!("after {number} was made, and {keep} kept, these are: {listed:?}"));
        }
        let wrong = |why| format!("keeping {keep}, {loss:?}: {why}");
        let left = self.judge(&Death::PowerCut(loss).after(handles)).map_err(wrong)?;
        match left == listed {
            true => Ok(()),
            false => Err(wrong(format!("of {listed:?} these are left: {left:?}"))),
        }
    }
}

/// Kills a run at every operation; the next one ends, and then the power is lost.
fn then_power_is_lost(specimen: &Specimen) -> Result<u64, String> {
    each("a killed backup", (specimen.operations + 1) * LOSSES, |case| {
        for keep in KEPT {
            let world = forked(&specimen.handles, case);
            let kill = (case / LOSSES, KEPT[0]);
            let left = specimen.killed(&world, kill, Death::Killed(case))?;
            specimen.must_keep(&left, keep, loss(case))?;
        }
        Ok(KEPT.len() as u64)
    })
}

/// Kills a run at every operation, and loses the power at every operation of the next one.
fn meanwhile_power_is_lost(specimen: &Specimen, share: Share) -> Result<u64, String> {
    let count = specimen.operations + 1;
    each("a killed backup, and a power loss in the next", count * count, |case| {
        if !share.has(case) {
            return Ok(0);
        }
        let world = forked(&specimen.handles, case);
        let left = specimen.killed(&world, (case / count, KEPT[0]), Death::Killed(case))?;
        let keep = KEPT[(case / count + case) as usize % KEPT.len()];
        let death = Death::PowerCut(loss(case / count + case / KEPT.len() as u64));
        let left = specimen.killed(&left, (case % count, keep), death)?;
        specimen.judge(&forked(&left, case)).map_err(|why| format!("{death:?}: {why}"))?;
        specimen.must_keep(&left, keep, loss(case)).map(|()| 1)
    })
}

/// Runs both loops, `step` as in [`crate::exhaustive::all`].
///
/// # Errors
/// The first fault, and where.
pub fn all(step: u64, report: &dyn Fn(&str)) -> Result<(), String> {
    let specimen = Specimen::new()?;
    let place = |e| format!("{NAME}: {e}");
    let done = [
        // There are few.
        then_power_is_lost(&specimen).map_err(place)?,
        meanwhile_power_is_lost(&specimen, Share { first: 0, step }).map_err(place)?,
    ];
    report(&format!("{NAME}: {done:?} of {} operations", specimen.operations));
    Ok(())
}
