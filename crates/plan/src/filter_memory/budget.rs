//! The filter plan of a job: the memory of its outputs' filters, and the bits per key that each of
//! them gets.
//!
//! It is made once when a job begins. All files are given a [`Load`]: the survivors of the job as
//! they are, its outputs as the inputs let expect. The solver's constant C then decides the outputs
//! one by one, each by its own entries and estimate. The memory is `bits * entries` of the tree
//! after the job, and new filters take no more of it than surviving ones leave: by construction,
//! since filters that are written cannot be taken back.
//!
//! Monkey+ and Mnemosyne differ in z alone. Monkey+: every run is asked as often, a file its share
//! of that. Mnemosyne: Merlin's estimate. A file that Merlin does not know yet counts as in
//! Monkey+, so that a database without statistics starts out as Monkey+, and a few queries do not
//! upset it.
//!
//! Owns: the plan. Never does: count queries, or build a filter.

use super::FilterMemory;
use super::curve::{BITS_CAP, BUILT};
use super::floors::Floors;
use super::job::FilterJob;
use super::level_shares::LevelBits;
use super::merlin::Estimate;
use super::room::{After, FilterRoom, PRIOR_QUERIES, Survivor, Terms};
use super::solver::{Load, solve};
use crate::tree::{File, Part, Place, Version};
use alloc::collections::BTreeMap;
use alloc::sync::Arc;
use alloc::vec::Vec;
use windrow_base::{Epoch, FileNumber, debug_invariant};

/// A job may take this many times its expected need, where there is more.
const SPARE: f64 = 1.25;

/// A price above any that a filter is worth, over one that is paid; and how often the range between
/// is halved to find the price of a job.
const HIGHER: f64 = 100.0;
const HALVINGS: u32 = 40;

/// Bits that a filter may take beyond its own: it ends with a line of 64 bytes and a trailer.
/// Without it, a job that shares out the last of the memory would find nothing left for its last
/// table.
const ROUNDING_BITS: f64 = 72.0 * 8.0;

/// Decides the filters of a job's outputs.
#[derive(Clone, Debug, PartialEq)]
pub struct FilterPlan {
    rule: Rule,
    /// Memory that the outputs' filters may take, if they hold `entries_min`.
    allowance_bits: f64,
    entries_min: f64,
    /// A flush writes at most `entries_min` entries, a merge at least.
    at_most: bool,
    bits_per_entry: f64,
    /// The terms of the memory, where a small table has its share of it whatever the others hold.
    terms: Option<Terms>,
    /// Bits of every entry still to come that tables before it leave alone.
    kept_bits: f64,
    /// By how many bits the job may draw the pool down (Monkey+: the memory), at worst: other
    /// jobs leave as much while it runs ([`FilterJob::reserved_bits`]).
    pub growth_bits: f64,
}

#[derive(Clone, Debug, PartialEq)]
enum Rule {
    /// This number of bits, whatever is known.
    Fixed(f64),
    /// By the solver's constant.
    Priced(Price),
}

/// The price that gives any file of the tree its bits.
#[derive(Clone, Debug, PartialEq)]
struct Price {
    /// Of an output's bits: the tree's, or a higher one where the job has less.
    c: f64,
    /// The tree's own: the worth of a filter wherever its file is.
    tree_c: f64,
    /// The least bits of outputs. Empty for Monkey+, which moves all by its price.
    floors: Floors,
    /// Whether estimates count.
    learns: bool,
    queries: f64,
    groups: Groups,
    output: (u32, Part),
}

impl Price {
    fn load(&self, at: (u32, Part, Option<Epoch>), entries: f64, known: Option<Estimate>) -> Load {
        Load { entries, empty: self.empty(self.groups.share(at, entries), known) }
    }

    /// z of a file that covers `share` of the key space.
    fn empty(&self, share: f64, known: Option<Estimate>) -> f64 {
        debug_invariant!(F3, (0.0..=1.0).contains(&share), "a file covers {share} of the keys");
        match known.filter(|_| self.learns) {
            None if self.learns => (PRIOR_QUERIES + self.queries) * share,
            None => share,
            Some(estimate) => estimate.empty() + PRIOR_QUERIES * share,
        }
    }

