//! The header of a log file: its kind, its identity, and (R11) the manifest that was in force when
//! the log began, with the length of it that was on the device.
//!
//! Owns: the file header, byte by byte. Never does: write or read a file.

use super::framing::Framing;
use windrow_base::coding::Decoder;
use windrow_base::{Error, FileNumber, FileUid, Result};
use windrow_env::checksum::crc32c;

/// Bytes of the file header, in every format version.
pub const FILE_HEADER_BYTES: usize = 64;

/// The first bytes of a log or manifest.
pub const MAGIC: [u8; 8] = *b"WndrLog\0";

/// Which of the two logs a file is. The numbers are on disk.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[repr(u8)]
pub enum LogKind {
    /// A segment of the write-ahead log.
    Wal = 1,
    /// The log of edits.
    Manifest = 2,
}

impl LogKind {
    /// The form in which this build writes such a log.
    pub fn framing(self) -> Framing {
        match self {
            LogKind::Wal => Framing::Short,
            LogKind::Manifest => Framing::Fixed,
        }
    }

    fn name(self) -> &'static str {
        match self {
            LogKind::Wal => "write-ahead log",
            LogKind::Manifest => "manifest",
        }
    }
}

/// The head of a log file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FileHeader {
    /// Write-ahead log or manifest.
    pub kind: LogKind,
    /// The form of its fragment headers and batches: the version.
    pub framing: Framing,
    /// The file's number.
    pub number: FileNumber,
    /// The file's identity; seeds all its checksums.
    pub uid: FileUid,
    /// Number of the manifest in force when the log was made.
    pub manifest_number: FileNumber,
    /// Bytes of that manifest that were on the device then.
    pub manifest_durable_bytes: u64,
    /// The uid of that manifest, which identifies the database, and the generation of it, that the
    /// log belongs to.
    pub manifest_uid: FileUid,
}

/// The bytes of a file header.
pub fn encode_file_header(header: &FileHeader) -> Vec<u8> {
    let mut out = Vec::with_capacity(FILE_HEADER_BYTES);
    out.extend_from_slice(&MAGIC);
    out.extend_from_slice(&(header.framing as u32).to_le_bytes());
    out.extend_from_slice(&0u32.to_le_bytes()); // required features
    out.extend_from_slice(&u32::from(header.kind as u8).to_le_bytes());
    out.extend_from_slice(&header.number.to_le_bytes());
    out.extend_from_slice(&header.uid.to_le_bytes());
    out.extend_from_slice(&header.manifest_number.to_le_bytes());
    out.extend_from_slice(&header.manifest_durable_bytes.to_le_bytes());
    out.extend_from_slice(&header.manifest_uid.to_le_bytes());
    let crc = crc32c(&out);
    out.extend_from_slice(&crc.to_le_bytes());
    debug_assert_eq!(out.len(), FILE_HEADER_BYTES);
    out
}

/// Decodes the file header that `bytes` begin with.
///
/// # Errors
/// `Corruption` if it is cut short or fails its checksum, `NotSupported` if a
/// newer version wrote it.
pub fn decode_file_header(bytes: &[u8]) -> Result<FileHeader> {
    let mut d = Decoder::new(bytes);
    let magic = d.bytes(8)?;
    let (version, features, kind) = (d.u32()?, d.u32()?, d.u32()?);
    let (number, uid) = (d.u64()?, d.u64()?);
    let (manifest_number, manifest_durable_bytes, manifest_uid) = (d.u64()?, d.u64()?, d.u64()?);
    let covered = &bytes[..d.position()];
    let is_whole = d.u32()? == crc32c(covered);
    if !is_whole || magic != MAGIC {
        return Err(Error::corruption("log file header fails its checksum").with_offset(0));
    }
    let (framing, kind) = match (version, features, kind) {
        (1, 0, 1) => (Framing::Fixed, LogKind::Wal),
        (2, 0, 1) => (Framing::Short, LogKind::Wal),
        (1, 0, 2) => (Framing::Fixed, LogKind::Manifest),
        _ => {
            return Err(Error::not_supported(format!(
                "log of version {version}, features {features:#x}, kind {kind} needs a newer Windrow"
            )));
        }
    };
    Ok(FileHeader {
        kind,
        framing,
        number,
        uid,
        manifest_number,
        manifest_durable_bytes,
        manifest_uid,
    })
}

/// Whether these first bytes of a file show that no header ever reached it: fewer than a header's,
/// or all zeros. A log that was created but never synced looks so after a crash; no record of it
/// can have been promised durable.
pub fn is_blank(head: &[u8]) -> bool {
    head.len() < FILE_HEADER_BYTES || head[..FILE_HEADER_BYTES].iter().all(|&b| b == 0)
}

/// Refuses a log of the wrong kind.
pub(super) fn expect_kind(header: &FileHeader, expect: LogKind) -> Result<()> {
    if header.kind == expect {
        return Ok(());
    }
    Err(Error::corruption(format!(
        "there is a {} where a {} should be",
        header.kind.name(),
        expect.name()
    ))
    .with_offset(0))
}
