//! Checkpoints that a run has made, and restored backups: each is complete or refused, whenever the
//! crash came, and holds what the database held (P20). Every backup that is there is whole.
//!
//! Owns: where they lie and what they must hold. Never does: touch the source.

use crate::judge::Judge;
use std::path::{Path, PathBuf};
use windrow::backup::{BackupDirectory, BackupOptions};
use windrow::{Db, InKeyspace, Options};
use windrow_base::ErrorKind;
use windrow_testkit::model::Model;
use windrow_testkit::oracle::compare;
use windrow_testkit::world::World;

/// A checkpoint.
#[derive(Clone)]
struct Target {
    dir: PathBuf,
    /// The contents of the source.
    model: Model,
    /// The call has returned, or it was opened since.
    complete: bool,
}

/// The checkpoints of a run that are still there.
#[derive(Clone, Default)]
pub struct Targets {
    list: Vec<Target>,
    made: u64,
}

impl Targets {
    /// Makes one, and opens it if it was made.
    ///
    /// # Errors
    /// The defect, in words.
    pub fn make(
        &mut self,
        db: &Db,
        judge: &mut Judge,
        world: &World,
        options: &Options,
    ) -> Result<(), String> {
        if judge.oracle.has_doubt() {
            return Ok(());
        }
        judge.tell_time(db)?;
        self.made += 1;
        let dir = world.sibling(&format!("checkpoint-{}", self.made));
        let result = match self.made % 2 {
            0 => db.checkpoint(&dir),
            _ => backed_up_and_restored(db, world, &dir),
        };
        self.list.push(Target { dir, model: judge.model().clone(), complete: result.is_ok() });
        match result {
            // It flushes first, which makes everything durable.
            Ok(()) => judge.oracle.sync(),
            Err(error) if judge.excuses_error(&error) => {}
            Err(error) => return Err(format!("checkpoint or backup: {error}")),
        }
        self.check(judge, world, options)
    }

    /// Reads every backup that is there.
    fn check_backups(&self, judge: &Judge, world: &World) -> Result<(), String> {
        let env = world.env();
        let dir = world.sibling(BACKUPS);
        if judge.allowed != crate::judge::Allowed::default()
            || !env.fs.exists(&dir).unwrap_or(false)
        {
            return Ok(());
        }
        let all = || {
            let target = BackupDirectory::open_read_only_in(&env, &dir)?;
            let known = windrow::backup::backups(&target)?;
            known.iter().try_for_each(|backup| {
                windrow::backup::verify_backup(&target, backup.number).map(drop)
            })
        };
        match all() {
            Err(error) if !judge.excuses_error(&error) => Err(format!("backups: {error}")),
            _ => Ok(()),
        }
    }

    /// Opens and compares all of them, and removes them.
    ///
    /// # Errors
    /// The defect, in words.
    pub fn check(
        &mut self,
        judge: &mut Judge,
        world: &World,
        options: &Options,
    ) -> Result<(), String> {
        self.check_backups(judge, world)?;
        while let Some(mut target) = self.list.pop() {
            let handles = world.handles().ok_or("checkpoints are judged in memory only")?;
            let judged = target.judge(judge, world, options);
            if handles.fs.is_dead() {
                self.list.push(target);
                return Ok(());
            }
            judged.map_err(|e| format!("checkpoint {}: {e}", target.dir.display()))?;
            for name in handles.fs.files(&target.dir) {
                handles.fs.remove_file(&target.dir.join(name));
            }
        }
        Ok(())
    }
}

/// Where the backups of a run are.
const BACKUPS: &str = "backups";

/// A copy by a backup among others.
fn backed_up_and_restored(db: &Db, world: &World, dir: &Path) -> windrow::Result<()> {
    let env = world.env();
    let target = BackupDirectory::open_in(&env, &world.sibling(BACKUPS))?;
    let made = db.backup(&target, BackupOptions::default())?;
    windrow::backup::restore_backup_in(&env, &target, Some(made.number), dir)?;
    windrow::backup::prune_backups(&target, 2).map(drop)
}

impl Target {
    fn judge(&mut self, judge: &Judge, world: &World, options: &Options) -> Result<(), String> {
        let mut options = options.clone();
        options.components.env = Some(world.env());
        options.create_if_missing = false;
        let copy = match Db::open_with(&self.dir, options) {
            Ok(copy) => copy,
            Err(error) if judge.excuses_error(&error) => return Ok(()),
            // Of names that it only seemed to keep, none may be left.
            Err(error) if judge.allowed.lies && error.kind() == ErrorKind::InvalidArgument => {
                return Ok(());
            }
            Err(error) if !self.complete => {
                let refusal = matches!(
                    error.kind(),
                    ErrorKind::InvalidArgument | ErrorKind::Corruption | ErrorKind::Io
                );
                return if refusal { Ok(()) } else { Err(format!("open: {error}")) };
            }
            Err(error) => return Err(format!("open: {error}")),
        };
        self.complete = true;
        self.model.set_now_ms(copy.now_ms());
        let same = compare(&copy, &self.model);
        let excused = judge.allowed != crate::judge::Allowed::default();
        match same {
            // A read that fails is told from a wrong answer where nothing fails.
            Err(_) if excused => Ok(()),
            same => same,
        }?;
        match copy.close() {
            Err(error) if !judge.excuses_error(&error) => Err(format!("close: {error}")),
            _ => Ok(()),
        }
    }
}
