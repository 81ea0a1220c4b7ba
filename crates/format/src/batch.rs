//! The payload of a batch record: sequence number, count, operations.
//!
//! It has two forms, as the log has ([`Framing`]); the short one is written, and both are read.
//! `BatchBuf` keeps room for the log's record header and the batch's in front, so that the commit
//! path seals the buffer in place and writes it without a copy. Layout in `docs/format/batch.md`.
//!
//! Owns: the encoding of a batch, and the buffer that one is built in. Never does: apply an
//! operation, or believe bytes from disk unchecked (`decode` is for those, `BatchBuf::ops` for the
//! process's own).

use crate::log::{self, Class, Framing, LogPosition};
use windrow_base::coding::{Decoder, get_varint, put_slice, put_varint, put_varint_at, varint_len};
use windrow_base::key::{KEY_BYTES_MAX, SEQ_MAX, VALUE_BYTES_MAX};
use windrow_base::{Error, KeyspaceId, Kind, Result, SeqNo};

/// The most bytes of sequence number and count before the operations.
pub const BATCH_HEADER_BYTES_MAX: usize = varint_len(SEQ_MAX) + varint_len(u32::MAX as u64);

/// Bytes of the expiry before the value of an `*Expiry` operation.
pub const EXPIRY_BYTES: usize = 8;

/// The offset of the operations in a `BatchBuf`'s buffer.
const OPS_AT: usize = log::HEADER_BYTES + BATCH_HEADER_BYTES_MAX;

/// The bit in the byte of an operation's kind that says that the keyspace follows. Without it the
/// keyspace is the default one.
const KEYSPACE_FOLLOWS: u8 = 0x80;

/// Whether an operation of this kind is stored with a value.
fn has_value(kind: Kind) -> bool {
    !kind.is_point_tombstone()
}

/// One operation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Op<'a> {
    /// The kind of operation.
    pub kind: Kind,
    /// The keyspace that it applies to.
    pub keyspace: KeyspaceId,
    /// User key; start of the range for `RangeDelete`.
    pub key: &'a [u8],
    /// Value as stored (with the expiry before it for `*Expiry`), exclusive
    /// end for `RangeDelete`, empty for deletes.
    pub value: &'a [u8],
}

/// A place in a [`BatchBuf`], to which it can be truncated.
#[derive(Clone, Copy, Debug)]
pub struct RollbackPoint {
    bytes: usize,
    count: u32,
}

/// Bytes of the payload of a batch with these operations.
#[inline]
pub fn payload_bytes(first_seq: SeqNo, count: u32, op_bytes: usize) -> usize {
    varint_len(first_seq) + varint_len(u64::from(count)) + op_bytes
}

/// A batch being built, in the form in which it is logged.
#[derive(Clone, Debug)]
pub struct BatchBuf {
    buf: Vec<u8>,
    count: u32,
    /// The offset of the payload, once the sequence number is set.
    begin: usize,
}

impl Default for BatchBuf {
    fn default() -> BatchBuf {
        BatchBuf::new()
    }
}

impl BatchBuf {
    /// An empty batch.
    pub fn new() -> BatchBuf {
        BatchBuf { buf: vec![0; OPS_AT], count: 0, begin: OPS_AT }
    }

    /// An empty batch with room for `op_bytes` of operations.
    pub fn with_capacity(op_bytes: usize) -> BatchBuf {
        let mut buf = Vec::with_capacity(OPS_AT + op_bytes);
        buf.resize(OPS_AT, 0);
        BatchBuf { buf, count: 0, begin: OPS_AT }
    }

    /// Empties the batch; keeps its memory.
    pub fn clear(&mut self) {
        self.buf.truncate(OPS_AT);
        self.set_count(0);
    }

    /// Number of operations.
    pub fn count(&self) -> u32 {
        self.count
    }

    /// Whether there are no operations.
    pub fn is_empty(&self) -> bool {
        self.count == 0
    }

    /// The most bytes that the payload can take: header and operations.
    pub fn byte_len(&self) -> usize {
        BATCH_HEADER_BYTES_MAX + self.op_bytes()
    }

