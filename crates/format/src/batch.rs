//! The payload of a batch record: sequence number, count, operations.
//!
//! `BatchBuf` keeps room for the log's record header in front, so that the
//! commit path seals the buffer in place and writes it without a copy.
//! Layout in `docs/format/batch.md`.
//! Never does: apply an operation, or believe bytes from disk unchecked
//! (`decode` for those, `BatchBuf::ops` for the process's own).

use crate::log;
use windrow_base::coding::{Decoder, get_varint, put_slice, put_varint};
use windrow_base::key::{KEY_BYTES_MAX, SEQ_MAX, VALUE_BYTES_MAX};
use windrow_base::{Error, KeyspaceId, Kind, Result, SeqNo};

/// Bytes of sequence number and count before the operations.
pub const BATCH_HEADER_BYTES: usize = 12;

/// Bytes of the expiry before the value of an `*Expiry` operation.
pub const EXPIRY_BYTES: usize = 8;

/// Where the operations begin in a `BatchBuf`'s buffer.
const OPS_AT: usize = log::HEADER_BYTES + BATCH_HEADER_BYTES;
const SEQ_AT: usize = log::HEADER_BYTES;
const COUNT_AT: usize = log::HEADER_BYTES + 8;

/// Whether an operation of this kind is stored with a value.
fn has_value(kind: Kind) -> bool {
    !kind.is_point_tombstone()
}

/// One operation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Op<'a> {
    /// What it does.
    pub kind: Kind,
    /// To which keyspace.
    pub keyspace: KeyspaceId,
    /// User key; start of the range for `RangeDelete`.
    pub key: &'a [u8],
    /// Value as stored (with the expiry before it for `*Expiry`), exclusive
    /// end for `RangeDelete`, empty for deletes.
    pub value: &'a [u8],
}

/// A place in a [`BatchBuf`] to go back to.
#[derive(Clone, Copy, Debug)]
pub struct Mark {
    bytes: usize,
    count: u32,
}

/// A batch being built, in the form in which it is logged.
#[derive(Clone, Debug)]
pub struct BatchBuf {
    buf: Vec<u8>,
    count: u32,
}

impl Default for BatchBuf {
    fn default() -> BatchBuf {
        BatchBuf::new()
    }
}

impl BatchBuf {
    /// An empty batch.
    pub fn new() -> BatchBuf {
        BatchBuf { buf: vec![0; OPS_AT], count: 0 }
    }

    /// An empty batch with room for `op_bytes` of operations.
    pub fn with_capacity(op_bytes: usize) -> BatchBuf {
        let mut buf = Vec::with_capacity(OPS_AT + op_bytes);
        buf.resize(OPS_AT, 0);
        BatchBuf { buf, count: 0 }
    }

    /// Empties the batch; keeps its memory.
    pub fn clear(&mut self) {
        self.buf.clear();
        self.buf.resize(OPS_AT, 0);
        self.count = 0;
    }

    /// Number of operations.
    pub fn count(&self) -> u32 {
        self.count
    }

    /// Whether there are no operations.
    pub fn is_empty(&self) -> bool {
        self.count == 0
    }

    /// Bytes of the payload: header and operations.
    pub fn byte_len(&self) -> usize {
        self.buf.len() - log::HEADER_BYTES
    }

    /// Bytes of memory held.
    pub fn memory_bytes(&self) -> usize {
        self.buf.capacity()
    }

    /// Appends an operation. The caller has checked the limits of key, value
    /// and count. `value` is left out for deletes.
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
        self.buf.push(kind as u8);
        put_varint(&mut self.buf, u64::from(keyspace.0));
        put_slice(&mut self.buf, key);
        self.set_count(self.count + 1);
    }

    /// Appends all operations of another batch.
    pub fn append(&mut self, other: &BatchBuf) {
        self.buf.extend_from_slice(&other.buf[OPS_AT..]);
        self.set_count(self.count + other.count);
    }

    /// Sets the sequence number of the first operation; the others follow by one.
    pub fn set_first_seq(&mut self, seq: SeqNo) {
        debug_assert!(seq <= SEQ_MAX);
        self.buf[SEQ_AT..SEQ_AT + 8].copy_from_slice(&seq.to_le_bytes());
    }

    /// The whole buffer, header room included, ready for [`log::seal`].
    pub fn framed(&mut self) -> &mut [u8] {
        &mut self.buf
    }

    /// The payload, for [`log::frame`].
    pub fn payload(&self) -> &[u8] {
        &self.buf[log::HEADER_BYTES..]
    }

    #[inline]
    fn set_count(&mut self, count: u32) {
        self.count = count;
        self.buf[COUNT_AT..OPS_AT].copy_from_slice(&self.count.to_le_bytes());
    }

    /// The present end, for [`BatchBuf::truncate_to`].
    pub fn mark(&self) -> Mark {
        Mark { bytes: self.buf.len(), count: self.count }
    }

    /// Drops the operations pushed since `mark`.
    pub fn truncate_to(&mut self, mark: Mark) {
        debug_assert!(mark.bytes <= self.buf.len() && mark.count <= self.count);
        self.buf.truncate(mark.bytes);
        self.set_count(mark.count);
    }

    /// The operations, in order.
    pub fn ops(&self) -> TrustedOps<'_> {
        TrustedOps { rest: &self.buf[OPS_AT..] }
    }
}

