//! Which keyspaces need a look: those in which something changed since they were asked for a merge,
//! or since their pressure on writers was measured.
//!
//! An answer depends on a keyspace's tree, on the work that runs on it and on its policy. A thread
//! that changes one of these notes it here. Changes of the clock or of snapshots are noted now and
//! then for all (`note_all`). Of 10,000 keyspaces those that idle are never asked.
//!
//! Owns: the two lists, and how much each keyspace adds to the pressure. Never does: begin work, or
//! decide which keyspace comes first.

use crate::host::Host;
use crate::tree::Tree;
use crate::tree::keyspace_list::Trees;
use crate::write::pace::Pressure;
use std::collections::BTreeMap;
use std::sync::Arc;
use windrow_base::{KeyspaceId, debug_invariant};
use windrow_env::sync::Mutex;
use windrow_plan::level0::depth_without;
use windrow_read::lock_ranks;

/// Keyspaces by id.
type ById = BTreeMap<KeyspaceId, Arc<Tree>>;

/// The part of a keyspace in the pressure on writers.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
struct KeyspaceLoad {
    /// Level 0's depth, if its policy is not content with it.
    level0_depth: u32,
    debt_bytes: u64,
    /// Whether a manual compaction is under way.
    held: bool,
}

/// The loads of all keyspaces that add to the pressure.
#[derive(Default)]
pub struct Loads(BTreeMap<KeyspaceId, KeyspaceLoad>);

/// Keyspaces to look at.
pub struct ChangedKeyspaces {
    merges: Mutex<ById>,
    loads: Mutex<ById>,
    /// Held while the pressure is measured and set.
    pub(crate) pacing: Mutex<Loads>,
}

impl Default for ChangedKeyspaces {
    fn default() -> ChangedKeyspaces {
        ChangedKeyspaces {
            merges: Mutex::new(lock_ranks::DUE_MERGES, ById::new()),
            loads: Mutex::new(lock_ranks::DUE_LOADS, ById::new()),
            pacing: Mutex::new(lock_ranks::PACING, Loads::default()),
        }
    }
}

impl ChangedKeyspaces {
    /// Keyspaces to ask for a merge, by id.
    pub fn merges(&self) -> Vec<Arc<Tree>> {
        self.merges.lock().values().cloned().collect()
    }

    /// Notes that a keyspace is about to be asked. Later changes are noted again.
    pub fn asking(&self, tree: &Tree) {
        self.merges.lock().remove(&tree.id);
    }

    /// Notes that a keyspace had a merge to give, and may have another.
    pub(crate) fn ask_again(&self, tree: &Arc<Tree>) {
        self.merges.lock().insert(tree.id, tree.clone());
    }

    /// Notes a change in a keyspace on which its merges or its pressure depend.
    pub fn note(&self, trees: &Trees, tree: &Tree) {
        match trees.get(tree.id) {
            Some(found) => {
                let (name, is_it) = (&found.name, std::ptr::eq(&**found, tree));
                debug_invariant!(R8, is_it, "`{name}` has the id of another keyspace");
                let tree = found;
                self.loads.lock().insert(tree.id, tree.clone());
                self.merges.lock().insert(tree.id, tree.clone());
            }
            // It is dropped: it no longer counts.
            None => _ = self.pacing.lock().0.remove(&tree.id),
        }
    }

    /// Notes that time has passed, or that a snapshot may be gone: any keyspace may have work now.
    pub fn note_all(&self, trees: &Trees) {
        let all = || trees.iter().map(|tree| (tree.id, tree.clone()));
        self.loads.lock().extend(all());
        self.merges.lock().extend(all());
    }

    /// Returns the pressure of all keyspaces, measured again where something changed, and whether a
    /// manual compaction is under way.
    pub(crate) fn pressure(&self, host: &Host, Loads(loads): &mut Loads) -> (Pressure, bool) {
        let changed = std::mem::take(&mut *self.loads.lock());
        for (id, tree) in changed {
            match load_of(host, &tree) {
                load if load == KeyspaceLoad::default() => _ = loads.remove(&id),
                load => _ = loads.insert(id, load),
            }
        }
        let has_idle = loads.values().any(|load| *load == KeyspaceLoad::default());
        debug_assert!(!has_idle, "a keyspace that adds nothing is listed");
        let mut worst = Pressure::default();
        for load in loads.values() {
            worst.level0_depth = worst.level0_depth.max(load.level0_depth);
            worst.debt_bytes = worst.debt_bytes.saturating_add(load.debt_bytes);
        }
        (worst, loads.values().any(|load| load.held))
    }
}

/// Tables that damage keeps from being merged are no pressure: waiting for them would never end.
/// (Before, damage took the brakes off every keyspace: a sound one grew 2,301 deep next to one with
/// a damaged block.)
fn load_of(host: &Host, tree: &Tree) -> KeyspaceLoad {
    if tree.is_dropped() {
        return KeyspaceLoad::default();
    }
    let (version, sizes, policy) = (tree.version(), tree.sizes.load(), tree.policy.load());
    let work = tree.work.lock();
    let debt = policy.debt(&version, &sizes);
    let mut load = KeyspaceLoad { held: work.hold > 0, ..KeyspaceLoad::default() };
    let waits_for_room = work.waits_for_room().is_some();
    if policy.level0_score(&version, &sizes) >= 1.0 && !waits_for_room {
        // Otherwise the policy is content at this depth, whatever runs elsewhere.
        load.level0_depth = match work.damaged() {
            Some(damaged) => depth_without(&version, damaged),
            None => debt.level0_depth,
        };
    }
    let (depth, most) = (load.level0_depth, debt.level0_depth);
    debug_invariant!(I10, depth <= most, "level 0 is {depth} deep without damage, and {most} with");
    // A manual compaction works off the levels above the last one, and makes that one as large as
    // it gets: no debt of the writers.
    // As if nothing ran: is there a job that the damage does not bar?
    let is_barred = work
        .damaged()
        .is_some_and(|damaged| policy.pick(&host.plan_view(&version, damaged, &sizes)).is_idle());
    if !(load.held || is_barred) {
        load.debt_bytes = debt.bytes;
    }
    load
}
