//! The error of the estimated number of vain searches of each table.
//!
//! The truth needs every get counted in every table that it searches, from the
//! first on, in the tree as it is now: the paper replays all gets on a copy of
//! the database. Here they are replayed in memory, on the tables' bounds and
//! keys (read once per table from its dump). That is exact, and independent of
//! the estimates that it checks.
//!
//! Only Windrow shows its tables and its estimates of them, so that this is the
//! one measurement that no other engine can do.
//!
//! Owns: truth, the plain averaging that the paper compares with, distances.
//! Never does: estimate; the engine's figures are taken as they are.

use super::measure::Figures;
use crate::client::Client;
use crate::data::Draw;
use crate::dataset::Dataset;
use crate::driver::{self, ConcurrentClient, Outcome, Worker};
use crate::op::Kind;
use crate::report::Spread;
use crate::store::{Result, Store};
use crate::workload::Mix;
use std::cmp::Reverse;
use std::collections::BTreeMap;
use std::collections::btree_map::Entry;
use std::io::{self, Write};
use std::path::Path;
use windrow::Db;
use windrow::env::OsClock;
use windrow::inspect::{self, Version};

/// The number of turns of puts and gets in a check. The tree does not change
/// between two turns, so that each get's path is known.
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

/// The database that is followed.
#[derive(Clone, Copy)]
pub(super) struct Followed<'a> {
    pub(super) store: &'a dyn Store,
    /// Windrow's own handle of that database.
    pub(super) db: &'a Db,
    pub(super) data: &'a Dataset,
    pub(super) dir: &'a Path,
}

/// The order of the operations.
#[derive(Clone, Copy, Default)]
struct Turns {
    /// The puts at the beginning of each turn, and the gets after them.
    puts: u64,
    gets: u64,
    /// The share of absent keys among the gets.
    absent: f64,
}

/// Follows one database.
pub(super) struct EstimateWatch<'c, 'a> {
    client: &'c mut Client<'a>,
    of: Followed<'a>,
    turns: Turns,
    draw: Draw,
    /// Operations that are done.
    done: u64,
    contents: Contents,
    tree: SearchedTree,
    /// Gets of each slot since the beginning, and in this turn.
    gets_of: Vec<u32>,
    gets_now: Vec<u32>,
    averages: Tally,
    /// The distances of each check.
    distances: Vec<BTreeMap<String, f64>>,
}

impl<'c, 'a> EstimateWatch<'c, 'a> {
    pub(super) fn new(client: &'c mut Client<'a>, of: Followed<'a>, records: u64) -> Self {
        let slots = vec![0; records as usize * 2];
        EstimateWatch {
            client,
            of,
            turns: Turns::default(),
            draw: Draw::new(records),
            done: 0,
            contents: Contents::default(),
            tree: SearchedTree::default(),
            gets_of: slots.clone(),
            gets_now: slots,
            averages: Tally::new(),
            distances: Vec::new(),
        }
    }

    /// Does `ops` operations, shared out to `checks` checks.
    pub(super) fn run(&mut self, mix: &Mix, (ops, checks): (u64, u32)) -> Result<Outcome> {
        let share =
            |kind: Kind| mix.iter().filter(|(k, _)| *k == kind).map(|(_, s)| s).sum::<f64>();
        let turns = u64::from(checks) * TURNS;
        let (turn, read) = (ops / turns.max(1), share(Kind::Get) + share(Kind::Absent));
        let puts = (turn as f64 * share(Kind::Put)).round() as u64;
        let gets = turn.saturating_sub(puts);
        if puts == 0 || gets == 0 || read == 0.0 {
            return Err("estimates need a `put` and a `get` in each quarter of a check".into());
        }
        self.turns = Turns { puts, gets, absent: share(Kind::Absent) / read };
        let concurrent: &mut [ConcurrentClient<Self>] = &mut [];
        driver::closed(&OsClock, (puts + gets) * turns, std::slice::from_mut(self), concurrent)
    }

    /// Sets the distances of each kind of estimate, and the engine's over those of
    /// averaging: medians over checks.
    pub(super) fn figures(&self, figures: &mut Figures) {
        let names = self.distances.iter().flat_map(BTreeMap::keys);
        for name in names.collect::<std::collections::BTreeSet<_>>() {
            let values = self.distances.iter().filter_map(|check| check.get(name).copied());
            let spread = Spread::of(values.collect());
            figures.extend(spread.map(|spread| (name.clone(), spread.median)));
        }
    }

