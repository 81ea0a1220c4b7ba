//! How many queries are aimed at a part of the key space, found from the queries of the files
//! there: the estimate of a file that was never asked and replaces none, as a flush writes.
//!
//! Owns: that estimate. Never does: record a query.

use super::merlin::Estimate;
use crate::tree::{File, Version};
use windrow_base::KeyOrder;
use windrow_base::debug_invariant;
use windrow_base::key::prefix_u64;

/// Returns the estimate of a file of `entries` that will hold `[lo, hi)` at the head of the read
/// order (`None`: unbounded).
///
/// Every query ends once: as a hit somewhere, or in vain in the deepest level. So the queries aimed
/// at a range are the hits of all files there and the empty queries of the deepest. The new file
/// will be asked all of those. It will answer as many per entry as level 0 does there now, or all
/// files if level 0 is empty there.
///
/// No more of the `recorded` queries can have been hits than were not in vain. All files together
/// claim more once keys were written again: the new entry is taken to answer what the old one did,
/// and both count until further queries tell. So hits count in proportion.
pub fn flushed(
    version: &Version,
    (lo, hi): (Option<&[u8]>, Option<&[u8]>),
    entries: u64,
    recorded: u64,
    estimate: &dyn Fn(&File) -> Option<Estimate>,
) -> Estimate {
    let deepest = version.deepest();
    let (mut level0, mut all) = ((0.0, 0.0), (0.0, 0.0));
    let (mut vain, mut claimed, mut vain_in_all) = (0.0, 0.0, 0.0);
    for (level, _, file) in version.files() {
        let Some(estimate) = estimate(file) else { continue };
        claimed += estimate.hits;
        let deep_vain = if Some(level) == deepest { estimate.empty() } else { 0.0 };
        vain_in_all += deep_vain;
        let share = share_within(&version.order, file, lo, hi);
        vain += deep_vain * share;
        let mine = (estimate.hits * share, file.entries as f64 * share);
        all = (all.0 + mine.0, all.1 + mine.1);
        if level == 0 {
            level0 = (level0.0 + mine.0, level0.1 + mine.1);
        }
    }
    let found = (recorded as f64 - vain_in_all).max(0.0);
    let credit = if claimed > found { found / claimed } else { 1.0 };
    let queries = vain + all.0 * credit;
    debug_invariant!(F3, (0.0..=1.0).contains(&credit), "{found} hits found of {claimed} claimed");
    debug_invariant!(F3, queries >= 0.0, "{queries} queries are aimed at a range");
    let (hits, of) = if level0.1 > 0.0 { level0 } else { all };
    debug_invariant!(F3, hits <= claimed * (1.0 + 1e-9), "{hits} hits in a range of {claimed}");
    debug_invariant!(F3, vain <= vain_in_all * (1.0 + 1e-9), "{vain} in vain of {vain_in_all}");
    let per_entry = if of > 0.0 { hits * credit / of } else { 0.0 };
    Estimate { queries, hits: queries.min(per_entry * entries as f64) }
}

/// Returns about what share of the file's keys lies in `[lo, hi)`, as if they were spread evenly
/// between its bounds.
fn share_within(order: &KeyOrder, file: &File, lo: Option<&[u8]>, hi: Option<&[u8]>) -> f64 {
    let from = lo.map_or(0.0, |key| position(order, file, key));
    let to = hi.map_or(1.0, |key| position(order, file, key));
    let share = (to - from).max(0.0);
    debug_invariant!(F3, share <= 1.0, "{share} of a table's keys are in a range");
    share
}

/// Returns where a key lies between a file's bounds, 0 to 1.
fn position(order: &KeyOrder, file: &File, key: &[u8]) -> f64 {
    if order.compare(key, &file.smallest).is_le() {
        return 0.0;
    }
    if order.compare(key, &file.largest).is_gt() {
        return 1.0;
    }
    // A custom order does not tell where between.
    if !order.is_bytewise() {
        return 0.5;
    }
    let shared = file.smallest.iter().zip(file.largest.iter()).take_while(|(a, b)| a == b).count();
    let number = |key: &[u8]| prefix_u64(key.get(shared..).unwrap_or_default()) as f64;
    let (first, last) = (number(&file.smallest), number(&file.largest));
    debug_invariant!(F3, first <= last, "a table's keys from {first} to {last}");
    ((number(key) - first) / (last - first).max(1.0)).clamp(0.0, 1.0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tree::{Edit, Part};
    use alloc::sync::Arc;
    use alloc::vec::Vec;
    use std::vec;

    fn file(number: u64, lo: &str, hi: &str) -> Arc<File> {
        let bounds: (Arc<[u8]>, Arc<[u8]>) = (lo.as_bytes().into(), hi.as_bytes().into());
        Arc::new(File {
            number,
            bytes: 1,
            entries: 100,
            smallest: bounds.0.clone(),
            largest: bounds.1.clone(),
            point_bounds: Some(bounds),
            ..File::default()
        })
    }

    #[test]
    fn positions_are_between_the_bounds() {
        let file = file(1, "user-00", "user-@@");
        let order = KeyOrder::Bytewise;
        for (key, want) in
            [("a", 0.0), ("user-00", 0.0), ("user-8", 0.5), ("user-@@", 1.0), ("v", 1.0)]
        {
            let got = position(&order, &file, key.as_bytes());
            assert!((got - want).abs() < 0.02, "{key}: {got}");
        }
        assert_eq!(share_within(&order, &file, Some(b"w"), None), 0.0);
        assert_eq!(share_within(&order, &file, None, None), 1.0);
    }

    #[test]
    fn every_query_is_counted_where_it_ends() {
        let added = vec![
            (1, Part::Run, file(1, "a", "z")),
            (2, Part::Run, file(2, "a", "m")),
            (2, Part::Run, file(3, "n", "z")),
        ];
        let edit = Edit { added, ..Edit::default() };
        let version = Version::empty(KeyOrder::Bytewise).apply(&edit).unwrap();
        let estimate = |file: &File| {
            let of: Vec<(f64, f64)> = vec![(100.0, 20.0), (60.0, 50.0), (30.0, 0.0)];
            let (queries, hits) = of[file.number as usize - 1];
            Some(Estimate { queries, hits })
        };
        let got = flushed(&version, (None, None), 30, 110, &estimate);
        // 20 + 50 + 0 hits, 10 + 30 in vain; 70 hits of 300 entries.
        assert_eq!(got, Estimate { queries: 110.0, hits: 7.0 });
        let right = flushed(&version, (Some(b"n"), None), 30, 110, &estimate);
        assert!((right.queries - 39.6).abs() < 0.5, "{right:?}");
        let nothing = flushed(&Version::empty(KeyOrder::Bytewise), (None, None), 5, 110, &estimate);
        assert_eq!(nothing, Estimate::default());
    }
}
