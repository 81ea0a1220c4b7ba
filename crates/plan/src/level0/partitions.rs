//! The partitions of level 0: what is in each, and where their boundaries are.
//!
//! Boundaries are first keys of files of level 1 and of those below, where outputs into level 1 are
//! cut as well, so that a partition's job meets whole files there. Each partition has the same
//! *load*, the bytes that its job will read: its bytes of level 1, and k times its piece of a
//! flush. Its piece is taken as the mean of those that wait in the partition. Their number must not
//! count: it only shows whose turn it was, and boundaries that followed it would move every few
//! flushes, for nothing. Nothing is known of an empty partition. One in k may just have been merged
//! down, and counts as the mean of the others. If more are empty, they get little.
//!
//! A tree that holds less than a memtable below level 0 does not show where keys are. Its
//! boundaries come from a sample of the flush (`sample.rs`), each partition with the same bytes.
//! With the first flushes uncut, all partitions would be tied together until these have been merged
//! down: jobs of up to 100 MiB where 10 do, with a memory of 32 MiB. Boundaries so chosen stay
//! until level 1's files show better ones; another sample replaces them only if it makes twice as
//! many, or if most of it is in one partition.
//!
//! Files once cut stay as they are. A file across a new boundary ties two partitions
//! together until it has been merged down. So boundaries change only
//! - if the largest partition has more than two to four times its share (four with many
//!   partitions), and the new ones would take a quarter off it at least, or
//! - if there is enough for twice as many partitions, or for as many as may be, or
//! - if there are more than may be, or four times as many as are worth it.
//!
//! Owns: the boundaries, and the division of level 0 by them. Never does: pick a job.

use super::sample::Sample;
use crate::tree::level::deepest_point;
use crate::tree::{File, Part, Version};
use crate::view::PlanSettings;
use alloc::sync::Arc;
use alloc::vec;
use alloc::vec::Vec;
use core::ops::RangeInclusive;
use windrow_base::{debug_invariant, invariant};

/// Partitions are uneven if the largest has more than this many times its share: the square root of
/// their number, within these bounds. With 64 partitions and a level 1 of three memtables, 4.96
/// bytes are written per byte at 2, 4.65 at 3 and 4.43 at 4 (uniform updates): a partition's part
/// of level 1 is small after its files have gone further down, and boundaries that follow it tie
/// partitions together.
const UNEVEN: (f64, f64) = (2.0, 4.0);
/// Weight of a byte of level 1, compared with one that a partition gets of a flush. The bytes of
/// level 1 in a partition change by half with each merge further down, and at full weight the
/// boundaries follow that. In the lab (16 partitions, an SST-log of 2 % of the tree, uniform
/// updates): 9.06 bytes written per byte and chains of 88 files at the 99th percentile at full
/// weight, 8.87 and 80 at half.
const SOURCE_WEIGHT: f64 = 0.5;
/// A flush's piece is worth a file from this part of `file_bytes` on.
const PIECES_PER_FILE: u64 = 8;
/// Boundaries come from no flush that writes less than this part of a memtable.
const SAMPLE_PART_MIN: u64 = 4;
/// A partition that gets more than this part of a flush shows that its boundaries are wrong, while
/// the tree below says nothing: the first memtable had keys in order, or of one prefix.
const SAMPLE_SHARE_MAX: f64 = 0.5;
/// Keys to choose from for each boundary.
const CANDIDATES_PER_PARTITION: usize = 8;
/// New boundaries are better if the largest partition has only this part of what it had.
const BETTER: f64 = 0.75;

/// The files of level 0 in one partition.
#[derive(Clone, Debug, Default)]
pub(super) struct Partition {
    /// From 0, in key order.
    pub(super) index: u32,
    /// Bytes; a file across boundaries counts in equal parts in each partition.
    pub(super) bytes: u64,
    /// Epochs over the deepest point.
    pub(super) depth: u32,
    /// Indices in level 0's SST-log, newest first; a file across boundaries is in several.
    pub(super) files: Vec<usize>,
}

