//! A manifest record: tagged fields, each with a must-understand bit.
//!
//! Field = varint tag, length-prefixed payload. An odd tag must be understood (`NotSupported`
//! otherwise); an even unknown tag is skipped. Within a record fields apply in order. The payloads
//! of keyspace edits are encoded by `windrow_plan::tree::Edit`.
//!
//! Owns: the format of records. Never does: read or write a file, or check a field against a state.

use std::sync::Arc;
use windrow_base::coding::{Decoder, put_slice, put_varint};
use windrow_base::key::SEQ_MAX;
use windrow_base::{
    COUNTER_MAX, Error, FileNumber, FileUid, KeyspaceId, Result, SeqNo, debug_invariant,
};
use windrow_plan::tree::Edit;

const KEYSPACE_CREATE: u64 = 1;
const KEYSPACE_DROP: u64 = 3;
const KEYSPACE_EDIT: u64 = 5;
const NEXT_FILE: u64 = 7;
const LAST_SEQ: u64 = 9;
const LOG_BEGIN: u64 = 11;
const WAL_ADDED: u64 = 13;
const CLEAN_CLOSE: u64 = 15;
const NEXT_KEYSPACE: u64 = 17;
const SNAPSHOT: u64 = 19;
const WAL_SYNCED: u64 = 21;
const KEYSPACE_SETTINGS: u64 = 23;
const TIME_FLOOR: u64 = 20;
const SETTINGS: u64 = 22;
const LOG_KEPT: u64 = 24;
const KEPT_BEGIN: u64 = 26;
const KEYSPACE_DROPPED: u64 = 28;
const SESSION: u64 = 30;
const DROPPED_ORDER: u64 = 32;

/// Name of the keyspace that every database has.
pub const DEFAULT_KEYSPACE: &str = "default";

/// The part of a keyspace that the manifest stores in addition to its version.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KeyspaceRecord {
    pub id: KeyspaceId,
    /// Shared with the running parts of the keyspace.
    pub name: Arc<str>,
    pub comparator: String,
    pub merge_operator: Option<String>,
}

/// A log that is kept for the feed of changes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct KeptLog {
    pub uid: FileUid,
    /// The sequence number of its first operation.
    pub first_seq: SeqNo,
    /// The sequence number of its last one.
    pub last_seq: SeqNo,
    /// The end of its last record.
    pub bytes: u64,
    /// The time at which its records were in tables, in ms since 1970.
    pub kept_ms: u64,
}

/// A keyspace that was dropped.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DroppedKeyspace {
    pub id: KeyspaceId,
    /// The last sequence number that was given out before.
    pub seq: SeqNo,
    pub name: Arc<str>,
    /// The names of its comparator and of its merge operator; `None` where an older version dropped
    /// it.
    pub order: Option<(String, Option<String>)>,
}

impl DroppedKeyspace {
    /// The fields that say so.
    pub fn fields(&self) -> impl Iterator<Item = Field> + use<> {
        let id = self.id;
        let order = self.order.clone().map(|(comparator, merge_operator)| Field::DroppedOrder {
            id,
            comparator,
            merge_operator,
        });
        let dropped = DroppedKeyspace { order: None, ..self.clone() };
        std::iter::once(Field::KeyspaceDropped(dropped)).chain(order)
    }
}

/// A session: the time from an open for writing, or a resume, to the next one. Sequence numbers that
/// a crash took back are given out again, but in another session.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Session {
    /// Random bits that no other session has.
    pub uid: u64,
    /// The first sequence number that it could give out.
    pub first_seq: SeqNo,
}

