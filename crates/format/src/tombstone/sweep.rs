//! Cuts overlapping tombstones at each other's ends.
//!
//! A sweep from the first key to the last: between two neighbouring ends the set of tombstones over
//! the stretch is the same.
//!
//! Owns: the cutting of one layer. Never does: hold more than the tombstones, an order of their
//! ends, and the active sequence numbers.

use super::TombstoneParts;
use super::layer::TombstoneLayer;
use std::collections::BTreeMap;
use windrow_base::{KeyOrder, SeqNo};

/// The sequence numbers over a stretch, each with its number of tombstones.
pub(super) type Active = BTreeMap<SeqNo, usize>;

/// Picks every sequence number, newest first.
pub(super) fn all(active: &Active, seqs: &mut Vec<SeqNo>) {
    seqs.extend(active.keys().rev());
}

/// Picks the newest sequence number of each stripe: of the numbers that the same snapshots see
/// (`snapshots` ascend).
pub(super) fn newest_of_stripes(snapshots: &[SeqNo], active: &Active, seqs: &mut Vec<SeqNo>) {
    let mut newest = active.last_key_value();
    while let Some((&seq, _)) = newest {
        seqs.push(seq);
        let below = snapshots.partition_point(|&snapshot| snapshot < seq).checked_sub(1);
        newest = below.and_then(|at| active.range(..=snapshots[at]).next_back());
    }
}

/// Sorts `list` and cuts it into fragments; `pick` chooses among the sequence numbers that cover
/// each stretch. `None` once there are more than `pairs_max` pairs of fragment and sequence number.
pub(super) fn cut(
    list: &mut [TombstoneParts<'_>],
    order: &KeyOrder,
    pairs_max: usize,
    pick: &impl Fn(&Active, &mut Vec<SeqNo>),
) -> Option<TombstoneLayer> {
    list.sort_unstable_by(|a, b| order.compare(a.0, b.0));
    let list = &*list;
    let mut by_end: Vec<u32> = Vec::with_capacity(list.len());
    by_end.extend(
        (0..list.len() as u32)
            .filter(|&i| order.compare(list[i as usize].0, list[i as usize].1).is_lt()),
    );
    by_end.sort_unstable_by(|&a, &b| order.compare(list[a as usize].1, list[b as usize].1));
    let covers = |t: &&TombstoneParts<'_>| order.compare(t.0, t.1).is_lt();
    let mut starting = list.iter().filter(covers).peekable();
    let mut ending = by_end.iter().map(|&i| &list[i as usize]).peekable();
    // Tombstones that neither overlap nor repeat make as many fragments.
    let mut layer = TombstoneLayer::with_room(list.len());
    let mut active = Active::new();
    let mut seqs = Vec::new();
    let mut from: &[u8] = &[];
    while let Some(next_end) = ending.peek().map(|t| t.1) {
        let next_start = starting.peek().map(|t| t.0);
        let to = match next_start {
            Some(start) if order.compare(start, next_end).is_lt() => start,
            _ => next_end,
        };
        if !active.is_empty() && order.compare(from, to).is_lt() {
            seqs.clear();
            pick(&active, &mut seqs);
            layer.push_or_extend(from, to, &seqs);
            if layer.pairs() > pairs_max {
                return None;
            }
        }
        while let Some((_, _, seq)) = ending.next_if(|t| order.equal(t.1, to)) {
            let count = active.get_mut(seq).expect("it starts before it ends");
            *count -= 1;
            if *count == 0 {
                active.remove(seq);
            }
        }
        while let Some((_, _, seq)) = starting.next_if(|t| order.equal(t.0, to)) {
            *active.entry(*seq).or_default() += 1;
        }
        from = to;
    }
    layer.shrink();
    Some(layer)
}