    /// Ends a turn: adds the searches of its gets to the averages of each
    /// table.
    fn end_turn(&mut self) {
        add(&mut self.averages, &self.tree.replay(&self.contents, &self.gets_now));
        self.gets_of.iter_mut().zip(&self.gets_now).for_each(|(sum, n)| *sum += n);
        self.gets_now.fill(0);
    }

    /// Ends a check.
    fn end_check(&mut self) {
        let truth = self.tree.replay(&self.contents, &self.gets_of);
        let plain = distances(&truth, &self.averages);
        let own = of_engine(self.of.db);
        let mut check = BTreeMap::from([("tables".to_owned(), truth.len() as f64)]);
        check.extend(plain.map(|(name, value)| (format!("averaging_{name}"), value)));
        // The engine's estimates are empty where the policy estimates nothing.
        if !own.is_empty() {
            for ((name, value), (_, other)) in distances(&truth, &own).into_iter().zip(plain) {
                check.insert(format!("merlin_{name}"), value);
                check.insert(format!("merlin_to_averaging_{name}"), value / other);
            }
        }
        // A distance from nothing is not finite.
        check.retain(|_, value| value.is_finite());
        self.distances.push(check);
    }

    /// Reads the tree as it is now, and hands averages down to new tables.
    fn look(&mut self) -> Result<()> {
        self.of.store.drain()?;
        let trees = inspect::trees(self.of.db);
        let (_, version) = trees.first().ok_or("a database without a tree")?;
        self.contents.update(version, self.of.dir, self.of.data)?;
        let new = SearchedTree::of(version, self.of.data);
        self.averages = averaged(&self.averages, &self.tree, &new);
        self.tree = new;
        Ok(())
    }
}

impl Worker for EstimateWatch<'_, '_> {
    fn run(&mut self, number: u64) -> Result<Kind> {
        let Turns { puts, gets, absent } = self.turns;
        self.done = number + 1;
        if number % (puts + gets) < puts {
            self.client.one(Kind::Put)?;
            return Ok(Kind::Put);
        }
        let kind = if self.draw.unit() < absent { Kind::Absent } else { Kind::Get };
        let number = self.client.one(kind)?.ok_or("a get of no record")?;
        self.gets_now[number as usize * 2 + usize::from(kind == Kind::Absent)] += 1;
        Ok(kind)
    }

    fn rest(&mut self) -> Result<bool> {
        let turn = self.turns.puts + self.turns.gets;
        let in_turn = self.done % turn;
        if in_turn == self.turns.puts {
            self.look()?;
        } else if in_turn == 0 {
            self.end_turn();
            if self.done.is_multiple_of(turn * TURNS) {
                self.end_check();
            }
        } else {
            return Ok(false);
        }
        Ok(true)
    }
}

/// Returns the engine's own estimates.
fn of_engine(db: &Db) -> Tally {
    let searches = inspect::table_searches(db).into_iter();
    searches.map(|t| (t.file, Searches { queries: t.queries, hits: t.hits })).collect()
}

fn add(sum: &mut Tally, more: &Tally) {
    for (file, searches) in more {
        let own = sum.entry(*file).or_default();
        own.queries += searches.queries;
        own.hits += searches.hits;
    }
}