/// Operations of a batch this process built. Ends early only at a bug.
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
        let kind = Kind::from_u8(*self.rest.first()?).ok()?;
        let (keyspace, len) = get_varint(&self.rest[1..])?;
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
///
/// # Errors
/// `Corruption` if the header is cut short or its numbers are impossible.
pub fn decode(payload: &[u8]) -> Result<(SeqNo, u32, Ops<'_>)> {
    let mut decoder = Decoder::new(payload);
    let first_seq = decoder.u64()?;
    let count = decoder.u32()?;
    if first_seq == 0 {
        return Err(Error::corruption("batch has sequence number 0, and the first is 1"));
    }
    if first_seq > SEQ_MAX || u64::from(count) > SEQ_MAX - first_seq + 1 {
        return Err(Error::corruption("batch passes the largest sequence number"));
    }
    Ok((first_seq, count, Ops { decoder, left: count, done: false }))
}

/// Operations of a batch from disk. Yields exactly the counted operations, or
/// an error and then nothing: a batch is whole only if no item was an error.
#[derive(Clone, Debug)]
pub struct Ops<'a> {
    decoder: Decoder<'a>,
    left: u32,
    done: bool,
}

impl<'a> Ops<'a> {
    fn parse(&mut self) -> Result<Op<'a>> {
        let d = &mut self.decoder;
        let kind = Kind::from_u8(d.u8()?)?;
        let keyspace = u32::try_from(d.varint()?)
            .map_err(|_| Error::corruption("keyspace id beyond 32 bits"))?;
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

impl<'a> Iterator for Ops<'a> {
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

    #[test]
    fn both_readers_agree() {
        let mut b = sample();
        let own: Vec<Op<'_>> = b.ops().collect();
        assert_eq!(own.len(), 6);
        assert_eq!(own[3].value, [&77u64.to_le_bytes()[..], b"v3"].concat());
        assert_eq!(own[1].value, b"");
        let payload = b.payload().to_vec();
        let (seq, count, ops) = decode(&payload).unwrap();
        assert_eq!((seq, count), (41, 6));
        let read: Vec<Op<'_>> = ops.map(|op| op.unwrap()).collect();
        assert_eq!(read, b.ops().collect::<Vec<_>>());
        assert_eq!(payload.len(), b.byte_len());
        assert_eq!(&b.framed()[log::HEADER_BYTES..], &payload);
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
        assert_eq!(two.byte_len(), BATCH_HEADER_BYTES);
    }

    #[test]
    fn cuts_and_leftovers_are_errors() {
        let whole = |bytes: &[u8]| -> Result<()> {
            for op in decode(bytes)?.2 {
                op?;
            }
            Ok(())
        };
        let bytes = sample().payload().to_vec();
        whole(&bytes).unwrap();
        for len in 0..bytes.len() {
            assert!(whole(&bytes[..len]).unwrap_err().is_corruption(), "{len}");
        }
        let mut longer = bytes.clone();
        longer.push(0);
        assert!(whole(&longer).unwrap_err().is_corruption());
        let mut unknown = bytes.clone();
        unknown[BATCH_HEADER_BYTES] = 99;
        assert_eq!(whole(&unknown).unwrap_err().kind(), ErrorKind::NotSupported);
        let mut late = bytes;
        late[..8].copy_from_slice(&(SEQ_MAX - 3).to_le_bytes());
        assert!(whole(&late).unwrap_err().is_corruption());
    }
}