/// One field of a record.
#[derive(Clone, Debug, PartialEq)]
pub enum Field {
    /// The records before this one do not count: it begins a full snapshot.
    Snapshot,
    KeyspaceCreate(KeyspaceRecord),
    KeyspaceDrop(KeyspaceId),
    KeyspaceEdit(KeyspaceId, Edit),
    /// A keyspace's own settings, as text, in place of those that it had.
    KeyspaceSettings(KeyspaceId, String),
    /// No file with this number or a larger one was made yet.
    NextFile(FileNumber),
    /// The largest sequence number that tables hold.
    LastSeq(SeqNo),
    /// Recovery reads logs from `number` on; the first record in them has
    /// sequence number `first_seq`.
    LogBegin {
        number: FileNumber,
        first_seq: SeqNo,
    },
    /// This log exists, header and name durable; its loss is a corruption, and so is another file
    /// in its place. Only a log that such a field names holds records.
    WalAdded {
        number: FileNumber,
        uid: FileUid,
        /// Its length when it was made, preallocated space included: it was never shorter.
        bytes: u64,
    },
    /// This many bytes of this log are on the device (rule R4).
    WalSynced {
        number: FileNumber,
        bytes: u64,
    },
    /// Closed cleanly: log `wal` is the only one and is exactly `bytes` long.
    CleanClose {
        wal: FileNumber,
        bytes: u64,
    },
    NextKeyspace(u32),
    /// Expiry was judged at this time, in ms since 1970; never before it again.
    TimeFloor(u64),
    /// This log is kept for the feed of changes: all its records are in tables and durable, and no
    /// log before it is newer.
    LogKept(FileNumber, KeptLog),
    /// No log before this one is kept for the feed of changes any more.
    KeptBegin(FileNumber),
    /// A keyspace that was dropped behind the write with this sequence number. The logs may hold
    /// writes to it, which the feed of changes names by it.
    KeyspaceDropped(DroppedKeyspace),
    /// The names of the comparator and of the merge operator of a dropped keyspace.
    DroppedOrder {
        id: KeyspaceId,
        comparator: String,
        merge_operator: Option<String>,
    },
    /// A session begins.
    Session(Session),
    /// The settings in force, as text. An open does not read it; programs and people that ask for
    /// them do.
    Settings(String),
}

impl Field {
    /// The keyspace that it concerns.
    pub fn keyspace(&self) -> Option<KeyspaceId> {
        match self {
            Field::KeyspaceCreate(record) => Some(record.id),
            Field::KeyspaceDrop(id)
            | Field::KeyspaceEdit(id, _)
            | Field::KeyspaceSettings(id, _) => Some(*id),
            _ => None,
        }
    }
}

/// One record.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ManifestRecord(pub Vec<Field>);

impl ManifestRecord {
    /// The settings that it stores, if any.
    pub fn settings(&self) -> Option<&str> {
        self.0.iter().rev().find_map(|field| match field {
            Field::Settings(text) => Some(text.as_str()),
            _ => None,
        })
    }

    /// Appends the record's bytes.
    pub fn encode(&self, out: &mut Vec<u8>) {
        let encoded = self.encode_parts(|part| {
            out.extend_from_slice(part);
            Ok(())
        });
        debug_assert!(encoded.is_ok(), "appending to memory does not fail");
    }

    /// Encodes the record in order, and hands out at most a field's bytes at a time.
    ///
    /// # Errors
    /// Those of `put`.
    pub(crate) fn encode_parts(&self, mut put: impl FnMut(&[u8]) -> Result<()>) -> Result<()> {
        let (mut head, mut payload) = (Vec::new(), Vec::new());
        for field in &self.0 {
            head.clear();
            payload.clear();
            let tag = encode_field(field, &mut payload);
            // Only tests make fields that cannot be read again at all.
            let again = || decode_field(tag, &payload).ok().flatten();
            let is_same = !cfg!(debug_assertions) || again().is_none_or(|again| again == *field);
            debug_invariant!(R7, is_same, "a field is read again as another one: {field:?}");
            put_varint(&mut head, tag);
            put_varint(&mut head, payload.len() as u64);
            put(&head)?;
            put(&payload)?;
        }
        Ok(())
    }

    /// Reads a record.
    ///
    /// # Errors
    /// `Corruption` for malformed bytes, `NotSupported` for a field that must
    /// be understood and is not.
    pub fn decode(bytes: &[u8]) -> Result<ManifestRecord> {
        let mut decoder = Decoder::new(bytes);
        let mut fields = Vec::new();
        while !decoder.is_empty() {
            let tag = decoder.varint()?;
            let payload = decoder.slice()?;
            if let Some(field) = decode_field(tag, payload)? {
                fields.push(field);
            }
        }
        Ok(ManifestRecord(fields))
    }
}

