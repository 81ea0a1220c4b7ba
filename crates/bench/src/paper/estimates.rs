//! How well the number of vain searches of each table is estimated.
//!
//! The truth needs every get counted in every table that it searches, from
//! the first on, in the tree as it is now: the paper replays all gets on a
//! copy of the database. Here they are replayed in memory, on the tables'
//! bounds and keys (read once per table from its dump). That is exact, and
//! needs nothing of what it checks.
//!
//! Only Windrow tells what its tables are and what it has learnt of them, so
//! that this is the one work that no other engine can do.
//!
//! Owns: truth, the plain averaging that the paper compares with, distances.
//! Never does: estimate; the engine's figures are taken as they are.

use super::database::{Client, Database};
use super::records::Records;
use crate::draws::Stream;
use crate::report::Figures;
use crate::store::Result;
use std::cmp::Reverse;
use std::collections::BTreeMap;
use std::collections::btree_map::Entry;
use std::io::{self, Write};
use std::path::Path;
use std::sync::Arc;
use windrow::Version;

/// A check's puts and gets come in so many turns. Between two the tree
/// stands still, so that each get's path is known.
const TURNS: u64 = 4;

/// A table, by its number.
type FileNumber = u64;

/// Searches of a table, and those that found the key.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(super) struct Searches {
    pub(super) queries: f64,
    pub(super) hits: f64,
}

impl Searches {
    /// Searches in vain: Mnemosyne's z.
    fn vain(self) -> f64 {
        self.queries - self.hits
    }
}

/// Searches of every table of a tree.
type Tally = BTreeMap<FileNumber, Searches>;

/// A key as a number: twice its record's, one more if it is absent.
type Slot = u32;

/// Follows one database.
pub(super) struct Watch<'a> {
    database: &'a Database,
    client: Client<'a>,
    puts: Stream,
    gets: Stream,
    absent: f64,
    contents: Contents,
    tree: Tree,
    /// Gets of each slot since the beginning.
    gets_of: Vec<u32>,
    averages: Tally,
}

impl<'a> Watch<'a> {
    pub(super) fn new(database: &'a Database, absent: f64, streams: (Stream, Stream)) -> Self {
        let (puts, gets) = streams;
        Watch {
            database,
            client: database.client(),
            puts,
            gets,
            absent,
            contents: Contents::default(),
            tree: Tree::default(),
            gets_of: vec![0; database.records.sizes.count as usize * 2],
            averages: Tally::new(),
        }
    }

    /// Does a check's puts and gets; the distances of each kind of estimate.
    pub(super) fn check(&mut self, puts: u64, gets: u64) -> Result<Vec<(&'static str, Figures)>> {
        for _ in 0..TURNS {
            for _ in 0..puts / TURNS {
                self.client.put(self.puts.next())?;
            }
            self.database.drain()?;
            self.look()?;
            let mut now = vec![0u32; self.gets_of.len()];
            for _ in 0..gets / TURNS {
                let (absent, number) = (self.gets.chance(self.absent), self.gets.next());
                self.client.get(number, absent)?;
                now[number as usize * 2 + usize::from(absent)] += 1;
            }
            add(&mut self.averages, &self.tree.replay(&self.contents, &now));
            self.gets_of.iter_mut().zip(&now).for_each(|(sum, n)| *sum += n);
        }
        let truth = self.tree.replay(&self.contents, &self.gets_of);
        let averaging = ("averaging", distances(&truth, &self.averages));
        let own = of_engine(self.database)?;
        // Empty where the policy estimates nothing.
        let own = (!own.is_empty()).then(|| ("merlin", distances(&truth, &own)));
        Ok([averaging].into_iter().chain(own).collect())
    }

    /// Takes the tree in as it is now, and hands averages down to new tables.
    fn look(&mut self) -> Result<()> {
        let trees = self.database.windrow()?.tree();
        let (_, version) = trees.first().ok_or("a database without a tree")?;
        let records = &self.database.records;
        self.contents.update(version, &self.database.dir, records)?;
        let new = Tree::of(version, records);
        self.averages = averaged(&self.averages, &self.tree, &new);
        self.tree = new;
        Ok(())
    }
}

/// The engine's own estimates.
fn of_engine(database: &Database) -> Result<Tally> {
    let searches = database.windrow()?.table_searches().into_iter();
    Ok(searches.map(|t| (t.file, Searches { queries: t.queries, hits: t.hits })).collect())
}

fn add(sum: &mut Tally, more: &Tally) {
    for (file, searches) in more {
        let own = sum.entry(*file).or_default();
        own.queries += searches.queries;
        own.hits += searches.hits;
    }
}

