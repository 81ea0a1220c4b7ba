//! The record of a backup: its tables, its log, and the manifest.
//!
//! Owns: its bytes (`docs/format/backup.md`). Never does: read or store an object.

use super::sum::Sum;
use windrow_base::coding::{Decoder, put_slice, put_varint};
use windrow_base::{Error, FileNumber, FileUid, KeyspaceId, Result, SeqNo, unless_mutant};
use windrow_env::checksum::crc32c;
use windrow_store::manifest::record::{DroppedKeyspace, Field, ManifestRecord};

const MAGIC: &[u8; 8] = b"WINDROWB";
const VERSION: u64 = 2;
/// The version of records without the fields behind the manifest.
const VERSION_WITHOUT_CHANGES: u64 = 1;
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
    /// The sequence number of the last write that it has; `None` where an older version made it of a
    /// database with a log.
    pub seq: Option<SeqNo>,
    /// The changes between an earlier backup and this one, if it has them.
    pub changes: Option<BackupChanges>,
}

/// The changes between an earlier backup and a later one, which has them with it: a restore can end
/// behind each of them ([`super::restore_to`]).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct BackupChanges {
    /// The number of the earlier backup.
    pub since: u64,
    /// The sequence number of the last of them: that of the later backup, unless the logs lacked
    /// some.
    pub through: SeqNo,
    /// Their bytes.
    pub bytes: u64,
}

/// The changes since an earlier backup, as a record has them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct ChangesSince {
    /// The number of the earlier backup.
    pub(super) since: u64,
    /// The last sequence number that they have.
    pub(super) through: SeqNo,
    pub(super) parts: Vec<ChangePart>,
}

/// A part of them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct ChangePart {
    pub(super) last_seq: SeqNo,
    pub(super) sum: Sum,
}

impl ChangesSince {
    pub(super) fn told(&self) -> BackupChanges {
        let bytes = self.parts.iter().map(|part| part.sum.bytes).sum();
        BackupChanges { since: self.since, through: self.through, bytes }
    }
}

/// The place of a backup in the history of its database.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct HistoryPlace {
    /// The last sequence number that it has.
    pub(super) seq: SeqNo,
    /// The session in which it was made; `None` where the database keeps no changes.
    pub(super) session: Option<u64>,
    /// Keyspaces that were dropped lately.
    pub(super) dropped: Vec<DroppedKeyspace>,
    pub(super) changes: Option<ChangesSince>,
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
    /// `None` in a record of version 1.
    pub(super) place: Option<HistoryPlace>,
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
            seq: self.seq(),
            changes: self.changes().map(ChangesSince::told),
        }
    }

    /// The changes that it has with it.
    pub(super) fn changes(&self) -> Option<&ChangesSince> {
        self.place.as_ref()?.changes.as_ref()
    }

    /// The last sequence number that it has, where the record says so.
    pub(super) fn seq(&self) -> Option<SeqNo> {
        match &self.place {
            Some(place) => Some(place.seq),
            None if self.log.is_empty() => Some(self.seq_of_tables()),
            None => None,
        }
    }

    fn seq_of_tables(&self) -> SeqNo {
        let seq = self.manifest.0.iter().filter_map(|field| match field {
            Field::LastSeq(seq) => Some(*seq),
            _ => None,
        });
        seq.max().unwrap_or(0)
    }

    pub(super) fn encode(&self) -> Vec<u8> {
        let mut out = MAGIC.to_vec();
        let mut put = |number| put_varint(&mut out, number);
        let version = if self.place.is_some() { VERSION } else { VERSION_WITHOUT_CHANGES };
        [version, self.number, self.made_ms, self.database_uid].into_iter().for_each(&mut put);
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
        if let Some(place) = &self.place {
            place.encode(&mut out);
        }
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
        if !(VERSION_WITHOUT_CHANGES..=VERSION).contains(&version) {
            return Err(Error::not_supported(format!(
                "a backup of version {version}; this program reads versions up to {VERSION}"
            )));
        }
        let mut contents = decode_body(&mut decoder)?;
        if version == VERSION {
            contents.place = Some(HistoryPlace::decode(&mut decoder)?);
        }
        match (decoder.is_empty(), contents.number == number) {
            (true, true) => Ok(contents),
            (true, false) => Err(damaged(&format!("it is of backup {}", contents.number))),
            (false, _) => Err(damaged("there are bytes behind its end")),
        }
    }
}

