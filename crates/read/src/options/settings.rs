//! Settings: plain data, one row of a table each. The row is the whole definition: field, default,
//! parsing, printing, range, documentation, flag.
//!
//! Owns: the table, and the check of each value alone and with the others. Never does: derive the
//! meaning of a zero (`budget.rs` and `schedule.rs` do).

use super::similar_name::nearest;
use crate::units;
use std::fmt::Write as _;
use windrow_base::{Error, Result};
use windrow_plan::Policy;

const KIB: u64 = 1 << 10;
const MIB: u64 = 1 << 20;
const GIB: u64 = 1 << 30;
const TIB: u64 = 1 << 40;

/// Fewest memtables that there is memory for: one fills while one is flushed.
pub const MEMTABLES_MIN: u64 = 2;

/// The unit of a setting, which decides how it is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Unit {
    /// Bytes: `4096`, `64KiB`, `1.5GiB`.
    Bytes,
    /// Milliseconds: `250`, `250ms`, `5s`.
    Millis,
    /// Microseconds: `250`, `250us`, `2ms`.
    Micros,
    /// A whole number of things that the setting's name says.
    Count,
    /// On or off.
    Flag,
    /// Words.
    Text,
}

impl Unit {
    /// The unit as documentation prints it.
    pub fn as_str(self) -> &'static str {
        match self {
            Unit::Bytes => "bytes",
            Unit::Millis => "milliseconds",
            Unit::Micros => "microseconds",
            Unit::Count => "count",
            Unit::Flag => "on/off",
            Unit::Text => "text",
        }
    }
}

/// The values that a setting takes.
#[derive(Clone, Copy, Debug, PartialEq)]
#[non_exhaustive]
pub enum SettingRange {
    /// `min..=max`.
    Number {
        /// Smallest.
        min: u64,
        /// Largest.
        max: u64,
    },
    /// 0, which has a meaning of its own, or `min..=max`.
    NumberOrZero {
        /// Smallest except 0.
        min: u64,
        /// Largest.
        max: u64,
        /// The meaning of 0.
        zero: &'static str,
    },
    /// `on` or `off`.
    Flag,
    /// Text of this form.
    Form(&'static str),
}

impl SettingRange {
    /// The range in words, numbers as the unit writes them.
    pub fn describe(&self, unit: Unit) -> String {
        match *self {
            SettingRange::Number { min, max } => {
                format!("{} to {}", print_number(unit, min), print_number(unit, max))
            }
            SettingRange::NumberOrZero { min, max, zero } => {
                let (min, max) = (print_number(unit, min), print_number(unit, max));
                format!("{min} to {max}, or 0: {zero}")
            }
            SettingRange::Flag => "on, off".to_owned(),
            SettingRange::Form(form) => form.to_owned(),
        }
    }

    fn admits(&self, value: u64) -> bool {
        match *self {
            SettingRange::Number { min, max } => min <= value && value <= max,
            SettingRange::NumberOrZero { min, max, .. } => {
                value == 0 || (min <= value && value <= max)
            }
            _ => false,
        }
    }
}

/// One row of the table: the whole definition of a setting.
pub struct SettingRow {
    /// The field of [`Settings`], and the name in files and in the program's `--option`.
    pub name: &'static str,
    /// Its unit.
    pub unit: Unit,
    /// The values that it takes.
    pub range: SettingRange,
    /// Its effect, one sentence.
    pub help: &'static str,
    /// The consequence at each end of the range: the end ("Too low", "Off") and the harm. None for
    /// text.
    pub ends: &'static [(&'static str, &'static str)],
    print: fn(&Settings) -> String,
    parse: fn(&mut Settings, &SettingRow, &str) -> Result<(), String>,
    check: fn(&Settings, &SettingRow) -> Result<(), String>,
}

impl SettingRow {
    /// The default, as [`Settings::to_text`] prints it.
    pub fn default_value(&self) -> String {
        self.value(&Settings::default())
    }

