//! A tree of bare keys under a policy.
//!
//! Owns: the version, the contents of its tables, and running decisions, one at a time, until the
//! policy is idle. There are updates only, so that entries of a key need no order among themselves:
//! a merge unites sets. (The plan's own model shows that reads stay right; here the question is the
//! cost.) Never does: decide.

use crate::figures::{Figures, Meter};
use crate::random::SplitMix;
use crate::setup::{Order, Setup};
use crate::workload::KeyStream;
use std::collections::HashMap;
use std::sync::Arc;
use windrow_base::key::SEQ_MAX;
use windrow_base::{Error, FileNumber, KeyOrder, Result};
use windrow_plan::axes::{Sample, Sampler};
use windrow_plan::hotness::HotMap;
use windrow_plan::tree::{Edit, File, Part, Version};
use windrow_plan::usage::Use;
use windrow_plan::use_measure::UseMeasure;
use windrow_plan::{Busy, Cutter, Decision, Merge, PlanSettings, Policy, ReadCosts, View};

/// Decisions between two flushes after which picking is held to be endless.
const DECISIONS_MAX: u32 = 100_000;
/// Keys looked up after each flush.
const PROBES: u32 = 64;
/// Between two flushes, in ms.
const FLUSH_MS: u64 = 6_000;

/// Writes every key once, updates as long as the set-up says, and measures.
///
/// # Errors
/// `InvalidArgument` if the set-up has no keys or no updates, or if the policy
/// never stops deciding; `Corruption` if a decision is impossible (I1 to I4).
pub fn simulate(setup: &Setup) -> Result<Figures> {
    let settings = setup.settings();
    let updates = |rounds: f64| (rounds * setup.keys as f64) as u64;
    if setup.keys == 0 || updates(setup.rounds) < settings.memtable_bytes {
        return Err(Error::invalid("there must be keys, and updates that fill a memtable"));
    }
    let mut keys = KeyStream::new(setup.workload, setup.keys, setup.seed);
    let mut simulator = Simulator::new(setup);
    simulator.update(&mut keys, updates(1.0 + setup.warm_rounds))?;
    simulator.meter = Meter::default();
    simulator.update(&mut keys, updates(setup.rounds))?;
    Ok(simulator.meter.figures(setup.unit_keys))
}

pub(crate) struct Simulator {
    policy: Policy,
    order: Order,
    settings: PlanSettings,
    pub(crate) version: Version,
    tables: HashMap<FileNumber, Vec<u32>>,
    next_file: FileNumber,
    seq: u64,
    keys: u32,
    /// For the keys that are looked up; apart from the workload's, so that
    /// both policies of a comparison see the same updates.
    random: SplitMix,
    /// Jobs run one at a time: nothing is ever busy when a policy is asked.
    idle: Busy,
    pub(crate) meter: Meter,
    merged: Vec<u32>,
    /// L2SM's, if the policy asks for it.
    hot_map: Option<HotMap>,
    /// The cost to reads of one more file over every point, in keys for each key put.
    pub(crate) read_price: f64,
    /// The cost of each file to reads so far, in keys.
    read_costs: HashMap<FileNumber, f64>,
    /// The use that reads and writes give, if the policy goes by that.
    pub(crate) measured: Option<UseMeasure>,
    now_ms: u64,
    /// Each step and the tree after it, where the caller wants them kept.
    pub(crate) film: Option<Vec<(String, Version)>>,
}

/// Memory of the HotMap: room for a twentieth of the keys in each of five
/// layers, the share of hot keys that the paper meets (Huang et al., III-C1).
const HOT_MAP_BYTES_PER_KEY: f64 = 0.32;

/// Spreads a key over 64 bits (splitmix64).
fn hash(key: u32) -> u64 {
    let mut z = u64::from(key).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}

/// Takes a sample of a memtable as the engine does.
fn sample_of(memtable: &[u32]) -> Sample {
    let mut sampler = Sampler::new(KeyOrder::Bytewise);
    memtable.iter().for_each(|key| sampler.see(&key.to_be_bytes(), 1));
    sampler.finish()
}

impl Simulator {
    pub(crate) fn new(setup: &Setup) -> Simulator {
        let settings = setup.settings();
        Simulator {
            policy: setup.policy.clone(),
            order: setup.order,
            settings,
            version: Version::empty(KeyOrder::Bytewise),
            tables: HashMap::new(),
            next_file: 1,
            seq: 0,
            keys: setup.keys,
            random: SplitMix(0),
            idle: Busy::new(),
            meter: Meter::default(),
            merged: Vec::new(),
            hot_map: setup
                .policy
                .wants_hotness()
                .then(|| HotMap::new((f64::from(setup.keys) * HOT_MAP_BYTES_PER_KEY) as u64)),
            read_price: 0.0,
            read_costs: HashMap::new(),
            measured: (setup.policy.usage == Use::Measured).then(UseMeasure::default),
            now_ms: 0,
            film: None,
        }
    }

