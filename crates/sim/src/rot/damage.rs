//! One damage to a database at rest, and the bytes after it.
//!
//! Owns: the meaning of each damage. Never does: choose damages (`plan.rs`) or judge.

use std::collections::BTreeMap;
use std::fmt;
use std::ops::Range;

/// Files by name.
pub(super) type Files = BTreeMap<String, Vec<u8>>;

/// The image that bytes are taken from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Source {
    /// The damaged database itself.
    Same,
    /// An earlier image of it, by its place in the list of those.
    Stale(usize),
    /// Another database, in which the same operations were run.
    Other,
}

/// A part of a file of an image.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Donor {
    /// The image.
    pub source: Source,
    /// Name of the file.
    pub file: String,
    /// The part, in bytes.
    pub range: Range<u64>,
}

/// One damage to one file (a swap damages two).
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Damage {
    /// The bits of `mask` in the byte at `offset` are flipped.
    Flip {
        /// Bytes from the file's start.
        offset: u64,
        /// Bits to flip.
        mask: u8,
    },
    /// The file ends after this number of bytes.
    Cut(u64),
    /// The file is missing.
    Gone,
    /// These bytes are zeros.
    Zero(Range<u64>),
    /// From `at` on the file has the bytes of the donor: a misplaced, stale or foreign write.
    Graft {
        /// Bytes from the file's start.
        at: u64,
        /// The bytes that are written there.
        donor: Donor,
    },
    /// The bytes from `at` on and those of the donor (of the same image) change places.
    Swap {
        /// Bytes from the file's start.
        at: u64,
        /// The bytes that they change places with.
        donor: Donor,
    },
    /// The file is replaced by that of the same name in another image.
    Replace(Source),
}

/// A damage and the file it is done to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Case {
    /// Name of the file.
    pub file: String,
    /// Its damage.
    pub damage: Damage,
}

impl fmt::Display for Case {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {:?}", self.file, self.damage)
    }
}

/// A file that a damage has changed: its new bytes, or that it is gone.
pub(super) type Changed = (String, Option<Vec<u8>>);

/// The images that damages take bytes from.
pub(super) struct Images<'a> {
    pub(super) own: &'a Files,
    pub(super) stale: &'a [Files],
    pub(super) other: &'a Files,
}

impl Images<'_> {
    fn of(&self, source: Source) -> Option<&Files> {
        match source {
            Source::Same => Some(self.own),
            Source::Stale(index) => self.stale.get(index),
            Source::Other => Some(self.other),
        }
    }

    fn bytes(&self, donor: &Donor) -> Option<&[u8]> {
        let file = self.of(donor.source)?.get(&donor.file)?;
        file.get(donor.range.start as usize..donor.range.end as usize)
    }

    /// Returns the changed files; none if the damage would change nothing.
    pub(super) fn changes(&self, case: &Case) -> Vec<Changed> {
        let mut changes = self.changes_or_not(case).unwrap_or_default();
        changes.retain(|(name, bytes)| bytes.as_ref() != self.own.get(name));
        changes
    }

    fn changes_or_not(&self, case: &Case) -> Option<Vec<Changed>> {
        let mut bytes = self.own.get(&case.file)?.clone();
        let mut also = None;
        match &case.damage {
            Damage::Flip { offset, mask } => *bytes.get_mut(*offset as usize)? ^= mask,
            Damage::Cut(len) => bytes.truncate(*len as usize),
            Damage::Gone => return Some(vec![(case.file.clone(), None)]),
            Damage::Zero(range) => {
                let end = (range.end as usize).min(bytes.len());
                bytes.get_mut(range.start as usize..end)?.fill(0);
            }
            Damage::Graft { at, donor } => _ = overwrite(&mut bytes, *at, self.bytes(donor)?),
            Damage::Swap { at, donor } => {
                let taken = self.bytes(donor)?;
                let displaced = overwrite(&mut bytes, *at, taken);
                if donor.file == case.file {
                    overwrite(&mut bytes, donor.range.start, &displaced);
                } else {
                    let mut second = self.own.get(&donor.file)?.clone();
                    overwrite(&mut second, donor.range.start, &displaced);
                    also = Some((donor.file.clone(), Some(second)));
                }
            }
            Damage::Replace(source) => bytes.clone_from(self.of(*source)?.get(&case.file)?),
        }
        Some([(case.file.clone(), Some(bytes))].into_iter().chain(also).collect())
    }
}

/// Writes `new` over the bytes from `at` on, without making the file longer. Returns the
/// overwritten bytes.
fn overwrite(bytes: &mut [u8], at: u64, new: &[u8]) -> Vec<u8> {
    let at = (at as usize).min(bytes.len());
    let len = new.len().min(bytes.len() - at);
    let place = &mut bytes[at..at + len];
    let old = place.to_vec();
    place.copy_from_slice(&new[..len]);
    old
}

/// Returns the range from the first to the last byte in which two versions of a file differ.
pub(super) fn difference(old: &[u8], new: &[u8]) -> Range<u64> {
    let start = old.iter().zip(new).take_while(|(a, b)| a == b).count();
    if old.len() != new.len() {
        return start as u64..old.len().max(new.len()) as u64;
    }
    let same = old.iter().rev().zip(new.iter().rev()).take_while(|(a, b)| a == b).count();
    start as u64..(old.len() - same).max(start) as u64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_difference_is_from_the_first_to_the_last_byte() {
        assert_eq!(difference(b"abcd", b"aXXd"), 1..3);
        assert_eq!(difference(b"abcd", b"ab"), 2..4);
        assert_eq!(difference(b"aaaa", b"aXaa"), 1..2);
        assert_eq!(difference(b"same", b"same"), 4..4);
    }

    #[test]
    fn a_swap_changes_both_places() {
        let file = |text: &str| text.as_bytes().to_vec();
        let own = Files::from([("a".to_owned(), file("01234")), ("b".to_owned(), file("vwxyz"))]);
        let images = Images { own: &own, stale: &[], other: &own };
        let swap = |donor: &str, range| Case {
            file: "a".into(),
            damage: Damage::Swap {
                at: 0,
                donor: Donor { source: Source::Same, file: donor.into(), range },
            },
        };
        let changed = |name: &str, text: &str| (name.to_owned(), Some(file(text)));
        assert_eq!(images.changes(&swap("a", 3..5)), [changed("a", "34201")]);
        let both = [changed("a", "vw234"), changed("b", "01xyz")];
        assert_eq!(images.changes(&swap("b", 0..2)), both);
        assert_eq!(images.changes(&swap("a", 0..2)), []);
    }
}