/// Divides level 0 by partition, in key order, empty ones included.
pub(super) fn partitions_of(version: &Version) -> Vec<Partition> {
    let log = version.part(0, Part::SstLog);
    let mut partitions: Vec<Partition> = vec![Partition::default(); version.boundaries.len() + 1];
    for (i, file) in log.iter().enumerate() {
        let touched = touched(version, &version.boundaries, file);
        let parts = touched.clone().count() as u64;
        for at in touched {
            partitions[at].bytes = partitions[at].bytes.saturating_add((file.bytes / parts).max(1));
            partitions[at].files.push(i);
        }
    }
    for (index, partition) in (0..).zip(&mut partitions) {
        partition.index = index;
        partition.depth =
            deepest_point(&version.order, partition.files.iter().map(|&i| &log[i])).depth;
    }
    if cfg!(debug_assertions) {
        let placed = partitions.iter().map(|p| p.files.len()).sum::<usize>();
        debug_invariant!(I10, placed >= log.len(), "{placed} of {} files have a place", log.len());
        // Any point lies in one partition, with all files that cover it.
        let deepest = partitions.iter().map(|p| p.depth).max();
        let due = version.level(0).map_or(0, |level| level.sst_log_depth());
        debug_invariant!(I10, deepest == Some(due), "partitions are {deepest:?} deep of {due}");
        let newest_first = partitions.iter().all(|p| p.files.windows(2).all(|w| w[0] < w[1]));
        debug_invariant!(I4, newest_first, "files of a partition are out of order");
    }
    partitions
}

/// The partitions that hold a part of the file.
fn touched<K: AsRef<[u8]>>(
    version: &Version,
    boundaries: &[K],
    file: &File,
) -> RangeInclusive<usize> {
    let order = &version.order;
    let first = boundaries.partition_point(|b| order.compare(b.as_ref(), &file.smallest).is_le());
    let last = boundaries.partition_point(|b| !file.span().ends_before(order, b.as_ref()));
    debug_invariant!(I10, first <= last, "a file from partition {first} to {last}");
    first..=last.max(first)
}

/// Whether boundaries may come from a sample of a flush.
pub(super) fn wants_sample(
    version: &Version,
    settings: &PlanSettings,
    partitions_max: u32,
) -> bool {
    let partitions_max = partitions_max as usize;
    let most = worth_of_a_flush(settings, settings.memtable_bytes, partitions_max);
    most > 1 && says_nothing(version, settings, partitions_max)
}

/// Returns boundaries from a sample of a flush, where the tree below does not show where keys are:
/// if it makes twice as many partitions, or one of the present ones would get most of it.
pub(super) fn first_boundaries(
    version: &Version,
    settings: &PlanSettings,
    partitions_max: u32,
    sample: &Sample,
) -> Option<Arc<[Vec<u8>]>> {
    let enough = sample.bytes() >= settings.memtable_bytes / SAMPLE_PART_MIN;
    if !enough || !wants_sample(version, settings, partitions_max) {
        return None;
    }
    let worth = worth_of_a_flush(settings, sample.bytes(), partitions_max as usize);
    let boundaries = sample.boundaries(worth);
    let (now, count) = (version.boundaries.len() + 1, boundaries.len() + 1);
    invariant!(I10, count <= partitions_max as usize, "{count} partitions of a sample");
    let largest = |boundaries: &[Vec<u8>]| sample.largest_share(&version.order, boundaries);
    let is_wrong = || {
        let share = largest(&version.boundaries);
        share > SAMPLE_SHARE_MAX && largest(&boundaries) <= share * BETTER
    };
    (count >= now * 2 || is_wrong()).then(|| boundaries.into())
}

/// Whether no level holds enough for its files to show where keys are.
fn says_nothing(version: &Version, settings: &PlanSettings, partitions_max: usize) -> bool {
    let enough = enough(settings, partitions_max);
    let mut levels = 1..version.levels.len() as u32;
    levels.all(|level| version.part_bytes(level, Part::Run) < enough)
}

/// Returns how many partitions leave each a piece of a flush of `bytes` that is worth a file: the
/// number that a first sample makes, and the most there are later.
fn worth_of_a_flush(settings: &PlanSettings, bytes: u64, partitions_max: usize) -> usize {
    let bytes = bytes.min(settings.memtable_bytes);
    let pieces = bytes.saturating_mul(PIECES_PER_FILE) / settings.file_bytes.max(1);
    usize::try_from(pieces).unwrap_or(usize::MAX).clamp(1, partitions_max)
}

