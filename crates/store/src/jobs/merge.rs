//! Runs one decision of the policy.
//!
//! A merge has six steps: open the inputs; note the constraints (held snapshots, the tables outside
//! the job, the time by which expiry is judged); pass every entry through the dropper into output
//! tables; sync them and their names; log the edit; install it. A move, a drop or a new number of
//! levels is the last two steps alone. A failure before the edit leaves the database as it was: the
//! outputs are discarded, the inputs stay.
//!
//! Owns: a merge from its inputs to its edit, and the check that no entry was lost (R16). Never
//! does: pick the merge, or decide which entries may go (`merge/dropper.rs` does).

use crate::jobs::failure_policy::DecisionTries;
use crate::jobs::{Installed, JobContext};
use crate::merge::carried_blocks::CarriedBlocks;
use crate::merge::dropper::{DropCount, DropRules, Dropper, surviving_tombstones};
use crate::merge::filters::OutputFilters;
use crate::merge::heat::Heat;
use crate::merge::writer::{OutputSpec, Outputs};
use crate::tree::{Tree, dropped};
use std::collections::HashSet;
use std::sync::Arc;
use windrow_base::{
    Error, ErrorKind, FileNumber, Result, check_invariant, debug_invariant, invariant,
    unless_mutant,
};
use windrow_env::sync::Mutex;
use windrow_env::sync::atomic::Ordering;
use windrow_format::names;
use windrow_format::tombstone::Tombstones;
use windrow_plan::hotness::HotMap;
use windrow_plan::tree::{File, OlderFiles, Part, Version};
use windrow_plan::{Decision, Drop, Input, Merge, Move, Reshape};
use windrow_read::cache::BlockKey;
use windrow_read::events::Event;
use windrow_read::lock_ranks;
use windrow_read::read::level_iter::LevelIter;
use windrow_read::read::merge_iter::{MergeIter, MergeSource};
use windrow_read::read::table_iter::TableIterOptions;
use windrow_read::read::view::{SortedRun, VersionFile, pack_log};
use windrow_read::snapshot_list::{DroppedEntries, LiveSnapshots};
use windrow_read::stats::MergeInput;

/// Bytes of entries between two checks for more urgent work: a close, a flush.
const CHECK_BYTES: usize = 16 << 10;
/// Bytes of entries between two checks of the device's free space.
const LOOK_BYTES: usize = 64 << 10;
/// Bytes that an entry counts there besides its value.
const CHECK_BYTES_OF_ENTRY: usize = 64;

/// The largest part of the merges' memory that a HotMap may take: one in this.
const HOT_MAP_SHARE: u64 = 4;

/// The result of a merge, for events and counters.
struct MergeSummary {
    files: Vec<File>,
    count: DropCount,
    range_tombstones: u64,
    /// Blocks of the inputs that were cached, and those of the outputs that take their place.
    cached: Vec<BlockKey>,
    carried: CarriedBlocks,
}

/// Runs a decision, and runs it again if `failure_policy.rs` finds that worth it.
///
/// # Errors
/// The last failure: of reading an input, of writing an output, or of the manifest; `Closed` if the
/// database is closing. Nothing changed then.
pub(crate) fn run_decision(jobs: &JobContext, tree: &Tree, decision: &Decision) -> Result<()> {
    let mut tries = DecisionTries::default();
    loop {
        let result = match decision {
            Decision::Idle => Ok(()),
            Decision::Move(step) => run_move(jobs, tree, step),
            Decision::Drop(step) => run_drop(jobs, tree, step),
            Decision::Merge(merge) => MergeJob { jobs, tree, merge }.run(),
            Decision::Reshape(shape) => run_reshape(jobs, tree, shape),
        };
        match result {
            Err(error) if tries.again(jobs, tree, decision, &error) => {}
            result => return result,
        }
    }
}

/// The tables that a merge reads.
fn read_by(merge: &Merge) -> MergeInput {
    MergeInput { files: merge.files().count() as u64, bytes: merge.input_bytes() }
}

fn run_move(jobs: &JobContext, tree: &Tree, step: &Move) -> Result<()> {
    jobs.install(tree, |_| tree.estimates().refresh(step.edit()))?;
    let (to, number) = (step.to.0, step.file.number);
    let is_it = |(level, _, file): (u32, Part, &Arc<File>)| (level, file.number) == (to, number);
    let is_there = || tree.version().files().any(is_it);
    debug_invariant!(I2, is_there(), "table {number} was moved, and is not in level {to}");
    jobs.host.counters.moved(step.to.0);
    jobs.host.events.send_with(|| Event::Moved {
        keyspace: tree.name.clone(),
        file: step.file.number,
        from_level: step.from.0,
        to_level: step.to.0,
        reason: step.reason.to_string(),
    });
    Ok(())
}