    /// Updates this number of keys, and lets the policy run its jobs after each flush.
    pub(crate) fn update(&mut self, keys: &mut KeyStream, count: u64) -> Result<()> {
        for _ in 0..count.div_ceil(self.settings.memtable_bytes) {
            self.flush(keys)?;
            self.settle()?;
        }
        Ok(())
    }

    /// Adds the cost of the reads meanwhile, as each flush ends.
    fn measure_reads(&mut self, put: u64) {
        let cost = self.read_price * put as f64;
        self.read(cost);
        self.now_ms += FLUSH_MS;
        let Some(measured) = &mut self.measured else { return };
        let memtable = self.settings.memtable_bytes;
        if let Some(usage) = measured.flushed(put, cost as u64, memtable, self.now_ms) {
            self.settings.file_price_percent = usage.file_price_percent();
            self.settings.space_max_percent = usage.space_max_percent();
        }
    }

    /// Reads all over the keys; one more file over every point would cost these reads this number
    /// of keys.
    pub(crate) fn read(&mut self, cost: f64) {
        if cost == 0.0 {
            return;
        }
        for level in 0..self.version.levels.len() as u32 {
            for file in self.version.part(level, Part::SstLog) {
                let key =
                    |key: &[u8]| f64::from(u32::from_be_bytes(key.try_into().unwrap_or_default()));
                let wide = key(&file.largest) - key(&file.smallest);
                let share = wide / f64::from(self.keys);
                *self.read_costs.entry(file.number).or_default() += cost * share;
            }
        }
    }

    /// Runs the merges that reads have paid for. Returns the keys that it wrote.
    pub(crate) fn settle_reads(&mut self) -> Result<u64> {
        let mut written = 0;
        for _ in 0..DECISIONS_MAX {
            let costs = self.read_costs.iter().map(|(&file, &cost)| (file, cost as u64));
            let decision = self
                .policy
                .pick_for_reads(&self.view(&self.version), &costs.collect::<ReadCosts>());
            match &decision {
                Decision::Idle => return Ok(written),
                Decision::Merge(merge) => written += merge.input_bytes(),
                _ => {}
            }
            for (_, _, file) in decision.files() {
                self.read_costs.remove(&file.number);
            }
            self.run(&decision)?;
        }
        Err(self.endless())
    }

    /// Fills a memtable and writes it to level 0. A key that was written twice
    /// is there once: nobody reads the older entry.
    fn flush(&mut self, keys: &mut KeyStream) -> Result<()> {
        let updates = self.settings.memtable_bytes;
        let mut memtable: Vec<u32> = keys.take(updates as usize).collect();
        memtable.sort_unstable();
        memtable.dedup();
        self.seq += updates;
        let sample =
            self.policy.wants_sample(&self.version, &self.settings).then(|| sample_of(&memtable));
        let boundaries = self.policy.boundaries(&self.version, &self.settings, sample.as_ref());
        let current = boundaries.as_ref().unwrap_or(&self.version.boundaries);
        let mut cutter = self.policy.flush_cutter(updates, current);
        let files = self.write(&memtable, &mut cutter);
        self.meter.flush(updates, memtable.len() as u64);
        let edit = Edit { boundaries, ..Edit::flush(&self.version, files, self.seq) };
        self.install(&edit)?;
        self.keep(|| format!("flush of {} keys", memtable.len()));
        self.measure_reads(updates);
        Ok(())
    }

    /// Runs the policy's decisions until it is idle.
    fn settle(&mut self) -> Result<()> {
        for _ in 0..DECISIONS_MAX {
            let decision = self.pick(&self.version);
            if decision.is_idle() {
                if self.read_price > 0.0 && self.settle_reads()? > 0 {
                    continue;
                }
                self.look();
                return Ok(());
            }
            let from_level0 = decision.files().iter().any(|(level, _, _)| *level == 0);
            self.run(&decision)?;
            if from_level0 && self.order == Order::Chains {
                self.restore()?;
            }
        }
        Err(self.endless())
    }

    /// Brings every level below level 0 back within its limit.
    fn restore(&mut self) -> Result<()> {
        for _ in 0..DECISIONS_MAX {
            // Jobs below need nothing of level 0, which is newer: the policy is asked about the
            // tree without it, and the edits fit both.
            let mut below = self.version.clone();
            below.levels[0] = Arc::default();
            let decision = self.pick(&below);
            if decision.is_idle() {
                return Ok(());
            }
            self.run(&decision)?;
        }
        Err(self.endless())
    }

