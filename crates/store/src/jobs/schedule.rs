//! Which background work is under way, and what begins next.
//!
//! At every change (a memtable was frozen, an edit installed) `schedule` looks at the keyspaces
//! that are due: a frozen memtable without a flush gets one, and while threads are free the
//! policies are asked for merges. A job schedules again when it ends, so work goes on until the
//! policies are idle.
//!
//! The order of keyspaces: first the one with the deepest level 0 of those that slow writers, which
//! would stop the writers of all keyspaces in the end; then the one whose last merge was longest
//! ago. (Asked by id, a first keyspace that always had work took all threads.) A level 0 that is
//! being merged does not count: else the deepest one's keyspace had all threads, for the rest of
//! its tree.
//!
//! A job that fails leaves the tree as it was. `failure_policy.rs` says whether it is tried again,
//! `shortage.rs` when one is tried again that found no room, and `changed_keyspaces.rs` which
//! keyspaces are asked at all.
//!
//! Owns: the turns of keyspaces, and the timer for jobs that are tried again. Never does: any of
//! the work itself.

use crate::host::workers::{Kick, Underway};
use crate::jobs::JobContext;
use crate::jobs::failure_policy::{Tries, end_decision};
use crate::jobs::hidden_tables;
use crate::jobs::merge::run_decision;
use crate::jobs::read_triggered_merges;
use crate::jobs::retry_timer::RetryTimer;
use crate::tree::{Tree, TreeWork};
use crate::write::pace::Pressure;
use crate::write::unflushed_writes::Frozen;
use std::cmp::Reverse;
use std::sync::{Arc, Weak};
use windrow_base::{Error, Result, debug_invariant, invariant};
use windrow_env::jobs::Urgency;
use windrow_env::sync::MutexGuard;
use windrow_env::sync::atomic::Ordering;
use windrow_plan::Decision;
use windrow_plan::tree::{Level, Version};
use windrow_read::budget::Shares;
use windrow_read::options::Settings;
use windrow_read::stats::chain::Chain;

/// The interval of checks whether an attempt is due, in ms.
const LOOK_MS: u64 = 500;

/// The need of a keyspace for the threads that merge, next to the others.
struct Need {
    tree: Arc<Tree>,
    /// Level 0's depth if it slows writers and nothing takes from it; else 0.
    depth: u32,
    /// The turn in which it was last given a merge.
    turn: u64,
}

impl Need {
    fn new(tree: &Arc<Tree>, slowdown: u32) -> Need {
        let work = tree.work.lock();
        let view = tree.view();
        let idle = |level: &&Level| !level.sst_log.iter().any(|f| work.busy.is_busy(f.number));
        let depth =
            slow_level0(&view.version, slowdown).filter(idle).map_or(0, Level::sst_log_depth);
        Need { tree: tree.clone(), depth, turn: work.turn }
    }
}

/// Level 0, if it is so deep that it slows writers.
fn slow_level0(version: &Version, slowdown: u32) -> Option<&Level> {
    version.level(0).map(|level| &**level).filter(|level| slowdown <= level.sst_log_depth())
}

/// The scheduler: it decides what begins next.
pub struct Scheduler {
    /// For jobs, which keep it alive while they run.
    me: Weak<Scheduler>,
    pub jobs: Arc<JobContext>,
    /// The debt from which writers are slowed, and the one at which they are slowed most.
    debt_limits: (u64, u64),
    /// The timer that looks for jobs that found something run out.
    retry_timer: RetryTimer,
}

impl Scheduler {
    /// Makes the scheduler of these jobs. From here on a thread with work for it can say so
    /// (`Workers::kick`).
    pub fn new(jobs: Arc<JobContext>) -> Arc<Scheduler> {
        let host = &jobs.host;
        let debt_limits = debt_limits(&host.settings, &host.shares);
        let retry_timer = RetryTimer::default();
        let scheduler =
            Arc::new_cyclic(|me| Scheduler { me: me.clone(), jobs, debt_limits, retry_timer });
        let kicked = scheduler.me.clone();
        scheduler.jobs.workers.kick_by(move |kick| {
            let Some(scheduler) = kicked.upgrade() else { return };
            if kick == Kick::RetryNow {
                scheduler.retry_now();
            }
            scheduler.schedule();
        });
        scheduler
    }

