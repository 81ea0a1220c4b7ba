//! Integers and byte strings as they are on disk: little endian, LEB128 varints, length-prefixed
//! slices, and a reader that checks every length against the rest of its input before it uses it
//! (rule R12).
//!
//! Owns: these codings. Never does: check a checksum, or allocate for a length it has read.

use crate::error::{Error, Result};
use alloc::vec::Vec;

/// Most bytes a varint of 64 bits takes.
pub const VARINT_BYTES_MAX: usize = 10;

/// Appends `value` as a varint (LEB128, low seven bits first).
#[inline]
pub fn put_varint(out: &mut Vec<u8>, mut value: u64) {
    while value >= 0x80 {
        out.push(value as u8 | 0x80);
        value >>= 7;
    }
    out.push(value as u8);
}

/// Writes `value` as a varint from `out[at]` on; returns where it ends.
///
/// # Panics
/// If there is no room for it.
#[inline]
pub fn put_varint_at(out: &mut [u8], mut at: usize, mut value: u64) -> usize {
    while value >= 0x80 {
        out[at] = value as u8 | 0x80;
        value >>= 7;
        at += 1;
    }
    out[at] = value as u8;
    at + 1
}

/// Returns the bytes that [`put_varint`] writes for `value`.
#[inline]
pub const fn varint_len(value: u64) -> usize {
    (64 - (value | 1).leading_zeros() as usize).div_ceil(7)
}

/// Decodes a varint at the head of `input`; `None` if it is cut short or too long.
/// Returns the value and the bytes it took.
#[inline]
pub fn get_varint(input: &[u8]) -> Option<(u64, usize)> {
    let first = *input.first()?;
    if first < 0x80 {
        return Some((first as u64, 1));
    }
    let mut value = (first & 0x7f) as u64;
    let mut shift = 7;
    for (i, &byte) in input.iter().enumerate().skip(1).take(VARINT_BYTES_MAX - 1) {
        if shift == 63 && byte > 1 {
            return None;
        }
        value |= ((byte & 0x7f) as u64) << shift;
        if byte < 0x80 {
            return Some((value, i + 1));
        }
        shift += 7;
    }
    None
}

/// Appends a slice with its length before it.
pub fn put_slice(out: &mut Vec<u8>, slice: &[u8]) {
    put_varint(out, slice.len() as u64);
    out.extend_from_slice(slice);
}

/// Reads values off the head of a slice. Every method fails with `Corruption`
/// where the input ends early; none allocates.
#[derive(Clone, Debug)]
pub struct Decoder<'a> {
    rest: &'a [u8],
    total: usize,
}

impl<'a> Decoder<'a> {
    /// Makes a decoder over `input`.
    pub fn new(input: &'a [u8]) -> Decoder<'a> {
        Decoder { rest: input, total: input.len() }
    }

    /// Returns the bytes not read yet.
    pub fn rest(&self) -> &'a [u8] {
        self.rest
    }

    /// Whether all was read.
    pub fn is_empty(&self) -> bool {
        self.rest.is_empty()
    }

    /// Returns the number of bytes read so far.
    pub fn position(&self) -> usize {
        self.total - self.rest.len()
    }

    #[cold]
    fn cut(&self) -> Error {
        Error::corruption(alloc::format!(
            "a field is cut short or malformed {} bytes into its record",
            self.position()
        ))
    }

    /// Reads the next `len` bytes.
    ///
    /// # Errors
    /// `Corruption` if fewer are left.
    pub fn bytes(&mut self, len: usize) -> Result<&'a [u8]> {
        let Some((head, rest)) = self.rest.split_at_checked(len) else {
            return Err(self.cut());
        };
        self.rest = rest;
        Ok(head)
    }

    /// Reads one byte.
    ///
    /// # Errors
    /// `Corruption` if nothing is left.
    pub fn u8(&mut self) -> Result<u8> {
        Ok(self.bytes(1)?[0])
    }

    /// Reads a u32, little endian.
    ///
    /// # Errors
    /// `Corruption` if fewer than four bytes are left.
    pub fn u32(&mut self) -> Result<u32> {
        let b = self.bytes(4)?;
        Ok(u32::from_le_bytes([b[0], b[1], b[2], b[3]]))
    }

    /// Reads a u64, little endian.
    ///
    /// # Errors
    /// `Corruption` if fewer than eight bytes are left.
    pub fn u64(&mut self) -> Result<u64> {
        let b = self.bytes(8)?;
        Ok(u64::from_le_bytes([b[0], b[1], b[2], b[3], b[4], b[5], b[6], b[7]]))
    }

    /// Reads a varint.
    ///
    /// # Errors
    /// `Corruption` if it is cut short or longer than 64 bits.
    pub fn varint(&mut self) -> Result<u64> {
        match get_varint(self.rest) {
            Some((value, len)) => {
                self.rest = &self.rest[len..];
                Ok(value)
            }
            None => Err(self.cut()),
        }
    }

    /// Reads a length-prefixed slice.
    ///
    /// # Errors
    /// `Corruption` if its length passes the end of the input.
    pub fn slice(&mut self) -> Result<&'a [u8]> {
        let len = self.varint()?;
        if len > self.rest.len() as u64 {
            return Err(self.cut());
        }
        self.bytes(len as usize)
    }

    /// Reads a length-prefixed UTF-8 string.
    ///
    /// # Errors
    /// `Corruption` as [`Decoder::slice`], or if it is not UTF-8.
    pub fn str(&mut self) -> Result<&'a str> {
        let bytes = self.slice()?;
        core::str::from_utf8(bytes).map_err(|_| Error::corruption("a name is not UTF-8"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn varints_round_trip_and_reject_the_rest() {
        for value in [0, 1, 127, 128, 300, 1 << 35, u64::MAX - 1, u64::MAX] {
            let mut out = Vec::new();
            put_varint(&mut out, value);
            assert_eq!(out.len(), varint_len(value));
            assert_eq!(get_varint(&out), Some((value, out.len())));
            assert_eq!(get_varint(&out[..out.len() - 1]), None);
        }
        assert_eq!(get_varint(&[0xff; 10]), None);
        assert_eq!(get_varint(&[0x80; 11]), None);
    }

    #[test]
    fn a_length_beyond_the_input_is_corruption() {
        let mut out = Vec::new();
        put_varint(&mut out, u64::MAX);
        out.extend_from_slice(b"abc");
        assert!(Decoder::new(&out).slice().unwrap_err().is_corruption());
        let mut out = Vec::new();
        put_slice(&mut out, b"abc");
        let mut decoder = Decoder::new(&out);
        assert_eq!(decoder.slice().unwrap(), b"abc");
        assert!(decoder.is_empty() && decoder.u8().is_err());
    }
}
