//! Manual compaction: the entries of a range go down to the last level, step by step, on the thread
//! that asked for it.
//!
//! The picker of the keyspace is off meanwhile, so that it does not move tables that the compaction
//! is about to move. It takes nothing but a level 0 that slows writers
//! ([`Scheduler::schedule_merges`]), which goes to level 1 at most. So the tables ahead of the
//! compaction stay where it will come to, or beyond its position in level 1, and nothing of level 1
//! goes where it has been. Rejected: letting the picker have all its decisions. A file that enters
//! the SST-log of a level, or leaves the deepest one, behind the position would not be visited
//! again.
//!
//! The two take turns where they want the same files. A step that has to wait for a merge lets no
//! other begin before it, and between two steps the picker is asked. So a compaction ends however
//! fast writers are, and level 0 waits for one step at most.
//!
//! Owns: the parts of its keyspace that a compaction holds. It lets go of them however it ends,
//! also by a panic in a compaction filter. Never does: decide what the next step is
//! (`plan/src/pick/manual.rs` does).

use crate::host::shortage::is_short;
use crate::jobs::JobContext;
use crate::jobs::failure_policy::end_decision;
use crate::jobs::merge::run_decision;
use crate::jobs::schedule::Scheduler;
use crate::tree::{Tree, dropped};
use std::sync::Arc;
use windrow_base::Result;
use windrow_plan::tree::Version;
use windrow_plan::{Decision, ManualState};

/// How often a compaction that found no room begins again after merges that fitted made some.
const ROUNDS_MAX: u32 = 8;

/// A compaction under way.
pub struct Manual<'a> {
    jobs: &'a JobContext,
    tree: &'a Tree,
    lo: Option<&'a [u8]>,
    hi: Option<&'a [u8]>,
    state: ManualState,
    /// The step under way; its files are busy.
    step: Option<Decision>,
    /// Whether a merge is in the way of the next step.
    waits: bool,
}

impl<'a> Manual<'a> {
    pub fn begin(
        jobs: &'a JobContext,
        tree: &'a Tree,
        (lo, hi): (Option<&'a [u8]>, Option<&'a [u8]>),
    ) -> Manual<'a> {
        tree.work.lock().hold += 1;
        Manual { jobs, tree, lo, hi, state: ManualState::new(), step: None, waits: false }
    }

    /// Ends the step. Its damaged files stay busy.
    pub fn end_step(&mut self, result: &Result<()>) {
        if let Some(step) = self.step.take() {
            let mut work = self.tree.work.lock();
            end_decision(&self.jobs.host.events, &mut work, &step, result);
        }
    }

    /// Claims the next step; claims none once all is done. Returns `None` while it must wait.
    pub fn next_step(&mut self) -> Option<Result<()>> {
        let Manual { jobs, tree, lo, hi, .. } = *self;
        if let Err(error) = jobs.host.write_state.check().and_then(|()| jobs.workers.check_open()) {
            return Some(Err(error));
        }
        let mut work = tree.work.lock();
        let version: Arc<Version> = tree.version();
        let sizes = tree.sizes.load();
        let view = jobs.host.plan_view(&version, &work.busy, &sizes);
        let decision = tree.policy.load().manual(&view, lo, hi, &mut self.state);
        let (idle, done) = (decision.is_idle(), self.state.is_done());
        let waits = idle && !done && work.merging > 0;
        work.waiting = work.waiting + u32::from(waits) - u32::from(self.waits);
        self.waits = waits;
        if !idle {
            work.busy.claim(&decision);
            self.step = Some(decision);
            return Some(Ok(()));
        }
        if work.merging == 0
            && !done
            && let Some(damage) = work.damage()
        {
            // Wrong bytes, or bytes that could not be read: each has its own remedy.
            return Some(Err(damage.clone().context(
                "a table that could not be read is in the way of the compaction: reopen the \
                 database, or run `verify`, then `repair`",
            )));
        }
        done.then_some(Ok(()))
    }
}

impl Drop for Manual<'_> {
    fn drop(&mut self) {
        let mut work = self.tree.work.lock();
        if let Some(step) = self.step.take() {
            work.busy.release(&step);
        }
        work.hold -= 1;
        work.waiting -= u32::from(self.waits);
    }
}

