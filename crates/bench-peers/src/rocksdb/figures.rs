//! RocksDB's tickers and properties as the benchmark's counters and tree.
//!
//! Owns: the map from its names to the benchmark's figures. Never does: guess:
//! a figure that RocksDB does not count is `None`.

use rocksdb::properties::{self, PropName};
use rocksdb::statistics::Ticker;
use rocksdb::{ColumnFamily, DB, Options};
use windrow_bench::store::{Counters, Tree};

/// Levels that a database has by default.
const LEVELS: usize = 7;

/// Returns the counts since the database was opened; without statistics only
/// those that RocksDB always keeps.
///
/// `blocks` counts the look-ups of data blocks in the cache, cursors' and
/// compactions' among them. Bytes written by the user are left out: RocksDB
/// counts its batches, headers included.
pub(super) fn counters<'a>(
    db: &DB,
    options: &Options,
    families: impl Iterator<Item = &'a ColumnFamily>,
) -> Counters {
    let stats = db.property_value(properties::DBSTATS).ok().flatten();
    let always = Counters {
        merges: merges(db, families),
        paused_us: stats.as_deref().and_then(stalled_us),
        ..Counters::default()
    };
    if options.get_statistics().is_none() {
        return always;
    }
    let sum = |tickers: &[Ticker]| {
        Some(tickers.iter().map(|&ticker| options.get_ticker_count(ticker)).sum::<u64>())
    };
    let passed = options.get_ticker_count(Ticker::BloomFilterFullPositive);
    let present = options.get_ticker_count(Ticker::BloomFilterFullTruePositive);
    Counters {
        gets: sum(&[Ticker::NumberKeysRead, Ticker::NumberMultigetKeysRead]),
        gets_of_tables: sum(&[Ticker::GetHitL0, Ticker::GetHitL1, Ticker::GetHitL2AndUp]),
        level1_hits: sum(&[Ticker::GetHitL1]),
        blocks: sum(&[Ticker::BlockCacheDataHit, Ticker::BlockCacheDataMiss]),
        blocks_read: sum(&[Ticker::BlockCacheDataMiss]),
        filter_false_positives: Some(passed.saturating_sub(present)),
        wal_bytes: sum(&[Ticker::WalFileBytes]),
        tables_written_bytes: sum(&[Ticker::FlushWriteBytes, Ticker::CompactWriteBytes]),
        ..always
    }
}

/// Returns the time in `Cumulative stall: 00:01:2.500 H:M:S, 0.1 percent`.
fn stalled_us(stats: &str) -> Option<u64> {
    let line = stats.lines().find_map(|line| line.strip_prefix("Cumulative stall:"))?;
    let mut parts = line.split_whitespace().next()?.split(':').map(str::parse::<f64>);
    let mut part = || parts.next()?.ok();
    let (hours, minutes, seconds) = (part()?, part()?, part()?);
    Some(((hours * 3600.0 + minutes * 60.0 + seconds) * 1e6).round() as u64)
}

/// Counts the compactions in the table by level; those into level 0 are
/// flushes.
fn merges<'a>(db: &DB, families: impl Iterator<Item = &'a ColumnFamily>) -> Option<u64> {
    let mut merges = 0;
    for family in families {
        let name = properties::CFSTATS_NO_FILE_HISTOGRAM;
        merges += compactions_below_level_0(&db.property_value_cf(family, name).ok()??)?;
    }
    Some(merges)
}

/// Adds up the column `Comp(cnt)` over the rows of levels 1 and more.
fn compactions_below_level_0(table: &str) -> Option<u64> {
    let mut lines = table.lines();
    let header: Vec<&str> =
        lines.find(|line| line.contains("Comp(cnt)"))?.split_whitespace().collect();
    // The column is counted from the right: sizes, on the left, are two words
    // in a row.
    let from_right = header.iter().rev().position(|&name| name == "Comp(cnt)")?;
    let mut sum = 0;
    for line in lines.map(str::trim_start).take_while(|line| !line.starts_with("Sum")) {
        let level = line.strip_prefix('L').and_then(|rest| rest.split_whitespace().next());
        match level.and_then(|level| level.parse::<u32>().ok()) {
            None | Some(0) => {}
            Some(_) => {
                let count = line.split_whitespace().rev().nth(from_right)?;
                sum += count.parse::<u64>().ok()?;
            }
        }
    }
    Some(sum)
}

/// Returns the current shape of the trees.
pub(super) fn tree<'a>(db: &DB, families: impl Iterator<Item = &'a ColumnFamily>) -> Tree {
    let (mut trees, mut levels, mut all_files, mut bytes) = (0u32, 0u32, 0, 0);
    let (mut entries, mut filter_bytes) = (0, 0);
    for family in families {
        let number =
            |name: &PropName| db.property_int_value_cf(family, name).ok().flatten().unwrap_or(0);
        let files: Vec<u64> =
            (0..LEVELS).map(|level| number(&properties::num_files_at_level(level))).collect();
        if files.iter().all(|&files| files == 0) {
            continue;
        }
        trees += 1;
        levels += files[1..].iter().filter(|&&files| files > 0).count() as u32;
        all_files += files.iter().sum::<u64>();
        bytes += number(properties::LIVE_SST_FILES_SIZE);
        let name = properties::AGGREGATED_TABLE_PROPERTIES;
        let tables = db.property_value_cf(family, name).ok().flatten().unwrap_or_default();
        entries += field(&tables, "# entries").unwrap_or(0);
        filter_bytes += field(&tables, "filter block size").unwrap_or(0);
    }
    let levels = f64::from(levels) / f64::from(trees.max(1));
    Tree {
        levels: Some(levels),
        // Level 0's files overlap.
        runs: Some(levels),
        files: Some(all_files),
        bytes: Some(bytes),
        filter_bits_per_key: (entries > 0).then(|| filter_bytes as f64 * 8.0 / entries as f64),
        ..Tree::default()
    }
}

/// Returns a number among `name=number; name=number`.
fn field(text: &str, name: &str) -> Option<u64> {
    let value = |field: &str| field.trim().strip_prefix(name)?.strip_prefix('=')?.parse().ok();
    text.split(';').find_map(value)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn compactions_are_read_from_the_right_column() {
        let table = "
** Compaction Stats [default] **
Level    Files   Size     Score Read(GB)  Comp(sec) Comp(cnt) Avg(sec)
------------------------------------------------------------------------
  L0      2/0   33.60 MB   0.5      0.0       1.0        12    0.083
  L5      4/1   60.00 KB   1.0      0.3       2.0         7    0.300
  L6     10/0    1.20 GB   0.0      0.9       9.0        30    0.300
 Sum     16/1    1.30 GB   0.0      1.2      12.0        49    0.250
";
        assert_eq!(compactions_below_level_0(table), Some(37));
        assert_eq!(compactions_below_level_0("no table"), None);
    }

    #[test]
    fn stalls_are_read_from_hours_minutes_and_seconds() {
        let stats = "** DB Stats **\nCumulative stall: 01:02:3.500 H:M:S, 5.0 percent\n";
        assert_eq!(stalled_us(stats), Some(3_723_500_000));
        assert_eq!(stalled_us("Interval stall: 00:00:1.000 H:M:S"), None);
    }

    #[test]
    fn properties_are_found_by_their_whole_name() {
        let text = "# data blocks=9; # entries=120; raw key size=8; filter block size=150; (est)=1";
        assert_eq!(field(text, "# entries"), Some(120));
        assert_eq!(field(text, "filter block size"), Some(150));
        assert_eq!(field(text, "entries"), None);
    }
}
