//! Frames: what goes over the connection.
//!
//! A frame is a length (u32, little endian), a kind, and a payload of that length. A length beyond the
//! maximum is refused before anything is allocated for it, and so are a kind that is not known and a
//! payload that ends too early or too late. Strings and keys have a length before them as well.

use std::io::{Read, Write};
use windrow::changes::{Change, Operation};

use crate::Failure;

/// The longest payload: a longer batch is refused by the source.
pub const PAYLOAD_MAX: usize = 64 << 20;

/// The first bytes that a mirror sends.
const HELLO: &[u8; 8] = b"WNDRMIR1";

/// Frames of the source.
#[derive(Debug, PartialEq, Eq)]
pub enum Frame {
    /// A copy begins. Its files come next.
    Copy,
    /// A file of the copy begins.
    File(String),
    /// The next bytes of that file.
    Bytes(Vec<u8>),
    /// The copy is whole.
    CopyEnd,
    /// A batch, and the number that comes next.
    Change(u64, Vec<Op>),
    /// Nothing has happened; the source is there.
    Idle,
    /// Why the source ends the connection. `true`: only another copy helps.
    Refused(bool, String),
}

/// An operation of a batch.
#[derive(Debug, PartialEq, Eq)]
pub struct Op {
    pub kind: OpKind,
    pub keyspace: String,
    /// The key, or the first key of a range.
    pub key: Vec<u8>,
    /// The value, the operand, or the end of a range.
    pub value: Vec<u8>,
    /// In ms since 1970.
    pub expiry_ms: Option<u64>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OpKind {
    Put,
    Delete,
    SingleDelete,
    DeleteRange,
    Merge,
    Drop,
}

const KINDS: [OpKind; 6] = [
    OpKind::Put,
    OpKind::Delete,
    OpKind::SingleDelete,
    OpKind::DeleteRange,
    OpKind::Merge,
    OpKind::Drop,
];

impl Frame {
    /// The frame of a change. `Err` with the reason where a mirror cannot apply it.
    pub fn of_change(change: Change) -> Result<Frame, String> {
        let next_seq = change.seq + 1;
        let mut ops = Vec::with_capacity(change.operations.len());
        for operation in change.operations {
            ops.push(op(operation, next_seq)?);
        }
        Ok(Frame::Change(next_seq, ops))
    }

    /// Writes the frame.
    pub fn write(&self, to: &mut impl Write) -> Result<(), Failure> {
        let mut payload = Vec::new();
        let kind = match self {
            Frame::Copy => 1,
            Frame::File(name) => {
                put_bytes(&mut payload, name.as_bytes());
                2
            }
            Frame::Bytes(bytes) => {
                put_bytes(&mut payload, bytes);
                3
            }
            Frame::CopyEnd => 4,
            Frame::Change(next_seq, ops) => {
                payload.extend_from_slice(&next_seq.to_le_bytes());
                ops.iter().for_each(|op| put_op(&mut payload, op));
                5
            }
            Frame::Idle => 6,
            Frame::Refused(needs_copy, why) => {
                payload.push(u8::from(*needs_copy));
                put_bytes(&mut payload, why.as_bytes());
                7
            }
        };
        if payload.len() > PAYLOAD_MAX {
            return Err(format!("a batch of {} bytes is too long to send", payload.len()).into());
        }
        to.write_all(&(payload.len() as u32).to_le_bytes())?;
        to.write_all(&[kind])?;
        Ok(to.write_all(&payload)?)
    }

    /// Reads a frame.
    pub fn read(from: &mut impl Read) -> Result<Frame, Failure> {
        let mut head = [0; 5];
        from.read_exact(&mut head)?;
        let len = u32::from_le_bytes(head[..4].try_into()?) as usize;
        if len > PAYLOAD_MAX {
            return Err(format!("a frame says that it has {len} bytes: no mirror's source").into());
        }
        // It grows with what comes: a length alone allocates nothing.
        let mut payload = Vec::new();
        from.take(len as u64).read_to_end(&mut payload)?;
        if payload.len() < len {
            return Err("the connection ended within a frame".into());
        }
        let mut rest = Rest(&payload);
        let frame = match head[4] {
            1 => Frame::Copy,
            2 => Frame::File(rest.text()?),
            3 => Frame::Bytes(rest.bytes()?),
            4 => Frame::CopyEnd,
            5 => {
                let next_seq = rest.number()?;
                let mut ops = Vec::new();
                while !rest.0.is_empty() {
                    ops.push(rest.op()?);
                }
                Frame::Change(next_seq, ops)
            }
            6 => Frame::Idle,
            7 => Frame::Refused(rest.byte()? != 0, rest.text()?),
            other => return Err(format!("a frame of kind {other}, which is none").into()),
        };
        match rest.0.len() {
            0 => Ok(frame),
            left => Err(format!("a frame has {left} bytes behind its end").into()),
        }
    }
}

/// Writes the first words of a mirror: the number that it goes on with; 0: it asks for a copy.
pub fn write_hello(to: &mut impl Write, next_seq: u64) -> Result<(), Failure> {
    to.write_all(HELLO)?;
    Ok(to.write_all(&next_seq.to_le_bytes())?)
}

/// Reads them.
pub fn read_hello(from: &mut impl Read) -> Result<u64, Failure> {
    let mut hello = [0; 16];
    from.read_exact(&mut hello)?;
    match hello.starts_with(HELLO) {
        true => Ok(u64::from_le_bytes(hello[8..].try_into()?)),
        false => Err("the other side is no mirror".into()),
    }
}

fn op(operation: Operation, next_seq: u64) -> Result<Op, String> {
    let keyspace = operation.keyspace().to_owned();
    let mut expiry = None;
    let (kind, key, value) = match operation {
        Operation::Put { key, value, expiry_ms, .. } => {
            expiry = expiry_ms;
            (OpKind::Put, key, value)
        }
        Operation::Merge { key, operand, expiry_ms, .. } => {
            expiry = expiry_ms;
            (OpKind::Merge, key, operand)
        }
        Operation::Delete { key, .. } => (OpKind::Delete, key, Vec::new()),
        Operation::SingleDelete { key, .. } => (OpKind::SingleDelete, key, Vec::new()),
        Operation::DeleteRange { from, to, .. } => (OpKind::DeleteRange, from, to),
        Operation::KeyspaceDropped { .. } => (OpKind::Drop, Vec::new(), Vec::new()),
        Operation::Ingested { .. } => {
            return Err(format!("entries were ingested into `{keyspace}` before {next_seq}"));
        }
        other => return Err(format!("a mirror knows nothing of {other:?}")),
    };
    Ok(Op { kind, keyspace, key, value, expiry_ms: expiry })
}

fn put_bytes(out: &mut Vec<u8>, bytes: &[u8]) {
    out.extend_from_slice(&(bytes.len() as u32).to_le_bytes());
    out.extend_from_slice(bytes);
}

fn put_op(out: &mut Vec<u8>, op: &Op) {
    let kind = KINDS.iter().position(|kind| *kind == op.kind).expect("all kinds are listed");
    out.push(kind as u8);
    put_bytes(out, op.keyspace.as_bytes());
    put_bytes(out, &op.key);
    put_bytes(out, &op.value);
    out.push(u8::from(op.expiry_ms.is_some()));
    out.extend_from_slice(&op.expiry_ms.unwrap_or(0).to_le_bytes());
}

/// The part of a payload that was not read yet.
struct Rest<'a>(&'a [u8]);