/// What the paper calls naive: a new table begins with the mean of the tables
/// that it replaces. Those are taken to be the ones that are gone and whose
/// range it overlaps; what no table went into begins at zero.
fn averaged(averages: &Tally, old: &Tree, new: &Tree) -> Tally {
    let gone: Vec<&Table> =
        old.tables().filter(|t| !new.tables().any(|n| n.file == t.file)).collect();
    let inherit = |table: &Table| {
        let parents: Vec<Searches> = gone
            .iter()
            .filter(|parent| parent.first <= table.last && table.first <= parent.last)
            .map(|parent| averages.get(&parent.file).copied().unwrap_or_default())
            .collect();
        let count = parents.len().max(1) as f64;
        Searches {
            queries: parents.iter().map(|s| s.queries).sum::<f64>() / count,
            hits: parents.iter().map(|s| s.hits).sum::<f64>() / count,
        }
    };
    let kept = |table: &Table| averages.get(&table.file).copied();
    let is_old = |table: &Table| old.tables().any(|o| o.file == table.file);
    new.tables()
        .map(|t| (t.file, if is_old(t) { kept(t).unwrap_or_default() } else { inherit(t) }))
        .collect()
}

/// Cosine and Euclidean distance of vain searches, table by table, as the
/// paper takes them; the distance also as a share of the truth's length.
fn distances(truth: &Tally, estimates: &Tally) -> Figures {
    let (mut dot, mut true_square, mut own_square, mut apart) = (0.0, 0.0, 0.0, 0.0);
    for (file, searches) in truth {
        let exact = searches.vain();
        let own = estimates.get(file).copied().unwrap_or_default().vain();
        dot += exact * own;
        true_square += exact * exact;
        own_square += own * own;
        apart += (exact - own) * (exact - own);
    }
    let lengths = f64::sqrt(true_square * own_square);
    let mut figures = Figures::default();
    figures.set("tables", truth.len() as f64);
    figures.set("cosine", if lengths > 0.0 { dot / lengths } else { 0.0 });
    figures.set("euclidean", apart.sqrt());
    figures.set("euclidean_share", (apart / true_square.max(1.0)).sqrt());
    figures
}

/// One table's place in the key space.
#[derive(Clone, Debug, PartialEq)]
struct Table {
    file: FileNumber,
    first: Slot,
    last: Slot,
}

/// The tables of a tree as gets search them: runs, newest first, each sorted.
#[derive(Default)]
struct Tree(Vec<Vec<Table>>);

impl Tree {
    fn of(version: &Version, records: &Records) -> Tree {
        // Tables hold records only, so every bound is one.
        let slot = |key: &[u8]| records.number(key).unwrap_or(0) as Slot * 2;
        let mut runs = Vec::new();
        for level in &version.levels {
            let mut log: Vec<_> = level.log.iter().collect();
            log.sort_by_key(|file| Reverse(file.epoch));
            // One epoch's files do not overlap (I1): each is a run of its own.
            let of_log = log.into_iter().map(std::slice::from_ref);
            for files in std::iter::once(&level.run[..]).chain(of_log) {
                let tables = files.iter().map(|file| Table {
                    file: file.number,
                    first: slot(&file.smallest),
                    last: slot(&file.largest),
                });
                runs.push(tables.collect());
            }
        }
        Tree(runs)
    }

    fn tables(&self) -> impl Iterator<Item = &Table> {
        self.0.iter().flatten()
    }

    /// The searches that gets of each slot, so many, cause in this tree.
    fn replay(&self, contents: &Contents, gets: &[u32]) -> Tally {
        let mut tally: Tally = self.tables().map(|t| (t.file, Searches::default())).collect();
        for (slot, &times) in (0..).zip(gets).filter(|(_, times)| **times > 0) {
            for run in &self.0 {
                let at = run.partition_point(|table| table.last < slot);
                let Some(table) = run.get(at).filter(|table| table.first <= slot) else { continue };
                let hit = contents.has(table.file, slot);
                let searches = tally.entry(table.file).or_default();
                searches.queries += f64::from(times);
                if hit {
                    searches.hits += f64::from(times);
                    break;
                }
            }
        }
        tally
    }
}

/// The keys of the tables that are alive.
#[derive(Default)]
struct Contents(BTreeMap<FileNumber, Vec<Slot>>);

impl Contents {
    fn has(&self, file: FileNumber, slot: Slot) -> bool {
        self.0.get(&file).is_some_and(|slots| slots.binary_search(&slot).is_ok())
    }

    /// Reads the tables that are new, and forgets those that are gone.
    fn update(&mut self, version: &Version, dir: &Path, records: &Arc<Records>) -> Result<()> {
        let alive: Vec<FileNumber> = version.files().map(|(_, _, file)| file.number).collect();
        self.0.retain(|file, _| alive.contains(file));
        for file in alive {
            let Entry::Vacant(place) = self.0.entry(file) else { continue };
            let path = dir.join(format!("{file:06}.sst"));
            let mut keys = Keys { records, line: Vec::new(), slots: Vec::new() };
            windrow::dump::table(&path, &mut keys)?;
            keys.slots.dedup();
            place.insert(keys.slots);
        }
        Ok(())
    }
}