    /// Bytes of the operations.
    #[inline]
    pub fn op_bytes(&self) -> usize {
        self.buf.len() - OPS_AT
    }

    /// Bytes of memory held.
    pub fn memory_bytes(&self) -> usize {
        self.buf.capacity()
    }

    /// Appends an operation. The caller has checked the limits of key, value and count. For point
    /// deletes `value` is not stored.
    #[inline]
    pub fn push(&mut self, kind: Kind, keyspace: KeyspaceId, key: &[u8], value: &[u8]) {
        debug_assert!(!kind.has_expiry() || value.len() >= EXPIRY_BYTES);
        self.head(kind, keyspace, key, value.len());
        if has_value(kind) {
            put_slice(&mut self.buf, value);
        }
    }

    /// Appends a `PutExpiry` or `MergeExpiry`: `expiry_ms` since 1970, then the value.
    pub fn push_expiring(
        &mut self,
        kind: Kind,
        keyspace: KeyspaceId,
        key: &[u8],
        value: &[u8],
        expiry_ms: u64,
    ) {
        debug_assert!(kind.has_expiry());
        self.head(kind, keyspace, key, value.len() + EXPIRY_BYTES);
        put_varint(&mut self.buf, (value.len() + EXPIRY_BYTES) as u64);
        self.buf.extend_from_slice(&expiry_ms.to_le_bytes());
        self.buf.extend_from_slice(value);
    }

    #[inline]
    fn head(&mut self, kind: Kind, keyspace: KeyspaceId, key: &[u8], value_bytes: usize) {
        debug_assert!(key.len() <= KEY_BYTES_MAX && value_bytes <= VALUE_BYTES_MAX + EXPIRY_BYTES);
        self.buf.reserve(16 + key.len() + value_bytes);
        if keyspace == KeyspaceId::DEFAULT {
            self.buf.push(kind as u8);
        } else {
            self.buf.push(kind as u8 | KEYSPACE_FOLLOWS);
            put_varint(&mut self.buf, u64::from(keyspace.0));
        }
        put_slice(&mut self.buf, key);
        self.set_count(self.count + 1);
    }

    /// Appends all operations of another batch.
    pub fn append(&mut self, other: &BatchBuf) {
        self.buf.extend_from_slice(&other.buf[OPS_AT..]);
        self.set_count(self.count + other.count);
    }

    /// Sets the sequence number of the first operation; each next operation has the next number.
    /// The payload is complete from here on, until an operation is added or dropped.
    pub fn set_first_seq(&mut self, seq: SeqNo) {
        debug_assert!(seq <= SEQ_MAX);
        let begin = OPS_AT - payload_bytes(seq, self.count, 0);
        let at = put_varint_at(&mut self.buf, begin, seq);
        let end = put_varint_at(&mut self.buf, at, u64::from(self.count));
        debug_assert_eq!(end, OPS_AT, "the batch's header ends where the operations begin");
        self.begin = begin;
    }

    /// Makes a log record of the batch, in place, where it fits into one fragment and the
    /// sequence number is set.
    ///
    /// # Panics
    /// If it does not fit, or the sequence number is not set.
    pub fn seal(&mut self, place: LogPosition) -> &[u8] {
        debug_assert_eq!(place.framing, Framing::Short, "a batch has the form of its log");
        assert!(self.begin < OPS_AT, "a payload without a sequence number");
        log::seal(&mut self.buf, self.begin, Class::Batch, place)
    }

    /// The payload, for [`log::frame`], once the sequence number is set.
    ///
    /// # Panics
    /// If it is not.
    pub fn payload(&self) -> &[u8] {
        assert!(self.begin < OPS_AT, "a payload without a sequence number");
        &self.buf[self.begin..]
    }

    #[inline]
    fn set_count(&mut self, count: u32) {
        self.count = count;
        self.begin = OPS_AT;
    }

    /// The present end, for [`BatchBuf::truncate_to`].
    pub fn mark(&self) -> RollbackPoint {
        RollbackPoint { bytes: self.buf.len(), count: self.count }
    }

    /// Whether the batch reaches to `mark`.
    pub fn holds(&self, mark: RollbackPoint) -> bool {
        mark.bytes <= self.buf.len() && mark.count <= self.count
    }

