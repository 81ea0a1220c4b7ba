//! Frames a record whose payload comes in parts, and hands out each fragment as
//! it is full: a record of any size is written with one fragment in memory.
//!
//! Owns: the fragment in the making. Never does: write to files.

use super::fragment::{
    Class, FRAGMENT_BYTES_MAX, Fragment, FragmentHeader, HEADER_BYTES, payload_crc,
};
use windrow_base::{FileUid, Result, debug_invariant};

/// One record in the making.
pub struct Framer {
    uid: FileUid,
    class: Class,
    durable_up_to: u64,
    /// Where the fragment in the making goes.
    at: u64,
    is_first: bool,
    /// Room for its header, and its payload so far.
    framed: Vec<u8>,
}

impl Framer {
    /// A record whose first byte will be at `offset` in the file.
    pub fn new(uid: FileUid, offset: u64, class: Class, durable_up_to: u64) -> Framer {
        let framed = vec![0; HEADER_BYTES];
        Framer { uid, class, durable_up_to, at: offset, is_first: true, framed }
    }

    /// Makes room for so many bytes of payload, but for no more than a fragment has.
    pub fn reserve(&mut self, bytes: usize) {
        let payload_bytes = self.framed.len() - HEADER_BYTES;
        self.framed.reserve(bytes.min(FRAGMENT_BYTES_MAX - payload_bytes));
    }

    /// Appends to the payload. Hands out the fragments that it fills, header and
    /// payload together, with where each goes in the file.
    ///
    /// # Errors
    /// What `put` said. The record must not be gone on with then.
    pub fn push(
        &mut self,
        mut bytes: &[u8],
        mut put: impl FnMut(u64, &[u8]) -> Result<()>,
    ) -> Result<()> {
        while !bytes.is_empty() {
            let room = HEADER_BYTES + FRAGMENT_BYTES_MAX - self.framed.len();
            if room == 0 {
                // More follows, so it is not the last one.
                self.seal(
                    if self.is_first { Fragment::First } else { Fragment::Middle },
                    &mut put,
                )?;
                continue;
            }
            let (piece, rest) = bytes.split_at(bytes.len().min(room));
            self.framed.extend_from_slice(piece);
            bytes = rest;
        }
        Ok(())
    }

    /// Hands out the last fragment.
    ///
    /// # Errors
    /// What `put` said.
    pub fn finish(mut self, put: impl FnMut(u64, &[u8]) -> Result<()>) -> Result<()> {
        self.seal(if self.is_first { Fragment::Full } else { Fragment::Last }, put)
    }

    fn seal(
        &mut self,
        fragment: Fragment,
        mut put: impl FnMut(u64, &[u8]) -> Result<()>,
    ) -> Result<()> {
        let Framer { uid, at, .. } = *self;
        let (head, payload) =
            self.framed.split_first_chunk_mut::<HEADER_BYTES>().expect("room for the header");
        let header = FragmentHeader {
            payload_crc: payload_crc(uid, at, payload),
            len: payload.len() as u32,
            class: self.class as u8,
            fragment: fragment as u8,
            stream: 0,
            durable_up_to: self.durable_up_to,
        };
        header.write(head, uid, at);
        let again = FragmentHeader::read(head, uid, at);
        let is_read = again.is_some_and(|h| h.payload_crc == payload_crc(uid, at, payload));
        debug_invariant!(R5, is_read, "the header of a fragment at {at} cannot be read again");
        put(at, &self.framed)?;
        self.at += self.framed.len() as u64;
        self.framed.truncate(HEADER_BYTES);
        self.is_first = false;
        Ok(())
    }
}
