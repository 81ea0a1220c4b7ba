//! Lineage: the entries of a key that count in a repair without a manifest.
//!
//! Then nothing says which tables are part of the tree. The directory may also have tables that
//! merges have replaced, outputs of merges and flushes that were cut short, and logs of entries
//! that are in tables as well. A read finds the newest value or tombstone and the merge operands
//! above it. So only one thing can go wrong: an operand counts twice, by itself, and within an
//! entry that a flush or merge made of several. (That entry has the sequence number of the newest
//! of them.) These rules are applied from the newest entry down:
//!
//! 1. Of the entries of one sequence number a value or tombstone wins, since it contains all older
//!    ones; then the entry of the newest table.
//! 2. Once an operand of a table counts, older operands count only from that table, and from tables
//!    that are not among its inputs.
//! 3. Operands of a log are never combined. They count in place of a table's operand that is their
//!    combination.
//! 4. Tables of an earlier version of the format do not name their inputs, so that rule 2 cannot be
//!    applied. An operand of such a table counts if the other table has a value or tombstone below:
//!    the merge would have applied the operand to that. Otherwise it is left out, and reported.
//!
//! Entries that are older than the first value or tombstone have no reader. Not covered: an output
//! whose merge failed, if it remained while one of its inputs went into another merge.
//!
//! Owns: these rules. Never does: read a file.

use std::collections::{BTreeMap, BTreeSet};
use windrow_base::FileNumber;
use windrow_base::key::{self, Kind, SeqNo};
use windrow_read::operators::MergeOperator;
use windrow_read::slice::Slice;

/// The origin of entries.
pub enum Origin {
    /// Logs: the operations as they were written, all operations of a chain.
    Log {
        /// The number of gaps in the logs before them: operations may be missing between two
        /// chains.
        chain: u32,
    },
    Table {
        number: FileNumber,
        /// The tables that it was made from, where they are known.
        made_of: Option<Vec<FileNumber>>,
        /// Whether it can be read to its end.
        whole: bool,
    },
}

impl Origin {
    /// The age of an origin: the newest is the largest.
    fn age(&self) -> FileNumber {
        match self {
            Origin::Log { .. } => 0,
            Origin::Table { number, .. } => *number,
        }
    }
}

/// An entry of the current key.
pub struct OriginEntry {
    pub trailer: u64,
    pub value: Slice,
    /// Its origin, by index.
    pub(crate) origin: usize,
}

impl OriginEntry {
    pub fn seq(&self) -> SeqNo {
        key::trailer_seq(self.trailer)
    }

    fn is(&self, kind: Kind) -> bool {
        key::trailer_kind(self.trailer) == kind as u8
    }

    /// Whether no older entry matters where this one counts.
    pub(crate) fn ends_search(&self) -> bool {
        !self.is(Kind::Merge) && !self.is(Kind::MergeExpiry)
    }
}

/// Whether the older operands of an origin are contained in one that was taken.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum OperandsCounted {
    No,
    Unknown,
    Yes,
}

/// The entries that an origin has of the key.
#[derive(Clone, Copy, Default)]
struct Holds {
    /// It has an entry between the operand that was taken and the oldest entry of that table.
    between: bool,
    base: bool,
}

/// The entries of one key, newest first, down to the first that ends a search.
pub struct Lineage<'a> {
    pub key: &'a [u8],
    pub entries: &'a [OriginEntry],
    pub(crate) origins: &'a [Origin],
    pub(crate) operator: Option<&'a dyn MergeOperator>,
}