    /// Notes that time has passed, or that a snapshot may be gone: any keyspace may have work now.
    pub fn note_all_due(&self) {
        self.jobs.due.note_all(&self.jobs.pipeline.trees());
    }

    /// Starts the background work that is due.
    pub fn schedule(&self) {
        let Ok(underway) = self.jobs.workers.begin() else {
            return;
        };
        if self.jobs.host.write_state.check().is_err() {
            return;
        }
        self.schedule_flushes(&underway);
        self.schedule_wal(&underway);
        self.schedule_merges();
        self.update_pace();
        self.jobs.pipeline.share_memory();
    }

    /// Notes the keyspaces whose tables have cost reads much, so that their policies are asked.
    pub fn schedule_for_reads(&self) {
        let trees = self.jobs.pipeline.trees();
        let due = trees.iter().filter(|tree| tree.reads.cost.take_due());
        if due.map(|tree| self.jobs.note_due(tree)).count() > 0 {
            self.schedule();
        }
    }

    /// Whether new background work would be accepted.
    fn takes_work(&self) -> bool {
        self.jobs.workers.check_open().and_then(|()| self.jobs.host.write_state.check()).is_ok()
    }

    /// Starts the work that is due by now in any keyspace. Returns `false` once the database
    /// closes.
    pub fn schedule_if_open(&self) -> bool {
        self.note_all_due();
        self.schedule();
        !self.jobs.workers.gate.is_closing()
    }

    fn submit(
        &self,
        underway: &Underway,
        urgency: Urgency,
        work: impl FnOnce(&Scheduler) + Send + 'static,
    ) {
        if let Some(scheduler) = self.me.upgrade() {
            underway.submit(urgency, move || work(&scheduler));
        }
    }

    fn schedule_flushes(&self, underway: &Underway) {
        // Checked each time: a job that is refused is over at once, and its group is the next one
        // again.
        while self.takes_work() && self.flush_is_due() {
            let group = self.jobs.claim_flush();
            if group.is_empty() {
                return;
            }
            let (count, most) = (group.len(), self.jobs.group_max());
            debug_invariant!(I4, count <= most, "{count} memtables are flushed at once, of {most}");
            self.submit(underway, Urgency::High, move |scheduler| scheduler.flush_job(group));
        }
    }

    fn flush_job(&self, group: Vec<Frozen>) {
        let mut tries = Tries::default();
        loop {
            let flushed =
                self.jobs.host.write_state.check().and_then(|()| self.jobs.flush_group(&group));
            self.note_flush(&flushed);
            let Err(error) = flushed else { break };
            if !tries.again(&self.jobs, &error) {
                break;
            }
        }
        self.jobs.pipeline.queue().lock().unflushed.release(&group);
        self.jobs.pipeline.let_go(group);
        self.schedule();
        self.jobs.host.note_progress();
    }

    /// Makes the next log segment ahead of its need.
    fn schedule_wal(&self, underway: &Underway) {
        let segments = &self.jobs.pipeline.segments;
        let is_due = segments.is_spare_due(&segments.queue.lock());
        if is_due && !segments.is_short_of_room() {
            self.submit(underway, Urgency::High, |scheduler| {
                // Without it the active one goes on.
                let _ = scheduler.jobs.pipeline.segments.prepare();
            });
        }
    }

