//! Bytes that the user gets without a copy where that is possible: a value pins the cached block
//! that it is in, a short key or value is stored inline.
//!
//! Owns: one reference to a block or a buffer. Never does: I/O, locks.

use std::borrow::Borrow;
use std::cmp::Ordering;
use std::fmt;
use std::hash::{Hash, Hasher};
use std::ops::{Deref, Range};
use std::sync::Arc;
use windrow_format::block::Block;

/// Longest byte string that needs no memory of its own.
const INLINE_BYTES_MAX: usize = 22;

/// An immutable byte string: a key or a value read from the database.
///
/// Cheap to clone, `Send`, `'static`. A value that was read from a table keeps
/// that table's decoded block in memory while it lives (4 KiB by default), so
/// copy values that are kept for long (`slice.to_vec()`).
///
/// ```
/// # let dir = tempfile::tempdir().unwrap();
/// # let db = windrow::Db::open(dir.path()).unwrap();
/// db.put("apple", "red")?;
/// let value = db.get("apple")?.expect("it was put");
/// assert_eq!(value, "red"); // also with &[u8], Vec<u8> and arrays
/// assert_eq!(value.len(), 3); // and all else that a &[u8] can
/// let kept: Vec<u8> = value.to_vec();
/// # Ok::<(), windrow::Error>(())
/// ```
#[derive(Clone)]
pub struct Slice(Repr);

#[derive(Clone)]
enum Repr {
    Inline { len: u8, bytes: [u8; INLINE_BYTES_MAX] },
    Block { block: Arc<Block>, start: u32, len: u32 },
    Heap(Arc<[u8]>),
}

impl Slice {
    /// Copies `bytes`: inline if they are short, otherwise once to the heap.
    #[inline]
    pub fn copy_from(bytes: &[u8]) -> Slice {
        if bytes.len() > INLINE_BYTES_MAX {
            return Slice(Repr::Heap(bytes.into()));
        }
        let mut inline = [0; INLINE_BYTES_MAX];
        inline[..bytes.len()].copy_from_slice(bytes);
        Slice(Repr::Inline { len: bytes.len() as u8, bytes: inline })
    }

    /// Pins a range of a block, which stays in memory for as long.
    ///
    /// # Panics
    /// If `range` does not lie in the block.
    #[inline]
    #[doc(hidden)]
    pub fn pinned(block: &Arc<Block>, range: Range<usize>) -> Slice {
        assert!(range.start <= range.end && range.end <= block.bytes().len());
        match (u32::try_from(range.start), u32::try_from(range.end)) {
            (Ok(start), Ok(end)) => {
                Slice(Repr::Block { block: Arc::clone(block), start, len: end - start })
            }
            _ => Slice::copy_from(&block.bytes()[range]),
        }
    }

    /// Returns this slice without its first `count` bytes, pinning the same memory.
    ///
    /// # Panics
    /// If it is shorter than that.
    #[inline]
    #[doc(hidden)]
    pub fn skip(self, count: usize) -> Slice {
        assert!(count <= self.len());
        match self.0 {
            Repr::Block { block, start, len } => {
                Slice(Repr::Block { block, start: start + count as u32, len: len - count as u32 })
            }
            _ => Slice::copy_from(&self[count..]),
        }
    }

    /// The bytes.
    #[inline]
    pub fn as_bytes(&self) -> &[u8] {
        match &self.0 {
            Repr::Inline { len, bytes } => &bytes[..*len as usize],
            Repr::Block { block, start, len } => {
                &block.bytes()[*start as usize..*start as usize + *len as usize]
            }
            Repr::Heap(bytes) => bytes,
        }
    }
}

impl Default for Slice {
    /// The empty byte string.
    fn default() -> Slice {
        Slice::copy_from(&[])
    }
}

impl Deref for Slice {
    type Target = [u8];

    #[inline]
    fn deref(&self) -> &[u8] {
        self.as_bytes()
    }
}