    /// This setting's value in `settings`, as text that [`Settings::set`] takes.
    pub fn value(&self, settings: &Settings) -> String {
        (self.print)(settings)
    }
}

/// A type that a setting can have.
trait SettingValue: Sized {
    fn parse(unit: Unit, text: &str) -> Result<Self, String>;
    fn print(&self, unit: Unit) -> String;
    fn admitted(&self, range: &SettingRange) -> bool;
}

fn print_number(unit: Unit, value: u64) -> String {
    match unit {
        Unit::Bytes => units::print_bytes(value),
        Unit::Millis => units::print_millis(value),
        Unit::Micros => units::print_micros(value),
        _ => value.to_string(),
    }
}

impl SettingValue for u64 {
    fn parse(unit: Unit, text: &str) -> Result<u64, String> {
        match unit {
            Unit::Bytes => units::parse_bytes(text),
            Unit::Millis => units::parse_millis(text),
            Unit::Micros => units::parse_micros(text),
            _ => units::parse_count(text),
        }
    }
    fn print(&self, unit: Unit) -> String {
        print_number(unit, *self)
    }
    fn admitted(&self, range: &SettingRange) -> bool {
        range.admits(*self)
    }
}

impl SettingValue for u32 {
    fn parse(unit: Unit, text: &str) -> Result<u32, String> {
        u32::try_from(u64::parse(unit, text)?).map_err(|_| format!("`{text}` is too large"))
    }
    fn print(&self, unit: Unit) -> String {
        print_number(unit, (*self).into())
    }
    fn admitted(&self, range: &SettingRange) -> bool {
        range.admits((*self).into())
    }
}

impl SettingValue for bool {
    fn parse(_: Unit, text: &str) -> Result<bool, String> {
        match text.trim().to_ascii_lowercase().as_str() {
            "on" | "true" | "yes" | "1" => Ok(true),
            "off" | "false" | "no" | "0" => Ok(false),
            _ => Err(format!("`{text}` is neither on nor off")),
        }
    }
    fn print(&self, _: Unit) -> String {
        if *self { "on" } else { "off" }.to_owned()
    }
    fn admitted(&self, _: &SettingRange) -> bool {
        true
    }
}

impl SettingValue for String {
    fn parse(_: Unit, text: &str) -> Result<String, String> {
        Ok(text.trim().to_owned())
    }
    fn print(&self, _: Unit) -> String {
        self.clone()
    }
    /// One line without space at its ends: otherwise the text form would not give it back.
    fn admitted(&self, _: &SettingRange) -> bool {
        !self.is_empty() && self.trim() == self && !self.contains(char::is_control)
    }
}

fn check_value<T: SettingValue>(row: &SettingRow, value: &T) -> Result<(), String> {
    if value.admitted(&row.range) {
        return Ok(());
    }
    let printed = value.print(row.unit);
    Err(format!("{} is `{printed}`; it takes {}", row.name, row.range.describe(row.unit)))
}

/// Declares the struct, its default and its table from one list of rows.
macro_rules! settings {
    ($($name:ident: $type:ty, $unit:ident, $default:expr, $range:expr;
       $help:literal; $($end:literal => $wrong:literal;)*)*) => {
        /// Everything about a database that is plain data; [`Settings::table`] describes each
        /// field. An open uses the settings that it is given. An open for writing stores them with
        /// the data, from where [`Db::stored_settings`](struct.Db.html#method.stored_settings)
        /// gives back those last used.
        ///
        /// Most users set `memory_bytes`, `background_threads` and `preset`:
        /// the rest follows from them.
        ///
        /// ```
        /// let mut settings = windrow::settings::Settings::default();
        /// settings.memory_bytes = 1 << 30;
        /// settings.set("background-threads", "4")?;
        /// assert!(settings.set("memory_bytes", "much").is_err());
        /// // What there is to set, with what each is for.
        /// let row = &windrow::settings::Settings::table()[0];
        /// println!("{} ({}): {}", row.name, row.default_value(), row.help);
        /// # Ok::<(), windrow::Error>(())
        /// ```
        #[derive(Clone, Debug, PartialEq)]
        pub struct Settings {
            $(
                #[doc = $help]
                $(
                    ///
                    #[doc = concat!($end, ": ", $wrong, ".")]
                )*
                pub $name: $type,
            )*
        }

        impl Default for Settings {
            fn default() -> Settings {
                Settings { $($name: $default.into(),)* }
            }
        }

        static TABLE: &[SettingRow] = {
            use SettingRange::{Flag, Form, Number, NumberOrZero};
            &[$(SettingRow {
                name: stringify!($name),
                unit: Unit::$unit,
                range: $range,
                help: $help,
                ends: &[$(($end, $wrong)),*],
                print: |settings| SettingValue::print(&settings.$name, Unit::$unit),
                parse: |settings, row, text| {
                    let value = <$type as SettingValue>::parse(row.unit, text)
                        .map_err(|why| format!("{}: {why}", row.name))?;
                    check_value(row, &value)?;
                    settings.$name = value;
                    Ok(())
                },
                check: |settings, row| check_value(row, &settings.$name),
            },)*]
        };
    };
}

settings! {
    memory_bytes: u64, Bytes, 256 * MIB, Number { min: 8 * MIB, max: 64 * TIB };
    "Memory of the database in all: memtables, block cache, filters and indexes of open tables, bounds of all tables, merge buffers.";
    "Too low" => "small memtables and few cached blocks, so more merging and more reads from the device";
    "Too high" => "the machine swaps, or the page cache has nothing left";

    background_threads: u32, Count, 2u32, Number { min: 1, max: 256 };
    "Threads that flush and merge.";
    "Too low" => "writers wait for merges that one core cannot finish";
    "Too high" => "merges take the cores that reads and writes need";

    preset: String, Text, "windrow", Form("a preset's name, or one value per policy axis");
    "How the tree is kept in shape: which levels there are, what is merged when, how filters share memory.";

    memtable_bytes: u64, Bytes, 0u64,
        NumberOrZero { min: 64 * KIB, max: 2 * GIB, zero: "a share of memory_bytes" };
    "Size at which a memtable is frozen and flushed.";
    "Too low" => "many small flushes, so more merging";
    "Too high" => "long flushes, slow recovery, and less memory for the cache";

    cache_bytes: u64, Bytes, 0u64,
        NumberOrZero { min: 64 * KIB, max: 64 * TIB, zero: "what memory_bytes leaves" };
    "Size of the block cache, at most what memory_bytes leaves.";
    "Too low" => "blocks that are read often come from the device each time";
    "Too high" => "nothing goes wrong: it is cut to what memory_bytes leaves";

    block_bytes: u64, Bytes, 4 * KIB, Number { min: 256, max: 4 * MIB };
    "Data block of a table before compression: the unit of a read.";
    "Too low" => "larger indexes, poorer compression";
    "Too high" => "each get reads and checks more than it needs";

    file_bytes: u64, Bytes, 0u64,
        NumberOrZero { min: 4 * KIB, max: 4 * GIB, zero: "what suits the preset, 8 MiB at most" };
    "Size at which a merge starts the next table.";
    "Too low" => "many files, and a manifest and table cache to match";
    "Too high" => "large merge jobs, so long tails of write latency";

    level_base_bytes: u64, Bytes, 0u64,
        NumberOrZero { min: 4 * KIB, max: 64 * TIB, zero: "what suits the preset: seventeen memtables for windrow, one and a half for most others" };
    "Capacity of the first level below level 0; the most it may grow to where the shape sizes levels from the last one up.";
    "Too low" => "more levels, so more merging and more reads per get";
    "Too high" => "level 0 merges into a large level, in large jobs";

    space_max_percent: u32, Count, 0u32,
        NumberOrZero { min: 101, max: 100_000, zero: "130, or 150 with use=writes" };
    "How much space tables may take, in hundredths of what the last level takes, where the policy collects writes before it merges them.";
    "Too low" => "more merging";
    "Too high" => "more space is taken by entries that newer ones hide";

    compression: String, Text, "lz4", Form("codecs none, lz4, zstd by level from 0 on, with commas; the last one repeats");
    "Compression of data blocks, by level: `none,none,lz4` leaves levels 0 and 1 as they are. In the preset windrow level 1 is the last level until it holds seventeen memtables, and a table that gets another level by its number alone keeps its codec.";

    zstd_level: u32, Count, 3u32, Number { min: 1, max: 22 };
    "Effort of zstd where `compression` names it.";
    "Too low" => "larger tables";
    "Too high" => "merges become bound by the processor";

    hash_index: bool, Flag, true, Flag;
    "Whether data blocks carry a hash index of their keys.";
    "Off" => "gets search each block by comparison";
    "On" => "blocks take about a byte more per key";

    partition_bytes: u64, Bytes, 32 * KIB, Number { min: 4 * KIB, max: GIB };
    "Index and filter of a table larger than this are cut into partitions, and a partition is read when it is asked for.";
    "Too low" => "one more search in each get";
    "Too high" => "where memory is short, a get may read and keep that much of a table";

    readahead_bytes: u64, Bytes, 256 * KIB, NumberOrZero { min: 4 * KIB, max: 64 * MIB, zero: "none" };
    "Most that a scan which stays sequential reads ahead in each table.";
    "Too low" => "long scans wait for the device at each block";
    "Too high" => "short scans read what they never return";

    open_files_max: u64, Count, 0u64,
        NumberOrZero { min: 16, max: 1 << 24, zero: "from the process's descriptor limit" };
    "Most tables held open.";
    "Too low" => "cold gets open a table before they read it";
    "Too high" => "the process runs out of descriptors";

    direct_io: bool, Flag, false, Flag;
    "Whether tables are read and written past the page cache.";
    "Off" => "blocks are in memory twice, and merges push hot pages out";
    "On" => "a block the block cache has lost always comes from the device";

    map_logs: bool, Flag, false, Flag;
    "Whether write-ahead logs are written through memory mappings until they are first synced, on file systems that keep what they reserved (ext4, XFS, tmpfs).";
    "Off" => "each write costs a system call: 8 to 20 % of a load without syncs";
    "On" => "a file system that fails as a whole under the database may end the process, yours, by a signal (SIGBUS) instead of an error; nothing acknowledged is lost";

    wal_sync_interval_ms: u64, Millis, 0u64, NumberOrZero { min: 1, max: 3_600_000, zero: "never" };
    "How often the write-ahead log is made durable in the background: bounds what power loss can take of unsynced writes.";
    "Too low" => "the device is busy with syncs that nobody waits for";
    "Too high" => "more unsynced writes are lost with the power";

    stats_period_ms: u64, Millis, 10_000u64, NumberOrZero { min: 100, max: 3_600_000, zero: "never" };
    "How often a running database writes its statistics to the file STATS, if they have changed: `windrow stats` reads them there while it is open.";
    "Too low" => "some kilobytes are written again and again that nobody reads";
    "Too high" => "what other processes read is old";

    followers_keep_bytes: u64, Bytes, GIB, NumberOrZero { min: 64 * KIB, max: 1 << 50, zero: "no limit" };
    "Most that is kept of files which only followers still read. Beyond it the follower that is furthest behind, a stopped process or one that keeps an old state, goes without: its reads fail where a file is gone, and a refresh shows it the newest state.";
    "Too low" => "followers that take long over a scan or a backup have to begin again";
    "Too high" => "a stopped follower fills the device";

    changes_bytes: u64, Bytes, 0u64, NumberOrZero { min: 64 * KIB, max: 1 << 50, zero: "nothing is kept" };
    "Most that is kept of write-ahead logs whose contents are in tables, for programs that read the feed of changes (`Db::changes`).";
    "Too low" => "a program that reads changes and falls behind has to copy the database";
    "Too high" => "that much of the device is taken by operations that are in tables as well";

    changes_seconds: u64, Count, 0u64, NumberOrZero { min: 1, max: 315_360_000, zero: "no limit" };
    "How long such a log is kept for, in seconds, within `changes_bytes`.";
    "Too low" => "a program that reads changes and was away for longer has to copy the database";
    "Too high" => "old operations stay on the device, up to `changes_bytes`";

    reserve_bytes: u64, Bytes, 0u64, NumberOrZero { min: MIB, max: 64 * GIB, zero: "none" };
    "Room kept in a file of its own, and given up by an open that finds the device too full to recover.";
    "Too low" => "a full device refuses the open until room is made: what recovery needs is what is in memory, and a log";
    "Too high" => "the device is full that much sooner";

    manifest_bytes: u64, Bytes, 256 * KIB, Number { min: KIB, max: GIB };
    "Size from which a new manifest is begun, once it is twice what it then begins with.";
    "Too low" => "flushes and merges wait for the syncs that a new manifest takes";
    "Too high" => "an open reads that much history";

    verify_on_open: bool, Flag, false, Flag;
    "Whether opening reads every table and checks every checksum.";
    "Off" => "damage is found when it is read, not before";
    "On" => "opening takes as long as reading the database";

    level0_slowdown_files: u32, Count, 12u32, Number { min: 2, max: 10_000 };
    "Depth of level 0 (flushes that cover one key) from which writes are delayed, the more the deeper.";
    "Too low" => "delays before merges are really behind";
    "Too high" => "gets and scans look into many files";

    level0_stop_files: u32, Count, 32u32, Number { min: 3, max: 10_000 };
    "Depth of level 0 at which writes wait until it is less.";
    "Too low" => "writes stop where a delay would have been enough";
    "Too high" => "reads slow down without bound";

    debt_slowdown_bytes: u64, Bytes, 0u64,
        NumberOrZero { min: MIB, max: 64 * TIB, zero: "derived from the first level's capacity" };
    "Bytes that merges are behind by from which writes are delayed, in proportion to the debt.";
    "Too low" => "writes are paced to merges all the time";
    "Too high" => "space and read cost grow before writers feel it";

    debt_stop_bytes: u64, Bytes, 0u64,
        NumberOrZero { min: 2 * MIB, max: 64 * TIB, zero: "derived from debt_slowdown_bytes" };
    "Bytes that merges are behind by at which writes wait.";
    "Too low" => "writes stop where a delay would have been enough";
    "Too high" => "the levels lose their shape under a long load";

    pace_delay_us_max: u64, Micros, 1_000u64, Number { min: 1, max: 1_000_000 };
    "Longest delay that pacing adds to one write, reached where it would otherwise wait.";
    "Too low" => "pacing cannot hold a fast writer, who then meets the stop";
    "Too high" => "a single write takes this long";
}

impl Settings {
    /// Every setting, the three that most users need first.
    pub fn table() -> &'static [SettingRow] {
        TABLE
    }

