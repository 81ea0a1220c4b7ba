//! A layer being built: fragments that are added in key order.
//!
//! Keys are in one buffer, and a fragment that begins at the end of the last one shares that key.
//!
//! Owns: the keys and sequence numbers of the fragments. Never does: cut tombstones (`sweep.rs`),
//! or search (`fragments.rs`).

use windrow_base::{KeyOrder, SeqNo};

/// The place of a key in `TombstoneLayer::keys`.
#[derive(Clone, Copy, Debug)]
pub(super) struct KeyLocation {
    at: usize,
    bytes: usize,
}

#[derive(Debug)]
pub(super) struct Fragment {
    pub(super) start: KeyLocation,
    pub(super) end: KeyLocation,
    /// The range of its sequence numbers in `TombstoneLayer::seqs`.
    seqs: (usize, usize),
}

/// Fragments being collected.
#[derive(Debug, Default)]
pub(crate) struct TombstoneLayer {
    keys: Vec<u8>,
    pub(super) fragments: Vec<Fragment>,
    pub(super) seqs: Vec<SeqNo>,
}

/// One fragment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FragmentRef<'a> {
    /// First user key covered.
    pub start: &'a [u8],
    /// First user key after it that is not covered.
    pub end: &'a [u8],
    /// Sequence numbers of the tombstones over it, newest first; at least one.
    pub seqs: &'a [SeqNo],
}

impl<'a> FragmentRef<'a> {
    /// The newest sequence number that a read at `max_seq` sees.
    #[inline]
    pub fn newest(&self, max_seq: SeqNo) -> Option<SeqNo> {
        let at = self.seqs.partition_point(|&seq| seq > max_seq);
        self.seqs.get(at).copied()
    }

    /// The part of the fragment within `[from, to)` (unbounded where `None`).
    pub fn within(
        self,
        order: &KeyOrder,
        from: Option<&'a [u8]>,
        to: Option<&'a [u8]>,
    ) -> Option<FragmentRef<'a>> {
        let start = from.filter(|from| order.compare(self.start, from).is_lt());
        let end = to.filter(|to| order.compare(to, self.end).is_lt());
        let (start, end) = (start.unwrap_or(self.start), end.unwrap_or(self.end));
        let seqs = self.seqs;
        order.compare(start, end).is_lt().then_some(FragmentRef { start, end, seqs })
    }
}

impl TombstoneLayer {
    pub(super) fn key(&self, key: KeyLocation) -> &[u8] {
        &self.keys[key.at..key.at + key.bytes]
    }

    fn put_key(&mut self, key: &[u8]) -> KeyLocation {
        let at = self.keys.len();
        self.keys.extend_from_slice(key);
        KeyLocation { at, bytes: key.len() }
    }

    pub(super) fn get(&self, at: usize) -> Option<FragmentRef<'_>> {
        let f = self.fragments.get(at)?;
        let seqs = &self.seqs[f.seqs.0..f.seqs.1];
        Some(FragmentRef { start: self.key(f.start), end: self.key(f.end), seqs })
    }

    /// The last fragment.
    pub(super) fn last(&self) -> Option<FragmentRef<'_>> {
        self.get(self.fragments.len().checked_sub(1)?)
    }

    /// The end of the last fragment.
    pub(super) fn last_end(&self) -> Option<&[u8]> {
        self.fragments.last().map(|f| self.key(f.end))
    }

    /// An empty layer with room for `count` fragments of one sequence number each.
    pub(super) fn with_room(count: usize) -> TombstoneLayer {
        let (fragments, seqs) = (Vec::with_capacity(count), Vec::with_capacity(count));
        TombstoneLayer { keys: Vec::new(), fragments, seqs }
    }

    pub(super) fn pairs(&self) -> usize {
        self.seqs.len()
    }

    /// Adds a fragment at or after the last one's end.
    pub(super) fn push(&mut self, start: &[u8], end: &[u8], seqs: &[SeqNo]) {
        let shared = self.fragments.last().map(|f| f.end).filter(|&end| self.key(end) == start);
        let start = shared.unwrap_or_else(|| self.put_key(start));
        let end = self.put_key(end);
        let at = self.seqs.len();
        self.seqs.extend_from_slice(seqs);
        let seqs = (at, self.seqs.len());
        self.fragments.push(Fragment { start, end, seqs });
    }

    /// As `push`, but extends the last fragment if the new one begins at its end and has the same
    /// sequence numbers.
    pub(super) fn push_or_extend(&mut self, start: &[u8], end: &[u8], seqs: &[SeqNo]) {
        let goes_on = self.last().is_some_and(|last| *last.end == *start && *last.seqs == *seqs);
        if !goes_on {
            return self.push(start, end, seqs);
        }
        // The end of the last fragment is the last key in the buffer, so that the new end replaces
        // it.
        let last = self.fragments.last().map_or(self.keys.len(), |f| f.end.at);
        self.keys.truncate(last);
        let end = self.put_key(end);
        if let Some(fragment) = self.fragments.last_mut() {
            fragment.end = end;
        }
    }

    /// Adds an older sequence number to the last fragment.
    pub(super) fn push_seq(&mut self, seq: SeqNo) {
        self.seqs.push(seq);
        if let Some(last) = self.fragments.last_mut() {
            last.seqs.1 += 1;
        }
    }

    pub(super) fn shrink(&mut self) {
        self.keys.shrink_to_fit();
        self.fragments.shrink_to_fit();
        self.seqs.shrink_to_fit();
    }

    pub(super) fn memory_bytes(&self) -> usize {
        self.keys.capacity()
            + self.fragments.capacity() * size_of::<Fragment>()
            + self.seqs.capacity() * size_of::<SeqNo>()
    }
}