fn encode_field(field: &Field, out: &mut Vec<u8>) -> u64 {
    match field {
        Field::Snapshot => SNAPSHOT,
        Field::KeyspaceCreate(record) => {
            put_varint(out, record.id.0 as u64);
            put_slice(out, record.name.as_bytes());
            put_slice(out, record.comparator.as_bytes());
            put_slice(out, record.merge_operator.as_deref().unwrap_or("").as_bytes());
            KEYSPACE_CREATE
        }
        Field::KeyspaceDrop(id) => {
            put_varint(out, id.0 as u64);
            KEYSPACE_DROP
        }
        Field::KeyspaceEdit(id, edit) => {
            put_varint(out, id.0 as u64);
            edit.encode(out);
            KEYSPACE_EDIT
        }
        Field::KeyspaceSettings(id, text) => {
            put_varint(out, id.0 as u64);
            out.extend_from_slice(text.as_bytes());
            KEYSPACE_SETTINGS
        }
        Field::NextFile(number) => put_one(out, *number, NEXT_FILE),
        Field::LastSeq(seq) => put_one(out, *seq, LAST_SEQ),
        Field::LogBegin { number, first_seq } => {
            put_varint(out, *number);
            put_one(out, *first_seq, LOG_BEGIN)
        }
        Field::WalAdded { number, uid, bytes } => {
            put_varint(out, *number);
            out.extend_from_slice(&uid.to_le_bytes());
            put_one(out, *bytes, WAL_ADDED)
        }
        Field::WalSynced { number, bytes } => {
            put_varint(out, *number);
            put_one(out, *bytes, WAL_SYNCED)
        }
        Field::CleanClose { wal, bytes } => {
            put_varint(out, *wal);
            put_one(out, *bytes, CLEAN_CLOSE)
        }
        Field::NextKeyspace(id) => put_one(out, *id as u64, NEXT_KEYSPACE),
        Field::TimeFloor(ms) => put_one(out, *ms, TIME_FLOOR),
        Field::LogKept(..)
        | Field::KeptBegin(_)
        | Field::KeyspaceDropped(_)
        | Field::DroppedOrder { .. }
        | Field::Session(_) => encode_for_changes(field, out),
        Field::Settings(text) => {
            out.extend_from_slice(text.as_bytes());
            SETTINGS
        }
    }
}

/// Encodes a field that is there for the feed of changes, or for restores to a moment.
fn encode_for_changes(field: &Field, out: &mut Vec<u8>) -> u64 {
    match field {
        Field::LogKept(number, kept) => {
            put_varint(out, *number);
            out.extend_from_slice(&kept.uid.to_le_bytes());
            put_varint(out, kept.first_seq);
            put_varint(out, kept.last_seq);
            put_varint(out, kept.bytes);
            put_one(out, kept.kept_ms, LOG_KEPT)
        }
        Field::KeptBegin(number) => put_one(out, *number, KEPT_BEGIN),
        Field::KeyspaceDropped(dropped) => {
            put_varint(out, dropped.id.0 as u64);
            put_varint(out, dropped.seq);
            put_slice(out, dropped.name.as_bytes());
            KEYSPACE_DROPPED
        }
        Field::DroppedOrder { id, comparator, merge_operator } => {
            put_varint(out, id.0 as u64);
            put_slice(out, comparator.as_bytes());
            put_slice(out, merge_operator.as_deref().unwrap_or("").as_bytes());
            DROPPED_ORDER
        }
        Field::Session(session) => {
            out.extend_from_slice(&session.uid.to_le_bytes());
            put_one(out, session.first_seq, SESSION)
        }
        _ => unreachable!("not a field of these"),
    }
}

fn put_one(out: &mut Vec<u8>, value: u64, tag: u64) -> u64 {
    put_varint(out, value);
    tag
}

