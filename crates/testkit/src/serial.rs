//! Whether a history of transactions is serialisable: the graph of their
//! dependencies has no cycle (A. Adya, "Weak Consistency: A Generalized Theory and
//! Optimistic Implementations for Distributed Transactions", PL-3).
//!
//! Every write of a key is one version, identified by its writer; versions of a key follow each
//! other in the order of their commits. There are three kinds of edges. The writer of a version
//! comes before the writer of the next (ww) and before its readers (wr); a reader of a version
//! comes before the writer of the next (rw). A range read counts as a read of every key in the
//! range, absent keys included.
//!
//! Owns: the graph. Never does: run a transaction.

use std::collections::{BTreeMap, BTreeSet};

/// A transaction that committed.
#[derive(Clone, Debug, Default)]
pub struct Committed {
    /// Its name, which its values carry. Not 0, which names the initial state.
    pub id: u64,
    /// Its place among those that wrote something.
    pub commit: u64,
    /// The keys that it read, each with the writer of the version that it saw; 0: the key was
    /// absent.
    pub reads: Vec<(u64, u64)>,
    /// The keys that it wrote.
    pub writes: Vec<u64>,
}

/// Finds a cycle in a history, or a read of a version that was never written.
///
/// # Errors
/// The transactions of a cycle, in its order, with the edge from each to the next; or the read.
pub fn check(history: &[Committed]) -> Result<(), String> {
    let mut versions: BTreeMap<u64, Vec<(u64, u64)>> = BTreeMap::new();
    for transaction in history {
        for &key in &transaction.writes {
            versions.entry(key).or_default().push((transaction.commit, transaction.id));
        }
    }
    versions.values_mut().for_each(|of_key| of_key.sort_unstable());
    let mut edges: BTreeMap<u64, BTreeMap<u64, String>> = BTreeMap::new();
    let mut edge = |from: u64, to: u64, why: String| {
        if from != to && from != 0 {
            edges.entry(from).or_default().entry(to).or_insert(why);
        }
    };
    for (key, of_key) in &versions {
        for pair in of_key.windows(2) {
            edge(pair[0].1, pair[1].1, format!("writes key {key} before"));
        }
    }
    for transaction in history {
        for &(key, writer) in &transaction.reads {
            let of_key = versions.get(&key).map_or(&[][..], Vec::as_slice);
            let at = match writer {
                0 => 0,
                _ => match of_key.iter().position(|(_, id)| *id == writer) {
                    Some(at) => at + 1,
                    None => {
                        let id = transaction.id;
                        return Err(format!(
                            "{id} read of key {key} what {writer} never committed"
                        ));
                    }
                },
            };
            edge(writer, transaction.id, format!("wrote key {key} read by"));
            if let Some((_, next)) = of_key.get(at) {
                edge(transaction.id, *next, format!("read key {key} before it is written by"));
            }
        }
    }
    let mut done = BTreeSet::new();
    for transaction in history {
        let mut path = Vec::new();
        if let Some(cycle) = cycle_from(transaction.id, &edges, &mut done, &mut path) {
            return Err(cycle);
        }
    }
    Ok(())
}

type Edges = BTreeMap<u64, BTreeMap<u64, String>>;

/// Returns a cycle that can be reached from `id`, as text.
fn cycle_from(
    id: u64,
    edges: &Edges,
    done: &mut BTreeSet<u64>,
    path: &mut Vec<u64>,
) -> Option<String> {
    if let Some(at) = path.iter().position(|&on| on == id) {
        let cycle = path[at..].iter().zip(path[at + 1..].iter().chain([&id]));
        let steps = cycle.map(|(from, to)| format!("{from} {} {to}", edges[from][to]));
        return Some(steps.collect::<Vec<_>>().join("; "));
    }
    if done.contains(&id) {
        return None;
    }
    path.push(id);
    let next = edges.get(&id).into_iter().flat_map(|to| to.keys());
    let found = next.filter_map(|&to| cycle_from(to, edges, done, path)).next();
    path.pop();
    done.insert(id);
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tx(id: u64, reads: &[(u64, u64)], writes: &[u64]) -> Committed {
        Committed { id, commit: id, reads: reads.to_vec(), writes: writes.to_vec() }
    }

    #[test]
    fn one_after_the_other_is_serialisable() {
        check(&[tx(1, &[(0, 0)], &[0]), tx(2, &[(0, 1)], &[0, 1]), tx(3, &[(0, 2), (1, 2)], &[])])
            .unwrap();
        // A reader of an old state comes before the writer.
        check(&[tx(1, &[], &[0]), tx(2, &[(0, 1)], &[0]), tx(3, &[(0, 1)], &[1])]).unwrap();
    }

    #[test]
    fn anomalies_are_cycles() {
        let lost_update = [tx(1, &[(0, 0)], &[0]), tx(2, &[(0, 0)], &[0])];
        assert!(check(&lost_update).is_err());
        let write_skew = [tx(1, &[(0, 0), (1, 0)], &[0]), tx(2, &[(0, 0), (1, 0)], &[1])];
        assert!(check(&write_skew).unwrap_err().contains("read key 0 before it is written by 1"));
        let read_skew = [tx(1, &[], &[0, 1]), tx(2, &[(0, 0), (1, 1)], &[])];
        assert!(check(&read_skew).is_err());
        // Each of two predicates misses the key that the other inserts.
        let phantoms = [tx(1, &[(5, 0)], &[6]), tx(2, &[(6, 0)], &[5])];
        assert!(check(&phantoms).is_err());
        // The anomaly of a read-only transaction (Fekete, O'Neil, O'Neil).
        let with_reader =
            [tx(1, &[(0, 0), (1, 0)], &[0]), tx(2, &[(1, 0)], &[1]), tx(3, &[(0, 0), (1, 2)], &[])];
        assert!(check(&with_reader).is_err());
        assert!(check(&[tx(1, &[(0, 9)], &[])]).unwrap_err().contains("never committed"));
    }
}
