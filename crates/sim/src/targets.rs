//! Checkpoints that a run has made: each is complete or refused, whenever the
//! crash came, and holds what the database held (P20).
//!
//! Owns: where they lie and what they must hold. Never does: touch the source.

use crate::judge::Judge;
use std::path::PathBuf;
use windrow::{Db, InKeyspace, Options};
use windrow_base::ErrorKind;
use windrow_testkit::model::Model;
use windrow_testkit::oracle::compare;
use windrow_testkit::world::World;

/// A checkpoint.
#[derive(Clone)]
struct Target {
    dir: PathBuf,
    /// What the source held.
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
    /// What is wrong, in words.
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
        let result = db.checkpoint(&dir);
        self.list.push(Target { dir, model: judge.model().clone(), complete: result.is_ok() });
        match result {
            // It flushes first, which makes everything durable.
            Ok(()) => judge.oracle.sync(),
            Err(error) if judge.excuses_error(&error) => {}
            Err(error) => return Err(format!("checkpoint: {error}")),
        }
        self.check(judge, world, options)
    }

    /// Opens and compares all of them, and removes them.
    ///
    /// # Errors
    /// What is wrong, in words.
    pub fn check(
        &mut self,
        judge: &mut Judge,
        world: &World,
        options: &Options,
    ) -> Result<(), String> {
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