    /// The operations pushed since `mark`, in order.
    pub fn ops_from(&self, mark: RollbackPoint) -> TrustedOps<'_> {
        TrustedOps { rest: &self.buf[mark.bytes..] }
    }

    /// Drops the operations pushed since `mark`.
    pub fn truncate_to(&mut self, mark: RollbackPoint) {
        debug_assert!(mark.bytes <= self.buf.len() && mark.count <= self.count);
        self.buf.truncate(mark.bytes);
        self.set_count(mark.count);
    }

    /// The operations, in order.
    pub fn ops(&self) -> TrustedOps<'_> {
        TrustedOps { rest: &self.buf[OPS_AT..] }
    }
}

/// The operations of a batch that this process built. Ends early only after a defect of the
/// program.
#[derive(Clone, Debug)]
pub struct TrustedOps<'a> {
    rest: &'a [u8],
}

impl<'a> TrustedOps<'a> {
    #[inline]
    fn slice(&mut self) -> Option<&'a [u8]> {
        let (len, at) = get_varint(self.rest)?;
        let (slice, rest) = self.rest[at..].split_at_checked(len as usize)?;
        self.rest = rest;
        Some(slice)
    }

    #[inline]
    fn parse(&mut self) -> Option<Op<'a>> {
        let first = *self.rest.first()?;
        let kind = Kind::from_u8(first & !KEYSPACE_FOLLOWS).ok()?;
        let (keyspace, len) = if first & KEYSPACE_FOLLOWS == 0 {
            (u64::from(KeyspaceId::DEFAULT.0), 0)
        } else {
            get_varint(&self.rest[1..])?
        };
        self.rest = &self.rest[1 + len..];
        let key = self.slice()?;
        let value = if has_value(kind) { self.slice()? } else { &[] };
        Some(Op { kind, keyspace: KeyspaceId(keyspace as u32), key, value })
    }
}

impl<'a> Iterator for TrustedOps<'a> {
    type Item = Op<'a>;

    #[inline]
    fn next(&mut self) -> Option<Op<'a>> {
        let op = self.parse();
        debug_assert!(op.is_some() || self.rest.is_empty(), "a batch of our own is malformed");
        op
    }
}

/// Opens the payload of a batch record: first sequence number, count, operations.
/// `framing`: the form of the log that it was read from.
///
/// # Errors
/// `Corruption` if the header is cut short or its numbers are impossible.
pub fn decode(payload: &[u8], framing: Framing) -> Result<(SeqNo, u32, OpIter<'_>)> {
    let mut decoder = Decoder::new(payload);
    let (first_seq, count) = match framing {
        Framing::Fixed => (decoder.u64()?, decoder.u32()?),
        Framing::Short => (decoder.varint()?, short_count(decoder.varint()?)?),
    };
    if first_seq == 0 {
        return Err(Error::corruption("batch has sequence number 0, and the first is 1"));
    }
    if first_seq > SEQ_MAX || u64::from(count) > SEQ_MAX - first_seq + 1 {
        return Err(Error::corruption("batch passes the largest sequence number"));
    }
    Ok((first_seq, count, OpIter { decoder, framing, left: count, done: false }))
}

fn short_count(count: u64) -> Result<u32> {
    u32::try_from(count).map_err(|_| Error::corruption("count of a batch beyond 32 bits"))
}

/// The operations of a batch from disk. Yields exactly the counted operations, or an error and then
/// nothing more: a batch is whole only if no item was an error.
#[derive(Clone, Debug)]
pub struct OpIter<'a> {
    decoder: Decoder<'a>,
    framing: Framing,
    left: u32,
    done: bool,
}