impl HistoryPlace {
    fn encode(&self, out: &mut Vec<u8>) {
        put_varint(out, self.seq);
        put_varint(out, u64::from(self.session.is_some()));
        out.extend_from_slice(&self.session.unwrap_or(0).to_le_bytes());
        put_varint(out, self.dropped.len() as u64);
        for DroppedKeyspace { id, seq, name, order } in &self.dropped {
            put_varint(out, u64::from(id.0));
            put_varint(out, *seq);
            let (comparator, operator) = order.clone().unwrap_or_default();
            put_slice(out, name.as_bytes());
            put_slice(out, comparator.as_bytes());
            put_slice(out, operator.unwrap_or_default().as_bytes());
        }
        // Backups have numbers from 1 on.
        let ChangesSince { since, through, parts } = self.changes.clone().unwrap_or(ChangesSince {
            since: 0,
            through: 0,
            parts: Vec::new(),
        });
        [since, through, parts.len() as u64].into_iter().for_each(|number| put_varint(out, number));
        for ChangePart { last_seq, sum } in parts {
            [last_seq, sum.bytes, u64::from(sum.crc)]
                .into_iter()
                .for_each(|number| put_varint(out, number));
        }
    }

    fn decode(decoder: &mut Decoder<'_>) -> Result<HistoryPlace> {
        let (seq, has_session, session) = (decoder.varint()?, decoder.varint()?, decoder.u64()?);
        let session = match has_session {
            0 if session == 0 => None,
            1 => Some(session),
            _ => return Err(damaged("it has half a session")),
        };
        let mut dropped = Vec::new();
        for _ in 0..decoder.varint()? {
            let id = u32::try_from(decoder.varint()?);
            let id = id.map_err(|_| damaged("the id of a keyspace is too large"))?;
            let (seq, name) = (decoder.varint()?, decoder.str()?.into());
            let (comparator, operator) = (decoder.str()?.to_owned(), decoder.str()?.to_owned());
            let operator = Some(operator).filter(|operator| !operator.is_empty());
            // Comparators have names.
            let order = (!comparator.is_empty()).then_some((comparator, operator));
            dropped.push(DroppedKeyspace { id: KeyspaceId(id), seq, name, order });
        }
        let (since, through) = (decoder.varint()?, decoder.varint()?);
        let mut parts = Vec::new();
        for _ in 0..decoder.varint()? {
            parts.push(ChangePart { last_seq: decoder.varint()?, sum: decode_sum(decoder)? });
        }
        let changes = (since != 0).then_some(ChangesSince { since, through, parts });
        Ok(HistoryPlace { seq, session, dropped, changes })
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
    let (number, made_ms) = (decoder.varint()?, decoder.varint()?);
    let database_uid = decoder.varint()?;
    let (manifest_number, log_number) = (decoder.varint()?, decoder.varint()?);
    let mut log = Vec::new();
    for _ in 0..decoder.varint()? {
        log.push(decode_sum(decoder)?);
    }
    let mut tables = Vec::new();
    for _ in 0..decoder.varint()? {
        let (number, uid) = (decoder.varint()?, decoder.varint()?);
        tables.push(BackedUpTable { number, uid, sum: decode_sum(decoder)? });
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
        place: None,
    })
}

fn decode_sum(decoder: &mut Decoder<'_>) -> Result<Sum> {
    let bytes = decoder.varint()?;
    let crc = u32::try_from(decoder.varint()?).map_err(|_| damaged("a checksum is too large"))?;
    Ok(Sum { bytes, crc })
}

#[cfg(test)]
mod tests {
    use super::*;
    use windrow_base::ErrorKind;
    use windrow_store::manifest::state::ManifestState;

    fn place() -> HistoryPlace {
        let part = ChangePart { last_seq: 90, sum: Sum { bytes: 7, crc: 1 } };
        let dropped =
            |order| DroppedKeyspace { id: KeyspaceId(2), seq: 5, name: "a".into(), order };
        let operator = Some("add".to_owned());
        HistoryPlace {
            seq: 100,
            session: Some(u64::MAX),
            dropped: vec![dropped(None), dropped(Some(("bytewise".to_owned(), operator)))],
            changes: Some(ChangesSince { since: 2, through: 90, parts: vec![part; 2] }),
        }
    }

    #[test]
    fn a_record_is_read_as_it_was_written() {
        let sum = Sum { bytes: 4_096, crc: u32::MAX };
        for place in [None, Some(HistoryPlace::default()), Some(place())] {
            let contents = Contents {
                number: 3,
                made_ms: 1,
                database_uid: 2,
                manifest_number: 8,
                log_number: 9,
                log: vec![sum; 2],
                tables: vec![BackedUpTable { number: 7, uid: u64::MAX, sum }; 3],
                manifest: ManifestState::default().snapshot(),
                place,
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
        let told = place().changes.unwrap().told();
        assert_eq!(told, BackupChanges { since: 2, through: 90, bytes: 14 });
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
