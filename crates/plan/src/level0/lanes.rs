//! The lanes of a partitioned level 0: what stands in each, and where the
//! borders go.
//!
//! Borders are first keys of files of level 1 and of those below, where outputs
//! into level 1 are cut as well, so that a lane's job meets whole files there.
//! Each lane has the same *load*, which is what its job will
//! read: its bytes of level 1 and k times what it gets of a flush. The latter is
//! the mean of the pieces that wait in the lane. How many wait must not count:
//! that follows from whose turn it was, and borders that followed it would move
//! every few flushes, for nothing. Of a lane that is empty nothing is known: one
//! in k may just have gone down, and counts as the mean of the others, and if
//! there are more, then they get little.
//!
//! Files once cut stay as they are, and each that lies across a new border ties
//! two lanes together until it has gone down. So borders change only
//! - if the largest lane has more than twice its share and the new ones would
//!   take a quarter off it at least, or
//! - if there is enough for twice as many lanes, or for as many as may be, or
//! - if there are more than may be, or four times as many as are worth it.

use crate::tree::level::deepest_point;
use crate::tree::{File, Part, Version};
use crate::view::Settings;
use alloc::sync::Arc;
use alloc::vec;
use alloc::vec::Vec;
use core::ops::RangeInclusive;

/// Lanes are uneven if the largest has more than so many times its share.
const UNEVEN: f64 = 2.0;
/// What a byte of level 1 counts beside one that a lane gets of a flush. How much
/// of level 1 is in a lane changes by half with what has just gone further down,
/// and at full weight the lanes follow that. In the lab (16 lanes, a log of 2 % of
/// the tree, uniform updates): 9.06 bytes written per byte and chains of 88 files
/// at the 99th percentile at full weight, 8.87 and 80 at half.
const SOURCE_WEIGHT: f64 = 0.5;
/// So many keys to choose from for each border.
const CANDIDATES_PER_LANE: usize = 8;
/// New borders are better if the largest lane has only this part of what it had.
const BETTER: f64 = 0.75;

/// What level 0 holds in one lane.
#[derive(Clone, Debug, Default)]
pub(super) struct Lane {
    /// From 0, in key order.
    pub(super) index: u32,
    /// Bytes; a file across borders counts in equal parts in each lane.
    pub(super) bytes: u64,
    /// Epochs over the deepest point.
    pub(super) depth: u32,
    /// Indices in level 0's log, newest first; one across borders is in several.
    pub(super) files: Vec<usize>,
}

/// Level 0 by lane, in key order, empty ones included.
pub(super) fn lanes_of(version: &Version) -> Vec<Lane> {
    let log = version.part(0, Part::Log);
    let mut lanes: Vec<Lane> = vec![Lane::default(); version.lanes.len() + 1];
    for (i, file) in log.iter().enumerate() {
        let touched = touched(version, &version.lanes, file);
        let parts = touched.clone().count() as u64;
        for at in touched {
            lanes[at].bytes = lanes[at].bytes.saturating_add((file.bytes / parts).max(1));
            lanes[at].files.push(i);
        }
    }
    for (index, lane) in (0..).zip(&mut lanes) {
        lane.index = index;
        lane.depth = deepest_point(&version.order, lane.files.iter().map(|&i| &log[i])).depth;
    }
    lanes
}

/// The lanes that hold a part of the file.
fn touched<K: AsRef<[u8]>>(version: &Version, borders: &[K], file: &File) -> RangeInclusive<usize> {
    let order = &version.order;
    let first = borders.partition_point(|b| order.compare(b.as_ref(), &file.smallest).is_le());
    let last = borders.partition_point(|b| !file.span().ends_before(order, b.as_ref()));
    first..=last.max(first)
}

/// New borders for at most `lanes_max` lanes, if the present ones no longer fit.
pub(super) fn rederive(
    version: &Version,
    settings: &Settings,
    lanes_max: u32,
    k: u32,
) -> Option<Arc<[Vec<u8>]>> {
    let lanes_max = lanes_max as usize;
    let now = version.lanes.len() + 1;
    let source = source(version, settings, lanes_max);
    let worth = worth(version, settings, source, lanes_max);
    let spread = spread(version, source, k);
    let more = worth >= now * 2 || (worth > now && worth == lanes_max);
    let fewer = now > lanes_max || now >= worth * 4;
    let largest =
        |borders: &[Vec<u8>]| loads(version, borders, &spread).into_iter().fold(0.0, f64::max);
    let old = largest(&version.lanes);
    let total: f64 = spread.iter().map(|(_, load)| load).sum();
    let uneven = old * now as f64 > total * UNEVEN;
    if !more && !fewer && !uneven {
        return None;
    }
    let borders = borders(version, source, worth, &spread);
    let count = borders.len() + 1;
    let better = fewer
        || (more && (count >= now * 2 || (count > now && count == lanes_max)))
        || (uneven && largest(&borders) <= old * BETTER);
    (better && *borders != *version.lanes).then(|| borders.into())
}