/// Compacts every keyspace. A keyspace that is dropped meanwhile counts as done.
pub fn compact_all(scheduler: &Scheduler) -> Result<()> {
    let trees: Vec<_> = scheduler.jobs.pipeline.trees().iter().cloned().collect();
    trees.iter().try_for_each(|tree| match compact(scheduler, tree, None, None) {
        Err(_) if tree.is_dropped() => Ok(()),
        compacted => compacted,
    })
}

/// Compacts a range of a keyspace, step by step, on this thread.
pub fn compact(
    scheduler: &Scheduler,
    tree: &Arc<Tree>,
    lo: Option<&[u8]>,
    hi: Option<&[u8]>,
) -> Result<()> {
    let jobs = &scheduler.jobs;
    jobs.pipeline.flush_tree(tree)?;
    let mut rounds = 0;
    loop {
        rounds += 1;
        let mut manual = Manual::begin(jobs, tree, (lo, hi));
        jobs.note_due(tree);
        // A panic turns writing off before the files of its step are free again.
        let result = jobs.workers.contain_panics(|| compact_steps(scheduler, &mut manual));
        let is_short = result.as_ref().is_err_and(|error| is_short(&jobs.host, error));
        // No other merge begins meanwhile: it would take the room.
        let has_made_room = is_short && rounds < ROUNDS_MAX && make_room(jobs, tree)?;
        drop(manual);
        jobs.note_due(tree);
        // It begins again: its steps may now find room, and other tables.
        if !has_made_room {
            scheduler.schedule();
            return result;
        }
    }
}

fn compact_steps(scheduler: &Scheduler, manual: &mut Manual<'_>) -> Result<()> {
    let Manual { jobs, tree, .. } = *manual;
    loop {
        jobs.host.write_state.check()?;
        if tree.is_dropped() {
            return Err(dropped(&tree.name));
        }
        jobs.host.wait_until(|| manual.next_step())?;
        let Some(step) = &manual.step else {
            return Ok(());
        };
        let underway = jobs.workers.begin();
        let result = match &underway {
            Ok(_) => run_decision(jobs, tree, step),
            Err(error) => Err(error.clone()),
        };
        manual.end_step(&result);
        // The next step may need the room of the tables that this one read.
        jobs.cleanup.run(jobs.host.write_state.cause().is_some());
        jobs.note_due(tree);
        // Work that had to wait for the step goes before the next one.
        scheduler.schedule_merges();
        scheduler.update_pace();
        result?;
    }
}

/// Merges only inputs that surely fit, from one level to the next. The entries that this drops make
/// room for a step that found none. Returns whether there was any such merge.
fn make_room(jobs: &JobContext, tree: &Tree) -> Result<bool> {
    let mut any = false;
    let is_quiet = || (tree.work.lock().merging == 0 || tree.is_dropped()).then_some(());
    jobs.host.wait_until(is_quiet);
    loop {
        let underway = jobs.workers.begin()?;
        // Tables that have left the tree, and outputs of a merge that was given up, count as room.
        jobs.cleanup.run(jobs.host.write_state.cause().is_some());
        let Some(decision) = claim_fitting(jobs, tree) else { return Ok(any) };
        let result = jobs.workers.contain_panics(|| run_decision(jobs, tree, &decision));
        let mut work = tree.work.lock();
        end_decision(&jobs.host.events, &mut work, &decision, &result);
        drop((work, underway));
        jobs.note_due(tree);
        match result {
            Err(error) if is_short(&jobs.host, &error) => return Ok(any),
            result => result?,
        }
        any = true;
    }
}

fn claim_fitting(jobs: &JobContext, tree: &Tree) -> Option<Decision> {
    let room = jobs.pipeline.segments.room_to_merge();
    let mut work = tree.work.lock();
    let (version, sizes) = (tree.version(), tree.sizes.load());
    let view = jobs.host.plan_view(&version, &work.busy, &sizes);
    // Another compaction relies on its position in the levels below.
    let deepest = if work.hold <= 1 { u32::MAX } else { 0 };
    let decision = tree.policy.load().pick_within(&view, room, deepest);
    if decision.is_idle() || tree.is_dropped() {
        return None;
    }
    work.busy.claim(&decision);
    Some(decision)
}