    /// Sets one setting from text. Hyphens in the name count as underscores.
    ///
    /// # Errors
    /// `InvalidArgument` if there is no such setting, or the value is
    /// malformed or out of range; the settings are then as before.
    pub fn set(&mut self, name: &str, value: &str) -> Result<()> {
        let name = name.replace('-', "_");
        let Some(row) = Settings::table().iter().find(|row| row.name == name) else {
            let nearest = nearest(&name, Settings::table().iter().map(|row| row.name));
            return Err(Error::invalid(format!("there is no setting `{name}`{nearest}")));
        };
        (row.parse)(self, row, value).map_err(Error::invalid)
    }

    /// Checks every value, and the values together.
    ///
    /// # Errors
    /// All problems, a sentence each.
    pub fn validate(&self) -> Result<(), Vec<String>> {
        let mut problems: Vec<String> =
            Settings::table().iter().filter_map(|row| (row.check)(self, row).err()).collect();
        self.check_sizes(&mut problems);
        codec_problems(&self.compression, &mut problems);
        if let Err(error) = Policy::parse(&self.preset) {
            problems.push(format!("preset: {}", error.message()));
        }
        if self.level0_stop_files <= self.level0_slowdown_files {
            problems.push(format!(
                "level0_stop_files ({}) must be above level0_slowdown_files ({}), or writes stop \
                 before they are delayed",
                self.level0_stop_files, self.level0_slowdown_files
            ));
        }
        if self.debt_stop_bytes != 0 && self.debt_stop_bytes <= self.debt_slowdown_bytes {
            problems.push(format!(
                "debt_stop_bytes ({}) must be above debt_slowdown_bytes ({})",
                units::print_bytes(self.debt_stop_bytes),
                units::print_bytes(self.debt_slowdown_bytes)
            ));
        }
        if problems.is_empty() { Ok(()) } else { Err(problems) }
    }

