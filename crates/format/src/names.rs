//! Names of the files in a database directory, and their parsing.
//!
//! `parse` is the exact inverse of the functions that make names, so another program's file is
//! never taken for one of Windrow's.
//!
//! Owns: the form of each name. Never does: accept a name that these functions do not make.

use windrow_base::{COUNTER_MAX, FileNumber};

/// Name of the file that points at the current manifest.
pub const CURRENT: &str = "CURRENT";

/// Name of the file whose advisory lock a writer holds.
pub const LOCK: &str = "LOCK";

/// Name of the file that keeps room for a recovery on a full device.
pub const RESERVE: &str = "RESERVE";

/// Name of the file in which a running database publishes its statistics.
pub const STATS: &str = "STATS";

/// The digits that a file number is padded to.
const DIGITS_MIN: usize = 6;

/// The kinds of files in a database directory.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum FileKind {
    /// A sorted table of entries.
    Table,
    /// A segment of the write-ahead log.
    Wal,
    /// A segment whose records are all in tables, kept for the feed of changes.
    Changes,
    /// The log of edits of the tree.
    Manifest,
    /// The pointer to the manifest; its number is 0.
    Current,
    /// The lock file; its number is 0.
    Lock,
    /// Reserved space, without content; its number is 0.
    Reserve,
    /// The statistics of a running database; its number is 0.
    Stats,
    /// A file being written that will be renamed; worthless after a crash.
    Temp,
    /// The lease of a process that reads next to a writer.
    Reader,
    /// The trace of a repair in progress, without content. Files with higher numbers belong to that
    /// repair.
    Repair,
}

/// Name of a table.
pub fn table(number: FileNumber) -> String {
    format!("{number:06}.sst")
}

/// Name of a write-ahead log segment.
pub fn wal(number: FileNumber) -> String {
    format!("{number:06}.wal")
}

/// Name of a segment that is kept for the feed of changes.
pub fn changes(number: FileNumber) -> String {
    format!("{number:06}.changes")
}

/// Name of a manifest.
pub fn manifest(number: FileNumber) -> String {
    format!("MANIFEST-{number:06}")
}

/// Name of a file that is renamed once it is complete.
pub fn temp(number: FileNumber) -> String {
    format!("{number:06}.tmp")
}

/// Name of the trace of a repair. The repair's files have higher numbers.
pub fn repair(number: FileNumber) -> String {
    format!("REPAIR-{number:06}")
}

/// Name of the lease of a reader, by the reader's index.
pub fn reader(place: u64) -> String {
    format!("READER-{place:06}")
}

/// The kind and number of a file name; `None` for names that Windrow does not write, numbers beyond
/// [`COUNTER_MAX`] among them: new files get the numbers after the largest, which must never wrap
/// (R8).
pub fn parse(name: &str) -> Option<(FileKind, FileNumber)> {
    match name {
        CURRENT => return Some((FileKind::Current, 0)),
        LOCK => return Some((FileKind::Lock, 0)),
        RESERVE => return Some((FileKind::Reserve, 0)),
        STATS => return Some((FileKind::Stats, 0)),
        _ => {}
    }
    if let Some(digits) = name.strip_prefix("MANIFEST-") {
        return Some((FileKind::Manifest, number(digits)?));
    }
    if let Some(digits) = name.strip_prefix("REPAIR-") {
        return Some((FileKind::Repair, number(digits)?));
    }
    if let Some(digits) = name.strip_prefix("READER-") {
        return Some((FileKind::Reader, number(digits)?));
    }
    let (digits, extension) = name.split_once('.')?;
    let kind = match extension {
        "sst" => FileKind::Table,
        "wal" => FileKind::Wal,
        "changes" => FileKind::Changes,
        "tmp" => FileKind::Temp,
        _ => return None,
    };
    Some((kind, number(digits)?))
}

fn number(digits: &str) -> Option<FileNumber> {
    let plain = digits.bytes().all(|b| b.is_ascii_digit());
    let canonical =
        digits.len() == DIGITS_MIN || (digits.len() > DIGITS_MIN && !digits.starts_with('0'));
    let number = digits.parse().ok().filter(|_| plain && canonical)?;
    (number <= COUNTER_MAX).then_some(number)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_round_trip() {
        for n in [0, 1, 12, 999_999, 1_000_000, COUNTER_MAX] {
            assert_eq!(parse(&table(n)), Some((FileKind::Table, n)));
            assert_eq!(parse(&wal(n)), Some((FileKind::Wal, n)));
            assert_eq!(parse(&changes(n)), Some((FileKind::Changes, n)));
            assert_eq!(parse(&manifest(n)), Some((FileKind::Manifest, n)));
            assert_eq!(parse(&temp(n)), Some((FileKind::Temp, n)));
            assert_eq!(parse(&repair(n)), Some((FileKind::Repair, n)));
            assert_eq!(parse(&reader(n)), Some((FileKind::Reader, n)));
        }
        assert_eq!(table(12), "000012.sst");
        assert_eq!(parse(CURRENT), Some((FileKind::Current, 0)));
        assert_eq!(parse(LOCK), Some((FileKind::Lock, 0)));
        assert_eq!(parse(RESERVE), Some((FileKind::Reserve, 0)));
        assert_eq!(parse(STATS), Some((FileKind::Stats, 0)));
    }

    #[test]
    fn strangers_are_not_ours() {
        for name in [
            "",
            "12.sst",
            "0000012.sst",
            "+00012.sst",
            "000012",
            "000012.SST",
            "000012.sst.bak",
            "12.changes",
            "000012.change",
            "MANIFEST",
            "MANIFEST-",
            "MANIFEST-1",
            "REPAIR",
            "REPAIR-1",
            "READER-1",
            "MANIFEST-00001x",
            "current",
            "notes.txt",
            "99999999999999999999.sst",
            "18446744073709551615.sst",
            "4611686018427387904.wal",
            "MANIFEST-9223372036854775807",
            "００００１２.sst",
        ] {
            assert_eq!(parse(name), None, "{name}");
        }
    }
}