fn run_drop(jobs: &JobContext, tree: &Tree, step: &Drop) -> Result<()> {
    jobs.install(tree, |_| step.edit())?;
    for (level, _, file) in &step.files {
        jobs.host.counters.dropped(*level);
        jobs.host.events.send_with(|| Event::Dropped {
            keyspace: tree.name.clone(),
            file: file.number,
            level: *level,
            reason: step.reason.to_string(),
        });
    }
    Ok(())
}

fn run_reshape(jobs: &JobContext, tree: &Tree, shape: &Reshape) -> Result<()> {
    jobs.install(tree, |_| shape.edit())?;
    jobs.host.events.send_with(|| Event::Reshaped {
        keyspace: tree.name.clone(),
        levels: shape.levels,
        reason: shape.reason.to_string(),
    });
    Ok(())
}

/// One merge of a tree.
#[derive(Clone, Copy)]
struct MergeJob<'a> {
    jobs: &'a JobContext,
    tree: &'a Tree,
    merge: &'a Merge,
}

impl<'a> MergeJob<'a> {
    /// Merges, and merges again without the compaction filter if a snapshot that was taken
    /// meanwhile sees entries that the filter dropped. The tree does not promise that a value meets
    /// the filter in this merge: it meets it another time.
    fn run(self) -> Result<()> {
        let MergeJob { jobs, tree, merge } = self;
        let job = jobs.host.new_job_id();
        let begin_ns = jobs.host.env.clock.monotonic_ns();
        jobs.host.events.send_with(|| Event::MergeBegin {
            job,
            keyspace: tree.name.clone(),
            reason: merge.reason.to_string(),
            from_level: merge.inputs.first().map_or(0, |input| input.level),
            to_level: merge.output_level,
            input_files: merge.files().count() as u64,
            input_bytes: merge.input_bytes(),
        });
        let mut done = self.attempt(false);
        while let Ok(None) = done {
            done = self.attempt(true);
        }
        let summary = done.as_ref().ok().copied().flatten().unwrap_or_default();
        if done.is_ok() {
            let read = read_by(merge);
            jobs.host.counters.merged(merge.output_level, read, summary.written_bytes);
            tree.work.lock().chain.add(merge.output_level, read.bytes + summary.written_bytes);
        }
        jobs.host.events.send_with(|| Event::MergeEnd {
            job,
            keyspace: tree.name.clone(),
            to_level: merge.output_level,
            output_files: summary.files,
            written_bytes: summary.written_bytes,
            dropped_entries: summary.dropped,
            duration_us: (jobs.host.env.clock.monotonic_ns() - begin_ns) / 1000,
            error: done.as_ref().err().cloned(),
        });
        done.map(|_| ())
    }

    /// Merges once. `None`, with nothing changed, if a snapshot taken since would lose entries.
    fn attempt(&self, again: bool) -> Result<Option<Summary>> {
        let MergeJob { jobs, tree, merge } = *self;
        self.wait_for_publication()?;
        let version = tree.version();
        let inputs = self.input_runs();
        let held = jobs.host.snapshots.held();
        let since_id = held.next_id;
        let judge_ms = jobs.host.judge_ms_under(&held);
        let (mut rules, spec) = self.rules(&version, &inputs, held, judge_ms)?;
        rules.filter = rules.filter.filter(|_| !again);
        // Held to the end: it reserves its share of filter memory until the edit is in.
        let filters = spec.filters.clone();
        let heat = tree.policy.load().wants_hotness().then(|| self.heat(again));
        let outcome = self.write_outputs(inputs, rules, spec, heat)?;
        self.check_counts(&outcome)?;
        let (kept, seen) = (outcome.count.kept, outcome.count.seen);
        check_invariant!(R16, kept <= seen, "a merge kept {kept} entries of {seen}");
        let summary = Summary {
            files: outcome.files.len() as u64,
            written_bytes: outcome.files.iter().map(|f| f.bytes).sum(),
            dropped: outcome.count.seen - outcome.count.kept,
        };
        let taken = self.taken(&outcome.count, since_id, judge_ms);
        let outputs: Vec<FileNumber> = outcome.files.iter().map(|file| file.number).collect();
        let epoch = merge.output_epoch;
        let is_of_it = outcome.files.iter().all(|file| file.epoch == epoch);
        check_invariant!(I4, is_of_it, "outputs of epoch {epoch} have another one");
        let installed = jobs.try_install(tree, taken, |_| merge.edit(outcome.files))?;
        if installed == Installed::Yes {
            drop(filters);
            outcome.carried.replace(&outcome.cached);
            jobs.host.counters.merge_entries_in.add(outcome.count.seen);
            jobs.host.counters.merge_entries_out.add(outcome.count.kept);
            return Ok(Some(summary));
        }
        unless_mutant!(DroppedLeavesTables, jobs.cleanup.unlink_tables(&outputs));
        if installed == Installed::Dropped {
            return Err(dropped(&tree.name));
        }
        jobs.host.counters.merged(merge.output_level, read_by(merge), summary.written_bytes);
        jobs.host.counters.merges_repeated.add(1);
        Ok(None)
    }

