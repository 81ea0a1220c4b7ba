//! Merges that reads have paid for, and the use that a keyspace is measured to have.
//!
//! Readers count (`read/cost.rs`) and never start anything: a timer looks whether tables have cost
//! as much as their size, and has the policy asked. It is asked whenever it has nothing else to do,
//! so that such merges follow each other, and yield to all others. At most one runs on a tree.
//!
//! Owns: which costs of reads the policy is told. Never does: count, or decide.

use crate::host::Host;
use crate::host::plan_sizes::for_use;
use crate::tree::{MeasuredUse, Tree, TreeWork};
use std::sync::Arc;
use windrow_plan::usage::Use;
use windrow_plan::{Decision, Policy, ReadCosts, View};
use windrow_read::events::Event;
use windrow_read::read::cost::worth_of;

/// The interval at which a timer looks for tables that reads have paid for, in ms.
pub const LOOK_MS: u64 = 1_000;

/// Returns the job that reads have paid for, if the policy is idle without it.
pub fn pick(tree: &Tree, work: &TreeWork, policy: &Policy, view: &View<'_>) -> Decision {
    if work.merging > 0 || !policy.merges_for_reads() {
        return Decision::Idle;
    }
    let pinned = tree.view();
    let over = pinned.runs.iter().filter(|run| run.is_sst_log).flat_map(|run| &run.files);
    let costs = over.map(|file| (file.file.number, worth_of(file.table.read_cost())));
    let costs: ReadCosts = costs.collect();
    policy.pick_for_reads(view, &costs)
}

/// Forgets the cost of tables that a job moves: they lie over others afterwards, and have cost
/// nothing there.
pub(crate) fn forget_moved(tree: &Tree, decision: &Decision) {
    if let Decision::Move(_) = decision {
        for (_, _, file) in decision.files() {
            tree.reads.tables.handle(&file, &tree.reads.order).forget_read_cost();
        }
    }
}

/// Notes that a flush of a keyspace wrote `put_bytes` bytes. If the policy goes by the measured
/// use, the reads and writes since the flush before may change it.
pub(crate) fn measure_use(host: &Host, tree: &Tree, put_bytes: u64) {
    if tree.policy.load().usage != Use::Measured {
        return;
    }
    let mut work = tree.work.lock();
    let all = tree.reads.cost.of_one_table();
    let MeasuredUse { measured, read_bytes } = work.notes().measured.get_or_insert_default();
    let since = all.saturating_sub(std::mem::replace(read_bytes, all));
    let (sizes, now_ms) = (tree.sizes.load_full(), host.env.clock.monotonic_ns() / 1_000_000);
    let changed = measured.flushed(put_bytes, since, sizes.memtable_bytes, now_ms);
    let Some(usage) = changed else { return };
    tree.sizes.store(Arc::new(for_use(&host.settings, (*sizes).clone(), usage)));
    let reason = measured.to_string();
    drop(work);
    host.events.send_with(|| Event::UseMeasured { keyspace: tree.name.clone(), reason });
}