fn decode_field(tag: u64, payload: &[u8]) -> Result<Option<Field>> {
    let mut decoder = Decoder::new(payload);
    let field = match tag {
        SNAPSHOT => Field::Snapshot,
        KEYSPACE_CREATE => Field::KeyspaceCreate(KeyspaceRecord {
            id: keyspace_id(&mut decoder)?,
            name: decoder.str()?.into(),
            comparator: decoder.str()?.to_owned(),
            merge_operator: Some(decoder.str()?.to_owned()).filter(|name| !name.is_empty()),
        }),
        KEYSPACE_DROP => Field::KeyspaceDrop(keyspace_id(&mut decoder)?),
        KEYSPACE_EDIT => {
            let id = keyspace_id(&mut decoder)?;
            return Ok(Some(Field::KeyspaceEdit(id, Edit::decode(decoder.rest())?)));
        }
        KEYSPACE_SETTINGS => {
            let id = keyspace_id(&mut decoder)?;
            return Ok(Some(Field::KeyspaceSettings(id, text(decoder.rest())?)));
        }
        NEXT_FILE => Field::NextFile(file_number(&mut decoder)?),
        LAST_SEQ => Field::LastSeq(seq(&mut decoder)?),
        LOG_BEGIN => {
            Field::LogBegin { number: file_number(&mut decoder)?, first_seq: seq(&mut decoder)? }
        }
        WAL_ADDED => Field::WalAdded {
            number: file_number(&mut decoder)?,
            uid: decoder.u64()?,
            bytes: decoder.varint()?,
        },
        WAL_SYNCED => {
            Field::WalSynced { number: file_number(&mut decoder)?, bytes: decoder.varint()? }
        }
        CLEAN_CLOSE => {
            Field::CleanClose { wal: file_number(&mut decoder)?, bytes: decoder.varint()? }
        }
        NEXT_KEYSPACE => Field::NextKeyspace(keyspace_id(&mut decoder)?.0),
        TIME_FLOOR => Field::TimeFloor(decoder.varint()?),
        LOG_KEPT => {
            let (number, uid) = (file_number(&mut decoder)?, decoder.u64()?);
            let (first_seq, last_seq) = (seq(&mut decoder)?, seq(&mut decoder)?);
            let (bytes, kept_ms) = (decoder.varint()?, decoder.varint()?);
            Field::LogKept(number, KeptLog { uid, first_seq, last_seq, bytes, kept_ms })
        }
        KEPT_BEGIN => Field::KeptBegin(file_number(&mut decoder)?),
        KEYSPACE_DROPPED => Field::KeyspaceDropped(DroppedKeyspace {
            id: keyspace_id(&mut decoder)?,
            seq: seq(&mut decoder)?,
            name: decoder.str()?.into(),
            order: None,
        }),
        DROPPED_ORDER => Field::DroppedOrder {
            id: keyspace_id(&mut decoder)?,
            comparator: decoder.str()?.to_owned(),
            merge_operator: Some(decoder.str()?.to_owned()).filter(|name| !name.is_empty()),
        },
        SESSION => Field::Session(Session { uid: decoder.u64()?, first_seq: seq(&mut decoder)? }),
        SETTINGS => return Ok(Some(Field::Settings(text(payload)?))),
        unknown if unknown % 2 == 0 => return Ok(None),
        unknown => {
            return Err(Error::not_supported(format!(
                "manifest field {unknown} needs a newer Windrow"
            )));
        }
    };
    if !decoder.is_empty() {
        return Err(Error::corruption(format!("manifest field {tag} is longer than it should be")));
    }
    Ok(Some(field))
}

fn text(bytes: &[u8]) -> Result<String> {
    let text = std::str::from_utf8(bytes);
    text.map(str::to_owned).map_err(|_| Error::corruption("stored settings are not UTF-8"))
}

/// Reads a number that is counted on from: one near the end would wrap.
fn bounded(decoder: &mut Decoder<'_>, max: u64, what: &str) -> Result<u64> {
    let number = decoder.varint()?;
    if number <= max {
        return Ok(number);
    }
    Err(Error::corruption(format!("{what} {number} is out of range")))
}

