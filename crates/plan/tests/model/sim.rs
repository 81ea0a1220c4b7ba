//! An engine without bytes: tables are lists of entries, and every decision is
//! run on them as the engine would run it, one entry being one byte.
//!
//! Owns: the model (a map for now and for each snapshot) and the contents of the tables. Never
//! does: share code with the crate under test beyond the tree itself, `OlderFiles` and the cutter,
//! which are under test.

use std::collections::{BTreeMap, BTreeSet};
use std::rc::Rc;
use windrow_base::key::SEQ_MAX;
use windrow_base::{FileNumber, KeyOrder, SeqNo};
use windrow_plan::axes::Sampler;
use windrow_plan::tree::closure::close;
use windrow_plan::tree::{Edit, File, OlderFiles, Part, Version};
use windrow_plan::{
    Busy, Cutter, Decision, ManualState, Merge, Move, PlanSettings, Policy, Reason, View,
};

/// An update of a key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Entry {
    Put(u16),
    Delete,
}

type Key = u32;

/// Contents of a table: entries by key, newest first, and range tombstones.
#[derive(Clone, Debug, Default)]
struct Table {
    points: Vec<(Key, SeqNo, Entry)>,
    ranges: Vec<(Key, Key, SeqNo)>,
}

struct Job {
    decision: Decision,
    outputs: Vec<(File, Rc<Table>)>,
}

type Map = BTreeMap<Key, u16>;

/// A small, fixed generator (splitmix64).
pub(crate) struct Random(pub(crate) u64);

impl Random {
    pub(crate) fn below(&mut self, n: u64) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        (z ^ (z >> 31)) % n
    }
}

pub(crate) struct Sim {
    pub(crate) version: Version,
    pub(crate) policy: Policy,
    pub(crate) settings: PlanSettings,
    pub(crate) flushed_entries: u64,
    pub(crate) merged_entries: u64,
    /// Entries that merges took in.
    pub(crate) read_entries: u64,
    busy: Busy,
    jobs: Vec<Job>,
    tables: BTreeMap<FileNumber, Rc<Table>>,
    next_file: FileNumber,
    seq: SeqNo,
    now: Map,
    snapshots: BTreeMap<SeqNo, Map>,
}

fn bytes(key: Key) -> Vec<u8> {
    key.to_be_bytes().to_vec()
}

fn key_of(bytes: &[u8]) -> Key {
    Key::from_be_bytes(bytes.try_into().unwrap())
}

impl Sim {
    pub(crate) fn new(policy: Policy) -> Sim {
        Sim {
            version: Version::empty(KeyOrder::Bytewise),
            policy,
            settings: PlanSettings {
                memtable_bytes: 8,
                file_bytes: 6,
                level_base_bytes: 24,
                overlap_files_max: 4,
                tombstone_grace_ms: 0,
                expiry_grace_ms: 0,
                ..PlanSettings::default()
            },
            flushed_entries: 0,
            merged_entries: 0,
            read_entries: 0,
            busy: Busy::new(),
            jobs: Vec::new(),
            tables: BTreeMap::new(),
            next_file: 1,
            seq: 0,
            now: Map::new(),
            snapshots: BTreeMap::new(),
        }
    }