    fn endless(&self) -> Error {
        Error::invalid(format!("the policy is never idle:\n{}", self.version))
    }

    fn pick(&self, version: &Version) -> Decision {
        self.policy.pick(&self.view(version))
    }

    fn view<'a>(&'a self, version: &'a Version) -> View<'a> {
        View {
            version,
            busy: &self.idle,
            settings: &self.settings,
            snapshots_oldest: SEQ_MAX,
            now_ms: 0,
        }
    }

    fn run(&mut self, decision: &Decision) -> Result<()> {
        self.meter.decide(decision);
        let edit = match decision {
            Decision::Idle => return Ok(()),
            Decision::Merge(merge) => self.merge(merge),
            Decision::Move(m) => m.edit(),
            Decision::Drop(drop) => drop.edit(),
            Decision::Reshape(reshape) => reshape.edit(),
        };
        self.install(&edit).map_err(|error| error.context(format!("{decision}")))?;
        self.keep(|| decision.to_string());
        Ok(())
    }

    /// Keeps a step, where they are kept.
    fn keep(&mut self, text: impl FnOnce() -> String) {
        if let Some(film) = &mut self.film {
            film.push((text(), self.version.clone()));
        }
    }

    fn merge(&mut self, merge: &Merge) -> Edit {
        // A stable sort finds the sorted runs of its input and merges them:
        // this is the k-way merge, without a heap.
        let mut keys = std::mem::take(&mut self.merged);
        keys.clear();
        for (level, _, file) in merge.files() {
            // As in the store: updates are seen on their way out of level 0.
            if let Some(map) = self.hot_map.as_mut().filter(|_| level == 0) {
                self.tables[&file.number].iter().for_each(|&key| map.observe(hash(key)));
            }
            keys.extend_from_slice(&self.tables[&file.number]);
        }
        let read = keys.len() as u64;
        keys.sort();
        keys.dedup();
        let mut cutter = self.policy.cutter(&self.version, &self.settings, merge.output_level);
        let mut files = self.write(&keys, &mut cutter);
        // Entries that are written again are as old as before.
        let seq_max = merge.files().map(|(_, _, file)| file.seq_max).max().unwrap_or(0);
        files.iter_mut().for_each(|file| file.seq_max = file.seq_max.min(seq_max));
        self.meter.merge(merge, read, keys.len() as u64);
        self.merged = keys;
        merge.edit(files)
    }

    /// Writes keys to tables that end where the cutter says.
    fn write(&mut self, keys: &[u32], cutter: &mut Cutter) -> Vec<File> {
        let mut files = Vec::new();
        let mut start = 0;
        for (i, key) in keys.iter().enumerate() {
            let (so_far, left) = ((i - start) as u64, (keys.len() - i) as u64);
            if cutter.cut_before(&self.version.order, &key.to_be_bytes(), so_far, || left) {
                files.push(self.table(&keys[start..i]));
                start = i;
            }
        }
        if start < keys.len() {
            files.push(self.table(&keys[start..]));
        }
        files
    }

    /// Keeps a table of keys, at least one, and returns its metadata.
    fn table(&mut self, keys: &[u32]) -> File {
        let number = self.next_file;
        self.next_file += 1;
        self.meter.table();
        let (smallest, largest) = (keys[0].to_be_bytes(), keys[keys.len() - 1].to_be_bytes());
        self.tables.insert(number, keys.to_vec());
        File {
            number,
            uid: number.wrapping_mul(0x9e37_79b9),
            bytes: keys.len() as u64,
            entries: keys.len() as u64,
            smallest: smallest.into(),
            largest: largest.into(),
            point_bounds: Some((smallest.into(), largest.into())),
            seq_max: self.seq,
            hotness: self
                .hot_map
                .as_ref()
                .map_or(0, |map| map.hotness(keys.iter().map(|&k| hash(k)))),
            ..File::default()
        }
    }

    fn install(&mut self, edit: &Edit) -> Result<()> {
        self.version = self.version.apply(edit)?;
        for number in edit.obsolete() {
            self.tables.remove(&number);
        }
        Ok(())
    }

    /// Measures the tree between two flushes: how many files some keys meet.
    pub(crate) fn look(&mut self) {
        for _ in 0..PROBES {
            let key = self.random.below(self.keys).to_be_bytes();
            let files = (0..self.version.levels.len() as u32)
                .flat_map(|n| [(n, Part::Run), (n, Part::SstLog)])
                .map(|(n, part)| self.version.overlapping(n, part, &key, &key, false).count())
                .sum::<usize>();
            self.meter.probe(files as u64);
        }
        self.meter.settle(&self.version, self.keys);
    }
}
