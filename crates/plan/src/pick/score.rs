//! How urgent each part of the tree is.
//!
//! Level 0 by its own policy, each run by bytes over capacity, each log below
//! level 0 always above 1: a picker that does not feed logs empties them,
//! whatever preset wrote them (I10).
//!
//! Owns: urgency. Never does: pick a file.

use super::level_limits::Levels;
use crate::level0::Level0;
use crate::tree::Part;
use crate::view::View;
use alloc::vec::Vec;
use windrow_base::{debug_invariant, invariant};

/// A part of the tree that wants work.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Candidate {
    /// Urgency; larger goes first.
    pub score: f64,
    /// Level.
    pub level: u32,
    /// Half. The log of level 0 is level 0.
    pub part: Part,
}

/// Returns everything that wants work, most urgent first. Files that are on their way down already
/// do not count.
pub fn candidates(levels: Levels<'_>, view: &View<'_>) -> Vec<Candidate> {
    let version = view.version;
    let mut found = Vec::new();
    let score = levels.level0.score(version, view.settings);
    if score >= 1.0 {
        found.push(Candidate { score, level: 0, part: Part::SstLog });
    }
    for (n, level) in version.levels.iter().enumerate().skip(1) {
        let n = n as u32;
        let capacity = levels.capacity(version, view.settings, n);
        let mut run = level.part_bytes(Part::Run);
        if run > capacity {
            if !view.busy.is_empty() {
                let busy = level.run.iter().filter(|f| view.busy.is_busy(f.number));
                let busy = busy.map(|f| f.bytes).sum::<u64>();
                debug_invariant!(I9, busy <= run, "{busy} bytes of run {n} go down, of {run}");
                run -= busy.min(run);
            }
            // Above 1 however little is in a level without room.
            let score = (run as f64 + 1.0) / (capacity as f64 + 1.0);
            if score > 1.0 {
                found.push(Candidate { score, level: n, part: Part::Run });
            }
        }
        if !level.sst_log.is_empty() {
            let over = level.part_bytes(Part::SstLog) as f64 / capacity.max(1) as f64;
            found.push(Candidate { score: 1.0 + over, level: n, part: Part::SstLog });
        }
    }
    if let Level0::Fifo(_) = levels.level0 {
        room_first(&mut found);
    }
    found.sort_by(|a, b| b.score.total_cmp(&a.score));
    let logs = version.levels.iter().skip(1).filter(|level| !level.sst_log.is_empty()).count();
    let wanted = found.iter().filter(|c| c.level > 0 && c.part == Part::SstLog).count();
    invariant!(I10, wanted == logs, "{wanted} of {logs} SST-logs are to be drained");
    let odd = found.iter().find(|c| c.score.is_nan() || c.score <= 0.0);
    debug_invariant!(I10, odd.is_none(), "{odd:?} will never have its turn");
    found
}

/// vLSM takes no flush down before level 1 has room for it (section 4.2.2).
/// Else a queue that has grown long goes first each time, into a level 1 that
/// grows as well, and is rewritten whole for every flush.
fn room_first(found: &mut [Candidate]) {
    let run1 = found.iter().find(|c| (c.level, c.part) == (1, Part::Run)).map(|c| c.score);
    let queue = found.iter_mut().find(|c| c.level == 0);
    if let (Some(run1), Some(queue)) = (run1, queue) {
        queue.score = queue.score.min(run1 * 0.999);
    }
}