impl Rest<'_> {
    fn take(&mut self, len: usize) -> Result<&[u8], Failure> {
        let (taken, rest) = self.0.split_at_checked(len).ok_or("a frame ends too early")?;
        self.0 = rest;
        Ok(taken)
    }

    fn byte(&mut self) -> Result<u8, Failure> {
        Ok(self.take(1)?[0])
    }

    fn number(&mut self) -> Result<u64, Failure> {
        Ok(u64::from_le_bytes(self.take(8)?.try_into()?))
    }

    fn bytes(&mut self) -> Result<Vec<u8>, Failure> {
        let len = u32::from_le_bytes(self.take(4)?.try_into()?) as usize;
        Ok(self.take(len)?.to_vec())
    }

    fn text(&mut self) -> Result<String, Failure> {
        Ok(String::from_utf8(self.bytes()?)?)
    }

    fn op(&mut self) -> Result<Op, Failure> {
        let kind = *KINDS.get(usize::from(self.byte()?)).ok_or("an operation of no known kind")?;
        let (keyspace, key, value) = (self.text()?, self.bytes()?, self.bytes()?);
        let (expires, ms) = (self.byte()? != 0, self.number()?);
        Ok(Op { kind, keyspace, key, value, expiry_ms: expires.then_some(ms) })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn frames() -> Vec<Frame> {
        let op = |kind, expiry_ms| Op {
            kind,
            keyspace: "users".into(),
            key: vec![0, 255, 7],
            value: vec![9; 300],
            expiry_ms,
        };
        let mut ops: Vec<Op> = KINDS.iter().map(|kind| op(*kind, None)).collect();
        ops.push(op(OpKind::Put, Some(u64::MAX)));
        vec![
            Frame::Copy,
            Frame::File("CURRENT".into()),
            Frame::Bytes(vec![1; 1000]),
            Frame::CopyEnd,
            Frame::Change(7, ops),
            Frame::Idle,
            Frame::Refused(true, "gone".into()),
        ]
    }

    #[test]
    fn frames_are_read_as_they_were_written_and_refused_where_they_are_cut_or_changed() {
        for frame in frames() {
            let mut bytes = Vec::new();
            frame.write(&mut bytes).unwrap();
            assert_eq!(Frame::read(&mut bytes.as_slice()).unwrap(), frame);
            for cut in 0..bytes.len() {
                assert!(Frame::read(&mut &bytes[..cut]).is_err(), "{frame:?} cut at {cut}");
            }
            for at in 0..bytes.len().min(60) {
                for bit in 0..8 {
                    let mut changed = bytes.clone();
                    changed[at] ^= 1 << bit;
                    // It may be another frame. It is no panic, and takes no room that it does not have.
                    let _ = Frame::read(&mut changed.as_slice());
                }
            }
            bytes[..4].copy_from_slice(&(PAYLOAD_MAX as u32 + 1).to_le_bytes());
            let refused = Frame::read(&mut bytes.as_slice()).unwrap_err().to_string();
            assert!(refused.contains("no mirror's source"), "{refused}");
        }
        let mut longer = Vec::new();
        Frame::Idle.write(&mut longer).unwrap();
        (longer[0], longer[4]) = (1, 6);
        longer.push(0);
        let refused = Frame::read(&mut longer.as_slice()).unwrap_err().to_string();
        assert!(refused.contains("1 bytes behind its end"), "{refused}");
        let long = Frame::Bytes(vec![0; PAYLOAD_MAX]);
        assert!(long.write(&mut std::io::sink()).is_err());
    }

    #[test]
    fn only_a_mirror_is_greeted() {
        let mut hello = Vec::new();
        write_hello(&mut hello, 41).unwrap();
        assert_eq!(read_hello(&mut hello.as_slice()).unwrap(), 41);
        assert!(read_hello(&mut &hello[..15]).is_err());
        let other = read_hello(&mut &b"GET / HTTP/1.1\r\n"[..]).unwrap_err().to_string();
        assert!(other.contains("no mirror"), "{other}");
    }
}