impl<'a> OpIter<'a> {
    fn parse(&mut self) -> Result<Op<'a>> {
        let d = &mut self.decoder;
        let (kind, has_keyspace) = match (self.framing, d.u8()?) {
            (Framing::Fixed, byte) => (byte, true),
            (Framing::Short, byte) => (byte & !KEYSPACE_FOLLOWS, byte & KEYSPACE_FOLLOWS != 0),
        };
        let kind = Kind::from_u8(kind)?;
        let keyspace = if has_keyspace { d.varint()? } else { u64::from(KeyspaceId::DEFAULT.0) };
        let keyspace =
            u32::try_from(keyspace).map_err(|_| Error::corruption("keyspace id beyond 32 bits"))?;
        let key = d.slice()?;
        let value = if has_value(kind) { d.slice()? } else { &[] };
        let expiry_bytes = if kind.has_expiry() { EXPIRY_BYTES } else { 0 };
        let value_bytes_max = match kind {
            Kind::RangeDelete => KEY_BYTES_MAX,
            _ => VALUE_BYTES_MAX + expiry_bytes,
        };
        if key.len() > KEY_BYTES_MAX || value.len() > value_bytes_max {
            return Err(Error::corruption("key or value beyond its limit"));
        }
        if value.len() < expiry_bytes {
            return Err(Error::corruption("expiring value shorter than its expiry"));
        }
        Ok(Op { kind, keyspace: KeyspaceId(keyspace), key, value })
    }
}

impl<'a> Iterator for OpIter<'a> {
    type Item = Result<Op<'a>>;

    fn next(&mut self) -> Option<Result<Op<'a>>> {
        if self.done {
            return None;
        }
        if self.left == 0 {
            self.done = true;
            if self.decoder.is_empty() {
                return None;
            }
            return Some(Err(Error::corruption("bytes left over after a batch's operations")));
        }
        self.left -= 1;
        let op = self.parse();
        self.done = op.is_err();
        Some(op)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use windrow_base::ErrorKind;

    const KS: KeyspaceId = KeyspaceId(300);

    fn sample() -> BatchBuf {
        let mut b = BatchBuf::new();
        b.push(Kind::Put, KS, b"k1", b"v1");
        b.push(Kind::Delete, KeyspaceId::DEFAULT, b"k2", b"");
        b.push(Kind::RangeDelete, KS, b"a", b"z");
        b.push_expiring(Kind::PutExpiry, KS, b"k3", b"v3", 77);
        b.push(Kind::SingleDelete, KS, b"", b"");
        b.push(Kind::Merge, KS, b"m", &[7; 200]);
        b.set_first_seq(41);
        b
    }

    /// A batch in the form of logs of version 1, as `docs/format/batch.md` describes it.
    fn fixed(first_seq: SeqNo, ops: &[Op<'_>]) -> Vec<u8> {
        let mut out = first_seq.to_le_bytes().to_vec();
        out.extend_from_slice(&(ops.len() as u32).to_le_bytes());
        for op in ops {
            out.push(op.kind as u8);
            put_varint(&mut out, u64::from(op.keyspace.0));
            put_slice(&mut out, op.key);
            if has_value(op.kind) {
                put_slice(&mut out, op.value);
            }
        }
        out
    }

    fn whole(bytes: &[u8], framing: Framing) -> Result<Vec<Op<'_>>> {
        decode(bytes, framing)?.2.collect()
    }

    #[test]
    fn all_readers_agree() {
        let b = sample();
        let own: Vec<Op<'_>> = b.ops().collect();
        assert_eq!(own.len(), 6);
        assert_eq!(own[3].value, [&77u64.to_le_bytes()[..], b"v3"].concat());
        assert_eq!(own[1].value, b"");
        let payload = b.payload().to_vec();
        assert_eq!(payload.len(), payload_bytes(41, 6, b.op_bytes()));
        assert!(payload.len() <= b.byte_len());
        let older = fixed(41, &own);
        for (bytes, framing) in [(&payload, Framing::Short), (&older, Framing::Fixed)] {
            let (seq, count, _) = decode(bytes, framing).unwrap();
            assert_eq!((seq, count), (41, 6));
            assert_eq!(whole(bytes, framing).unwrap(), own);
        }
    }