    fn view(&self) -> View<'_> {
        View {
            version: &self.version,
            busy: &self.busy,
            settings: &self.settings,
            snapshots_oldest: self.snapshots.keys().next().copied().unwrap_or(SEQ_MAX),
            now_ms: 1,
        }
    }

    pub(crate) fn flush(
        &mut self,
        entries: &[(u8, Entry)],
        range: Option<(u8, u8)>,
        cut: Option<u8>,
    ) {
        let entries: Vec<(Key, Entry)> = entries.iter().map(|&(k, e)| (k as Key, e)).collect();
        let mut table = Table::default();
        if let Some((start, end)) = range {
            self.seq += 1;
            table.ranges.push((start as Key, end as Key, self.seq));
            self.now.retain(|&k, _| k < start as Key || end as Key <= k);
        }
        self.write(table, &entries, cut.map(Key::from));
    }

    pub(crate) fn flush_keys(&mut self, entries: &[(Key, Entry)]) {
        self.write(Table::default(), entries, None);
    }

    fn write(&mut self, mut table: Table, entries: &[(Key, Entry)], cut: Option<Key>) {
        for &(key, entry) in entries {
            self.seq += 1;
            table.points.push((key, self.seq, entry));
            match entry {
                Entry::Put(value) => self.now.insert(key, value),
                Entry::Delete => self.now.remove(&key),
            };
        }
        table.points.sort_by_key(|p| (p.0, u64::MAX - p.1));
        self.flushed_entries += table.points.len() as u64;
        let sample = self.policy.wants_sample(&self.version, &self.settings).then(|| {
            let mut sampler = Sampler::new(KeyOrder::Bytewise);
            table.points.iter().for_each(|point| sampler.see(&bytes(point.0), 1));
            sampler.finish()
        });
        let chosen = self.policy.boundaries(&self.version, &self.settings, sample.as_ref());
        let boundaries = chosen.clone().unwrap_or_else(|| self.version.boundaries.clone());
        let cutter = self.policy.flush_cutter(self.settings.memtable_bytes, &boundaries);
        let cuts = match cut {
            // As a policy that does not exist yet would.
            Some(cut) => vec![cut],
            None => self.cuts(cutter, &table),
        };
        let outputs = self.files_of(&table, &cuts);
        let files = outputs.iter().map(|(file, _)| file.clone()).collect();
        let edit = Edit { boundaries: chosen, ..Edit::flush(&self.version, files, self.seq) };
        self.install(&edit, outputs);
    }

    /// Cuts a table before each of `cuts`; range tombstones are truncated.
    fn files_of(&mut self, table: &Table, cuts: &[Key]) -> Vec<(File, Rc<Table>)> {
        let mut out = Vec::new();
        let boundaries = std::iter::once(0).chain(cuts.iter().copied());
        let ends = cuts.iter().copied().chain([Key::MAX]);
        for (lo, hi) in boundaries.zip(ends) {
            let points = table.points.iter().filter(|p| lo <= p.0 && p.0 < hi).copied();
            let ranges = table.ranges.iter().map(|r| (r.0.max(lo), r.1.min(hi), r.2));
            let piece =
                Table { points: points.collect(), ranges: ranges.filter(|r| r.0 < r.1).collect() };
            if piece.points.is_empty() && piece.ranges.is_empty() {
                continue;
            }
            let file = metadata(&piece, self.next_file);
            self.next_file += 1;
            out.push((file, Rc::new(piece)));
        }
        out
    }

    fn install(&mut self, edit: &Edit, outputs: Vec<(File, Rc<Table>)>) {
        // Every edit goes the way of the manifest.
        let mut record = Vec::new();
        edit.encode(&mut record);
        assert_eq!(Edit::decode(&record).unwrap(), *edit);
        self.version = self.version.apply(edit).unwrap_or_else(|e| panic!("{e}\n{}", self.version));
        for number in edit.obsolete() {
            self.tables.remove(&number);
        }
        self.tables.extend(outputs.into_iter().map(|(file, table)| (file.number, table)));
    }

    /// Starts the policy's decision; false if it is idle.
    pub(crate) fn start_pick(&mut self) -> bool {
        let decision = self.policy.pick(&self.view());
        self.start(decision)
    }

    /// Starts the merge that reads have paid for, where each file has cost `cost` hundredths of its
    /// bytes, more or less by its number.
    pub(crate) fn start_for_reads(&mut self, cost: u16) -> bool {
        let of = |f: &File| f.bytes * u64::from(cost) * (1 + f.number % 4) / 100;
        let costs = self.version.files().map(|(_, _, f)| (f.number, of(f))).collect();
        let decision = self.policy.pick_for_reads(&self.view(), &costs);
        self.start(decision)
    }

    pub(crate) fn start_manual(&mut self, state: &mut ManualState) -> bool {
        let decision = self.policy.manual(&self.view(), None, None, state);
        self.start(decision)
    }

    /// Starts the job of one file to some place at most one level down, if
    /// nothing is in the way.
    pub(crate) fn start_foreign(&mut self, seed: usize, to: usize) {
        let count = self.version.file_count();
        if count == 0 {
            return;
        }
        let (level, part, file) = self.version.files().nth(seed % count).unwrap();
        let places = [
            (level + 1, Part::Run),
            (level, Part::SstLog),
            (level + 1, Part::SstLog),
            (level, Part::Run),
        ];
        let to = places[to % places.len()];
        if to == (0, Part::Run) || to.0 > 4 {
            return;
        }
        let index = self.version.level(level).unwrap().find(part, file.number).unwrap();
        let free = |f: &File| !self.busy.is_busy(f.number);
        let Some(closure) = close(&self.version, [(level, part, index)], to, free) else { return };
        let merge = Merge {
            inputs: closure.inputs(),
            output_level: to.0,
            output_part: to.1,
            output_epoch: closure.output().age.0,
            bounds: closure.span().to_bounds(),
            reason: Reason::Manual,
            cursor: None,
        };
        if self.busy.conflicts(&self.version.order, &merge) {
            return;
        }
        let decision = match closure.len() == 1 && to != (level, part) {
            false => Decision::Merge(merge),
            true => Decision::Move(Move {
                file: file.clone(),
                from: (level, part),
                to,
                epoch: merge.output_epoch,
                reason: Reason::Manual,
                cursor: None,
            }),
        };
        self.start(decision);
    }

    fn start(&mut self, decision: Decision) -> bool {
        if decision.is_idle() {
            return false;
        }
        if let Decision::Merge(merge) = &decision {
            assert!(!self.busy.conflicts(&self.version.order, merge), "{merge}");
        }
        self.busy.claim(&decision);
        let outputs = match &decision {
            Decision::Merge(merge) => self.merge(merge),
            _ => Vec::new(),
        };
        self.jobs.push(Job { decision, outputs });
        true
    }

    /// The decision that was started last, if it is not finished.
    pub(crate) fn started(&self) -> Option<&Decision> {
        self.jobs.last().map(|job| &job.decision)
    }

    pub(crate) fn is_working(&self) -> bool {
        !self.jobs.is_empty()
    }

    /// Installs one of the running jobs.
    pub(crate) fn finish(&mut self, which: usize) {
        if self.jobs.is_empty() {
            return;
        }
        let job = self.jobs.remove(which % self.jobs.len());
        self.busy.release(&job.decision);
        let edit = match &job.decision {
            Decision::Move(m) => m.edit(),
            Decision::Drop(d) => d.edit(),
            Decision::Merge(m) => m.edit(job.outputs.iter().map(|(f, _)| f.clone()).collect()),
            Decision::Reshape(r) => r.edit(),
            Decision::Idle => unreachable!("idle is never started"),
        };
        self.install(&edit, job.outputs);
        if self.jobs.is_empty() {
            assert!(self.busy.is_empty() && self.busy.jobs() == 0);
        }
    }

    /// Returns the stripe between snapshots that an entry belongs to; 0 is below all.
    fn stripe(&self, seq: SeqNo) -> usize {
        self.snapshots.range(..seq).count()
    }

    fn merge(&mut self, merge: &Merge) -> Vec<(File, Rc<Table>)> {
        let mut all = Table::default();
        self.read_entries += merge.input_bytes();
        for (_, _, file) in merge.files() {
            let table = &self.tables[&file.number];
            all.points.extend(&table.points);
            all.ranges.extend(&table.ranges);
        }
        all.points.sort_by_key(|p| (p.0, u64::MAX - p.1));
        let mut outside = OlderFiles::new(&self.version, merge);
        let mut kept = Table::default();
        let mut last: Option<(Key, usize)> = None;
        for &(key, seq, entry) in &all.points {
            let stripe = self.stripe(seq);
            let covered = all.ranges.iter().any(|&(start, end, range)| {
                start <= key && key < end && range > seq && self.stripe(range) == stripe
            });
            let shadowed = last == Some((key, stripe));
            let settled = entry == Entry::Delete && stripe == 0 && !outside.may_hold(&bytes(key));
            if !covered && !shadowed && !settled {
                kept.points.push((key, seq, entry));
            }
            last = Some((key, stripe));
        }
        let needed = |r: &&(Key, Key, SeqNo)| {
            self.stripe(r.2) > 0 || outside.overlaps(&bytes(r.0), &bytes(r.1))
        };
        let ranges: BTreeSet<_> = all.ranges.iter().filter(needed).copied().collect();
        kept.ranges.extend(ranges);
        self.merged_entries += kept.points.len() as u64;
        let cutter = self.policy.cutter(&self.version, &self.settings, merge.output_level);
        let cuts = self.cuts(cutter, &kept);
        self.files_of(&kept, &cuts)
    }

    fn cuts(&self, mut cutter: Cutter, table: &Table) -> Vec<Key> {
        let mut cuts = Vec::new();
        let (mut size, mut left) = (0, table.points.len() as u64);
        for keys in table.points.chunk_by(|a, b| a.0 == b.0) {
            if cutter.cut_before(&self.version.order, &bytes(keys[0].0), size, || left) {
                cuts.push(keys[0].0);
                size = 0;
            }
            size += keys.len() as u64;
            left -= keys.len() as u64;
        }
        cuts
    }

    pub(crate) fn snapshot(&mut self) {
        self.snapshots.insert(self.seq, self.now.clone());
    }

    pub(crate) fn release(&mut self, which: usize) {
        let which = which % self.snapshots.len().max(1);
        if let Some(seq) = self.snapshots.keys().nth(which).copied() {
            self.snapshots.remove(&seq);
        }
    }

    pub(crate) fn release_all(&mut self) {
        self.snapshots.clear();
    }

    /// Entries and range tombstones in all tables.
    pub(crate) fn entries(&self) -> usize {
        self.tables.values().map(|t| t.points.len() + t.ranges.len()).sum()
    }

    /// Keys that have a value.
    pub(crate) fn live(&self) -> usize {
        self.now.len()
    }

    /// Reads as the engine does: the first visible entry in read order wins.
    fn get(&self, key: Key, at: SeqNo) -> Option<u16> {
        let wanted = bytes(key);
        let mut hidden_below = 0;
        for (_, _, file) in self.version.files() {
            if !file.span().contains(&self.version.order, &wanted) {
                continue;
            }
            let table = &self.tables[&file.number];
            let covering = table.ranges.iter().filter(|r| r.0 <= key && key < r.1 && r.2 <= at);
            hidden_below = covering.map(|r| r.2).max().unwrap_or(0).max(hidden_below);
            let newest = table.points.iter().find(|p| p.0 == key && p.1 <= at);
            match newest {
                Some(&(_, seq, Entry::Put(value))) if seq > hidden_below => return Some(value),
                Some(_) => return None,
                None if hidden_below > 0 => return None,
                None => {}
            }
        }
        None
    }

    /// Checks that every key reads right, now and at every snapshot, and that its entries are in
    /// read order newest first (I3, I4).
    pub(crate) fn check(&self) {
        self.version.check().unwrap();
        let known: Vec<FileNumber> = self.tables.keys().copied().collect();
        let mut there: Vec<FileNumber> = self.version.files().map(|(_, _, f)| f.number).collect();
        there.sort_unstable();
        assert_eq!(known, there);
        for key in 0..90 {
            assert_eq!(
                self.get(key, self.seq),
                self.now.get(&key).copied(),
                "key {key}\n{}",
                self.version
            );
            for (&at, map) in &self.snapshots {
                assert_eq!(
                    self.get(key, at),
                    map.get(&key).copied(),
                    "key {key} at {at}\n{}",
                    self.version
                );
            }
            let mut last = SeqNo::MAX;
            for (_, _, file) in self.version.files() {
                for &(k, seq, _) in &self.tables[&file.number].points {
                    if k == key {
                        assert!(seq < last, "key {key} out of order (I3, I4)\n{}", self.version);
                        last = seq;
                        let span = file.point_bounds.as_ref().unwrap();
                        assert!(key_of(&span.0) <= key && key <= key_of(&span.1));
                    }
                }
            }
        }
    }
}

