//! The owner of a file by its first bytes: asked before a file in a database's directory is
//! removed, or the directory taken for a database's.
//!
//! Owns: no format; it knows the magic numbers of all. Never does: check more than these. A damaged
//! file still belongs to its owner.

use crate::{current, lease, log, table};

/// The bytes of a file that [`of_head`] asks for: a sector, which a device writes whole.
pub const HEAD_BYTES: usize = 512;

/// The owner of a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Owner {
    /// It begins as Windrow's files do.
    Windrow,
    /// It is empty, or holds zeros or only a lock file's pid, as a file after a crash or a power
    /// loss may: it holds no program's data.
    Blank,
    /// It is a CURRENT of LevelDB or of a store derived from it, such as RocksDB.
    LevelDb,
    /// It begins with zeros or with digits, followed by other bytes. A power loss may have torn it
    /// from a file of Windrow, and it may be another program's: it says nothing about the
    /// directory, and must not be removed.
    Torn,
    /// It begins in another way.
    Other,
}

/// Returns the owner of a file with these first bytes: up to [`HEAD_BYTES`], or all that it has.
pub fn of_head(head: &[u8]) -> Owner {
    let magics = [current::MAGIC, log::MAGIC, table::MAGIC, lease::MAGIC];
    let written = head.len() - head.iter().rev().take_while(|&&byte| byte == 0).count();
    let written = &head[..written];
    if written.is_empty() {
        return Owner::Blank;
    }
    // A sector of one file may show bytes of another: any magic number counts, and a part of one,
    // since a write may be torn.
    let begins = |magic: &[u8; 8]| written.starts_with(magic) || magic.starts_with(written);
    if magics.iter().any(begins) {
        return Owner::Windrow;
    }
    // A lock file's pid counts too.
    if is_pid(written) && written.ends_with(b"\n") {
        return Owner::Blank;
    }
    // A power loss may have kept only the later of two writes to one sector.
    let begin = &head[..head.len().min(current::MAGIC.len())];
    let zeros = begin.iter().rev().take_while(|&&byte| byte == 0).count();
    if is_pid(&begin[..begin.len() - zeros]) {
        return Owner::Torn;
    }
    if head.starts_with(b"MANIFEST-") { Owner::LevelDb } else { Owner::Other }
}

/// Whether this is a lock file's line, or a part of it from its beginning.
fn is_pid(bytes: &[u8]) -> bool {
    let pid = bytes.strip_suffix(b"\n").unwrap_or(bytes);
    pid.iter().all(u8::is_ascii_digit)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::current::Current;
    use crate::log::{FileHeader, Framing, LogKind, encode_file_header};

    #[test]
    fn every_kind_of_file_is_known_by_its_head() {
        let current = Current {
            format_version: 9,
            required_features: 1,
            manifest_number: 7,
            manifest_uid: 8,
            database_uid: 9,
        };
        let header = FileHeader {
            kind: LogKind::Wal,
            framing: Framing::Short,
            number: 1,
            uid: 2,
            manifest_number: 3,
            manifest_durable_bytes: 4,
            manifest_uid: 5,
        };
        let mut table = b"WndrTabl".to_vec();
        table.resize(HEAD_BYTES, 1);
        for head in [current.encode(), encode_file_header(&header), table] {
            assert_eq!(of_head(&head), Owner::Windrow);
        }
        assert_eq!(of_head(&[]), Owner::Blank);
        assert_eq!(of_head(&[0; HEAD_BYTES]), Owner::Blank);
        assert_eq!(of_head(b"MANIFEST-000005\n"), Owner::LevelDb);
        for torn in [&b"W"[..], b"WndrLo", b"WndrTabl", b"Wn\0\0\0\0\0\0\0\0"] {
            assert_eq!(of_head(torn), Owner::Windrow);
        }
        assert_eq!(of_head(b"1234\n\0\0"), Owner::Blank);
        let later = b"\0\0\0\0\0\0\0\0\0\x01";
        for torn in [&b"1"[..], b"1234", b"1234\0\0", b"12\n\0\0\0\0\0\x01", later] {
            assert_eq!(of_head(torn), Owner::Torn);
        }
        let early = b"\0\0\0\0\0\0\x01";
        for other in [&b"WndrX"[..], b"Wn\0\0\0\0\0\0\x01", b"12x\n", b"RocksDB", early] {
            assert_eq!(of_head(other), Owner::Other);
        }
    }
}