    /// The bytes on disk that a put takes around its key and value.
    #[test]
    fn a_record_takes_few_bytes_around_what_it_holds() {
        let around = |keyspace, count: u32, first_seq, durable_up_to| {
            let mut b = BatchBuf::new();
            for _ in 0..count {
                b.push(Kind::Put, keyspace, &[1; 16], &[2; 100]);
            }
            b.set_first_seq(first_seq);
            let place =
                LogPosition { framing: Framing::Short, uid: 7, offset: 20 << 20, durable_up_to };
            let older = log::HEADER_BYTES + fixed(first_seq, &b.ops().collect::<Vec<_>>()).len();
            let record = b.seal(place).len();
            assert_eq!(record as u64, place.framed_bytes(b.payload().len()));
            (record - 116 * count as usize, older - 116 * count as usize)
        };
        let (ks, synced, early) = (KeyspaceId::DEFAULT, 20 << 20, 64);
        // The tenth million of puts: nothing synced, all synced, something of long ago synced.
        assert_eq!(around(ks, 1, 10_000_000, 0), (19, 48));
        assert_eq!(around(ks, 1, 10_000_000, synced), (19, 48));
        assert_eq!(around(ks, 1, 10_000_000, early), (22, 48));
        assert_eq!(around(KeyspaceId(9), 1, 10_000_000, 0), (20, 48));
        assert_eq!(around(ks, 100, 10_000_000, 0), (317, 444));
        assert_eq!(around(KeyspaceId(9), 100, 10_000_000, 0), (417, 444));
        // The largest possible one.
        assert_eq!(around(KeyspaceId(u32::MAX), 1, SEQ_MAX, early), (32, 52));
    }

    #[test]
    fn what_a_batch_was_sealed_as_goes_when_it_changes() {
        let place = LogPosition { framing: Framing::Short, uid: 7, offset: 640, durable_up_to: 64 };
        let mut b = sample();
        let once = b.seal(place).to_vec();
        b.set_first_seq(1 << 40);
        assert!(b.seal(place).len() > once.len());
        let mark = b.mark();
        b.push(Kind::Put, KS, b"more", b"");
        b.truncate_to(mark);
        b.set_first_seq(41);
        assert_eq!(b.seal(place), once);
    }

    #[test]
    fn marks_and_append() {
        let mut b = sample();
        let mark = b.mark();
        b.push(Kind::Put, KS, b"more", b"");
        b.truncate_to(mark);
        assert_eq!(b.count(), 6);
        let mut two = sample();
        two.append(&b);
        assert_eq!(two.ops().count(), 12);
        two.clear();
        assert!(two.is_empty() && two.ops().next().is_none());
        assert_eq!((two.byte_len(), two.op_bytes()), (BATCH_HEADER_BYTES_MAX, 0));
    }

    #[test]
    fn cuts_and_leftovers_are_errors() {
        let b = sample();
        let own: Vec<Op<'_>> = b.ops().collect();
        for (bytes, framing) in
            [(b.payload().to_vec(), Framing::Short), (fixed(41, &own), Framing::Fixed)]
        {
            whole(&bytes, framing).unwrap();
            for len in 0..bytes.len() {
                assert!(whole(&bytes[..len], framing).unwrap_err().is_corruption(), "{len}");
            }
            let mut longer = bytes.clone();
            longer.push(0);
            assert!(whole(&longer, framing).unwrap_err().is_corruption());
            let mut unknown = bytes.clone();
            unknown[if framing == Framing::Short { 2 } else { 12 }] = 99;
            assert_eq!(whole(&unknown, framing).unwrap_err().kind(), ErrorKind::NotSupported);
        }
    }

    #[test]
    fn impossible_numbers_are_errors() {
        let short = |first_seq, count| {
            let mut out = Vec::new();
            put_varint(&mut out, first_seq);
            put_varint(&mut out, count);
            decode(&out, Framing::Short).map(|(seq, count, _)| (seq, count))
        };
        assert_eq!(short(SEQ_MAX, 1).unwrap(), (SEQ_MAX, 1));
        for (first_seq, count) in [(0, 1), (SEQ_MAX, 2), (SEQ_MAX + 1, 0), (1, 1 << 32)] {
            assert!(short(first_seq, count).unwrap_err().is_corruption(), "{first_seq} {count}");
        }
        assert!(decode(&fixed(0, &[]), Framing::Fixed).unwrap_err().is_corruption());
        assert!(decode(&fixed(SEQ_MAX + 1, &[]), Framing::Fixed).unwrap_err().is_corruption());
    }
}