    /// Returns the queries in vain of a table that covered the whole key space in a level, as far
    /// as its files say; those of all queries where it has none.
    fn vain(&self, level: u32, after: &After) -> f64 {
        let outputs = after.outputs.iter().map(|(level, load)| {
            let share = self.groups.share((self.output.0, self.output.1, None), load.entries);
            (*level, load.empty, share)
        });
        let survivors = after.survivors.iter().map(|s| (s.level, s.load.empty, s.share));
        let of_level = outputs.chain(survivors).filter(|(n, ..)| *n == level);
        let (empty, share) =
            of_level.fold((0.0, 0.0), |sum, (_, empty, share)| (sum.0 + empty, sum.1 + share));
        match share > 0.0 {
            true => empty / share,
            false => PRIOR_QUERIES + self.queries,
        }
    }

    /// Returns the bits at a price: `c` or `tree_c`.
    fn bits(load: &Load, c: f64) -> f64 {
        let bits = BUILT.bits(libm::log(load.empty / load.entries) - c, BITS_CAP);
        debug_invariant!(
            F1,
            (0.0..=BITS_CAP).contains(&bits),
            "{bits} bits per key for {load:?} at {c}"
        );
        bits
    }

    /// Returns the bits of an output at a price: its floor at least.
    fn output_bits(&self, load: &Load, c: f64) -> f64 {
        Price::bits(load, c).max(self.floors.bits(self.output.0, load))
    }

    /// Returns the bits of the outputs together at a price.
    fn sum(&self, outputs: &[(u32, Load)], c: f64) -> f64 {
        outputs.iter().map(|(_, load)| load.entries * self.output_bits(load, c)).sum()
    }

    /// Returns the price at which the outputs take `left_bits`, or that of the tree if they take
    /// less at that. They have their floors at any price.
    fn affordable(&self, outputs: &[(u32, Load)], left_bits: f64) -> f64 {
        if self.sum(outputs, self.tree_c) <= left_bits {
            return self.tree_c;
        }
        let loads: Vec<Load> = outputs.iter().map(|(_, load)| *load).collect();
        let without_floors = solve(&BUILT, &loads, left_bits, BITS_CAP).c.max(self.tree_c);
        if !without_floors.is_finite() || self.sum(outputs, without_floors) <= left_bits {
            return without_floors;
        }
        // At the highest price nothing is left but the floors.
        lowest(without_floors, |c| self.sum(outputs, c) <= left_bits)
    }

    /// Returns the price at which the filters of all files take `memory_bits`, where survivors keep
    /// those that are longer than it gives. At the tree's price the first jobs would take what is
    /// left, and those after them would find nothing.
    fn with_longer_filters(&self, after: &After, memory_bits: f64) -> f64 {
        let taken = |c| {
            let survivor = |file: &Survivor| {
                file.held_bits.max(file.load.entries * Price::bits(&file.load, c))
            };
            self.sum(&after.outputs, c) + after.survivors.iter().map(survivor).sum::<f64>()
        };
        match taken(self.tree_c) <= memory_bits {
            true => self.tree_c,
            false => lowest(self.tree_c, |c| taken(c) <= memory_bits),
        }
    }
}

/// Returns the lowest price from `c` on that is high enough, or one above all. A price is a
/// logarithm.
fn lowest(c: f64, is_enough: impl Fn(f64) -> bool) -> f64 {
    let (mut low, mut high) = (c, c + HIGHER);
    for _ in 0..HALVINGS {
        let middle = (low + high) / 2.0;
        match is_enough(middle) {
            true => high = middle,
            false => low = middle,
        }
    }
    high
}

/// Entries of the files that count as one run: an epoch of level 0; the run of any other level with
/// its log, whose files came out of that run and cover as much of the key space per entry.
#[derive(Clone, Debug, Default, PartialEq)]
struct Groups {
    entries: BTreeMap<(u32, Epoch), f64>,
    /// Files of each epoch of level 0.
    pieces: BTreeMap<Epoch, u64>,
    /// Partitions of level 0: the files of an epoch before any of them is merged down.
    partitions: u64,
    new_epoch: f64,
}

impl Groups {
    fn key(level: u32, epoch: Epoch) -> (u32, Epoch) {
        (level, if level == 0 { epoch } else { 0 })
    }

    fn add(&mut self, level: u32, epoch: Epoch, entries: f64) {
        debug_invariant!(F3, entries >= 0.0, "a table of {entries} entries");
        *self.entries.entry(Groups::key(level, epoch)).or_default() += entries;
        if level == 0 {
            *self.pieces.entry(epoch).or_default() += 1;
        }
    }

