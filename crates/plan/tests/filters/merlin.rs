//! Merlin's estimates against the truth, on the set-up of its paper scaled to a fiftieth. A tree
//! under updates and merges is asked for keys, half of them absent. Every so often all queries so
//! far are replayed against the present tree, and z of every file is compared with its estimate,
//! and with that of the naive rule (counters that merges average).

use crate::solver::Random;
use std::collections::BTreeSet;
use std::sync::Arc;
use windrow_base::KeyOrder;
use windrow_plan::filter_memory::merlin::{Estimate, InputStatistics, Observed, propagate};
use windrow_plan::filter_memory::query_estimate;
use windrow_plan::tree::{Edit, File, Part, Place, Version};

const KEYS: u32 = 20_000;
const FILE_KEYS: usize = 250;
const MEMTABLE_KEYS: usize = 500;
const LEVEL1_KEYS: usize = 1000;
const RATIO: usize = 4;
const GETS: usize = 100_000;
const UPDATES: usize = 50_000;
const ROUNDS: usize = 20;

/// Only even numbers are ever written.
type Key = u32;

struct Table {
    keys: Vec<Key>,
    observed: Observed,
    naive: Estimate,
}

impl Table {
    fn covers(&self, key: Key) -> bool {
        self.keys[0] <= key && key <= self.keys[self.keys.len() - 1]
    }

    /// Entries in `[lo, hi)`.
    fn within(&self, lo: Key, hi: Key) -> usize {
        let before = |key| self.keys.partition_point(|&k| k < key);
        before(hi) - before(lo)
    }
}

#[derive(Default)]
struct Tree {
    memtable: BTreeSet<Key>,
    /// Level 0 newest first, then runs.
    level0: Vec<Table>,
    runs: Vec<Vec<Table>>,
    cursors: Vec<Key>,
    queries: u64,
}

impl Tree {
    /// Every table that the key's search reaches, until it is found.
    fn search(&self, key: Key, mut visit: impl FnMut(usize, bool)) {
        let mut index = 0;
        for place in std::iter::once(&self.level0).chain(&self.runs) {
            // Level 0's tables overlap; a run's do not.
            for (i, table) in place.iter().enumerate().filter(|(_, t)| t.covers(key)) {
                let hit = table.keys.binary_search(&key).is_ok();
                visit(index + i, hit);
                if hit {
                    return;
                }
            }
            index += place.len();
        }
    }

    fn tables(&self) -> impl Iterator<Item = &Table> {
        self.level0.iter().chain(self.runs.iter().flatten())
    }

    fn get(&mut self, key: Key) {
        if self.memtable.contains(&key) {
            return;
        }
        self.queries += 1;
        let query = self.queries;
        let mut visited = Vec::new();
        self.search(key, |index, hit| visited.push((index, hit)));
        let mut tables: Vec<&mut Table> =
            self.level0.iter_mut().chain(self.runs.iter_mut().flatten()).collect();
        for (index, hit) in visited {
            let table = &mut tables[index];
            table.observed.record(query, hit);
            table.naive.queries += 1.0;
            table.naive.hits += f64::from(u8::from(hit));
        }
    }

    fn put(&mut self, key: Key) {
        self.memtable.insert(key);
        if self.memtable.len() >= MEMTABLE_KEYS {
            self.flush();
        }
    }

    fn flush(&mut self) {
        let keys: Vec<Key> = std::mem::take(&mut self.memtable).into_iter().collect();
        if keys.is_empty() {
            return;
        }
        let version = self.version();
        let estimates: Vec<Estimate> =
            self.tables().map(|t| t.observed.estimate(self.queries)).collect();
        let known = |file: &File| Some(estimates[file.number as usize - 1]);
        let estimate = query_estimate::flushed(
            &version,
            (None, None),
            keys.len() as u64,
            self.queries,
            &known,
        );
        let observed = Observed::new(Some(estimate), self.queries);
        self.level0.insert(0, Table { keys, observed, naive: Estimate::default() });
        if self.level0.len() >= 2 {
            let inputs = std::mem::take(&mut self.level0);
            let inputs =
                inputs.into_iter().enumerate().map(|(i, t)| (Place::sst_log(0, 9 - i as u64), t));
            self.merge(inputs.collect(), 0);
        }
        for level in 0..self.runs.len() {
            let limit = LEVEL1_KEYS * RATIO.pow(level as u32);
            while self.runs[level].iter().map(|t| t.keys.len()).sum::<usize>() > limit
                && level + 1 < self.runs.len()
            {
                let cursor = self.cursors[level];
                let at = self.runs[level].partition_point(|t| t.keys[0] <= cursor);
                let count = self.runs[level].len();
                let table = self.runs[level].remove(at % count);
                self.cursors[level] = table.keys[0];
                self.merge(vec![(Place::run(level as u32 + 1), table)], level + 1);
            }
        }
    }

