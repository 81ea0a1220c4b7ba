//! An order of a circle's files in which few files need a file above them.
//!
//! Owns: the suggestion of edges to cut. Never does: find the fewest, which takes too long; it
//! moves one file at a time for as long as that helps.

use super::graph::{Graph, Reasons};
use std::collections::BTreeMap;

/// Edges, and the names that each uses.
type Edges<'a> = Vec<(&'a str, &'a str, &'a Reasons)>;

/// Returns edges whose removal breaks all circles of a group, and that use few names.
pub(super) fn to_cut<'a>(graph: &'a Graph, group: &'a [String]) -> Edges<'a> {
    let edges = graph.within(group);
    // From the file that needs most to the file that is needed most.
    let balance = |file: &str| {
        edges.iter().fold(0isize, |sum, (from, to, reasons)| {
            let weight = reasons.len() as isize;
            sum + weight * (isize::from(*from == file) - isize::from(*to == file))
        })
    };
    let mut order: Vec<&str> = group.iter().map(String::as_str).collect();
    order.sort_by_key(|file| -balance(file));
    while (0..order.len()).any(|at| sift(&mut order, at, &edges)) {}
    let place: BTreeMap<&str, usize> = order.iter().copied().zip(0..).collect();
    edges.into_iter().filter(|(from, to, _)| place[from] > place[to]).collect()
}

/// Moves the file at a place to the place where the fewest names point up. Returns whether it
/// moved.
fn sift(order: &mut Vec<&str>, at: usize, edges: &Edges<'_>) -> bool {
    let file = order[at];
    let place: BTreeMap<&str, usize> = order.iter().copied().zip(0..).collect();
    // The change in the number of names that point up, for each file that this one moves past.
    let mut past = vec![0isize; order.len()];
    for (from, to, reasons) in edges {
        let weight = reasons.len() as isize;
        match (*from == file, *to == file) {
            // Below a file that it needs, it needs a file above.
            (true, false) => past[place[to]] += weight,
            (false, true) => past[place[from]] -= weight,
            _ => {}
        }
    }
    let (mut best, mut best_cost) = (at, 0);
    let mut cost = 0;
    for (other, change) in past.iter().enumerate().skip(at + 1) {
        cost += change;
        if cost < best_cost {
            (best, best_cost) = (other, cost);
        }
    }
    cost = 0;
    for (other, change) in past.iter().enumerate().take(at).rev() {
        cost -= change;
        if cost < best_cost {
            (best, best_cost) = (other, cost);
        }
    }
    if best != at {
        let file = order.remove(at);
        order.insert(best, file);
    }
    best != at
}