    /// The largest memtable that leaves a quarter of `memory_bytes` for the rest.
    #[doc(hidden)]
    pub fn memtable_bytes_max(&self) -> u64 {
        self.memory_bytes / 4 * 3 / MEMTABLES_MIN
    }

    fn check_sizes(&self, problems: &mut Vec<String>) {
        let memtable_max = self.memtable_bytes_max();
        if self.memtable_bytes > memtable_max {
            problems.push(format!(
                "memtable_bytes ({}) leaves no room for the rest: with memory_bytes at {} it can be \
                 {} at most",
                units::print_bytes(self.memtable_bytes),
                units::print_bytes(self.memory_bytes),
                units::print_bytes(memtable_max)
            ));
        }
        if self.file_bytes != 0 && self.block_bytes > self.file_bytes / 4 {
            problems.push(format!(
                "block_bytes ({}) must be at most a quarter of file_bytes ({})",
                units::print_bytes(self.block_bytes),
                units::print_bytes(self.file_bytes)
            ));
        }
    }

    /// Name of the codec for data blocks of tables that go to `level`.
    pub fn compression_of_level(&self, level: u32) -> &str {
        let mut codecs = self.compression.split(',').map(str::trim);
        let last = codecs.clone().next_back().unwrap_or("none");
        codecs.nth(level as usize).unwrap_or(last)
    }

