//! The record of a backup: its tables, its log, and the manifest.
//!
//! Owns: its bytes (`docs/format/backup.md`). Never does: read or store an object.

use super::sum::Sum;
use windrow_base::coding::{Decoder, put_slice, put_varint};
use windrow_base::{Error, FileNumber, FileUid, Result, unless_mutant};
use windrow_env::checksum::crc32c;
use windrow_store::manifest::record::ManifestRecord;

const MAGIC: &[u8; 8] = b"WINDROWB";
const VERSION: u64 = 1;
const CRC_BYTES: usize = 4;

/// A backup of a target.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Backup {
    /// Its number; later ones have larger numbers.
    pub number: u64,
    /// Milliseconds since 1970, by the clock of the machine that made it.
    pub made_ms: u64,
    /// The id of its database: 64 random bits.
    pub database_uid: u64,
    /// The number of its tables.
    pub tables: u64,
    /// Bytes of its tables and its log. Backups share tables, so that together they take less.
    pub bytes: u64,
}

/// A table of a backup.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct BackedUpTable {
    /// Its number in the database.
    pub(super) number: FileNumber,
    pub(super) uid: FileUid,
    pub(super) sum: Sum,
}

/// The contents of a record.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Contents {
    pub(super) number: u64,
    pub(super) made_ms: u64,
    pub(super) database_uid: u64,
    pub(super) manifest_number: FileNumber,
    pub(super) log_number: FileNumber,
    /// The parts of its log, if it has one.
    pub(super) log: Vec<Sum>,
    pub(super) tables: Vec<BackedUpTable>,
    /// The state of the manifest.
    pub(super) manifest: ManifestRecord,
}

impl Contents {
    /// Returns the part of it that users see.
    pub(super) fn told(&self) -> Backup {
        let tables = self.tables.iter().map(|table| table.sum.bytes);
        Backup {
            number: self.number,
            made_ms: self.made_ms,
            database_uid: self.database_uid,
            tables: self.tables.len() as u64,
            bytes: tables.chain(self.log.iter().map(|part| part.bytes)).sum(),
        }
    }

    pub(super) fn encode(&self) -> Vec<u8> {
        let mut out = MAGIC.to_vec();
        let mut put = |number| put_varint(&mut out, number);
        [VERSION, self.number, self.made_ms, self.database_uid].into_iter().for_each(&mut put);
        [self.manifest_number, self.log_number].into_iter().for_each(&mut put);
        put(self.log.len() as u64);
        for part in &self.log {
            [part.bytes, u64::from(part.crc)].into_iter().for_each(&mut put);
        }
        put(self.tables.len() as u64);
        for BackedUpTable { number, uid, sum } in &self.tables {
            [*number, *uid, sum.bytes, u64::from(sum.crc)].into_iter().for_each(&mut put);
        }
        let mut manifest = Vec::new();
        self.manifest.encode(&mut manifest);
        put_slice(&mut out, &manifest);
        let crc = crc32c(&out);
        out.extend_from_slice(&crc.to_le_bytes());
        out
    }

    /// Decodes the record of backup `number`.
    ///
    /// # Errors
    /// `Corruption` for bytes that are no record of it; `NotSupported` for one of a later version.
    pub(super) fn decode(number: u64, bytes: &[u8]) -> Result<Contents> {
        let (body, crc) = bytes
            .split_at_checked(bytes.len().saturating_sub(CRC_BYTES))
            .filter(|(body, _)| body.starts_with(MAGIC))
            .ok_or_else(|| damaged("its beginning differs"))?;
        unless_mutant!(BackupRecordCrc, check_crc(body, crc)?);
        let mut decoder = Decoder::new(&body[MAGIC.len()..]);
        let version = decoder.varint()?;
        if version != VERSION {
            return Err(Error::not_supported(format!(
                "a backup of version {version}; this program reads version {VERSION}"
            )));
        }
        let contents = decode_body(&mut decoder)?;
        match (decoder.is_empty(), contents.number == number) {
            (true, true) => Ok(contents),
            (true, false) => Err(damaged(&format!("it is of backup {}", contents.number))),
            (false, _) => Err(damaged("there are bytes behind its end")),
        }
    }
}

fn check_crc(body: &[u8], crc: &[u8]) -> Result<()> {
    if crc == crc32c(body).to_le_bytes() { Ok(()) } else { Err(damaged("its checksum differs")) }
}

fn damaged(how: &str) -> Error {
    Error::corruption(format!("not the record of a backup: {how}"))
}

/// Decodes the bytes between version and checksum. Lists grow as they are read: a count from disk
/// allocates nothing.
fn decode_body(decoder: &mut Decoder<'_>) -> Result<Contents> {
    let sum = |decoder: &mut Decoder<'_>| {
        let bytes = decoder.varint()?;
        let crc =
            u32::try_from(decoder.varint()?).map_err(|_| damaged("a checksum is too large"))?;
        Result::Ok(Sum { bytes, crc })
    };
    let (number, made_ms) = (decoder.varint()?, decoder.varint()?);
    let database_uid = decoder.varint()?;
    let (manifest_number, log_number) = (decoder.varint()?, decoder.varint()?);
    let mut log = Vec::new();
    for _ in 0..decoder.varint()? {
        log.push(sum(decoder)?);
    }
    let mut tables = Vec::new();
    for _ in 0..decoder.varint()? {
        let (number, uid) = (decoder.varint()?, decoder.varint()?);
        tables.push(BackedUpTable { number, uid, sum: sum(decoder)? });
    }
    let manifest = ManifestRecord::decode(decoder.slice()?)?;
    Ok(Contents {
        number,
        made_ms,
        database_uid,
        manifest_number,
        log_number,
        log,
        tables,
        manifest,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use windrow_base::ErrorKind;
    use windrow_store::manifest::state::ManifestState;

    #[test]
    fn a_record_is_read_as_it_was_written() {
        let sum = Sum { bytes: 4_096, crc: u32::MAX };
        let contents = Contents {
            number: 3,
            made_ms: 1,
            database_uid: 2,
            manifest_number: 8,
            log_number: 9,
            log: vec![sum; 2],
            tables: vec![BackedUpTable { number: 7, uid: u64::MAX, sum }; 3],
            manifest: ManifestState::default().snapshot(),
        };
        let bytes = contents.encode();
        assert_eq!(Contents::decode(3, &bytes).unwrap(), contents);
        assert_eq!(contents.told().bytes, 5 * 4_096);
        let moved = Contents::decode(4, &bytes).unwrap_err();
        assert!(moved.message().contains("it is of backup 3"), "{moved}");
        for at in 0..bytes.len() {
            for bit in 0..8 {
                let mut damaged = bytes.clone();
                damaged[at] ^= 1 << bit;
                assert!(Contents::decode(3, &damaged).is_err(), "byte {at}");
            }
            assert!(Contents::decode(3, &bytes[..at]).is_err(), "cut at {at}");
        }
    }

    #[test]
    fn a_later_version_is_refused() {
        let mut bytes = MAGIC.to_vec();
        put_varint(&mut bytes, VERSION + 1);
        let crc = crc32c(&bytes);
        bytes.extend_from_slice(&crc.to_le_bytes());
        let refused = Contents::decode(1, &bytes).unwrap_err();
        assert_eq!(refused.kind(), ErrorKind::NotSupported, "{refused}");
    }
}
