//! Names of the objects of a target.
//!
//! Owns: the names. Never does: know what is in an object.

use windrow_base::FileUid;

/// The folders of a target.
pub(super) const TABLES: &str = "tables";
pub(super) const RECORDS: &str = "backups";
pub(super) const LOGS: &str = "logs";

/// A table.
pub(super) fn table(uid: FileUid) -> String {
    format!("{TABLES}/{uid:016x}.sst")
}

/// The record of a backup.
pub(super) fn record(number: u64) -> String {
    format!("{RECORDS}/{number:06}.backup")
}

/// A part of a backup's log.
pub(super) fn log_part(number: u64, part: usize) -> String {
    format!("{LOGS}/{number:06}-{part:06}.log")
}

/// A part of the changes that a backup has of the time since an earlier one.
pub(super) fn change_part(number: u64, part: usize) -> String {
    format!("{LOGS}/{number:06}-{part:06}.changes")
}

/// Returns the number of the backup whose record has this name; `None` for other names.
pub(super) fn number_of(name: &str) -> Option<u64> {
    let digits = name.strip_prefix(RECORDS)?.strip_prefix('/')?.strip_suffix(".backup")?;
    let number = digits.parse().ok()?;
    (record(number) == name).then_some(number)
}

/// Whether a table, or a part of a log or of changes, would have such a name.
pub(super) fn is_ours(name: &str) -> bool {
    let table_uid = || {
        let digits = name.strip_prefix(TABLES)?.strip_prefix('/')?.strip_suffix(".sst")?;
        FileUid::from_str_radix(digits, 16).ok()
    };
    let part = || {
        let (digits, _) = name.strip_prefix(LOGS)?.strip_prefix('/')?.split_once('.')?;
        let (number, part) = digits.split_once('-')?;
        Some((number.parse().ok()?, part.parse().ok()?))
    };
    let is_part =
        |(number, part)| [log_part, change_part].iter().any(|of| of(number, part) == name);
    table_uid().is_some_and(|uid| table(uid) == name) || part().is_some_and(is_part)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_names_of_ours_are_ours() {
        assert_eq!(number_of(&record(7)), Some(7));
        assert_eq!(number_of(&record(12_345_678)), Some(12_345_678));
        for other in ["backups/7.backup", "backups/000007", "tables/000007.backup", "000007.backup"]
        {
            assert_eq!(number_of(other), None, "{other}");
        }
        assert!(is_ours(&table(7)) && is_ours(&table(u64::MAX)) && is_ours(&log_part(3, 0)));
        assert!(is_ours(&change_part(3, 1)));
        for other in [
            "tables/7.sst",
            "tables/0123456789ABCDEF.sst",
            "logs/3-0.log",
            "tables/notes",
            "logs/000003-000000.txt",
        ] {
            assert!(!is_ours(other), "{other}");
        }
    }
}