/// Picks the keys out of a dump's lines: `  SEQ put "KEY" = "VALUE"`.
struct Keys<'a> {
    records: &'a Records,
    line: Vec<u8>,
    slots: Vec<Slot>,
}

impl Keys<'_> {
    fn end_line(&mut self) {
        let mut words = self.line.split(|&b| b == b' ').filter(|word| !word.is_empty());
        let is_entry = words.next().is_some_and(|word| word.iter().all(u8::is_ascii_digit));
        let key = words.nth(1).and_then(|word| word.strip_prefix(b"\""));
        if let Some(number) = key.filter(|_| is_entry).and_then(|key| self.records.number(key)) {
            self.slots.push(number as Slot * 2);
        }
        self.line.clear();
    }
}

impl Write for Keys<'_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        for part in bytes.split_inclusive(|&b| b == b'\n') {
            self.line.extend_from_slice(part);
            if part.ends_with(b"\n") {
                self.line.pop();
                self.end_line();
            }
        }
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn table(file: FileNumber, first: Slot, last: Slot) -> Table {
        Table { file, first, last }
    }

    fn searches(queries: f64, hits: f64) -> Searches {
        Searches { queries, hits }
    }

    #[test]
    fn a_get_searches_until_it_finds() {
        // Table 1 over tables 2 and 3; records 0 and 4 in it, 0 2 4 below.
        let tree = Tree(vec![vec![table(1, 0, 8)], vec![table(2, 0, 4), table(3, 6, 8)]]);
        let keys = [(1, vec![0, 8]), (2, vec![0, 4]), (3, vec![6, 8])];
        let contents = Contents(keys.into_iter().collect());
        let mut gets = vec![0; 12];
        gets[0] = 3; // found in 1
        gets[4] = 2; // past 1, found in 2
        gets[5] = 1; // past 1, in no range below
        gets[7] = 5; // past 1, in vain in 3
        gets[10] = 9; // in no range
        let tally = tree.replay(&contents, &gets);
        let expected = [(1, searches(11.0, 3.0)), (2, searches(2.0, 2.0)), (3, searches(5.0, 0.0))];
        assert_eq!(tally, expected.into_iter().collect());
    }

    #[test]
    fn averaging_takes_the_mean_of_what_a_table_replaces() {
        let old = Tree(vec![vec![table(1, 0, 8)], vec![table(2, 0, 4), table(3, 6, 8)]]);
        let new = Tree(vec![vec![table(5, 0, 4)], vec![table(4, 0, 2), table(3, 6, 8)]]);
        let all = [(1, searches(8.0, 2.0)), (2, searches(4.0, 4.0)), (3, searches(1.0, 1.0))];
        let averages = averaged(&all.into_iter().collect(), &old, &new);
        assert_eq!(averages[&3], searches(1.0, 1.0));
        assert_eq!(averages[&4], searches(6.0, 3.0));
        assert_eq!(averages[&5], searches(6.0, 3.0));
        assert_eq!(averages.len(), 3);
        let begun = averaged(&Tally::new(), &Tree::default(), &old);
        assert_eq!(begun[&1], Searches::default());
    }

    #[test]
    fn distances_are_of_vain_searches() {
        let truth: Tally = [(1, searches(5.0, 2.0)), (2, searches(4.0, 0.0))].into();
        let same = distances(&truth, &truth);
        assert_eq!((same.get("cosine"), same.get("euclidean")), (Some(1.0), Some(0.0)));
        // Half of each: the direction is right, the length is not.
        let half: Tally = [(1, searches(1.5, 0.0)), (2, searches(2.0, 0.0))].into();
        let half = distances(&truth, &half);
        assert_eq!((half.get("cosine"), half.get("euclidean")), (Some(1.0), Some(2.5)));
        assert_eq!(half.get("euclidean_share"), Some(0.5));
        let across: Tally = [(1, searches(4.0, 0.0)), (2, searches(3.0, 6.0))].into();
        assert_eq!(distances(&truth, &across).get("cosine"), Some(0.0));
    }

    #[test]
    fn keys_are_found_in_a_dump() {
        let sizes = super::super::records::Sizes { count: 10, key_bytes: 20, value_bytes: (5, 5) };
        let records = Records::new(sizes, 1);
        let mut keys = Keys { records: &records, line: Vec::new(), slots: Vec::new() };
        let mut key = Vec::new();
        writeln!(keys, "at 0, 4096 bytes block").unwrap();
        for number in [2, 7] {
            records.key(number, false, &mut key);
            let text = String::from_utf8(key.clone()).unwrap();
            writeln!(keys, "  12 put \"{text}\" = \"a value\"").unwrap();
        }
        assert_eq!(keys.slots, [4, 14]);
    }
}
