//! The range tombstones over the keys that a scan passes.
//!
//! Asked at a key, it finds the stretch of keys around it over which the answer stays the same;
//! until the scan leaves the stretch, another call costs two comparisons. A view without range
//! tombstones costs one branch.
//!
//! Owns: the tombstones of the memtables at its making, and the answer for one stretch. Never does:
//! open a table that its metadata says has none.

use super::ReadOwner;
use super::view::{ReadView, SortedRun};
use crate::tombstones::TombstoneChunk;
use std::ops::Bound;
use std::sync::Arc;
use windrow_base::{KeyOrder, Result, SeqNo};
use windrow_format::tombstone::{Fragments, Tombstones};

enum TombstoneSource {
    Memory(Arc<[Arc<TombstoneChunk>]>),
    Run(Arc<SortedRun>),
}

/// A tombstone over the stretch.
struct CoveringTombstone {
    /// The source that holds it, counted as the merge's sources are: newest first.
    source: usize,
    seq: SeqNo,
    start: Vec<u8>,
    end: Vec<u8>,
}

/// The range tombstones of a view as a read at one sequence number sees them.
pub struct Coverage {
    owner: Arc<ReadOwner>,
    seq: SeqNo,
    /// Places with range tombstones, newest first, each with its source's index.
    places: Vec<(usize, TombstoneSource)>,
    stretch: KeyInterval,
    /// The tombstones over the stretch, newest place first.
    covers: Vec<CoveringTombstone>,
    newest: SeqNo,
}

impl Coverage {
    /// Makes the coverage of `view` at `seq`. Sources are counted over the view's memtables, then
    /// its runs.
    pub fn new(owner: Arc<ReadOwner>, view: &ReadView, seq: SeqNo) -> Coverage {
        let mut places = Vec::new();
        let mut sources = 0;
        for memtable in view.memtables() {
            if memtable.has_tombstones() {
                places.push((sources, TombstoneSource::Memory(memtable.tombstones())));
            }
            sources += 1;
        }
        for run in &view.runs {
            if run.has_tombstones() {
                places.push((sources, TombstoneSource::Run(Arc::clone(run))));
            }
            sources += 1;
        }
        Coverage {
            owner,
            seq,
            places,
            stretch: KeyInterval::nothing(),
            covers: Vec::new(),
            newest: 0,
        }
    }

    /// Returns the sequence number below which entries of the user key are hidden (0: none is).
    ///
    /// # Errors
    /// As [`crate::cache::TableCache::open`].
    #[inline]
    pub fn newest(&mut self, user_key: &[u8]) -> Result<SeqNo> {
        if self.places.is_empty() {
            return Ok(0);
        }
        if !self.stretch.contains(&self.owner.order, user_key) {
            self.find(user_key)?;
        }
        Ok(self.newest)
    }

    /// After [`Coverage::newest`]: returns the range of user keys, around the one asked about, in
    /// which every entry of `source` is hidden, since a tombstone in a newer place covers it.
    pub(crate) fn hidden_range(&self, source: usize) -> Option<(&[u8], &[u8])> {
        let cover = self.covers.iter().find(|cover| cover.source < source)?;
        Some((&cover.start, &cover.end))
    }

    #[cold]
    fn find(&mut self, user_key: &[u8]) -> Result<()> {
        self.stretch = KeyInterval::everything();
        self.covers.clear();
        self.newest = 0;
        let order = &self.owner.order;
        for (source, place) in &self.places {
            let run_table;
            let cover = match place {
                TombstoneSource::Memory(chunks) => {
                    self.stretch.narrow_to_chunks(order, chunks, user_key, self.seq)
                }
                TombstoneSource::Run(run) => {
                    let Some(file) = run.tombstones_near(user_key, |from, to| {
                        self.stretch.narrow(order, from, to);
                    }) else {
                        continue;
                    };
                    run_table = match file.open(&self.owner.tables) {
                        Ok(open) => open,
                        Err(error) => {
                            self.stretch = KeyInterval::nothing();
                            return Err(error);
                        }
                    };
                    let tombstones = run_table.table.tombstones();
                    self.stretch.narrow_to_layers(order, tombstones, user_key, self.seq)
                }
            };
            if let Some((start, end, seq)) = cover {
                self.newest = self.newest.max(seq);
                let (start, end) = (start.to_vec(), end.to_vec());
                self.covers.push(CoveringTombstone { source: *source, seq, start, end });
            }
        }
        let in_order = |pair: &[CoveringTombstone]| pair[0].seq >= pair[1].seq;
        debug_assert!(self.covers.windows(2).all(in_order), "I3, I4");
        Ok(())
    }
}

/// An interval of user keys.
struct KeyInterval {
    from: Bound<Vec<u8>>,
    to: Bound<Vec<u8>>,
    is_empty: bool,
}