/// Returns new boundaries for at most `partitions_max` partitions, if the present ones no longer
/// fit.
pub(super) fn rederive(
    version: &Version,
    settings: &PlanSettings,
    partitions_max: u32,
    k: f64,
) -> Option<Arc<[Vec<u8>]>> {
    invariant!(I10, partitions_max > 0, "level 0 is to have no partition");
    let partitions_max = partitions_max as usize;
    let now = version.boundaries.len() + 1;
    let source = source(version, settings, partitions_max);
    let worth = worth(version, settings, source, partitions_max);
    let spread = spread(version, source, k);
    let more = worth >= now * 2 || (worth > now && worth == partitions_max);
    // As many as a first sample may have made are not too many for a level 1 of few files.
    let first = worth_of_a_flush(settings, settings.memtable_bytes, partitions_max);
    let fewer = now > partitions_max || now >= (worth * 4).max(first + 1);
    let largest = |boundaries: &[Vec<u8>]| {
        loads(version, boundaries, &spread).into_iter().fold(0.0, f64::max)
    };
    let old = largest(&version.boundaries);
    let total: f64 = spread.iter().map(|(_, load)| load).sum();
    debug_assert!(old <= total * (1.0 + 1e-6), "a partition has {old} of a load of {total}");
    let uneven = old * now as f64 > total * libm::sqrt(now as f64).clamp(UNEVEN.0, UNEVEN.1);
    if !more && !fewer && !uneven {
        return None;
    }
    let boundaries = boundaries(version, source, worth, &spread);
    let count = boundaries.len() + 1;
    invariant!(I10, count <= worth, "{count} partitions, of {worth} that are worth it");
    let better = fewer
        || (more && (count >= now * 2 || (count > now && count == partitions_max)))
        || (uneven && largest(&boundaries) <= old * BETTER);
    (better && *boundaries != *version.boundaries).then(|| boundaries.into())
}

/// Returns the level whose files show where data is: the first that holds a memtable, or enough for
/// all partitions, else the fullest. Level 1, unless it is small or was just emptied: the levels
/// below show little of where updates cluster.
fn source(version: &Version, settings: &PlanSettings, partitions_max: usize) -> u32 {
    let levels = 1..version.levels.len() as u32;
    let bytes = |n: &u32| version.part_bytes(*n, Part::Run);
    let enough = enough(settings, partitions_max);
    let first = levels.clone().find(|n| bytes(n) >= enough);
    first.or_else(|| levels.rev().max_by_key(bytes)).unwrap_or(1)
}

/// Bytes of a level whose files show where keys are: a memtable, or files for all partitions.
fn enough(settings: &PlanSettings, partitions_max: usize) -> u64 {
    debug_assert!(partitions_max > 0, "level 0 is to have no partition");
    settings.file_bytes.saturating_mul(partitions_max as u64).min(settings.memtable_bytes)
}

/// Returns how many partitions half-full files would fill, or a flush is worth, whichever is less.
fn worth(version: &Version, settings: &PlanSettings, source: u32, partitions_max: usize) -> usize {
    let file_bytes = settings.file_bytes.max(1);
    let files = version.part_bytes(source, Part::Run).saturating_mul(2) / file_bytes;
    let files = usize::try_from(files).unwrap_or(usize::MAX).max(1);
    files.min(worth_of_a_flush(settings, settings.memtable_bytes, partitions_max))
}

/// Files of the source and of level 0, each with its load.
type Spread<'v> = Vec<(&'v File, f64)>;