    /// Returns once all entries of the inputs are published. Those of ingested tables are published
    /// just after they are installed. A snapshot that is taken later must be newer.
    fn wait_for_publication(&self) -> Result<()> {
        let queue = self.jobs.pipeline.queue();
        let newest = self.merge.files().map(|(_, _, file)| file.seq_max).max().unwrap_or(0);
        if newest <= queue.visible() {
            return Ok(());
        }
        // A damaged manifest may have any number here.
        let given = queue.lock().last_seq();
        queue.wait_visible(newest.min(given), &self.jobs.host.write_state)
    }

    /// Returns the entries that were dropped for another reason than their sequence numbers. From
    /// here on nothing judges expiry by an earlier time than the merge did.
    fn taken(&self, count: &DropCount, since_id: u64, judge_ms: u64) -> Option<DroppedEntries> {
        let expired = count.expired > 0;
        if expired {
            self.jobs.host.time_floor_ms.fetch_max(judge_ms, Ordering::Relaxed);
        }
        let filtered = count.filtered > 0;
        let has_filter = self.tree.filter.is_some();
        debug_invariant!(I6, has_filter || !filtered, "entries went by a filter that is not there");
        let expired_ms = if expired { judge_ms } else { 0 };
        (filtered || expired).then_some(DroppedEntries { since_id, filtered, expired_ms })
    }

    /// Each input as sorted runs, newest first.
    fn input_runs(&self) -> Vec<Arc<SortedRun>> {
        let tree = self.tree;
        let read_file = |file: &Arc<File>| VersionFile {
            file: file.clone(),
            table: tree.reads.tables.handle(file, &tree.reads.order),
        };
        let runs_of = |input: &Input| {
            let files: Vec<VersionFile> = input.files.iter().map(read_file).collect();
            match input.part {
                Part::Run => vec![Arc::new(SortedRun::new(input.level, files, &tree.reads.order))],
                Part::SstLog => pack_log(input.level, files.into_iter(), &tree.reads.order),
            }
        };
        let runs: Vec<Arc<SortedRun>> = self.merge.inputs.iter().flat_map(runs_of).collect();
        let files = runs.iter().map(|run| run.files.len()).sum::<usize>();
        let due = self.merge.files().count();
        invariant!(I5, files == due, "{files} of {due} inputs are read");
        let mut levels = runs.windows(2).map(|pair| (pair[0].level, pair[1].level));
        invariant!(I3, levels.all(|(upper, lower)| upper <= lower), "older inputs come first");
        runs
    }

    /// Returns the rules by which entries are dropped, and those by which the output is cut.
    fn rules(
        &self,
        version: &Version,
        inputs: &[Arc<SortedRun>],
        held: LiveSnapshots,
        judge_ms: u64,
    ) -> Result<(DropRules, OutputSpec)> {
        let MergeJob { tree, merge, .. } = *self;
        if cfg!(debug_assertions) {
            let there: HashSet<FileNumber> = version.files().map(|(_, _, f)| f.number).collect();
            let gone = merge.files().find(|(_, _, file)| !there.contains(&file.number));
            let gone = gone.map(|(_, _, file)| file.number);
            debug_invariant!(I9, gone.is_none(), "input {gone:?} left the tree under its merge");
        }
        let tombstones = self.input_tombstones(inputs, &held)?;
        let outside = OlderFiles::new(version, merge);
        let policy = tree.policy.load();
        let spec = OutputSpec {
            level: merge.output_level,
            cutter: policy.cutter(version, &tree.sizes.load(), merge.output_level),
            filters: Arc::new(OutputFilters::of_merge(tree, merge, inputs)),
            tombstones: surviving_tombstones(&tombstones, &held, Some(&outside)),
        };
        let rules = DropRules {
            order: tree.reads.order.clone(),
            held,
            tombstones,
            outside: Some(outside),
            operator: tree.reads.operator.clone(),
            filter: tree.filter.clone(),
            judge_ms,
            output_level: merge.output_level,
        };
        Ok((rules, spec))
    }