/// Returns the averages that the paper calls naive: a new table begins with the
/// mean of the tables that it replaces. Those are taken to be the tables that
/// are gone and whose range it overlaps; a table that replaces none begins at
/// zero.
fn averaged(averages: &Tally, old: &SearchedTree, new: &SearchedTree) -> Tally {
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

/// Returns the cosine and the Euclidean distance of vain searches, table by
/// table, as the paper takes them; the distance also as a share of the truth's
/// length.
fn distances(truth: &Tally, estimates: &Tally) -> [(&'static str, f64); 3] {
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
    [
        ("cosine", if lengths > 0.0 { dot / lengths } else { 0.0 }),
        ("euclidean", apart.sqrt()),
        ("euclidean_share", (apart / true_square.max(1.0)).sqrt()),
    ]
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
struct SearchedTree(Vec<Vec<Table>>);

impl SearchedTree {
    fn of(version: &Version, data: &Dataset) -> SearchedTree {
        // Tables hold records only, so every bound is a record's key.
        let slot = |key: &[u8]| data.ranked_number(key).unwrap_or(0) as Slot * 2;
        let mut runs = Vec::new();
        for level in &version.levels {
            let mut log: Vec<_> = level.sst_log.iter().collect();
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
        SearchedTree(runs)
    }

    fn tables(&self) -> impl Iterator<Item = &Table> {
        self.0.iter().flatten()
    }

    /// Returns the searches in this tree of the gets: `gets` has their number
    /// for each slot.
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

    /// Reads the new tables, and forgets those that are gone.
    fn update(&mut self, version: &Version, dir: &Path, data: &Dataset) -> Result<()> {
        let alive: Vec<FileNumber> = version.files().map(|(_, _, file)| file.number).collect();
        self.0.retain(|file, _| alive.contains(file));
        for file in alive {
            let Entry::Vacant(place) = self.0.entry(file) else { continue };
            let path = dir.join(format!("{file:06}.sst"));
            let mut keys = Keys { data, line: Vec::new(), slots: Vec::new() };
            inspect::dump::table(&path, &mut keys)?;
            keys.slots.dedup();
            place.insert(keys.slots);
        }
        Ok(())
    }
}

/// Picks the keys out of a dump's lines: `  SEQ put "KEY" = "VALUE"`.
struct Keys<'a> {
    data: &'a Dataset,
    line: Vec<u8>,
    slots: Vec<Slot>,
}

impl Keys<'_> {
    fn end_line(&mut self) {
        let mut words = self.line.split(|&b| b == b' ').filter(|word| !word.is_empty());
        let is_entry = words.next().is_some_and(|word| word.iter().all(u8::is_ascii_digit));
        let key = words.nth(1).and_then(|word| word.strip_prefix(b"\""));
        if let Some(number) = key.filter(|_| is_entry).and_then(|key| self.data.ranked_number(key))
        {
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
    use crate::lengths::Lengths;
    use crate::workload::Order;

    fn table(file: FileNumber, first: Slot, last: Slot) -> Table {
        Table { file, first, last }
    }

    fn searches(queries: f64, hits: f64) -> Searches {
        Searches { queries, hits }
    }

    #[test]
    fn a_get_searches_until_it_finds() {
        // Table 1 over tables 2 and 3; records 0 and 4 in it, 0 2 4 below.
        let tree = SearchedTree(vec![vec![table(1, 0, 8)], vec![table(2, 0, 4), table(3, 6, 8)]]);
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
        let old = SearchedTree(vec![vec![table(1, 0, 8)], vec![table(2, 0, 4), table(3, 6, 8)]]);
        let new = SearchedTree(vec![vec![table(5, 0, 4)], vec![table(4, 0, 2), table(3, 6, 8)]]);
        let all = [(1, searches(8.0, 2.0)), (2, searches(4.0, 4.0)), (3, searches(1.0, 1.0))];
        let averages = averaged(&all.into_iter().collect(), &old, &new);
        assert_eq!(averages[&3], searches(1.0, 1.0));
        assert_eq!(averages[&4], searches(6.0, 3.0));
        assert_eq!(averages[&5], searches(6.0, 3.0));
        assert_eq!(averages.len(), 3);
        let begun = averaged(&Tally::new(), &SearchedTree::default(), &old);
        assert_eq!(begun[&1], Searches::default());
    }

    #[test]
    fn distances_are_of_vain_searches() {
        let truth: Tally = [(1, searches(5.0, 2.0)), (2, searches(4.0, 0.0))].into();
        let told = |estimates: &Tally| distances(&truth, estimates).map(|(_, value)| value);
        assert_eq!(told(&truth), [1.0, 0.0, 0.0]);
        // Half of each: the direction is right, the length is not.
        let half: Tally = [(1, searches(1.5, 0.0)), (2, searches(2.0, 0.0))].into();
        assert_eq!(told(&half), [1.0, 2.5, 0.5]);
        let across: Tally = [(1, searches(4.0, 0.0)), (2, searches(3.0, 6.0))].into();
        assert_eq!(told(&across)[0], 0.0);
    }

    #[test]
    fn keys_are_found_in_a_dump() {
        let data = Dataset::new(1, Order::Ranked, 20, Lengths::Fixed(5), 10);
        let mut keys = Keys { data: &data, line: Vec::new(), slots: Vec::new() };
        let mut key = Vec::new();
        writeln!(keys, "at 0, 4096 bytes block").unwrap();
        for number in [2, 7] {
            data.key(number, &mut key);
            let text = String::from_utf8(key.clone()).unwrap();
            writeln!(keys, "  12 put \"{text}\" = \"a value\"").unwrap();
        }
        assert_eq!(keys.slots, [4, 14]);
    }
}