impl AsRef<[u8]> for Slice {
    fn as_ref(&self) -> &[u8] {
        self
    }
}

impl Borrow<[u8]> for Slice {
    fn borrow(&self) -> &[u8] {
        self
    }
}

impl From<&[u8]> for Slice {
    fn from(bytes: &[u8]) -> Slice {
        Slice::copy_from(bytes)
    }
}

impl From<Vec<u8>> for Slice {
    fn from(bytes: Vec<u8>) -> Slice {
        Slice::copy_from(&bytes)
    }
}

impl From<&str> for Slice {
    fn from(text: &str) -> Slice {
        text.as_bytes().into()
    }
}

impl From<String> for Slice {
    fn from(text: String) -> Slice {
        text.into_bytes().into()
    }
}

impl<const N: usize> From<[u8; N]> for Slice {
    fn from(bytes: [u8; N]) -> Slice {
        bytes.as_slice().into()
    }
}

impl<const N: usize> From<&[u8; N]> for Slice {
    fn from(bytes: &[u8; N]) -> Slice {
        bytes.as_slice().into()
    }
}

impl From<Slice> for Vec<u8> {
    fn from(slice: Slice) -> Vec<u8> {
        slice.to_vec()
    }
}

impl fmt::Debug for Slice {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "\"{}\"", self.escape_ascii())
    }
}

impl PartialEq for Slice {
    fn eq(&self, other: &Slice) -> bool {
        **self == **other
    }
}

impl Eq for Slice {}

impl PartialOrd for Slice {
    fn partial_cmp(&self, other: &Slice) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Slice {
    fn cmp(&self, other: &Slice) -> Ordering {
        (**self).cmp(&**other)
    }
}

impl Hash for Slice {
    fn hash<H: Hasher>(&self, state: &mut H) {
        (**self).hash(state);
    }
}

impl PartialEq<[u8]> for Slice {
    fn eq(&self, other: &[u8]) -> bool {
        **self == *other
    }
}

impl PartialEq<&[u8]> for Slice {
    fn eq(&self, other: &&[u8]) -> bool {
        **self == **other
    }
}

impl<const N: usize> PartialEq<[u8; N]> for Slice {
    fn eq(&self, other: &[u8; N]) -> bool {
        **self == *other
    }
}

impl<const N: usize> PartialEq<&[u8; N]> for Slice {
    fn eq(&self, other: &&[u8; N]) -> bool {
        **self == **other
    }
}

impl PartialEq<Vec<u8>> for Slice {
    fn eq(&self, other: &Vec<u8>) -> bool {
        **self == **other
    }
}

impl PartialEq<str> for Slice {
    fn eq(&self, other: &str) -> bool {
        **self == *other.as_bytes()
    }
}

impl PartialEq<&str> for Slice {
    fn eq(&self, other: &&str) -> bool {
        **self == *other.as_bytes()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn short_and_long_copies_read_back() {
        for len in [0, 1, INLINE_BYTES_MAX, INLINE_BYTES_MAX + 1, 1000] {
            let bytes: Vec<u8> = (0..len).map(|i| i as u8).collect();
            let slice = Slice::copy_from(&bytes);
            assert_eq!(slice, bytes);
            assert_eq!(slice.clone().to_vec(), bytes);
            assert_eq!(slice.skip(len / 2), &bytes[len / 2..]);
        }
        assert_eq!(size_of::<Slice>(), 24);
        assert_eq!(size_of::<Option<Slice>>(), 24);
    }

    #[test]
    fn compares_with_what_users_compare_with() {
        let slice = Slice::copy_from(b"red");
        let (owned, next) = (b"red".to_vec(), Slice::copy_from(b"ree"));
        assert!(slice == "red" && slice == b"red" && slice == owned && slice < next);
        assert_eq!(format!("{slice:?}"), "\"red\"");
        let made = [Slice::from("red"), "red".to_owned().into(), (*b"red").into(), b"red".into()];
        assert!(made.iter().all(|made| *made == slice));
    }
}