    /// The range tombstones of the inputs that readers at the held snapshots can tell apart.
    fn input_tombstones(
        &self,
        inputs: &[Arc<SortedRun>],
        held: &LiveSnapshots,
    ) -> Result<Tombstones> {
        let files = inputs.iter().flat_map(|run| &run.files);
        let with_tombstones = files.filter(|file| file.file.range_tombstones > 0);
        let open = with_tombstones
            .map(|file| file.open(&self.tree.reads.tables))
            .collect::<Result<Vec<_>>>()?;
        let mut all = Vec::new();
        for open in &open {
            let mut more = open.table.tombstones().rejoined();
            all.reserve_exact(more.len());
            all.append(&mut more);
        }
        Ok(Tombstones::newest_of_stripes(all, &self.tree.reads.order, &held.seqs))
    }

    /// The tables that the outputs are made of, where that matters. With each input go the tables
    /// that it was made of itself, for as long as they exist (a reader may keep them when every
    /// table made from them is gone).
    fn made_of(&self, inputs: &[Arc<SortedRun>]) -> Result<Vec<(Arc<File>, FileNumber)>> {
        let MergeJob { jobs, tree, .. } = *self;
        let mut made_of = Vec::new();
        let files = inputs.iter().flat_map(|run| &run.files);
        for file in files.filter(|_| tree.record.merge_operator.is_some()) {
            made_of.push((file.file.clone(), file.file.number));
            let open = file.open(&tree.reads.tables)?;
            for &number in open.table.properties().made_of.iter().flatten() {
                if jobs.host.env.fs.exists(&jobs.host.dir.join(names::table(number)))? {
                    made_of.push((file.file.clone(), number));
                }
            }
        }
        Ok(made_of)
    }

    /// Passes every entry of the inputs through the dropper into the output tables.
    fn write_outputs(
        &self,
        inputs: Vec<Arc<SortedRun>>,
        rules: DropRules,
        spec: OutputSpec,
        heat: Option<Heat<'_>>,
    ) -> Result<MergeSummary> {
        let MergeJob { jobs, tree, merge } = *self;
        let (readahead, carried_max_bytes) = self.split_memory(inputs.len() as u64);
        let made_of = self.made_of(&inputs)?;
        let source = |run: Arc<SortedRun>| {
            let options = TableIterOptions::of_merge(readahead);
            MergeSource::Level(LevelIter::new(run, tree.reads.clone(), options))
        };
        let sources = inputs.into_iter().map(source).collect();
        let mut iter = MergeIter::new(sources, tree.reads.order.clone(), jobs.host.env.fs.clone());
        let range_tombstones = spec.tombstones.pairs();
        let mut carried = CarriedBlocks::new(&tree.reads.blocks, carried_max_bytes);
        let mut outputs = Outputs::new(&jobs.host, tree, spec);
        outputs.heat = heat;
        outputs.carried = Some(&mut carried);
        outputs.made_of = Some(made_of);
        let mut dropper = Dropper::new(rules);
        outputs.bytes_max = merge.input_bytes();
        outputs.entries_left = merge.files().map(|(_, _, file)| file.entries).sum();
        self.leave_room_to_flush()?;
        iter.seek_first()?;
        let (mut since_check, mut since_look) = (0, 0);
        while iter.valid() {
            if let Some(heat) = &mut outputs.heat {
                heat.read(iter.user_key(), iter.trailer());
            }
            let entry_bytes = iter.value().len() + CHECK_BYTES_OF_ENTRY;
            outputs.note_source(iter.is_cached(), entry_bytes);
            since_check += entry_bytes;
            dropper.push(iter.user_key(), iter.trailer(), iter.value(), &mut outputs)?;
            outputs.entries_left = outputs.entries_left.saturating_sub(1);
            iter.next()?;
            if CHECK_BYTES <= since_check {
                since_look += since_check;
                since_check = 0;
                if LOOK_BYTES <= since_look {
                    since_look = 0;
                    self.leave_room_to_flush()?;
                }
                self.check_not_closing()?;
                jobs.host.env.jobs.run_urgent();
            }
        }
        iter.status()?;
        let count = dropper.finish(&mut outputs)?;
        let (kept, put) = (count.kept, outputs.entries);
        check_invariant!(R16, kept == put, "{kept} entries were kept, and {put} were put out");
        let files = outputs.finish(merge.output_epoch)?;
        Ok(MergeSummary { files, count, range_tombstones, cached: iter.take_cached(), carried })
    }