fn file_number(decoder: &mut Decoder<'_>) -> Result<FileNumber> {
    bounded(decoder, COUNTER_MAX, "file number")
}

fn seq(decoder: &mut Decoder<'_>) -> Result<SeqNo> {
    bounded(decoder, SEQ_MAX, "sequence number")
}

fn keyspace_id(decoder: &mut Decoder<'_>) -> Result<KeyspaceId> {
    let id = decoder.varint()?;
    u32::try_from(id)
        .map(KeyspaceId)
        .map_err(|_| Error::corruption(format!("keyspace id {id} is out of range")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn records_round_trip() {
        let record = ManifestRecord(vec![
            Field::Snapshot,
            Field::KeyspaceCreate(KeyspaceRecord {
                id: KeyspaceId(7),
                name: "users".into(),
                comparator: "windrow.bytewise".into(),
                merge_operator: Some("add".into()),
            }),
            Field::KeyspaceEdit(KeyspaceId(7), Edit::default()),
            Field::KeyspaceSettings(KeyspaceId(7), "ttl_ms = 5\n".into()),
            Field::NextFile(12),
            Field::LastSeq(1 << 40),
            Field::LogBegin { number: 11, first_seq: 99 },
            Field::WalAdded { number: 11, uid: u64::MAX, bytes: 1 << 20 },
            Field::WalSynced { number: 11, bytes: 900 },
            Field::CleanClose { wal: 11, bytes: 64 },
            Field::NextKeyspace(8),
            Field::TimeFloor(5),
            Field::Settings("memory_bytes = 1".into()),
            Field::LogKept(
                9,
                KeptLog { uid: 1 << 60, first_seq: 7, last_seq: 98, bytes: 4096, kept_ms: 1 << 41 },
            ),
            Field::KeptBegin(9),
            Field::KeyspaceDrop(KeyspaceId(7)),
            Field::KeyspaceDropped(DroppedKeyspace {
                id: KeyspaceId(7),
                seq: 98,
                name: "users".into(),
                order: None,
            }),
            Field::DroppedOrder {
                id: KeyspaceId(7),
                comparator: "windrow.bytewise".into(),
                merge_operator: Some("add".into()),
            },
            Field::Session(Session { uid: u64::MAX, first_seq: 99 }),
        ]);
        let mut bytes = Vec::new();
        record.encode(&mut bytes);
        assert_eq!(ManifestRecord::decode(&bytes).unwrap(), record);
        for cut in 0..bytes.len() {
            // Cut anywhere it is an error or a shorter list of whole fields.
            if let Ok(shorter) = ManifestRecord::decode(&bytes[..cut]) {
                assert!(record.0.starts_with(&shorter.0));
            }
        }
    }

    #[test]
    fn counters_near_their_end_are_refused() {
        let fields = [
            Field::NextFile(COUNTER_MAX + 1),
            Field::LastSeq(SEQ_MAX + 1),
            Field::LogBegin { number: u64::MAX, first_seq: 1 },
            Field::LogBegin { number: 1, first_seq: SEQ_MAX + 1 },
            Field::WalAdded { number: u64::MAX, uid: 1, bytes: 0 },
            Field::WalSynced { number: u64::MAX, bytes: 0 },
            Field::CleanClose { wal: u64::MAX, bytes: 64 },
        ];
        for field in fields {
            let mut bytes = Vec::new();
            ManifestRecord(vec![field.clone()]).encode(&mut bytes);
            assert!(ManifestRecord::decode(&bytes).unwrap_err().is_corruption(), "{field:?}");
        }
    }

    #[test]
    fn unknown_fields_are_skipped_or_refused_by_their_bit() {
        let mut optional = Vec::new();
        put_varint(&mut optional, 1000);
        put_slice(&mut optional, b"anything");
        assert_eq!(ManifestRecord::decode(&optional).unwrap(), ManifestRecord::default());
        let mut required = Vec::new();
        put_varint(&mut required, 1001);
        put_slice(&mut required, b"");
        let error = ManifestRecord::decode(&required).unwrap_err();
        assert_eq!(error.kind(), windrow_base::ErrorKind::NotSupported);
    }
}