impl<'a> Lineage<'a> {
    /// Returns the entries that count, newest first. The origins of entries that were left out
    /// although they may have counted go to `doubts`.
    pub(crate) fn choose(&self, doubts: &mut BTreeSet<usize>) -> Vec<&'a OriginEntry> {
        let mut kept: Vec<&OriginEntry> = Vec::new();
        let mut counted: BTreeMap<usize, OperandsCounted> = BTreeMap::new();
        let mut rest = self.entries;
        for group in self.entries.chunk_by(|a, b| a.seq() == b.seq()) {
            rest = &rest[group.len()..];
            let in_taken = |e: &OriginEntry| match e.ends_search() && self.is_log(e) {
                // A merge would have applied an operand of a table to it.
                true => OperandsCounted::No,
                false => counted.get(&e.origin).copied().unwrap_or(OperandsCounted::No),
            };
            let open = || group.iter().filter(|e| in_taken(e) == OperandsCounted::No);
            let newest = |e: &&OriginEntry| self.origins[e.origin].age();
            let end = open().filter(|e| e.ends_search()).max_by_key(newest);
            let table = open().filter(|e| !self.is_log(e)).max_by_key(newest);
            let raw = open().find(|e| self.is_log(e));
            let chosen = match (end, raw, table) {
                (Some(end), ..) => Some(end),
                (None, Some(raw), Some(table)) if self.explains(raw, rest, table) => Some(raw),
                (None, raw, table) => table.or(raw),
            };
            let Some(chosen) = chosen else {
                let unknown = group.iter().filter(|e| in_taken(e) == OperandsCounted::Unknown);
                doubts.extend(unknown.map(|e| e.origin));
                continue;
            };
            // No other entry is made of several.
            if chosen.is(Kind::Merge) && !self.is_log(chosen) {
                self.take(chosen, &mut counted);
            }
            kept.push(chosen);
        }
        kept
    }

    fn is_log(&self, entry: &OriginEntry) -> bool {
        self.chain(entry).is_some()
    }

    /// The chain that an entry of a log belongs to.
    fn chain(&self, entry: &OriginEntry) -> Option<u32> {
        match self.origins[entry.origin] {
            Origin::Log { chain } => Some(chain),
            Origin::Table { .. } => None,
        }
    }

    /// Notes the origins whose operands a table's operand may contain.
    fn take(&self, taken: &OriginEntry, counted: &mut BTreeMap<usize, OperandsCounted>) {
        let Origin::Table { made_of, whole, .. } = &self.origins[taken.origin] else { return };
        if counted.contains_key(&taken.origin) {
            return;
        }
        let own = self.entries.iter().rfind(|e| e.origin == taken.origin);
        let span = own.map_or(0, OriginEntry::seq)..=taken.seq();
        let mut holders: BTreeMap<usize, Holds> = BTreeMap::new();
        for entry in self.entries {
            let holds = holders.entry(entry.origin).or_default();
            holds.between |= span.contains(&entry.seq());
            holds.base |= entry.ends_search();
        }
        counted.insert(taken.origin, OperandsCounted::No);
        holders.remove(&taken.origin);
        for (origin, holds) in holders {
            let by_taken = match (&self.origins[origin], made_of) {
                // Between the oldest and the newest entry that a table has of a key lies no entry
                // of another table, unless that one is an input or an output of it. All operands of
                // a log were looked at, down to the end.
                _ if holds.between => OperandsCounted::Yes,
                (Origin::Log { .. }, _) => OperandsCounted::Unknown,
                (Origin::Table { number, .. }, Some(made_of)) => match made_of.contains(number) {
                    true => OperandsCounted::Yes,
                    false => OperandsCounted::No,
                },
                (Origin::Table { .. }, None) if holds.base && *whole => OperandsCounted::No,
                (Origin::Table { .. }, None) => OperandsCounted::Unknown,
            };
            if by_taken != OperandsCounted::No {
                let known = counted.entry(origin).or_insert(by_taken);
                *known = by_taken.max(*known);
            }
        }
    }

    /// Whether a table's operand is the log's operand of its sequence number and some of those
    /// below it, combined. Nothing can be told across a gap: the missing operands may be in the
    /// table's operand as well.
    fn explains(&self, raw: &OriginEntry, below: &[OriginEntry], table: &OriginEntry) -> bool {
        let mut combined = raw.value.to_vec();
        let chain = self.chain(raw);
        for entry in below.iter().filter(|e| self.chain(e) == chain) {
            // A table's operand contains nothing that is older than a value.
            if combined == table.value.as_bytes() || !entry.is(Kind::Merge) {
                return true;
            }
            let operator = self.operator;
            let both = operator.and_then(|o| o.partial_merge(self.key, &[&entry.value, &combined]));
            let Some(both) = both else { return false };
            combined = both;
        }
        combined == table.value.as_bytes()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use windrow_read::operators::built_in;

    const LOG: usize = 0;

    /// Tables of these numbers, each with the tables that it was made from.
    fn origins(tables: &[(FileNumber, Option<&[FileNumber]>)]) -> Vec<Origin> {
        let table = |(number, made_of): &(FileNumber, Option<&[FileNumber]>)| Origin::Table {
            number: *number,
            made_of: made_of.map(<[FileNumber]>::to_vec),
            whole: true,
        };
        std::iter::once(Origin::Log { chain: 0 }).chain(tables.iter().map(table)).collect()
    }

    /// The counter that remains of entries (origin, kind, sequence number, number), and the origins
    /// in doubt.
    fn sum(origins: &[Origin], entries: &[(usize, Kind, SeqNo, i64)]) -> (i64, Vec<usize>) {
        let entry = |&(origin, kind, seq, number): &(usize, Kind, SeqNo, i64)| OriginEntry {
            trailer: key::trailer(seq, kind),
            value: Slice::from(number.to_le_bytes().to_vec()),
            origin,
        };
        let mut entries: Vec<OriginEntry> = entries.iter().map(entry).collect();
        entries.sort_by_key(|e| std::cmp::Reverse(e.trailer));
        let operator = built_in("add").unwrap();
        let operator = Some(operator.as_ref());
        let lineage = Lineage { key: b"k", entries: &entries, origins, operator };
        let mut doubts = BTreeSet::new();
        let kept = lineage.choose(&mut doubts);
        let number = |e: &&OriginEntry| i64::from_le_bytes(e.value.as_bytes().try_into().unwrap());
        let end = kept.iter().position(|e| e.ends_search()).map_or(kept.len(), |at| at + 1);
        (kept[..end].iter().map(number).sum(), doubts.into_iter().collect())
    }

    use Kind::{Delete, Merge, Put};

    #[test]
    fn a_value_wins_over_the_operand_that_is_in_it() {
        let origins = origins(&[(1, Some(&[])), (2, Some(&[])), (3, Some(&[1, 2]))]);
        let entries = [(1, Put, 5, 5), (2, Merge, 9, 10), (3, Put, 9, 15)];
        assert_eq!(sum(&origins, &entries), (15, vec![]));
        assert_eq!(sum(&origins, &[(2, Put, 9, 4), (3, Delete, 9, 0)]), (0, vec![]));
        assert_eq!(sum(&origins, &[(1, Put, 9, 4), (3, Put, 9, 8)]), (8, vec![]));
    }

    #[test]
    fn an_operand_does_not_count_with_what_it_went_into() {
        let whole = origins(&[(1, Some(&[])), (2, Some(&[])), (3, Some(&[1, 2])), (4, Some(&[]))]);
        // 9 and 7 combined, with one input or both still there, on a base in another table.
        let inputs = [(1, Merge, 7, 20), (2, Merge, 9, 10), (3, Merge, 9, 30), (4, Put, 3, 1)];
        assert_eq!(sum(&whole, &inputs), (31, vec![]));
        assert_eq!(sum(&whole, &[inputs[0], inputs[2], inputs[3]]), (31, vec![]));
        // The two are in one table, since a snapshot kept them apart.
        assert_eq!(sum(&whole, &[inputs[0], (3, Merge, 9, 10), (3, Merge, 7, 20)]), (30, vec![]));
        // Tables that have nothing to do with each other all count.
        assert_eq!(sum(&whole, &[inputs[0], inputs[1], inputs[3]]), (31, vec![]));
        assert_eq!(sum(&whole, &[(4, Merge, 5, 3), (3, Merge, 9, 30)]), (33, vec![]));
    }

    #[test]
    fn a_table_that_says_nothing_is_believed_in_part() {
        let origins = origins(&[(1, None), (2, None), (3, Some(&[]))]);
        // A merge would have applied the operand to the base.
        let based = [(2, Merge, 9, 10), (1, Merge, 7, 20), (1, Put, 5, 5)];
        assert_eq!(sum(&origins, &based), (35, vec![]));
        assert_eq!(sum(&origins, &[based[0], based[1], (3, Put, 5, 5)]), (15, vec![1]));
        assert_eq!(sum(&origins, &[(3, Merge, 9, 10), (1, Merge, 7, 20)]), (30, vec![]));
    }

    #[test]
    fn what_a_log_holds_counts_once() {
        let origins = origins(&[(1, Some(&[])), (2, Some(&[1]))]);
        let log = [(LOG, Merge, 9, 10), (LOG, Merge, 8, 20), (LOG, Merge, 7, 40)];
        let with = |table: (usize, Kind, SeqNo, i64)| {
            let mut entries = log.to_vec();
            entries.push(table);
            entries.push((1, Put, 3, 1));
            sum(&origins, &entries)
        };
        assert_eq!(with((2, Merge, 9, 10)), (71, vec![]), "raw");
        assert_eq!(with((2, Merge, 9, 30)), (71, vec![]), "two of the three");
        assert_eq!(
            with((2, Merge, 9, 78)),
            (78, vec![]),
            "with older ones, and in a table of its base"
        );
        assert_eq!(with((2, Merge, 7, 44)), (74, vec![]), "below the log's, with an older one");
        assert_eq!(with((2, Put, 8, 65)), (75, vec![]), "on its base");
        assert_eq!(sum(&origins, &[(2, Merge, 12, 1), log[2]]), (1, vec![LOG]), "beyond its end");
    }

    #[test]
    fn operands_of_two_chains_do_not_explain_a_tables() {
        // 8 is missing between them, and in the second table's operand.
        let mut origins = origins(&[(1, Some(&[])), (2, Some(&[]))]);
        origins.push(Origin::Log { chain: 1 });
        let entries = [(3, Merge, 9, 1), (2, Merge, 9, 2), (LOG, Merge, 7, 1), (1, Merge, 7, 1)];
        assert_eq!(sum(&origins, &entries), (3, vec![]));
        let chained = [(LOG, Merge, 9, 1), entries[1], entries[2], (1, Put, 6, 5)];
        assert_eq!(sum(&origins, &chained), (7, vec![]));
        assert_eq!(sum(&origins, &[entries[0], (3, Merge, 8, 1), entries[1]]), (2, vec![]));
    }

    #[test]
    fn a_damaged_table_proves_nothing_by_what_it_lacks() {
        let mut origins = origins(&[(1, None), (2, None)]);
        let Origin::Table { whole, .. } = &mut origins[2] else { unreachable!() };
        *whole = false;
        let entries = [(2, Merge, 9, 30), (1, Merge, 7, 20), (1, Put, 5, 5)];
        assert_eq!(sum(&origins, &entries), (30, vec![1]));
    }
}