    /// Returns how many times the rest of an epoch the whole flush was: its partitions are merged
    /// down one by one, and those left cover no more of the key space than before.
    fn times_left(&self, level: u32, epoch: Epoch) -> f64 {
        let left = self.pieces.get(&epoch).copied().filter(|_| level == 0).unwrap_or(1).max(1);
        if level == 0 { (self.partitions as f64 / left as f64).max(1.0) } else { 1.0 }
    }

    /// Returns about what share of the key space `entries` of a place cover. Without an epoch: of
    /// the job's output.
    fn share(&self, (level, _, epoch): (u32, Part, Option<Epoch>), entries: f64) -> f64 {
        let whole = match epoch {
            None if level == 0 => self.new_epoch,
            _ => {
                let epoch = epoch.unwrap_or(0);
                let left = self.entries.get(&Groups::key(level, epoch)).copied().unwrap_or(0.0);
                left * self.times_left(level, epoch)
            }
        };
        let share = if whole > 0.0 { (entries / whole).min(1.0) } else { 1.0 };
        debug_invariant!(F3, (0.0..=1.0).contains(&share), "{entries} of {whole} entries");
        share
    }
}

/// The files that stay.
fn survivors(
    version: &Version,
    terms: Terms,
    price: &Price,
    stays: &dyn Fn(&File) -> bool,
    known: &dyn Fn(&File) -> Option<Estimate>,
) -> Vec<Survivor> {
    let of_file = |(level, part, file): (u32, Part, &Arc<File>)| {
        let at = (level, part, Some(file.epoch));
        let load = price.load(at, file.entries as f64, known(file));
        let share = price.groups.share(at, file.entries as f64);
        Survivor { level, load, share, held_bits: terms.held_bits(file) }
    };
    version.files().filter(|(_, _, file)| stays(file)).map(of_file).collect()
}

impl FilterPlan {
    /// Makes the plan of one policy for one job. `estimate` is Merlin's for any file of the
    /// version, if it knows the file; `fresh` that of a flush's output. O(F log F).
    pub fn new(
        filters: &FilterMemory,
        version: &Version,
        job: &FilterJob<'_>,
        fresh: Option<Estimate>,
        estimate: &dyn Fn(&File) -> Option<Estimate>,
    ) -> FilterPlan {
        let terms = match filters {
            FilterMemory::None => return FilterPlan::fixed(0.0),
            FilterMemory::Uniform(uniform) => {
                return FilterPlan::fixed(uniform.bits.min(job.bits_max));
            }
            FilterMemory::Monkey(monkey) => Terms::new(monkey.bits, false, 0.0),
            FilterMemory::Mnemosyne(m) => Terms::new(m.bits, true, m.stays),
        };
        let terms = terms.with_memory_for(job.bits_max);
        let mut gone: Vec<FileNumber> = job.inputs.iter().map(|(_, _, f)| f.number).collect();
        gone.sort_unstable();
        let stays = |file: &File| gone.binary_search(&file.number).is_err();
        let written = entries_written(job);
        debug_invariant!(F3, written >= 0.0, "{written} entries are written");
        let price = Price {
            c: f64::INFINITY,
            tree_c: f64::INFINITY,
            floors: Floors::default(),
            learns: terms.learns,
            queries: job.queries as f64,
            groups: groups_after(version, job, written, &stays),
            output: job.output,
        };
        let known = |file: &File| if terms.learns { estimate(file) } else { None };
        let outputs = expected_outputs(&price, job, written, fresh, &known);
        let outputs = outputs.iter().map(|load| (job.output.0, *load)).collect();
        let survivors = survivors(version, terms, &price, &stays, &known);
        FilterPlan::priced(terms, job, price, &After { outputs, survivors, written })
    }

