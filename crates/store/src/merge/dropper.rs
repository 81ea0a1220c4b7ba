//! Which entries of a key a merge must keep (invariant I6).
//!
//! Entries come newest first for each key, keys ascending. Held snapshots cut sequence numbers into
//! *stripes*; within one stripe no reader can tell two entries of a key apart, so only the newest
//! matters:
//!
//! 1. An entry is shadowed if a newer put, delete or covering range tombstone is in its stripe. A
//!    merge operand shadows nothing.
//! 2. A tombstone is dropped if it is in the oldest stripe and nothing outside the job, at or below
//!    the output, may hold the key.
//! 3. Operands in one stripe are resolved onto a base in the same stripe, or onto nothing if rule 2
//!    would drop a tombstone; else they are combined among themselves if the operator can. Never
//!    across a stripe, and never if one of them expires: each expires at its own time.
//! 4. An expired entry is a tombstone. "Now" is no later than any held snapshot's own time.
//! 5. A single delete and the put below it, in one stripe, are dropped together, and leave older
//!    entries as if neither had been. So a single delete that a newer put shadows must not be
//!    dropped (rule 1): if another single delete takes that put away, the one below it still has
//!    its own put to take.
//!
//! If the order treats keys of different bytes as equal, every value and operand that stays keeps
//! the bytes with which it was written: a snapshot shows them. Nobody sees those of a tombstone.
//!
//! Owns no file and no clock; the entries that stay go to a [`Sink`]. Never does: decide where a
//! table is cut (`writer.rs`).

use std::cmp::Ordering;
use std::sync::Arc;
use windrow_base::key::{self, Kind, SEQ_MAX, SeqNo, VALUE_BYTES_MAX};
use windrow_base::{Error, KeyOrder, Result};
use windrow_format::tombstone::{FragmentRef, Tombstones};
use windrow_plan::tree::OlderFiles;
use windrow_read::operators::{CompactionFilter, FilterDecision, MergeOperator};
use windrow_read::snapshot_list::LiveSnapshots;

/// Takes the entries that stay, in internal key order.
pub trait Sink {
    /// Takes one entry; `first` if its user key is another than the last one's.
    fn keep(&mut self, user_key: &[u8], trailer: u64, value: &[u8], first: bool) -> Result<()>;
}

/// The rules by which a job drops entries.
pub struct DropRules {
    pub order: KeyOrder,
    pub held: LiveSnapshots,
    /// Range tombstones of all inputs.
    pub tombstones: Tombstones,
    /// The tables at or below the output and outside the job; `None`: assume that they may hold any
    /// key (a flush does not ask).
    pub outside: Option<OlderFiles>,
    pub operator: Option<Arc<dyn MergeOperator>>,
    pub filter: Option<Arc<dyn CompactionFilter>>,
    /// Expiry is judged at this time, in ms since 1970.
    pub(crate) judge_ms: u64,
    pub(crate) output_level: u32,
}

/// Counts of the entries by their outcome.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct DropCount {
    pub seen: u64,
    pub kept: u64,
    pub(crate) expired: u64,
    /// Values that the compaction filter removed or changed.
    pub filtered: u64,
}

/// The base of the waiting operands, within their stripe.
enum OperandBase<'a> {
    /// A value that stays.
    Put(InputEntry<'a>),
    /// A point tombstone (or an expired entry) of this sequence number.
    Deleted(SeqNo),
    /// A range tombstone, which is kept or dropped by itself.
    Covered,
}

struct PendingOperand {
    trailer: u64,
    value: Vec<u8>,
    /// Its key's bytes if they differ from those of [`KeyState::key`].
    spelling: Option<Box<[u8]>>,
}

/// The entry at hand.
#[derive(Clone, Copy)]
struct InputEntry<'a> {
    user_key: &'a [u8],
    trailer: u64,
    value: &'a [u8],
    stripe: usize,
}