    /// The table as a page of documentation (`docs/options.md`).
    pub fn to_markdown() -> String {
        let mut out = String::from(
            "# Options\n\n\
             <!-- Generated from the table in crates/read/src/options/settings.rs by\n     \
             `cargo run -p windrow-xtask -- docs`. Do not edit: a test compares the two. -->\n\n\
             Most users set the first three; everything else follows from them or has a default\n\
             that holds. Sizes are written `4096`, `64KiB`, `1.5GiB` (`64K` is `64KiB`, `64kB` is\n\
             64,000), durations `250ms`, `5s`, `1h`.\n\n\
             The program takes `--preset NAME`, and for any setting `--option NAME=VALUE`, such as\n\
             `--option memory_bytes=1GiB`. On a database that exists it begins with the settings that\n\
             the database was last opened with for writing, all of them, and has its flags change\n\
             them; a command that writes stores the result. A program that uses the library opens with\n\
             exactly what it gives, and may ask first: `Db::stored_settings`.\n\n\
             | setting | default | unit | takes |\n|---|---|---|---|\n",
        );
        for row in Settings::table() {
            let _ = writeln!(
                out,
                "| [`{0}`](#{0}) | `{1}` | {2} | {3} |",
                row.name,
                row.default_value(),
                row.unit.as_str(),
                row.range.describe(row.unit)
            );
        }
        for row in Settings::table() {
            let _ = write!(out, "\n## {}\n\n{}\n", row.name, row.help);
            if !row.ends.is_empty() {
                out.push('\n');
            }
            for (end, wrong) in row.ends {
                let _ = writeln!(out, "- {end}: {wrong}.");
            }
        }
        out
    }
}

