//! A whole directory as one input: a byte of flags, then the files, each with
//! its kind, a number, its length and its bytes.
//!
//! Owns: that format, in which every input is some directory. Never does: open the database.

use super::agree::{self, Files};
use super::checksums;
use std::path::Path;
use windrow_base::FileNumber;
use windrow_env::testing::CrashFs;
use windrow_format::log::FILE_HEADER_BYTES;
use windrow_format::names::{self, FileKind};

/// Flag: the open checks every checksum.
pub const VERIFY_ON_OPEN: u8 = 1;

/// Flag: the open is read-only.
pub const READ_ONLY: u8 = 2;

/// Flag: the open makes a missing database.
pub const CREATE: u8 = 4;

/// Flag: a copy of the directory is repaired and opened in addition.
pub const REPAIR: u8 = 8;

/// The remaining bits of the flags select the options.
pub const VARIANT_SHIFT: u32 = 4;

/// Bytes before a file's own: kind, number, length.
const HEAD_BYTES: usize = 5;

/// Zeros that are kept behind the contents of a log.
const BLANK_BYTES: usize = 64;

/// Numbers for the last values of the number's byte: counters overflow there.
const NUMBERS: [u64; 4] = [999_999, 1 << 32, u64::MAX - 1, u64::MAX];

/// The files of an input.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Archive {
    /// The uses of the directory by the test.
    pub flags: u8,
    /// Kind, number and bytes of each file.
    pub files: Vec<(u8, u8, Vec<u8>)>,
}

impl Archive {
    /// Parses an input. A length beyond its end means all the rest.
    pub fn parse(input: &[u8]) -> Archive {
        let (&flags, mut rest) = input.split_first().unwrap_or((&0, &[]));
        let mut files = Vec::new();
        while let Some((head, body)) = rest.split_first_chunk::<HEAD_BYTES>() {
            let len = u32::from_le_bytes([head[2], head[3], head[4], 0]) as usize;
            let (bytes, after) = body.split_at(len.min(body.len()));
            files.push((head[0], head[1], bytes.to_vec()));
            rest = after;
        }
        Archive { flags, files }
    }

    /// Returns the input that [`Archive::parse`] parses as this.
    pub fn to_bytes(&self) -> Vec<u8> {
        let mut out = vec![self.flags];
        for (kind, number, bytes) in &self.files {
            let len = (bytes.len() as u32).to_le_bytes();
            out.extend([*kind, *number, len[0], len[1], len[2]]);
            out.extend_from_slice(bytes);
        }
        out
    }

    /// Returns the files of a directory. The lock file is empty.
    pub fn of(fs: &CrashFs, dir: &Path, flags: u8) -> Archive {
        let mut files = Vec::new();
        for name in fs.files(dir) {
            let Some((kind, number)) = names::parse(&name) else { continue };
            let Some(kind) = KINDS.iter().position(|&k| k == Some(kind)) else { continue };
            let bytes = fs.read_file(&dir.join(&name)).unwrap_or_default();
            files.push((kind as u8, number as u8, bytes));
        }
        Archive { flags, files }
    }

    /// Returns the bytes of the manifest, if there is one.
    pub fn manifest_mut(&mut self) -> Option<&mut Vec<u8>> {
        let found = |kind: u8| kind_of(kind) == Some(FileKind::Manifest);
        self.files.iter_mut().find(|(kind, _, _)| found(*kind)).map(|(_, _, bytes)| bytes)
    }

    /// Cuts off most of the preallocated space of logs, which has no contents. Some stays: the last
    /// record may end in zeros, and blank space follows it.
    pub fn shorten_logs(&mut self) {
        for (_, _, bytes) in self.of_kind(FileKind::Wal) {
            let end = bytes.iter().rposition(|&b| b != 0).map_or(0, |last| last + 1);
            bytes.truncate(end.max(FILE_HEADER_BYTES) + BLANK_BYTES);
        }
    }

    /// Recomputes the checksums of every file, and the uids and lengths that files record of each
    /// other.
    pub fn recompute_checksums(&mut self) {
        let (mut tables, mut logs, mut manifests) = (Files::new(), Files::new(), Files::new());
        for (kind, number, bytes) in &mut self.files {
            let number = file_number(*number);
            let (files, seen) = match kind_of(*kind) {
                Some(FileKind::Table) => {
                    checksums::table(bytes);
                    (&mut tables, agree::see_table(bytes))
                }
                Some(FileKind::Wal) => (&mut logs, agree::see_log(bytes, number)),
                Some(FileKind::Manifest) => (&mut manifests, agree::see_log(bytes, number)),
                _ => continue,
            };
            files.extend(seen.map(|seen| (number, seen)));
        }
        // This may change the manifest's length, which logs record; logs keep theirs.
        for (_, number, bytes) in self.of_kind(FileKind::Manifest) {
            checksums::log(bytes);
            agree::manifest(bytes, &tables, &logs);
            let number = file_number(*number);
            manifests.extend(agree::see_log(bytes, number).map(|seen| (number, seen)));
        }
        for (_, _, bytes) in self.of_kind(FileKind::Wal) {
            agree::log(bytes, &manifests, &logs);
        }
        for (_, _, bytes) in self.of_kind(FileKind::Current) {
            agree::current(bytes, &manifests);
            checksums::current(bytes);
        }
    }

    fn of_kind(&mut self, kind: FileKind) -> impl Iterator<Item = &mut (u8, u8, Vec<u8>)> {
        self.files.iter_mut().filter(move |file| kind_of(file.0) == Some(kind))
    }

    /// Adds a file of one byte with the largest number.
    pub fn add_last(&mut self, kind: FileKind) {
        let kind = KINDS.iter().position(|&k| k == Some(kind)).expect("a kind that archives know");
        let at_end = NUMBERS.len() as u8 - 1;
        self.files.push((kind as u8, u8::MAX - at_end, vec![0]));
    }

    /// Writes the files into a directory, durably.
    pub fn write(&self, fs: &CrashFs, dir: &Path) {
        for (kind, number, bytes) in &self.files {
            let number = file_number(*number);
            let name = match kind_of(*kind) {
                Some(FileKind::Current) => names::CURRENT.to_owned(),
                Some(FileKind::Manifest) => names::manifest(number),
                Some(FileKind::Wal) => names::wal(number),
                Some(FileKind::Table) => names::table(number),
                Some(FileKind::Temp) => names::temp(number),
                _ => format!("notes-{number}"),
            };
            fs.write_file(&dir.join(name), bytes);
        }
    }
}

/// The kind of a file, by its byte; `None` for a stranger's file.
const KINDS: [Option<FileKind>; 6] = [
    Some(FileKind::Current),
    Some(FileKind::Manifest),
    Some(FileKind::Wal),
    Some(FileKind::Table),
    Some(FileKind::Temp),
    None,
];

fn file_number(byte: u8) -> FileNumber {
    NUMBERS.get(usize::from(u8::MAX - byte)).copied().unwrap_or(FileNumber::from(byte))
}

fn kind_of(byte: u8) -> Option<FileKind> {
    KINDS[usize::from(byte) % KINDS.len()]
}