    fn leave_room_to_flush(&self) -> Result<()> {
        let merges = self.jobs.workers.merges_running.load(Ordering::Acquire);
        self.jobs.pipeline.segments.leave_room_to_flush(LOOK_BYTES as u64, merges)
    }

    /// Fails if the database closes, or the keyspace was dropped: a long merge must not hold up
    /// them.
    fn check_not_closing(&self) -> Result<()> {
        if self.jobs.workers.gate.is_closing() || self.tree.is_dropped() {
            return Err(Error::new(ErrorKind::Closed, "the merge was abandoned: closing"));
        }
        self.jobs.host.write_state.check()
    }

    /// Checks rule R16: every entry of the inputs was read, and the outputs are the entries that
    /// were kept.
    fn check_counts(&self, outcome: &MergeSummary) -> Result<()> {
        let due: u64 = self.merge.files().map(|(_, _, file)| file.entries).sum();
        if outcome.count.seen != due {
            return Err(Error::corruption(format!(
                "a merge read {} entries where its inputs hold {due}",
                outcome.count.seen
            )));
        }
        self.check_newest(&outcome.files)?;
        let written: u64 = outcome.files.iter().map(|file| file.entries).sum();
        let kept = outcome.count.kept;
        let has_ranges = outcome.range_tombstones > 0;
        check_invariant!(R16, written == kept || has_ranges, "{written} of {kept} were written");
        let ranges = outcome.files.iter().any(|file| file.range_tombstones > 0);
        debug_invariant!(R16, ranges == has_ranges, "range tombstones are written: {ranges}");
        Ok(())
    }

    /// Checks that the manifest is right about the newest entries of the inputs: the order of the
    /// tree goes by it (I3), and a table may hold anything.
    fn check_newest(&self, outputs: &[File]) -> Result<()> {
        let newest = |files: &mut dyn Iterator<Item = &File>| files.map(|file| file.seq_max).max();
        let due = newest(&mut self.merge.files().map(|(_, _, file)| &**file));
        let read = newest(&mut outputs.iter());
        if due < read {
            let what = format!("a merge read entry {read:?} where its inputs end at {due:?}");
            return Err(Error::corruption(what));
        }
        Ok(())
    }

    /// The heat of a merge's keys. Their updates count once, however often the merge is repeated.
    /// The map is part of the merges' memory.
    fn heat(&self, again: bool) -> Heat<'a> {
        let MergeJob { jobs, tree, merge } = *self;
        let memory_bytes = jobs.host.shares.merge_bytes / HOT_MAP_SHARE;
        let map = tree
            .hot_map
            .get_or_init(|| Box::new(Mutex::new(lock_ranks::HOT_MAP, HotMap::new(memory_bytes))));
        if again { Heat::known(map) } else { Heat::new(map, merge) }
    }

    /// Returns the parts of the job's share of merge memory: what each of the input runs may read
    /// ahead, and what the blocks take that wait to be cached (half of the rest; filter and index of
    /// the open table need some, too).
    fn split_memory(&self, runs: u64) -> (u64, u64) {
        const MIN: u64 = 64 << 10;
        const MAX: u64 = 1 << 20;
        let MergeJob { jobs, tree, .. } = *self;
        let threads = jobs.workers.merges_max() as u64 + 1;
        let hot_map = match tree.policy.load().wants_hotness() {
            true => jobs.host.shares.merge_bytes / HOT_MAP_SHARE,
            false => 0,
        };
        debug_assert!(threads > 0 && hot_map <= jobs.host.shares.merge_bytes, "{threads} merges");
        let share = (jobs.host.shares.merge_bytes - hot_map) / threads;
        let ahead = (share / (runs + 1)).clamp(MIN, MAX);
        (ahead, share.saturating_sub(ahead * (runs + 1)) / 2)
    }
}

/// A merge in figures.
#[derive(Clone, Copy, Default)]
struct Summary {
    files: u64,
    written_bytes: u64,
    dropped: u64,
}