fn metadata(table: &Table, number: FileNumber) -> File {
    let first = table.points.first().map(|p| p.0);
    let last = table.points.last().map(|p| p.0);
    let range_lo = table.ranges.iter().map(|r| r.0).min();
    let range_hi = table.ranges.iter().map(|r| r.1).max();
    let smallest = first.into_iter().chain(range_lo).min().unwrap();
    // The end of a range is open: it reaches further only past the last point.
    let largest_exclusive = match (last, range_hi) {
        (Some(last), Some(hi)) => hi > last,
        (None, Some(_)) => true,
        _ => false,
    };
    let largest = if largest_exclusive { range_hi } else { last }.unwrap();
    let seqs = || table.points.iter().map(|p| p.1).chain(table.ranges.iter().map(|r| r.2));
    let entries = table.points.len() as u64;
    File {
        number,
        uid: number.wrapping_mul(0x9e37_79b9),
        bytes: entries + table.ranges.len() as u64,
        entries,
        point_tombstones: table.points.iter().filter(|p| p.2 == Entry::Delete).count() as u64,
        range_tombstones: table.ranges.len() as u64,
        smallest: bytes(smallest).into(),
        largest: bytes(largest).into(),
        largest_exclusive,
        point_bounds: first.zip(last).map(|(a, b)| (bytes(a).into(), bytes(b).into())),
        seq_min: seqs().min().unwrap(),
        seq_max: seqs().max().unwrap(),
        ..File::default()
    }
}