/// The state of the key at hand.
#[derive(Default)]
struct KeyState {
    /// As its newest entry has it.
    key: Vec<u8>,
    any: bool,
    /// Whether nothing of this key was kept yet.
    fresh: bool,
    /// The stripe in which older entries are shadowed.
    decided: Option<usize>,
    /// Operands of one stripe, newest first, that wait for their base.
    operands: Vec<PendingOperand>,
    /// A single delete that waits for its put.
    single: Option<u64>,
    /// Whether a put decided the stripe.
    under_put: bool,
    /// A single delete under that put, which waits for its own.
    buried: Option<u64>,
    /// The stripe of `operands` or `single`.
    pending_stripe: usize,
}

/// Applies the rules to a stream of entries.
pub struct Dropper {
    rules: DropRules,
    current: KeyState,
    count: DropCount,
    plain: bool,
    /// Whether entries of one key may differ in its bytes.
    has_spellings: bool,
}

impl Dropper {
    pub fn new(rules: DropRules) -> Dropper {
        let plain =
            rules.held.seqs.is_empty() && rules.tombstones.is_empty() && rules.filter.is_none();
        let has_spellings = !rules.order.equality_is_bytewise();
        let (current, count) = (KeyState::default(), DropCount::default());
        Dropper { rules, current, count, plain, has_spellings }
    }

    /// Takes the next entry.
    ///
    /// # Errors
    /// The sink's, `NotSupported` for an unknown kind, and `Corruption` if keys descend: such a
    /// table has sound checksums and was written wrong. The writer of the output would refuse such
    /// keys too, but it never sees those that are dropped, and the tables outside are asked in
    /// their order.
    #[inline]
    pub fn push(
        &mut self,
        user_key: &[u8],
        trailer: u64,
        value: &[u8],
        sink: &mut impl Sink,
    ) -> Result<()> {
        self.count.seen += 1;
        let current = &self.current;
        let since_last = match current.any {
            true => self.rules.order.compare(&current.key, user_key),
            false => Ordering::Less,
        };
        if since_last.is_gt() {
            return Err(Error::corruption("a merge reads keys that are not in order"));
        }
        if since_last.is_lt() {
            self.finish_key(sink)?;
            self.current.key.clear();
            self.current.key.extend_from_slice(user_key);
            self.current.any = true;
            self.current.fresh = true;
            self.current.decided = None;
        }
        if self.plain && key::trailer_kind(trailer) == Kind::Put as u8 && !self.has_pending() {
            if self.current.decided.is_none() {
                (self.current.decided, self.current.under_put) = (Some(0), true);
                return self.keep(user_key, trailer, value, sink);
            }
            return Ok(());
        }
        self.push_slow(user_key, trailer, value, sink)
    }

    fn has_pending(&self) -> bool {
        let current = &self.current;
        !current.operands.is_empty() || current.single.is_some() || current.buried.is_some()
    }

    fn push_slow(
        &mut self,
        user_key: &[u8],
        trailer: u64,
        value: &[u8],
        sink: &mut impl Sink,
    ) -> Result<()> {
        let seq = key::trailer_seq(trailer);
        let stripe = self.rules.held.stripe(seq);
        let entry = InputEntry { user_key, trailer, value, stripe };
        if self.current.decided == Some(stripe) {
            self.shadowed(trailer);
            return Ok(());
        }
        if self.has_pending() && self.current.pending_stripe != stripe {
            self.release_pending(sink)?;
        }
        if self.is_covered(seq, stripe) {
            (self.current.decided, self.current.under_put) = (Some(stripe), false);
            return self.settle(OperandBase::Covered, sink);
        }
        let mut kind = Kind::from_u8(key::trailer_kind(trailer))?;
        if kind.has_expiry() && is_expired(value, self.rules.judge_ms) {
            self.count.expired += 1;
            kind = Kind::Delete;
        }
        match kind {
            Kind::Put | Kind::PutExpiry => {
                (self.current.decided, self.current.under_put) = (Some(stripe), true);
                self.base(kind, entry, sink)
            }
            Kind::Merge | Kind::MergeExpiry => self.operand(entry, sink),
            Kind::SingleDelete if !self.has_pending() => {
                self.current.single = Some(trailer);
                self.current.pending_stripe = stripe;
                Ok(())
            }
            _ => {
                (self.current.decided, self.current.under_put) = (Some(stripe), false);
                if self.has_pending() {
                    return self.settle(OperandBase::Deleted(seq), sink);
                }
                self.tombstone(seq, stripe, sink)
            }
        }
    }