fn spread(version: &Version, source: u32, k: f64) -> Spread<'_> {
    let (run, log) = (version.part(source, Part::Run), version.part(0, Part::SstLog));
    let partitions = partitions_of(version);
    let epochs = |partition: &Partition| {
        partition.files.chunk_by(|&a, &b| log[a].epoch == log[b].epoch).count().max(1) as f64
    };
    let pieces: Vec<f64> = partitions.iter().map(|p| p.bytes as f64 / epochs(p)).collect();
    let filled = pieces.iter().filter(|&&piece| piece > 0.0).count();
    debug_assert!(filled <= partitions.len(), "{filled} of {} partitions", partitions.len());
    let mean = pieces.iter().sum::<f64>() / filled.max(1) as f64;

    // Files in the source's SST-log came from its run. Without them the partitions
    // would follow the gaps that a picker leaves which moves files there.
    let both = run.iter().chain(version.part(source, Part::SstLog));
    let mut spread: Spread<'_> = both.map(|f| (&**f, f.bytes as f64 * SOURCE_WEIGHT)).collect();
    for file in log {
        let touched = touched(version, &version.boundaries, file);
        let part = file.bytes as f64 / touched.clone().count() as f64;
        let load = touched.map(|partition| part * k / epochs(&partitions[partition])).sum();
        spread.push((file, load));
    }
    // One partition in k goes down for a flush; more are empty for want of writes.
    let empty = partitions.len() - filled;
    let guess = mean * k * (partitions.len() as f64 / k / empty.max(1) as f64).min(1.0);
    for at in (0..partitions.len()).filter(|&at| partitions[at].files.is_empty()) {
        let within = |f: &File| touched(version, &version.boundaries, f).contains(&at);
        let start = run.partition_point(|f| *touched(version, &version.boundaries, f).end() < at);
        let count = run[start..].iter().take_while(|f| within(f)).count();
        for (_, load) in &mut spread[start..start + count] {
            *load += guess / count as f64;
        }
    }
    let odd = spread.iter().map(|(_, load)| *load).find(|load| !(0.0..f64::MAX).contains(load));
    debug_assert!(odd.is_none(), "a file stands for a load of {odd:?}");
    spread
}

/// The load of each partition that `boundaries` make.
fn loads<K: AsRef<[u8]>>(version: &Version, boundaries: &[K], spread: &Spread<'_>) -> Vec<f64> {
    let mut loads = vec![0.0; boundaries.len() + 1];
    for (file, load) in spread {
        let touched = touched(version, boundaries, file);
        let part = load / touched.clone().count() as f64;
        touched.for_each(|partition| loads[partition] += part);
    }
    if cfg!(debug_assertions) {
        let (shared, all) = (loads.iter().sum::<f64>(), spread.iter().map(|s| s.1).sum::<f64>());
        let is_all = (shared - all).abs() <= all * 1e-6;
        debug_assert!(is_all, "a load of {all} is shared out as {shared}");
    }
    loads
}

/// Keys at which a partition may end: first keys of the source's files, and of levels
/// below it until there are several for each partition. With the source's alone, where a
/// partition has two or three of them, its width is a matter of chance:
/// 9.39 bytes and 118 files in the same lab, and where updates cluster in 3 % of the
/// keys, chains of 79 files instead of 31.
fn candidates(version: &Version, source: u32, partitions: usize) -> Vec<&[u8]> {
    let mut keys: Vec<&[u8]> = Vec::new();
    for level in source..version.levels.len() as u32 {
        let run = version.part(level, Part::Run);
        keys.extend(run.iter().skip(1).map(|f| &*f.smallest));
        if keys.len() >= partitions * CANDIDATES_PER_PARTITION {
            break;
        }
    }
    keys.sort_by(|a, b| version.order.compare(a, b));
    keys.dedup();
    let ascend = keys.windows(2).all(|pair| version.order.compare(pair[0], pair[1]).is_lt());
    debug_invariant!(I1, ascend, "places for boundaries do not ascend");
    keys
}

/// At most `partitions - 1` boundaries that share the load out: each at the first key
/// of the file nearest to where its share ends.
fn boundaries(
    version: &Version,
    source: u32,
    partitions: usize,
    spread: &Spread<'_>,
) -> Vec<Vec<u8>> {
    // As if every file made a partition.
    let keys = candidates(version, source, partitions);
    let loads = loads(version, &keys, spread);
    let total: f64 = loads.iter().sum();
    let due = |next: usize| total * next as f64 / partitions as f64;
    let mut boundaries: Vec<Vec<u8>> = Vec::new();
    let (mut sum, mut next) = (0.0, 1);
    for (key, pair) in keys.into_iter().zip(loads.windows(2)) {
        sum += pair[0];
        // Nearer than the end of the next file is.
        let reached = sum + pair[1] / 2.0;
        if next < partitions && due(next) <= reached {
            boundaries.push(key.to_vec());
            while next < partitions && due(next) <= reached {
                next += 1;
            }
        }
    }
    let count = boundaries.len();
    invariant!(I10, count < partitions, "{count} boundaries of {partitions} partitions");
    boundaries
}