    /// Asks the policies for merges while threads are free: one merge for each keyspace in the
    /// order of their need, and again.
    pub fn schedule_merges(&self) {
        let Ok(underway) = self.jobs.workers.begin() else {
            return;
        };
        if !self.has_free_thread() {
            return;
        }
        let mut asked = self.by_need();
        if asked.is_empty() {
            return;
        }
        let room = self.jobs.pipeline.segments.room_to_merge();
        let mut turn = asked.iter().map(|need| need.turn).max().unwrap_or(0);
        while !asked.is_empty() {
            let mut later = Vec::new();
            for need in asked {
                // Checked each time: a job that is refused is over at once, and its decision is the
                // next one again.
                if !self.takes_work() || !self.has_free_thread() {
                    return;
                }
                turn += 1;
                if self.begin_merge(&underway, &need.tree, (turn, room)) {
                    later.push(need);
                }
            }
            asked = later;
        }
    }

    fn has_free_thread(&self) -> bool {
        self.jobs.workers.merges_running.load(Ordering::Acquire) < self.jobs.workers.merges_max()
    }

    /// The keyspaces to ask, neediest first.
    fn by_need(&self) -> Vec<Need> {
        let slowdown = self.jobs.host.settings.level0_slowdown_files;
        let due = self.jobs.due.merges();
        let mut needs: Vec<Need> = due.iter().map(|tree| Need::new(tree, slowdown)).collect();
        // Stable: by id if all else is equal.
        needs.sort_by_key(|need| (Reverse(need.depth), need.turn));
        let is_once = |need: &Need| needs.iter().filter(|n| n.tree.id == need.tree.id).count() == 1;
        debug_assert!(needs.len() > 50 || needs.iter().all(is_once), "a keyspace is asked twice");
        needs
    }

    /// Begins the merge that the policy of a keyspace wants most, or a look for tables to drop.
    /// Returns whether there was any.
    fn begin_merge(&self, underway: &Underway, tree: &Arc<Tree>, (turn, room): (u64, u64)) -> bool {
        self.jobs.due.asking(tree);
        let mut work = tree.work.lock();
        if tree.is_dropped() || !work.is_merge_due(self.jobs.host.env.clock.monotonic_ns()) {
            return false;
        }
        if work.hold == 0 && hidden_tables::take_due(&self.jobs.host, tree, &mut work) {
            self.begin_job(underway, tree, (work, turn), |scheduler, tree| {
                let decision = hidden_tables::claim(&scheduler.jobs.host, tree);
                scheduler.merge_job(tree, &decision);
            });
            return true;
        }
        let version = tree.version();
        let sizes = tree.sizes.load();
        let view = self.jobs.host.plan_view(&version, &work.busy, &sizes);
        let policy = tree.policy.load();
        let slow =
            || slow_level0(&version, self.jobs.host.settings.level0_slowdown_files).is_some();
        let decision = match work.hold {
            0 => match policy.pick(&view) {
                Decision::Idle => read_triggered_merges::pick(tree, &work, &policy, &view),
                decision => decision,
            },
            // During a manual compaction: see `compact.rs`.
            _ if work.waiting == 0 && slow() => policy.relieve(&view),
            _ => return false,
        };
        let deepest = if work.hold == 0 { u32::MAX } else { 0 };
        let is_short = matches!(&decision, Decision::Merge(merge) if room < merge.input_bytes());
        let fitting = is_short.then(|| policy.pick_within(&view, room, deepest));
        let decision = self.with_room(&mut work, decision, room, fitting);
        if decision.is_idle() {
            if work.merging == 0 && work.hold == 0 {
                self.end_chain(work.chain.end());
            }
            return false;
        }
        read_triggered_merges::forget_moved(tree, &decision);
        self.end_chain(work.chain.begin(&decision));
        work.busy.claim(&decision);
        let is_kept = work.busy.has_jobs();
        debug_invariant!(I9, is_kept, "a job of `{}` keeps nothing busy: {decision}", tree.name);
        self.begin_job(underway, tree, (work, turn), move |scheduler, tree| {
            scheduler.merge_job(tree, &decision)
        });
        true
    }