    /// Makes the plan of a job on a tree whose loads are known.
    fn priced(terms: Terms, job: &FilterJob<'_>, mut price: Price, after: &After) -> FilterPlan {
        let loads = after.loads();
        if terms.stays > 0.0 {
            let vain = |level| price.vain(level, after);
            let bits = LevelBits::new(job.expected, &vain, terms.aim);
            price.floors = Floors::new(&loads, bits, terms.stays);
        }
        let loads: Vec<Load> = loads.iter().map(|(_, load)| *load).collect();
        price.tree_c = solve(&BUILT, &loads, FilterRoom::aim(terms, job, after), BITS_CAP).c;
        let priced = |load: &Load| match terms.aim < terms.bits {
            true => Price::bits(load, price.tree_c),
            false => f64::INFINITY,
        };
        let room = FilterRoom::new(terms, job, after, (&price.floors, &priced));
        let floors = price.floors.clone();
        let usable_bits = room.left - ROUNDING_BITS * after.outputs.len() as f64;
        if room.floor > usable_bits {
            // Each output then has its part of the memory there is, not the first ones all of it.
            price.floors = Floors::default();
        }
        // Filters under another plan may hold memory that the outputs should have.
        price.c = price.affordable(&after.outputs, usable_bits);
        if terms.moves_all() && terms.aim == terms.bits && price.tree_c.is_finite() {
            // Those of survivors, which all jobs until their next rewrite pay for alike.
            let alike =
                price.with_longer_filters(after, FilterRoom::with_longer(terms, job, after));
            price.c = price.c.max(alike);
        }
        let (of_tree, at) = (price.tree_c, price.c);
        debug_invariant!(F2, of_tree <= at, "a job pays {at} and the tree {of_tree}");
        // Jobs run side by side, and one must not hold all that is left.
        let allowance_bits = room.left.min(price.sum(&after.outputs, price.c) * SPARE);
        let written = after.written;
        let growth_bits = room.growth((terms, &floors), job, written, allowance_bits);
        FilterPlan {
            rule: Rule::Priced(price),
            allowance_bits,
            entries_min: written,
            at_most: job.inputs.is_empty(),
            bits_per_entry: terms.aim,
            terms: Some(terms),
            kept_bits: if written > 0.0 { room.floor.min(room.left) / written } else { 0.0 },
            growth_bits,
        }
        .within(room.memory)
    }

    /// Checks F2 of a job.
    fn within(self, memory_bits: f64) -> FilterPlan {
        let allowed = self.allowance_bits;
        let fits = (0.0..=memory_bits.max(0.0)).contains(&allowed);
        debug_invariant!(F2, fits, "{allowed} bits for a job, of {memory_bits} for the tree");
        self
    }

    /// Returns a plan with equal bits per key for every output, without a limit.
    pub fn fixed(bits: f64) -> FilterPlan {
        debug_invariant!(F1, bits >= 0.0, "{bits} bits per key");
        FilterPlan {
            rule: Rule::Fixed(bits),
            allowance_bits: f64::INFINITY,
            entries_min: 0.0,
            at_most: false,
            bits_per_entry: bits,
            terms: None,
            kept_bits: 0.0,
            growth_bits: 0.0,
        }
    }

    /// Returns the bytes that all filters of the outputs may take once `entries` are written.
    /// Entries of a merge beyond the sure ones bring their own memory; those that a flush has still
    /// to write, or finds to be old versions, keep theirs.
    pub fn allowance_bytes(&self, entries: u64) -> u64 {
        let more = entries as f64 - self.entries_min;
        debug_invariant!(F2, !more.is_nan(), "an allowance for {entries} entries");
        let each = match (self.at_most, more > 0.0) {
            (true, true) => 0.0,
            (false, false) => self.kept_bits,
            _ => self.bits_per_entry,
        };
        ((self.allowance_bits + more * each).max(0.0) / 8.0) as u64
    }

    /// Whether outputs are decided by their entries, when they are complete.
    pub fn decides_late(&self) -> bool {
        matches!(self.rule, Rule::Priced(_))
    }

    /// Bits per key to begin an output with, before anything is known of it.
    pub fn bits_at_first(&self) -> f64 {
        self.bits_per_entry
    }

    /// Returns the bits per key that an output of `entries` has whatever is left for it: those of
    /// the tree where it is small.
    pub fn bits_at_least(&self, entries: u64) -> f64 {
        let is_small = self.terms.is_some_and(|terms| terms.is_small(entries));
        if is_small { self.bits_per_entry } else { 0.0 }
    }

    /// Returns the bits per key of an output of `entries`; 0 for no filter.
    pub fn bits(&self, entries: u64, known: Option<Estimate>) -> f64 {
        match &self.rule {
            Rule::Fixed(bits) => *bits,
            Rule::Priced(price) => {
                let at = (price.output.0, price.output.1, None);
                price.output_bits(&price.load(at, (entries as f64).max(1.0), known), price.c)
            }
        }
    }