    /// Handles an entry under one that decided its stripe. A single delete under a put waits for
    /// its own put; any other entry is dropped.
    fn shadowed(&mut self, trailer: u64) {
        let kind = key::trailer_kind(trailer);
        if kind == Kind::SingleDelete as u8 && self.current.under_put {
            self.current.buried.get_or_insert(trailer);
            self.current.pending_stripe = self.rules.held.stripe(key::trailer_seq(trailer));
        } else if kind == Kind::Put as u8 || kind == Kind::PutExpiry as u8 {
            self.current.buried = None;
        }
    }

    /// Whether a range tombstone that no snapshot tells apart hides the entry.
    fn is_covered(&self, seq: SeqNo, stripe: usize) -> bool {
        let rules = &self.rules;
        if rules.tombstones.is_empty() {
            return false;
        }
        let top = rules.held.seqs.get(stripe).copied().unwrap_or(SEQ_MAX);
        let newest = rules.tombstones.newest_covering(&rules.order, &self.current.key, top);
        newest.is_some_and(|tombstone| tombstone > seq)
    }

    /// Handles a put that decides its stripe.
    fn base(&mut self, kind: Kind, entry: InputEntry<'_>, sink: &mut impl Sink) -> Result<()> {
        if self.current.single.take().is_some() {
            // Both are dropped, and decide nothing: older entries are as they were before the put,
            // and may include a single delete that another put needs.
            self.current.decided = None;
            return Ok(());
        }
        if !self.current.operands.is_empty() {
            if kind == Kind::Put {
                return self.settle(OperandBase::Put(entry), sink);
            }
            self.release_pending(sink)?;
            return self.keep(entry.user_key, entry.trailer, entry.value, sink);
        }
        self.filtered(kind, entry, sink)
    }

    /// Asks the compaction filter, if no snapshot known to the job sees the value.
    fn filtered(&mut self, kind: Kind, entry: InputEntry<'_>, sink: &mut impl Sink) -> Result<()> {
        let InputEntry { user_key, trailer, value, stripe } = entry;
        let newest_stripe = stripe == self.rules.held.seqs.len();
        let Some(filter) = self.rules.filter.as_ref().filter(|_| newest_stripe) else {
            return self.keep(user_key, trailer, value, sink);
        };
        let (expiry, plain) = value.split_at(if kind.has_expiry() { 8 } else { 0 });
        match filter.filter(self.rules.output_level, user_key, plain) {
            FilterDecision::Keep => self.keep(user_key, trailer, value, sink),
            FilterDecision::Remove => {
                self.count.filtered += 1;
                self.tombstone(key::trailer_seq(trailer), stripe, sink)
            }
            FilterDecision::Change(changed) if fits(&changed) => {
                self.count.filtered += 1;
                self.keep(user_key, trailer, &[expiry, &changed].concat(), sink)
            }
            FilterDecision::Change(_) => self.keep(user_key, trailer, value, sink),
        }
    }

    /// Handles a delete that decides its stripe: drops it if rule 2 allows that.
    fn tombstone(&mut self, seq: SeqNo, stripe: usize, sink: &mut impl Sink) -> Result<()> {
        if stripe == 0 && !self.outside_may_hold() {
            return Ok(());
        }
        self.keep_as_newest(key::trailer(seq, Kind::Delete), &[], sink)
    }