    /// Merges `upper` with what it overlaps of run `to`.
    fn merge(&mut self, upper: Vec<(Place, Table)>, to: usize) {
        let lo = upper.iter().map(|(_, t)| t.keys[0]).min().unwrap();
        let hi = upper.iter().map(|(_, t)| t.keys[t.keys.len() - 1]).max().unwrap();
        let (taken, kept) = std::mem::take(&mut self.runs[to])
            .into_iter()
            .partition(|t: &Table| t.keys[0] <= hi && lo <= t.keys[t.keys.len() - 1]);
        let taken: Vec<Table> = taken;
        let mut inputs = upper;
        inputs.extend(taken.into_iter().map(|t| (Place::run(to as u32 + 1), t)));
        let keys: BTreeSet<Key> = inputs.iter().flat_map(|(_, t)| t.keys.iter().copied()).collect();
        let keys: Vec<Key> = keys.into_iter().collect();
        let average = inputs.iter().fold(Estimate::default(), |sum, (_, t)| Estimate {
            queries: sum.queries + t.naive.queries / inputs.len() as f64,
            hits: sum.hits + t.naive.hits / inputs.len() as f64,
        });
        let mut run = kept;
        let count = keys.len().div_ceil(FILE_KEYS);
        let size = keys.len().div_ceil(count);
        for (i, chunk) in keys.chunks(size.max(1)).enumerate() {
            let from = if i == 0 { 0 } else { chunk[0] };
            let end = keys.get((i + 1) * size).copied().unwrap_or(Key::MAX);
            let input = |(place, table): &(Place, Table)| InputStatistics {
                place: *place,
                share: table.within(from, end) as f64 / table.keys.len() as f64,
                estimate: table.observed.estimate(self.queries),
            };
            let inputs: Vec<InputStatistics> = inputs.iter().map(input).collect();
            let observed = Observed::new(Some(propagate(&inputs)), self.queries);
            run.push(Table { keys: chunk.to_vec(), observed, naive: average });
        }
        run.sort_by_key(|t| t.keys[0]);
        self.runs[to] = run;
    }

    /// The tree as the plan sees it, tables numbered from 1 in read order.
    fn version(&self) -> Version {
        let mut edit = Edit::default();
        let key = |key: Key| key.to_be_bytes().to_vec();
        let places = std::iter::once(&self.level0).chain(&self.runs).enumerate();
        let tables = places.flat_map(|(level, tables)| tables.iter().map(move |t| (level, t)));
        for (number, (level, table)) in (1u64..).zip(tables) {
            let bounds: (Arc<[u8]>, Arc<[u8]>) =
                (key(table.keys[0]).into(), key(table.keys[table.keys.len() - 1]).into());
            let file = File {
                number,
                bytes: 1,
                entries: table.keys.len() as u64,
                smallest: bounds.0.clone(),
                largest: bounds.1.clone(),
                point_bounds: Some(bounds),
                epoch: if level == 0 { 100 - number } else { 0 },
                ..File::default()
            };
            let part = if level == 0 { Part::SstLog } else { Part::Run };
            edit.added.push((level as u32, part, Arc::new(file)));
        }
        Version::empty(KeyOrder::Bytewise).apply(&edit).unwrap()
    }
}

/// How keys are asked for.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Skew {
    Uniform,
    /// Zipf .99, ranks scattered over the key space.
    Zipf,
    /// Normal over the key space, sigma a tenth of it.
    Clustered,
}