/// A tombstone over a key: start, end, the newest sequence number.
type Over<'a> = (&'a [u8], &'a [u8], SeqNo);

impl KeyInterval {
    fn nothing() -> KeyInterval {
        KeyInterval { from: Bound::Unbounded, to: Bound::Unbounded, is_empty: true }
    }

    fn everything() -> KeyInterval {
        KeyInterval { from: Bound::Unbounded, to: Bound::Unbounded, is_empty: false }
    }

    #[inline]
    fn contains(&self, order: &KeyOrder, user_key: &[u8]) -> bool {
        let is_after = match &self.from {
            Bound::Unbounded => true,
            Bound::Included(from) => order.compare(from, user_key).is_le(),
            Bound::Excluded(from) => order.compare(from, user_key).is_lt(),
        };
        is_after
            && !self.is_empty
            && match &self.to {
                Bound::Unbounded => true,
                Bound::Included(to) => order.compare(user_key, to).is_le(),
                Bound::Excluded(to) => order.compare(user_key, to).is_lt(),
            }
    }

    /// Cuts it to a second interval; both contain the key at hand.
    fn narrow(&mut self, order: &KeyOrder, from: Bound<&[u8]>, to: Bound<&[u8]>) {
        if let Bound::Included(new) | Bound::Excluded(new) = from {
            let is_tighter = match &self.from {
                Bound::Unbounded => true,
                Bound::Included(old) | Bound::Excluded(old) => match order.compare(old, new) {
                    std::cmp::Ordering::Less => true,
                    std::cmp::Ordering::Equal => matches!(from, Bound::Excluded(_)),
                    std::cmp::Ordering::Greater => false,
                },
            };
            if is_tighter {
                self.from = from.map(<[u8]>::to_vec);
            }
        }
        if let Bound::Included(new) | Bound::Excluded(new) = to {
            let is_tighter = match &self.to {
                Bound::Unbounded => true,
                Bound::Included(old) | Bound::Excluded(old) => match order.compare(new, old) {
                    std::cmp::Ordering::Less => true,
                    std::cmp::Ordering::Equal => matches!(to, Bound::Excluded(_)),
                    std::cmp::Ordering::Greater => false,
                },
            };
            if is_tighter {
                self.to = to.map(<[u8]>::to_vec);
            }
        }
    }

    /// Cuts it to the keys for which the chunks of a memtable give the same answer, and returns the
    /// range of the newest tombstone. Chunks that have nothing newer than that are not asked.
    fn narrow_to_chunks<'a>(
        &mut self,
        order: &KeyOrder,
        chunks: &'a [Arc<TombstoneChunk>],
        user_key: &[u8],
        max_seq: SeqNo,
    ) -> Option<Over<'a>> {
        let mut over: Option<Over<'a>> = None;
        for chunk in chunks.iter().rev() {
            if over.is_some_and(|(_, _, seq)| chunk.newest_seq() <= seq) {
                continue;
            }
            let stretch = chunk.stretch(order, user_key, max_seq);
            let from = stretch.from.map_or(Bound::Unbounded, Bound::Included);
            self.narrow(order, from, stretch.to.map_or(Bound::Unbounded, Bound::Excluded));
            if let (Some(start), Some(end), Some(seq)) = (stretch.from, stretch.to, stretch.newest)
                && over.is_none_or(|(_, _, newest)| newest < seq)
            {
                over = Some((start, end, seq));
            }
        }
        over
    }

    /// Cuts it by a table's layers, likewise.
    fn narrow_to_layers<'a>(
        &mut self,
        order: &KeyOrder,
        tombstones: &'a Tombstones,
        user_key: &[u8],
        max_seq: SeqNo,
    ) -> Option<Over<'a>> {
        // The layers before the first that covers are older.
        tombstones.layers().iter().rev().find_map(|layer| {
            let (start, end, seqs) = self.narrow_to_fragments(order, layer, user_key)?;
            let &seq = seqs.get(seqs.partition_point(|&seq| seq > max_seq))?;
            Some((start, end, seq))
        })
    }

    /// Cuts it to the fragment over the key, which is returned, or to the gap that the key is in.
    fn narrow_to_fragments<'a>(
        &mut self,
        order: &KeyOrder,
        fragments: &'a Fragments,
        user_key: &[u8],
    ) -> Option<(&'a [u8], &'a [u8], &'a [SeqNo])> {
        let next = fragments.at_or_after(order, user_key);
        if let Some(over) = next.filter(|next| order.compare(next.start, user_key).is_le()) {
            self.narrow(order, Bound::Included(over.start), Bound::Excluded(over.end));
            return Some((over.start, over.end, over.seqs));
        }
        let from = match fragments.at_or_before(order, user_key) {
            Some(before) => Bound::Included(before.end),
            None => Bound::Unbounded,
        };
        self.narrow(order, from, next.map_or(Bound::Unbounded, |next| Bound::Excluded(next.start)));
        None
    }
}