    fn operand(&mut self, entry: InputEntry<'_>, sink: &mut impl Sink) -> Result<()> {
        let InputEntry { user_key, trailer, value, stripe } = entry;
        if self.current.single.is_some() {
            // The single delete hides the operand as any delete would.
            (self.current.decided, self.current.under_put) = (Some(stripe), false);
            return self.settle(OperandBase::Covered, sink);
        }
        let is_other = self.has_spellings && user_key != self.current.key;
        let spelling = is_other.then(|| user_key.into());
        self.current.operands.push(PendingOperand { trailer, value: value.to_vec(), spelling });
        self.current.pending_stripe = stripe;
        Ok(())
    }

    /// Ends the waiting entries, in a stripe in which their base is known.
    fn settle(&mut self, base: OperandBase<'_>, sink: &mut impl Sink) -> Result<()> {
        if let Some(trailer) = self.current.single.take() {
            let stripe = self.current.pending_stripe;
            return self.tombstone(key::trailer_seq(trailer), stripe, sink);
        }
        if self.current.operands.is_empty() {
            return Ok(());
        }
        let base_value = match base {
            OperandBase::Put(entry) => Some(entry.value),
            OperandBase::Deleted(_) | OperandBase::Covered => None,
        };
        if let Some(value) = self.resolved(base_value) {
            let seq = key::trailer_seq(self.current.operands[0].trailer);
            return self.keep_merged(key::trailer(seq, Kind::Put), &value, sink);
        }
        self.keep_operands(sink)?;
        match base {
            OperandBase::Put(entry) => self.keep(entry.user_key, entry.trailer, entry.value, sink),
            // If it hides nothing any more, it would cause rewrites of its table for ever.
            OperandBase::Deleted(seq) => self.tombstone(seq, self.current.pending_stripe, sink),
            OperandBase::Covered => Ok(()),
        }
    }

    /// The value of the waiting operands on a base, if they can be resolved.
    fn resolved(&self, base: Option<&[u8]>) -> Option<Vec<u8>> {
        let operator = self.rules.operator.as_ref()?;
        let operands = &self.current.operands;
        if operands.iter().any(|o| key::trailer_kind(o.trailer) != Kind::Merge as u8) {
            return None;
        }
        let oldest_first: Vec<&[u8]> = operands.iter().rev().map(|o| &o.value[..]).collect();
        let value = operator.full_merge(&self.current.key, base, &oldest_first);
        value.filter(|value| fits(value))
    }

    /// Releases the waiting entries as they are: their base is in another stripe, or outside.
    fn release_pending(&mut self, sink: &mut impl Sink) -> Result<()> {
        let single = self.current.single.take().or(self.current.buried.take());
        if let Some(trailer) = single {
            return self.keep_as_newest(trailer, &[], sink);
        }
        if let Some((trailer, value)) = self.combined() {
            return self.keep_merged(trailer, &value, sink);
        }
        self.keep_operands(sink)
    }

    fn keep_operands(&mut self, sink: &mut impl Sink) -> Result<()> {
        let mut operands = std::mem::take(&mut self.current.operands);
        for PendingOperand { trailer, value, spelling } in operands.drain(..) {
            self.keep_spelt(spelling.as_deref(), trailer, &value, sink)?;
        }
        self.current.operands = operands;
        Ok(())
    }

    /// Keeps the result of the waiting operands in place of all of them.
    fn keep_merged(&mut self, trailer: u64, value: &[u8], sink: &mut impl Sink) -> Result<()> {
        let spelling = self.current.operands[0].spelling.take();
        self.current.operands.clear();
        self.keep_spelt(spelling.as_deref(), trailer, value, sink)
    }

    /// All waiting operands as one, if the operator can combine them.
    fn combined(&self) -> Option<(u64, Vec<u8>)> {
        let operands = &self.current.operands;
        let operator = self.rules.operator.as_ref()?;
        if operands.len() < 2
            || operands.iter().any(|o| key::trailer_kind(o.trailer) != Kind::Merge as u8)
        {
            return None;
        }
        // All at once: pair by pair, each result is copied once for each operand after it.
        let values: Vec<&[u8]> = operands.iter().rev().map(|o| o.value.as_slice()).collect();
        if VALUE_BYTES_MAX < values.iter().map(|value| value.len()).sum() {
            return None;
        }
        let combined = operator.partial_merge(&self.current.key, &values);
        let value = combined.filter(|value| fits(value))?;
        Some((operands[0].trailer, value))
    }

