//! Frames a record whose payload comes in parts, and hands out each fragment as
//! it is full: a record of any size is written with one fragment in memory.
//!
//! Owns: the fragment being built. Never does: write to files.

use super::fragment::{Class, FRAGMENT_BYTES_MAX, FragmentKind};
use super::position::{LogPosition, seal_fragment};
use windrow_base::Result;

/// A record being framed.
pub struct Framer {
    class: Class,
    /// The place of the fragment being built.
    place: LogPosition,
    is_first: bool,
    /// Bytes of room for its header, at the beginning of `framed`.
    room: usize,
    /// Room for its header, and its payload so far.
    framed: Vec<u8>,
}

impl Framer {
    /// A framer for a record in this place.
    pub fn new(class: Class, place: LogPosition) -> Framer {
        let room = place.room_bytes();
        Framer { class, place, is_first: true, room, framed: vec![0; room] }
    }

    /// Reserves room for `bytes` more of payload, up to the room of a fragment.
    pub fn reserve(&mut self, bytes: usize) {
        let payload_bytes = self.framed.len() - self.room;
        self.framed.reserve(bytes.min(FRAGMENT_BYTES_MAX - payload_bytes));
    }

    /// Appends to the payload. Hands the fragments that it fills, header and payload together, to
    /// `put`, each with its offset in the file.
    ///
    /// # Errors
    /// The error of `put`. The record must not be continued after it.
    pub fn push(
        &mut self,
        mut bytes: &[u8],
        mut put: impl FnMut(u64, &[u8]) -> Result<()>,
    ) -> Result<()> {
        while !bytes.is_empty() {
            let room = self.room + FRAGMENT_BYTES_MAX - self.framed.len();
            if room == 0 {
                // More bytes follow, so it is not the last fragment.
                self.seal(
                    if self.is_first { FragmentKind::First } else { FragmentKind::Middle },
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
    /// The error of `put`.
    pub fn finish(mut self, put: impl FnMut(u64, &[u8]) -> Result<()>) -> Result<()> {
        self.seal(if self.is_first { FragmentKind::Full } else { FragmentKind::Last }, put)
    }

    fn seal(
        &mut self,
        fragment: FragmentKind,
        mut put: impl FnMut(u64, &[u8]) -> Result<()>,
    ) -> Result<()> {
        let begin = seal_fragment(&mut self.framed, self.room, &self.place, self.class, fragment);
        let framed = &self.framed[begin..];
        put(self.place.offset, framed)?;
        self.place.offset += framed.len() as u64;
        self.framed.truncate(self.room);
        self.is_first = false;
        Ok(())
    }
}