struct Keys {
    skew: Skew,
    cumulative: Vec<f64>,
}

impl Keys {
    fn new(skew: Skew) -> Keys {
        let mut sum = 0.0;
        let step = |rank| {
            sum += f64::from(rank).powf(-0.99);
            sum
        };
        let cumulative = (1..=KEYS).map(step).collect();
        Keys { skew, cumulative }
    }

    /// Half of them exist.
    fn next(&self, random: &mut Random) -> Key {
        let index = match self.skew {
            Skew::Uniform => random.below(u64::from(KEYS)) as Key,
            Skew::Zipf => {
                let at = random.unit() * self.cumulative[self.cumulative.len() - 1];
                let rank = self.cumulative.partition_point(|&c| c < at) as u64;
                (rank * 7919 % u64::from(KEYS)) as Key
            }
            Skew::Clustered => {
                let normal: f64 = (0..12).map(|_| random.unit()).sum::<f64>() - 6.0;
                ((0.5 + 0.1 * normal).clamp(0.0, 0.9999) * f64::from(KEYS)) as Key
            }
        };
        index * 2 + random.below(2) as Key
    }
}

/// Cosine and Euclidean distance.
fn compare(got: &[f64], truth: &[f64]) -> (f64, f64) {
    let dot = |a: &[f64], b: &[f64]| a.iter().zip(b).map(|(a, b)| a * b).sum::<f64>();
    let cosine = dot(got, truth) / (dot(got, got) * dot(truth, truth)).sqrt();
    let off: Vec<f64> = got.iter().zip(truth).map(|(g, t)| g - t).collect();
    (cosine, dot(&off, &off).sqrt())
}

/// Mean over the rounds: Merlin's cosine and distance, the naive rule's.
fn run(skew: Skew, seed: u64) -> [f64; 4] {
    let mut random = Random(seed);
    let mut tree =
        Tree { runs: vec![vec![], vec![], vec![]], cursors: vec![0; 3], ..Tree::default() };
    let mut order: Vec<Key> = (0..KEYS).map(|k| k * 2).collect();
    for i in (1..order.len()).rev() {
        order.swap(i, random.below(i as u64 + 1) as usize);
    }
    order.into_iter().for_each(|key| tree.put(key));
    let keys = Keys::new(skew);
    let (mut asked, mut sums) = (Vec::new(), [0.0; 4]);
    for _ in 0..ROUNDS {
        for step in 0..GETS / ROUNDS {
            let key = keys.next(&mut random);
            asked.push(key);
            tree.get(key);
            if step % (GETS / UPDATES) == 0 {
                tree.put(random.below(u64::from(KEYS)) as Key * 2);
            }
        }
        tree.flush();
        let mut truth = vec![0.0; tree.tables().count()];
        for &key in &asked {
            tree.search(key, |index, hit| truth[index] += f64::from(u8::from(!hit)));
        }
        let merlin: Vec<f64> =
            tree.tables().map(|t| t.observed.estimate(tree.queries).empty()).collect();
        let naive: Vec<f64> = tree.tables().map(|t| t.naive.empty()).collect();
        let (a, b) = (compare(&merlin, &truth), compare(&naive, &truth));
        for (sum, got) in sums.iter_mut().zip([a.0, a.1, b.0, b.1]) {
            *sum += got / ROUNDS as f64;
        }
    }
    sums
}

#[test]
fn estimates_are_close_to_the_truth_and_twice_as_close_as_averaging() {
    for skew in [Skew::Uniform, Skew::Zipf, Skew::Clustered] {
        let [cosine, distance, naive_cosine, naive_distance] = run(skew, 7);
        println!(
            "{skew:?}: cosine {cosine:.3} (averaging {naive_cosine:.3}), \
             distance {distance:.0} (averaging {naive_distance:.0})"
        );
        // Within a file that spans many others, entries say little of where queries cluster.
        let least = if skew == Skew::Clustered { 0.85 } else { 0.95 };
        assert!(cosine >= least, "{skew:?}: cosine {cosine}");
        assert!(distance <= naive_distance / 2.0, "{skew:?}: {distance} of {naive_distance}");
    }
}