    /// Ends the key at hand: the job has no older entry of it.
    fn finish_key(&mut self, sink: &mut impl Sink) -> Result<()> {
        if !self.has_pending() {
            return Ok(());
        }
        if self.outside_may_hold() {
            return self.release_pending(sink);
        }
        if self.current.single.take().or(self.current.buried.take()).is_some() {
            return Ok(());
        }
        match self.resolved(None) {
            Some(value) => {
                let seq = key::trailer_seq(self.current.operands[0].trailer);
                self.keep_merged(key::trailer(seq, Kind::Put), &value, sink)
            }
            None => self.release_pending(sink),
        }
    }

    /// Ends the stream. Returns the counts of its entries.
    ///
    /// # Errors
    /// The sink's.
    pub fn finish(mut self, sink: &mut impl Sink) -> Result<DropCount> {
        self.finish_key(sink)?;
        Ok(self.count)
    }

    fn outside_may_hold(&mut self) -> bool {
        match &mut self.rules.outside {
            Some(outside) => outside.may_hold(&self.current.key),
            None => true,
        }
    }

    #[inline]
    fn keep(
        &mut self,
        user_key: &[u8],
        trailer: u64,
        value: &[u8],
        sink: &mut impl Sink,
    ) -> Result<()> {
        let first = self.count_kept();
        sink.keep(user_key, trailer, value, first)
    }

    fn keep_spelt(
        &mut self,
        spelling: Option<&[u8]>,
        trailer: u64,
        value: &[u8],
        sink: &mut impl Sink,
    ) -> Result<()> {
        match spelling {
            Some(user_key) => self.keep(user_key, trailer, value, sink),
            None => self.keep_as_newest(trailer, value, sink),
        }
    }

    fn keep_as_newest(&mut self, trailer: u64, value: &[u8], sink: &mut impl Sink) -> Result<()> {
        let first = self.count_kept();
        sink.keep(&self.current.key, trailer, value, first)
    }

    /// Whether it is the first of its key that stays.
    #[inline]
    fn count_kept(&mut self) -> bool {
        self.count.kept += 1;
        std::mem::replace(&mut self.current.fresh, false)
    }
}

/// Whether a table takes a value that was made here. Operands stay as they are if it does not: each
/// is within the limit.
fn fits(value: &[u8]) -> bool {
    value.len() <= VALUE_BYTES_MAX
}

/// Whether a stored value's expiry has passed. A value too short to hold one
/// is not judged here: the reader reports it.
fn is_expired(value: &[u8], judge_ms: u64) -> bool {
    value.first_chunk::<8>().is_some_and(|expiry| u64::from_le_bytes(*expiry) <= judge_ms)
}

/// The range tombstones that must stay: the newest of each stripe, and in the oldest stripe only
/// those under which tables outside the job may have keys.
pub(crate) fn surviving_tombstones(
    tombstones: &Tombstones,
    held: &LiveSnapshots,
    outside: Option<&OlderFiles>,
) -> Tombstones {
    let survives = |fragment: FragmentRef<'_>, at: usize| {
        let stripe = held.stripe(fragment.seqs[at]);
        let newer = at.checked_sub(1).map(|newer| held.stripe(fragment.seqs[newer]));
        let needed = stripe > 0 || outside.is_none_or(|o| o.overlaps(fragment.start, fragment.end));
        needed && newer != Some(stripe)
    };
    // A flush keeps all, and shares them.
    let whole =
        |fragment: FragmentRef<'_>| (0..fragment.seqs.len()).all(|at| survives(fragment, at));
    if tombstones.fragments().all(whole) {
        return tombstones.clone();
    }
    tombstones.retain(survives)
}