/// The level whose files say where data is: the first that holds enough for
/// all lanes, else the fullest. Level 1, unless it is small or was just emptied.
fn source(version: &Version, settings: &Settings, lanes_max: usize) -> u32 {
    let levels = 1..version.levels.len() as u32;
    let bytes = |n: &u32| version.part_bytes(*n, Part::Run);
    let enough = settings.file_bytes.saturating_mul(lanes_max as u64);
    let first = levels.clone().find(|n| bytes(n) >= enough);
    first.or_else(|| levels.rev().max_by_key(bytes)).unwrap_or(1)
}

/// As many lanes as files would fill, at most `lanes_max`.
fn worth(version: &Version, settings: &Settings, source: u32, lanes_max: usize) -> usize {
    let files = version.part_bytes(source, Part::Run) / settings.file_bytes.max(1);
    usize::try_from(files).unwrap_or(usize::MAX).clamp(1, lanes_max)
}

/// Files of the source and of level 0 with the load that each stands for.
type Spread<'v> = Vec<(&'v File, f64)>;

fn spread(version: &Version, source: u32, k: u32) -> Spread<'_> {
    let k = k as f64;
    let (run, log) = (version.part(source, Part::Run), version.part(0, Part::Log));
    let lanes = lanes_of(version);
    let epochs = |lane: &Lane| {
        lane.files.chunk_by(|&a, &b| log[a].epoch == log[b].epoch).count().max(1) as f64
    };
    let pieces: Vec<f64> = lanes.iter().map(|l| l.bytes as f64 / epochs(l)).collect();
    let filled = pieces.iter().filter(|&&piece| piece > 0.0).count();
    let mean = pieces.iter().sum::<f64>() / filled.max(1) as f64;

    // What waits in the source's log has come the same way. Without it the lanes
    // would follow the gaps that a picker leaves which moves files there.
    let both = run.iter().chain(version.part(source, Part::Log));
    let mut spread: Spread<'_> = both.map(|f| (&**f, f.bytes as f64 * SOURCE_WEIGHT)).collect();
    for file in log {
        let touched = touched(version, &version.lanes, file);
        let part = file.bytes as f64 / touched.clone().count() as f64;
        let load = touched.map(|lane| part * k / epochs(&lanes[lane])).sum();
        spread.push((file, load));
    }
    // One lane in k goes down for a flush; more are empty for want of writes.
    let empty = lanes.len() - filled;
    let guess = mean * k * (lanes.len() as f64 / k / empty.max(1) as f64).min(1.0);
    for at in (0..lanes.len()).filter(|&at| lanes[at].files.is_empty()) {
        let within = |f: &File| touched(version, &version.lanes, f).contains(&at);
        let start = run.partition_point(|f| *touched(version, &version.lanes, f).end() < at);
        let count = run[start..].iter().take_while(|f| within(f)).count();
        for (_, load) in &mut spread[start..start + count] {
            *load += guess / count as f64;
        }
    }
    spread
}

/// The load of each lane that `borders` make.
fn loads<K: AsRef<[u8]>>(version: &Version, borders: &[K], spread: &Spread<'_>) -> Vec<f64> {
    let mut loads = vec![0.0; borders.len() + 1];
    for (file, load) in spread {
        let touched = touched(version, borders, file);
        let part = load / touched.clone().count() as f64;
        touched.for_each(|lane| loads[lane] += part);
    }
    loads
}

/// Keys at which a lane may end: first keys of the source's files, and of levels
/// below it until there are several for each lane. With the source's alone the
/// width of a lane is a matter of chance, where a lane has two or three of them:
/// 9.39 bytes and 118 files in the same lab, and where updates cluster in 3 % of the
/// keys, chains of 79 files instead of 31.
fn candidates(version: &Version, source: u32, lanes: usize) -> Vec<&[u8]> {
    let mut keys: Vec<&[u8]> = Vec::new();
    for level in source..version.levels.len() as u32 {
        let run = version.part(level, Part::Run);
        keys.extend(run.iter().skip(1).map(|f| &*f.smallest));
        if keys.len() >= lanes * CANDIDATES_PER_LANE {
            break;
        }
    }
    keys.sort_by(|a, b| version.order.compare(a, b));
    keys.dedup();
    keys
}

/// At most `lanes - 1` borders that share the load out: each at the first key
/// of the file nearest to where its share ends.
fn borders(version: &Version, source: u32, lanes: usize, spread: &Spread<'_>) -> Vec<Vec<u8>> {
    // As if every file made a lane.
    let keys = candidates(version, source, lanes);
    let loads = loads(version, &keys, spread);
    let total: f64 = loads.iter().sum();
    let due = |next: usize| total * next as f64 / lanes as f64;
    let mut borders: Vec<Vec<u8>> = Vec::new();
    let (mut sum, mut next) = (0.0, 1);
    for (key, pair) in keys.into_iter().zip(loads.windows(2)) {
        sum += pair[0];
        // Nearer than the end of the next file is.
        let reached = sum + pair[1] / 2.0;
        if next < lanes && due(next) <= reached {
            borders.push(key.to_vec());
            while next < lanes && due(next) <= reached {
                next += 1;
            }
        }
    }
    borders
}