    /// Whether a file of the tree is asked so often in vain that
    /// reading its filter pays (Mnemosyne, section 4.2.3: no filter is
    /// consulted where `n > z e^-C`, the best bits being none).
    pub fn consults(&self, level: u32, part: Part, file: &File, known: Option<Estimate>) -> bool {
        match &self.rule {
            Rule::Fixed(_) => true,
            Rule::Priced(price) if !price.learns => true,
            Rule::Priced(price) => {
                let at = (level, part, Some(file.epoch));
                let load = price.load(at, file.entries.max(1) as f64, known);
                // Not by `c`: a job without memory says nothing of filters that are there.
                Price::bits(&load, price.tree_c) > 0.0
            }
        }
    }
}

/// Returns the entries that the outputs hold at least: those of the largest input run, less those
/// that tombstones can take from it. The rest may be new keys or old versions of the same, which
/// only the merge will tell. (Range tombstones, expiry and compaction filters can take more: then
/// the tree is above its memory by that until the next job, which gets as much less.)
fn entries_written(job: &FilterJob<'_>) -> f64 {
    if job.inputs.is_empty() {
        return job.entries as f64;
    }
    let mut runs: BTreeMap<Place, u64> = BTreeMap::new();
    let mut tombstones = 0u64;
    for (level, part, file) in job.inputs {
        *runs.entry(place(*level, *part, file)).or_default() += file.entries;
        tombstones += file.point_tombstones;
    }
    debug_invariant!(I4, runs.len() <= job.inputs.len(), "{} runs of inputs", runs.len());
    let largest = runs.values().copied().max().unwrap_or(0);
    let all = job.inputs.iter().map(|(_, _, file)| file.entries).sum::<u64>();
    debug_invariant!(F3, largest <= all, "a run of {largest} entries among {all}");
    largest.saturating_sub(tombstones) as f64
}

fn place(level: u32, part: Part, file: &File) -> Place {
    match part {
        Part::Run => Place::run(level),
        Part::SstLog => Place::sst_log(level, file.epoch),
    }
}

fn groups_after(
    version: &Version,
    job: &FilterJob<'_>,
    written: f64,
    stays: &dyn Fn(&File) -> bool,
) -> Groups {
    let partitions = version.boundaries.len() as u64 + 1;
    let mut groups = Groups { new_epoch: written, partitions, ..Groups::default() };
    for (level, _, file) in version.files().filter(|(_, _, file)| stays(file)) {
        groups.add(level, file.epoch, file.entries as f64);
    }
    if job.output.0 > 0 {
        groups.add(job.output.0, 0, written);
    }
    let odd = groups.entries.values().find(|entries| entries.is_nan());
    debug_invariant!(F3, odd.is_none(), "a run of {odd:?} entries");
    groups
}

/// Returns the loads of the outputs before they are written: about the deepest inputs, each with
/// its share of the entries from above.
fn expected_outputs(
    price: &Price,
    job: &FilterJob<'_>,
    written: f64,
    fresh: Option<Estimate>,
    known: &dyn Fn(&File) -> Option<Estimate>,
) -> Vec<Load> {
    let at = (job.output.0, job.output.1, None);
    let deepest = job.inputs.iter().map(|(level, part, file)| place(*level, *part, file)).max();
    let Some(deepest) = deepest else {
        return alloc::vec![price.load(at, written.max(1.0), fresh)];
    };
    let is_deepest =
        |(level, part, file): &&(u32, Part, Arc<File>)| place(*level, *part, file) == deepest;
    let entries: f64 = job.inputs.iter().filter(is_deepest).map(|i| i.2.entries as f64).sum();
    debug_invariant!(F3, job.inputs.iter().any(|i| is_deepest(&i)), "no input is the deepest");
    let grown = if entries > 0.0 { written / entries } else { 0.0 };
    debug_invariant!(F3, grown >= 0.0, "{written} entries are to be written, of {entries}");
    let load = |(_, _, file): &(u32, Part, Arc<File>)| {
        // Hits from above are in q and x alike: the empty queries stay.
        price.load(at, (file.entries as f64 * grown).max(1.0), known(file))
    };
    job.inputs.iter().filter(is_deepest).map(load).collect()
}