    /// The decision, or if there is little room for it, the one that fits: see `shortage.rs`.
    fn with_room(
        &self,
        work: &mut TreeWork,
        wanted: Decision,
        room: u64,
        fitting: Option<Decision>,
    ) -> Decision {
        match (&wanted, fitting) {
            (Decision::Merge(merge), Some(Decision::Idle)) => {
                let now_ns = self.jobs.host.env.clock.monotonic_ns();
                let is_worth = work.notes().attempt.is_worth(merge, room, now_ns);
                if is_worth { wanted } else { Decision::Idle }
            }
            (_, fitting) => {
                if let Some(notes) = &mut work.notes {
                    notes.attempt.let_go();
                }
                fitting.unwrap_or(wanted)
            }
        }
    }

    /// Begins a job of a keyspace. [`Scheduler::merge_job`] ends it.
    fn begin_job(
        &self,
        underway: &Underway,
        tree: &Arc<Tree>,
        (mut work, turn): (MutexGuard<'_, TreeWork>, u64),
        job: impl FnOnce(&Scheduler, &Tree) + Send + 'static,
    ) {
        work.merging += 1;
        work.turn = turn;
        drop(work);
        self.jobs.due.ask_again(tree);
        self.jobs.workers.merges_running.fetch_add(1, Ordering::AcqRel);
        let tree = tree.clone();
        self.submit(underway, Urgency::Normal, move |scheduler| job(scheduler, &tree));
    }

    fn end_chain(&self, ended: Option<Chain>) {
        if let Some(chain) = ended {
            self.jobs.host.counters.chains.record(chain);
        }
    }

    fn merge_job(&self, tree: &Tree, decision: &Decision) {
        let result = run_decision(&self.jobs, tree, decision);
        // A look that found no table says nothing of the shortage for which merges wait.
        if !decision.is_idle() {
            self.note_merge(tree, &result);
        }
        let mut work = tree.work.lock();
        if !decision.is_idle() {
            hidden_tables::note_job_ended(&mut work);
        }
        invariant!(I9, work.merging > 0, "a job of `{}` ends that did not begin", tree.name);
        end_decision(&self.jobs.host.events, &mut work, decision, &result);
        if let Some(notes) = &mut work.notes {
            notes.attempt.note(&self.jobs.host, decision, &result);
        }
        work.merging -= 1;
        let (merging, is_kept) = (work.merging, work.busy.has_jobs());
        let is_released = merging > 0 || work.hold > 0 || work.damaged().is_some() || !is_kept;
        debug_invariant!(I9, is_released, "tables of `{}` are busy, and no job runs", tree.name);
        drop(work);
        let running = self.jobs.workers.merges_running.fetch_sub(1, Ordering::AcqRel);
        invariant!(I9, running > 0, "a merge ends where none runs");
        self.jobs.note_due(tree);
        self.schedule();
        self.jobs.host.note_progress();
    }

    /// Sets the pace by how far behind merging is.
    pub(crate) fn update_pace(&self) {
        // Measured and set in one step: else a thread that measured before a merge ended could set
        // its pressure after it, and nobody would take that back.
        let mut loads = self.jobs.due.pacing.lock();
        let (mut worst, held) = self.jobs.due.pressure(&self.jobs.host, &mut loads);
        worst.level0_slowdown = self.jobs.host.settings.level0_slowdown_files;
        worst.level0_stop = self.jobs.host.settings.level0_stop_files;
        worst.debt_slowdown_bytes = self.debt_limits.0;
        worst.debt_stop_bytes = self.debt_limits.1;
        if self.jobs.workers.merges_running.load(Ordering::Acquire) == 0 && !held {
            // The policies are content: waiting for a merge would never end.
            worst = Pressure { level0_stop: u32::MAX, ..Pressure::default() };
        }
        self.jobs.pipeline.pace.set(&worst);
        drop(loads);
        self.jobs.host.note_progress();
    }

    /// Waits until no flush is due and no merge is picked or running.
    ///
    /// # Errors
    /// `ReadOnly` if writing was turned off meanwhile; the error of a job that found something run
    /// out.
    pub fn wait_idle(&self) -> Result<()> {
        // Before any lock is taken: after a fork nobody may ever release it.
        self.jobs.host.write_state.check_process()?;
        self.retry_now();
        self.schedule();
        self.jobs.host.wait_until(|| {
            if let Err(error) = self.jobs.host.write_state.check() {
                return Some(Err(error));
            }
            if let Some(error) = self.stuck_work() {
                return Some(Err(error));
            }
            let quiet = self.jobs.pipeline.queue().lock().unflushed.frozen().len() == 0;
            // A job counts until it has scheduled the work that comes after it.
            (quiet && self.jobs.workers.gate.is_quiet()).then_some(Ok(()))
        })
    }

    /// Notes how a flush ended. `Ok`: there is no shortage any more.
    pub(crate) fn note_flush(&self, result: &Result<()>) {
        if self.jobs.pipeline.flush_retry.lock().note(&self.jobs.host, result) {
            self.look_again();
        }
    }

    /// Notes how a merge of a tree ended.
    pub(crate) fn note_merge(&self, tree: &Tree, result: &Result<()>) {
        let mut work = tree.work.lock();
        // An idle keyspace gets no notes for a merge that succeeded.
        let waits = (result.is_err() || work.notes.is_some())
            && work.notes().merge_retry.note(&self.jobs.host, result);
        drop(work);
        if waits {
            self.jobs.note_due(tree);
            self.look_again();
        }
    }

    /// Whether flushes may begin now.
    pub(crate) fn flush_is_due(&self) -> bool {
        self.jobs.pipeline.flush_retry.lock().is_due(self.jobs.host.env.clock.monotonic_ns())
    }

    /// Begins the jobs that are due again, for as long as there are any.
    fn look_again(&self) {
        if !self.retry_timer.begin() {
            return;
        }
        let scheduler = self.me.clone();
        let look = move || {
            let Some(scheduler) = scheduler.upgrade() else { return false };
            let workers = &scheduler.jobs.workers;
            workers.contain(|| scheduler.schedule_if_open());
            let waits = || scheduler.any_job_waits() && !workers.gate.is_closing();
            scheduler.retry_timer.goes_on(waits)
        };
        self.jobs.host.env.jobs.every(LOOK_MS, Arc::new(look));
    }

    /// Whether a flush or a merge waits to be tried again.
    fn any_job_waits(&self) -> bool {
        let merge_waits = |tree: &Arc<Tree>| tree.work.lock().waits_for_room().is_some();
        let flush_waits = self.jobs.pipeline.flush_retry.lock().error().is_some();
        flush_waits || self.jobs.pipeline.trees().iter().any(merge_waits)
    }

    /// A caller asks for the work that waits: it is due at once.
    pub(crate) fn retry_now(&self) {
        self.jobs.pipeline.flush_retry.lock().ask();
        for tree in self.jobs.pipeline.trees().iter() {
            if let Some(notes) = &mut tree.work.lock().notes {
                notes.merge_retry.ask();
                // It may take long until a thread is free to look whether there is room by now.
                notes.attempt.let_go();
            }
        }
        self.note_all_due();
    }

    /// The error for which a flush or merge waits.
    pub fn stuck_work(&self) -> Option<Error> {
        let of = |tree: &Arc<Tree>| tree.work.lock().waits_for_room().cloned();
        self.jobs.pipeline.stuck_flush().or_else(|| self.jobs.pipeline.trees().iter().find_map(of))
    }
}

/// The debt from which writers are slowed, and the one at which they are slowed most.
fn debt_limits(settings: &Settings, shares: &Shares) -> (u64, u64) {
    let base = match settings.level_base_bytes {
        0 => shares.memtable_bytes / 2 * 3,
        bytes => bytes,
    };
    let slowdown = match settings.debt_slowdown_bytes {
        0 => base.saturating_mul(16).max(1 << 30),
        bytes => bytes,
    };
    let stop = match settings.debt_stop_bytes {
        0 => slowdown.saturating_mul(4),
        bytes => bytes,
    };
    (slowdown, stop)
}