/// Adds the problems of a list of codecs by level.
pub(super) fn codec_problems(list: &str, problems: &mut Vec<String>) {
    for codec in list.split(',').map(str::trim) {
        match codec {
            "none" | "lz4" => {}
            "zstd" if cfg!(feature = "zstd") => {}
            "zstd" => problems
                .push("compression names zstd, which this build lacks (feature `zstd`)".to_owned()),
            _ => problems
                .push(format!("compression names `{codec}`; the codecs are none, lz4 and zstd")),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_default_is_valid_and_parses_back() {
        Settings::default().validate().unwrap();
        for row in Settings::table() {
            let mut settings = Settings::default();
            settings.set(row.name, &row.default_value()).unwrap();
            assert_eq!(settings, Settings::default(), "{}", row.name);
            assert!(!row.help.is_empty() && row.help.ends_with('.'), "{}", row.name);
        }
    }

    #[test]
    fn both_ends_of_every_range_are_taken_and_no_more() {
        for row in Settings::table() {
            let (min, max, zero) = match row.range {
                SettingRange::Number { min, max } => (min, max, min == 0),
                SettingRange::NumberOrZero { min, max, .. } => (min, max, true),
                _ => continue,
            };
            let mut settings = Settings::default();
            for value in [min, max] {
                settings.set(row.name, &value.to_string()).unwrap();
                // Bare numbers are in the setting's own unit, as its text is.
                assert_eq!(row.value(&settings), print_number(row.unit, value), "{}", row.name);
            }
            for value in [min - 1, max + 1] {
                let taken = settings.set(row.name, &value.to_string()).is_ok();
                assert_eq!(taken, value == 0 && zero, "{} = {value}", row.name);
            }
        }
    }

    #[test]
    fn set_refuses_and_leaves_the_rest() {
        let mut settings = Settings::default();
        for (name, value) in [
            ("no_such", "1"),
            ("memory_bytes", "7MiB"),
            ("memory_bytes", "a lot"),
            ("background_threads", "5000000000"),
            ("filter_bits_per_key", "10"),
            ("direct_io", "maybe"),
            ("preset", " "),
        ] {
            assert!(settings.set(name, value).is_err(), "{name} = {value}");
        }
        assert_eq!(settings, Settings::default());
        settings.set("memory-bytes", "1GiB").unwrap();
        assert_eq!(settings.memory_bytes, GIB);
    }

    #[test]
    fn contradictions_are_all_listed() {
        let settings = Settings {
            memory_bytes: 16 * MIB,
            memtable_bytes: 16 * MIB,
            block_bytes: MIB,
            file_bytes: MIB,
            level0_slowdown_files: 9,
            level0_stop_files: 9,
            debt_slowdown_bytes: 8 * MIB,
            debt_stop_bytes: 4 * MIB,
            compression: "lz4,snappy".to_owned(),
            preset: "two\nlines".to_owned(),
            ..Settings::default()
        };
        let problems = settings.validate().unwrap_err();
        assert_eq!(problems.len(), 7, "{problems:#?}");
    }

    #[test]
    fn the_last_codec_repeats() {
        let settings = Settings { compression: "none, lz4".to_owned(), ..Settings::default() };
        let by_level: Vec<&str> = (0..4).map(|l| settings.compression_of_level(l)).collect();
        assert_eq!(by_level, ["none", "lz4", "lz4", "lz4"]);
    }

    #[test]
    fn the_page_names_every_setting_once() {
        let page = Settings::to_markdown();
        for row in Settings::table() {
            assert_eq!(page.matches(&format!("\n## {}\n", row.name)).count(), 1);
        }
    }
}
