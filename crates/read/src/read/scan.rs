//! Turns the merged entries of a view into the entries that a reader sees: for each user key the
//! newest version at or below its sequence number, with deletes, range tombstones and expiry taken
//! out and merge operands applied.
//!
//! Going forward, the newest version of a key comes first: the scan is on the entry itself and
//! copies only its key. Going backward the oldest comes first, so the value is pinned while the
//! newer ones are looked at, and the merge is before the key already.
//!
//! If the order treats keys of different bytes as equal, a key has the bytes of its newest visible
//! version, both ways; a prefix is compared with those.
//!
//! A merge operator that refuses a key's value is an error of that key alone: the scan is on the
//! key, at no entry, and goes on from there. Any other error is sticky (P9).
//!
//! Owns: a position in a view, and the pin on it. Never does: return a key outside its bounds; go
//! on after an error of another kind.

use super::access::is_sampled;
use super::coverage::Coverage;
use super::merge_iter::MergeIter;
use super::readahead::Readahead;
use super::scan_options::{ScanOptions, bounds_of};
use super::scan_sources::{charge_for, merge_of, table_options};
use super::table_iter::Bounds;
use super::view::ReadView;
use super::walk::{Here, Jump, Walk};
use super::{EXPIRY_BYTES, ReadOwner, is_expired, is_refused_merge, merge_operands, split_expiry};
use crate::gaps::ReadPoint;
use crate::slice::Slice;
use std::sync::Arc;
use windrow_base::key::{self, Kind, seek_trailer, trailer_kind, trailer_seq};
use windrow_base::{Error, Result, SeqNo, unless_mutant};
use windrow_format::block::Charge;

/// Entries in a row that are stepped over before a seek is tried: a step is
/// some 30 ns, a seek some 30 times that.
const STEPS_BEFORE_SEEK: u32 = 16;

/// The trailer before all versions of a user key.
const BEFORE_VERSIONS: u64 = u64::MAX;
/// The trailer of the last possible version of a user key.
const LAST_VERSION: u64 = 0;

/// The place of the current key's value.
#[derive(Clone, Copy, PartialEq, Eq)]
enum At {
    /// There is no current key.
    Nowhere,
    /// At the merge's entry, after `skip_bytes` bytes of expiry.
    Entry { skip_bytes: usize },
    /// In `value`, its expiry in `expiry_ms`. Going forward the merge is on
    /// an older version of the key or after it, going backward before it.
    Copied,
    /// As `Copied`, but the merge operator has refused the value: there is none.
    Refused,
}

/// The expiry of a value that never expires.
const NEVER_MS: u64 = u64::MAX;

/// The meaning of a key's version, the first two with their expiry.
enum KeyVersion {
    Value(Slice, u64),
    Operand(Slice, u64),
    /// Deleted: older versions do not count.
    Gone,
    /// Deleted for now: the clock may be set back.
    Expired,
}

/// A scan of a view, both ways. The core of cursors and iterators.
pub struct Scan {
    owner: Arc<ReadOwner>,
    view: Arc<ReadView>,
    seq: SeqNo,
    now_ms: u64,
    bounds: Bounds,
    /// Checked key by key if the order is not bytewise.
    prefix: Option<Vec<u8>>,
    fill_cache: bool,
    readahead: Readahead,
    merge: MergeIter,
    /// For its own memory; blocks and bytes read ahead are charged apart.
    _charge: Charge,
    coverage: Coverage,
    /// Whether versions of one key may differ in their bytes.
    has_spellings: bool,
    is_forward: bool,
    at: At,
    /// The current user key; after the last one, the key that was decided last.
    key: Vec<u8>,
    value: Slice,
    /// When `value`, if it is held, expires, or the first part of it.
    expiry_ms: u64,
    /// Operands of the key at hand.
    operands: Vec<Slice>,
    /// A target's internal key.
    target: Vec<u8>,
    /// The walk over deleted keys, up to the entry at hand.
    walk: Walk,
    error: Option<Error>,
    returned: u64,
    /// `returned` when it was positioned.
    returned_before: u64,
    skipped: u64,
    /// The number of keys that it walked over.
    deleted: u64,
}

impl Scan {
    /// Makes a scan of `view` at `seq` that judges expiry at `now_ms` (ms since 1970). At no entry
    /// yet; reads nothing.
    pub fn new(
        owner: Arc<ReadOwner>,
        view: Arc<ReadView>,
        seq: SeqNo,
        now_ms: u64,
        options: ScanOptions,
    ) -> Scan {
        let ScanOptions { fill_cache, readahead, .. } = options;
        let (bounds, prefix) = bounds_of(options, owner.order.is_bytewise());
        let table_options = table_options(fill_cache, readahead, &bounds);
        let merge = merge_of(&owner, &view, table_options);
        Scan {
            _charge: charge_for(&owner, &merge, size_of::<Scan>()),
            merge,
            coverage: Coverage::new(Arc::clone(&owner), &view, seq),
            has_spellings: !owner.order.equality_is_bytewise(),
            owner,
            view,
            seq,
            now_ms,
            bounds,
            prefix,
            fill_cache,
            readahead,
            is_forward: true,
            at: At::Nowhere,
            key: Vec::new(),
            value: Slice::default(),
            expiry_ms: NEVER_MS,
            operands: Vec::new(),
            target: Vec::new(),
            walk: Walk::new(),
            error: None,
            returned: 0,
            returned_before: 0,
            skipped: 0,
            deleted: 0,
        }
    }

    /// Makes every call return this error, until a refresh.
    pub fn fail_with(&mut self, error: Option<Error>) {
        self.error = error;
    }

    /// Goes over to another view. Is then at the first key at or after its place, if it was at one.
    /// Clears an error: this is a new scan.
    ///
    /// # Errors
    /// As [`Scan::seek`].
    pub fn refresh(&mut self, view: Arc<ReadView>, seq: SeqNo, now_ms: u64) -> Result<bool> {
        let options = table_options(self.fill_cache, self.readahead, &self.bounds);
        let was_at_key = self.at != At::Nowhere;
        self.merge = merge_of(&self.owner, &view, options);
        self._charge = charge_for(&self.owner, &self.merge, size_of::<Scan>());
        self.coverage = Coverage::new(Arc::clone(&self.owner), &view, seq);
        (self.view, self.seq, self.now_ms) = (view, seq, now_ms);
        (self.error, self.at) = (None, At::Nowhere);
        if !was_at_key {
            return Ok(false);
        }
        let at_key = self.key.clone();
        self.seek(&at_key)
    }

    /// The number of keys that it has been at.
    #[inline]
    pub(crate) fn returned(&self) -> u64 {
        self.returned
    }

    /// Whether it is at an entry.
    #[inline]
    pub fn valid(&self) -> bool {
        !matches!(self.at, At::Nowhere | At::Refused)
    }

    /// The error that the last move met, or that ended the scan.
    ///
    /// # Errors
    /// That error.
    pub fn status(&self) -> Result<()> {
        self.error.clone().map_or(Ok(()), Err)
    }

    /// The user key, also that of a refused merge. Empty if it is at none.
    #[inline]
    pub fn key(&self) -> &[u8] {
        if self.at == At::Nowhere { &[] } else { &self.key }
    }

    /// The value.
    #[inline]
    pub fn value(&self) -> &[u8] {
        match self.at {
            At::Nowhere | At::Refused => &[],
            At::Entry { skip_bytes } => &self.merge.value()[skip_bytes..],
            At::Copied => &self.value,
        }
    }

    /// When the value expires, or the first of the parts that it is merged from, in ms since 1970.
    pub fn expiry_ms(&self) -> Option<u64> {
        let expiry_ms = match self.at {
            At::Nowhere | At::Refused | At::Entry { skip_bytes: 0 } => NEVER_MS,
            At::Entry { .. } => split_expiry(self.merge.value()).map_or(NEVER_MS, |(ms, _)| ms),
            At::Copied => self.expiry_ms,
        };
        (expiry_ms != NEVER_MS).then_some(expiry_ms)
    }

    /// The value, pinning its block if it is in one.
    #[inline]
    pub fn value_slice(&self) -> Slice {
        match self.at {
            At::Nowhere | At::Refused => Slice::default(),
            At::Entry { skip_bytes: 0 } => self.merge.value_slice(),
            At::Entry { skip_bytes } => self.merge.value_slice().skip(skip_bytes),
            At::Copied => self.value.clone(),
        }
    }

    /// Runs a positioning; keeps its error. Returns whether there is an entry.
    #[inline]
    fn settle(&mut self, work: impl FnOnce(&mut Scan) -> Result<bool>) -> Result<bool> {
        if self.at == At::Refused {
            self.error = None;
        }
        if let Some(error) = &self.error {
            return Err(error.clone());
        }
        self.owner.check_process()?;
        let done = work(self);
        match &done {
            Ok(true) => self.returned += 1,
            Ok(false) => self.at = At::Nowhere,
            Err(error) if is_refused_merge(error) => {
                (self.at, self.error) = (At::Refused, Some(error.clone()));
            }
            Err(error) => {
                self.at = At::Nowhere;
                unless_mutant!(ScanErrorForgotten, self.error = Some(error.clone()));
            }
        }
        done
    }

    /// Moves to the first key. Returns whether there is one, as all moves below.
    ///
    /// # Errors
    /// Any read's (`Corruption` naming file and offset, `Io`), a merge operator's. Sticky, except
    /// `MergeRefused`: every later call returns it.
    pub fn seek_first(&mut self) -> Result<bool> {
        match self.bounds.lower.clone() {
            Some(lower) => self.seek(&lower.key),
            None => self.position(true, |scan| scan.position_at(Here::First)),
        }
    }

    /// Moves to the last key.
    ///
    /// # Errors
    /// As [`Scan::seek_first`].
    pub fn seek_last(&mut self) -> Result<bool> {
        self.position(false, |scan| match &scan.bounds.upper {
            Some(upper) => {
                upper.write_internal(&mut scan.target);
                scan.position_at(Here::Target)
            }
            None => {
                scan.merge.seek_last()?;
                scan.find_backward()
            }
        })
    }

    /// Moves to the first key at or after `user_key`.
    ///
    /// # Errors
    /// As [`Scan::seek_first`].
    pub fn seek(&mut self, user_key: &[u8]) -> Result<bool> {
        self.position(true, |scan| {
            match &scan.bounds.lower {
                Some(lower) if scan.bounds.is_below(&scan.owner.order, user_key) => {
                    let before = seek_trailer(scan.seq);
                    let trailer = if lower.after { LAST_VERSION } else { before };
                    set_internal(&mut scan.target, &lower.key, trailer);
                }
                _ => set_internal(&mut scan.target, user_key, seek_trailer(scan.seq)),
            }
            scan.position_at(Here::Target)
        })
    }

    /// Moves to the last key before `user_key`.
    ///
    /// # Errors
    /// As [`Scan::seek_first`].
    pub fn seek_before(&mut self, user_key: &[u8]) -> Result<bool> {
        self.position(false, |scan| {
            match &scan.bounds.upper {
                Some(upper) if scan.owner.order.compare(&upper.key, user_key).is_lt() => {
                    upper.write_internal(&mut scan.target);
                }
                _ => set_internal(&mut scan.target, user_key, BEFORE_VERSIONS),
            }
            scan.position_at(Here::Target)
        })
    }

    /// Moves to the first visible key from here on, in the direction at hand.
    #[inline]
    fn position_at(&mut self, here: Here) -> Result<bool> {
        match self.jump(here)? {
            Jump::ToEnd => return Ok(false),
            Jump::Done => {}
            Jump::None => {
                self.walk.begin(here);
                if here == Here::First { self.merge.seek_first() } else { self.seek_target() }?;
            }
        }
        if self.is_forward { self.find_forward(false) } else { self.find_backward() }
    }

    fn seek_target(&mut self) -> Result<()> {
        match self.is_forward {
            true => self.merge.seek(&self.target),
            false => self.merge.seek_before(&self.target),
        }
    }

    /// Goes to the other end of the gap that is here, if there is one.
    #[inline]
    fn jump(&mut self, here: Here) -> Result<Jump> {
        if self.owner.gaps.is_armed() { self.jump_gap(here) } else { Ok(Jump::None) }
    }

    #[cold]
    fn jump_gap(&mut self, here: Here) -> Result<Jump> {
        let reader = self.read_point();
        let Scan { owner, bounds, .. } = self;
        let place = here.place(&self.target, &self.key);
        let beyond = owner.gaps.beyond(&owner.order, self.is_forward, place, reader);
        let Some(beyond) = beyond else { return Ok(Jump::None) };
        owner.counters.gaps_skipped.add(1);
        let edge = bounds.within(&owner.order, self.is_forward, beyond);
        if here == Here::Key {
            self.end_walk(true);
        }
        let Some(edge) = edge else { return Ok(Jump::ToEnd) };
        edge.write_internal(&mut self.target);
        self.walk.begin(Here::Target);
        self.seek_target()?;
        Ok(Jump::Done)
    }

    /// Counts `self.key`, which is deleted, and goes over the gap that it is in.
    #[inline(never)]
    fn pass_deleted(&mut self) -> Result<Jump> {
        self.deleted += 1;
        if !self.walk.count() {
            return Ok(Jump::None);
        }
        self.walk.settle_begin(&self.key, self.is_forward, &self.target);
        self.jump(Here::Key)
    }

    /// Ends the walk over deleted keys at `self.key`. A long one is remembered.
    #[inline]
    fn end_walk(&mut self, is_deleted: bool) {
        if self.walk.is_long() {
            let point = self.read_point();
            self.walk.remember(&self.owner, self.is_forward, (&self.key, is_deleted), point);
        }
    }

    fn read_point(&self) -> ReadPoint {
        ReadPoint { seq: self.seq, installs: self.view.installs }
    }

    /// Notes that it is at `self.key`, which is visible.
    #[inline]
    fn found(&mut self, at: At) -> Result<bool> {
        self.at = at;
        self.end_walk(false);
        Ok(true)
    }

    /// Positions it, by a seek. The cost of a sampled seek is counted.
    fn position(
        &mut self,
        forward: bool,
        work: impl FnOnce(&mut Scan) -> Result<bool>,
    ) -> Result<bool> {
        let begin_ns = is_sampled(self.owner.counters.here().seeks.get())
            .then(|| self.owner.env.clock.monotonic_ns());
        let counted = self.owner.cost.begin_seek(&self.owner.counters, &*self.owner.env.clock);
        let found = self.settle(|scan| {
            scan.start(forward);
            work(scan)
        });
        let ReadOwner { counters, env, cost, .. } = &*self.owner;
        if let (Some(begin_ns), true) = (begin_ns, found.is_ok()) {
            counters.timings.seek.record(env.clock.monotonic_ns() - begin_ns);
        }
        if let (Some(from), true) = (counted, self.valid()) {
            cost.end_seek(&self.view, &self.key, from.of_blocks(counters, &*env.clock, 0));
        }
        found
    }

    fn start(&mut self, forward: bool) {
        self.record_length();
        self.is_forward = forward;
        self.at = At::Nowhere;
        self.walk.clear();
        self.owner.counters.seeks.add(1);
    }

    /// Records how far it went since it was positioned, if forward.
    fn record_length(&mut self) {
        let entries = self.returned - self.returned_before;
        if entries > 0 && self.is_forward {
            self.owner.cost.scan_length.record(&self.owner.counters, entries);
        }
        self.returned_before = self.returned;
    }

    /// Moves to the next key. Does nothing if it is at none.
    ///
    /// # Errors
    /// As [`Scan::seek_first`].
    #[inline]
    pub fn next(&mut self) -> Result<bool> {
        self.settle(|scan| {
            if scan.at == At::Nowhere {
                return Ok(false);
            }
            scan.walk.clear();
            if !scan.is_forward {
                scan.turn_forward()?;
            } else if matches!(scan.at, At::Entry { .. }) {
                scan.merge.next()?;
            }
            scan.find_forward(true)
        })
    }

    /// Moves to the key before. Does nothing if it is at none.
    ///
    /// # Errors
    /// As [`Scan::seek_first`].
    #[inline]
    pub fn prev(&mut self) -> Result<bool> {
        self.settle(|scan| {
            if scan.at == At::Nowhere {
                return Ok(false);
            }
            scan.walk.clear();
            if scan.is_forward {
                scan.turn_backward()?;
            }
            scan.find_backward()
        })
    }

    /// Turns from before the current key to its first version. Not always one step away: a source
    /// that was moved past a range tombstone comes back over the keys that the tombstone hides.
    #[cold]
    fn turn_forward(&mut self) -> Result<()> {
        self.is_forward = true;
        for _ in 0..STEPS_BEFORE_SEEK {
            if !self.merge.valid() {
                break;
            }
            self.merge.next()?;
            if self.merge.valid()
                && self.owner.order.compare(self.merge.user_key(), &self.key).is_ge()
            {
                return Ok(());
            }
        }
        set_internal(&mut self.target, &self.key, LAST_VERSION);
        self.merge.seek(&self.target)
    }

    /// Turns from the current key, or after it, to the entry before its first version.
    #[cold]
    fn turn_backward(&mut self) -> Result<()> {
        self.is_forward = false;
        for _ in 0..STEPS_BEFORE_SEEK {
            if !self.merge.valid() {
                break;
            }
            self.merge.prev()?;
            if self.merge.valid()
                && self.owner.order.compare(self.merge.user_key(), &self.key).is_lt()
            {
                return Ok(());
            }
        }
        set_internal(&mut self.target, &self.key, BEFORE_VERSIONS);
        self.merge.seek_before(&self.target)
    }

    /// Moves from the merge's place to the first visible key; past the versions of `self.key` if
    /// `decided` says that its visibility is known.
    #[inline]
    fn find_forward(&mut self, mut decided: bool) -> Result<bool> {
        let mut steps = 0;
        while self.merge.valid() {
            let user_key = self.merge.user_key();
            let trailer = self.merge.trailer();
            if decided && self.owner.order.equal(user_key, &self.key) {
                self.step_over(&mut steps, LAST_VERSION)?;
                continue;
            }
            if self.bounds.is_above(&self.owner.order, user_key) {
                break;
            }
            if trailer_seq(trailer) > self.seq {
                set_key(&mut self.key, user_key);
                decided = false;
                self.step_over(&mut steps, seek_trailer(self.seq))?;
                continue;
            }
            let hidden_below = self.coverage.newest(user_key)?;
            let is_outside =
                self.prefix.as_ref().is_some_and(|prefix| !user_key.starts_with(prefix));
            set_key(&mut self.key, user_key);
            decided = true;
            if trailer_seq(trailer) < hidden_below {
                match self.pass_deleted()? {
                    Jump::None => self.step_over_hidden(&mut steps)?,
                    Jump::Done => {}
                    Jump::ToEnd => return Ok(false),
                }
                continue;
            }
            steps = 0;
            if is_outside {
                self.walk.clear();
                self.step(&mut steps)?;
                continue;
            }
            match Kind::from_u8(trailer_kind(trailer))? {
                Kind::Put => return self.found(At::Entry { skip_bytes: 0 }),
                Kind::PutExpiry => {
                    let (expiry_ms, _) = split_expiry(self.merge.value())?;
                    if !is_expired(expiry_ms, self.now_ms) {
                        return self.found(At::Entry { skip_bytes: EXPIRY_BYTES });
                    }
                    self.walk.clear();
                }
                Kind::Merge | Kind::MergeExpiry => {
                    if self.merge_forward(hidden_below)? {
                        return self.found(At::Copied);
                    }
                    self.walk.clear();
                    continue;
                }
                Kind::Delete | Kind::SingleDelete => match self.pass_deleted()? {
                    Jump::None => {}
                    Jump::Done => continue,
                    Jump::ToEnd => return Ok(false),
                },
                _ => return Err(misplaced()),
            }
            self.step(&mut steps)?;
        }
        self.end_walk(true);
        Ok(false)
    }

    /// Moves one entry on, in the direction at hand.
    fn step(&mut self, steps: &mut u32) -> Result<()> {
        *steps += 1;
        self.skipped += 1;
        if self.is_forward { self.merge.next() } else { self.merge.prev() }
    }

    /// Moves over one of many versions of `self.key`; after some, to `trailer` at once.
    fn step_over(&mut self, steps: &mut u32, trailer: u64) -> Result<()> {
        if *steps < STEPS_BEFORE_SEEK || self.merge.trailer() <= trailer {
            return self.step(steps);
        }
        *steps = 0;
        self.skipped += 1;
        self.walk.leave_target(&self.target);
        set_internal(&mut self.target, &self.key, trailer);
        self.merge.seek(&self.target)
    }

    /// Moves over an entry that a range tombstone hides; after some, its source goes past the
    /// tombstone at once if the tombstone is in a newer place.
    fn step_over_hidden(&mut self, steps: &mut u32) -> Result<()> {
        let source = self.merge.source_index();
        if *steps < STEPS_BEFORE_SEEK {
            return self.step(steps);
        }
        let Some((start, end)) = self.coverage.hidden_range(source) else {
            return self.step(steps);
        };
        *steps = 0;
        self.skipped += 1;
        self.walk.leave_target(&self.target);
        set_internal(&mut self.target, if self.is_forward { end } else { start }, BEFORE_VERSIONS);
        self.merge.seek_source(source, &self.target)
    }

    /// Reads the merge's entry as a version of its key.
    fn version(&self) -> Result<KeyVersion> {
        let kind = Kind::from_u8(trailer_kind(self.merge.trailer()))?;
        let (value, expiry_ms) = match kind {
            Kind::Put | Kind::Merge => (self.merge.value_slice(), NEVER_MS),
            Kind::PutExpiry | Kind::MergeExpiry => {
                let (expiry_ms, _) = split_expiry(self.merge.value())?;
                if is_expired(expiry_ms, self.now_ms) {
                    return Ok(KeyVersion::Expired);
                }
                (self.merge.value_slice().skip(EXPIRY_BYTES), expiry_ms)
            }
            Kind::Delete | Kind::SingleDelete => return Ok(KeyVersion::Gone),
            _ => return Err(misplaced()),
        };
        let version = if kind.is_merge() { KeyVersion::Operand } else { KeyVersion::Value };
        Ok(version(value, expiry_ms))
    }

    /// For the newest visible version of `self.key`, an operand: gathers operands down to their
    /// base. `false`: it had expired.
    fn merge_forward(&mut self, hidden_below: SeqNo) -> Result<bool> {
        self.operands.clear();
        let mut base = None;
        let mut last_trailer = None;
        self.expiry_ms = NEVER_MS;
        while self.merge.valid() && self.owner.order.equal(self.merge.user_key(), &self.key) {
            let trailer = self.merge.trailer();
            if trailer_seq(trailer) < hidden_below {
                break;
            }
            // An entry in two sources (a log replayed over its table) counts once.
            if last_trailer.replace(trailer) != Some(trailer) {
                match self.version()? {
                    KeyVersion::Operand(operand, expiry_ms) => {
                        self.operands.push(operand);
                        self.expiry_ms = self.expiry_ms.min(expiry_ms);
                    }
                    KeyVersion::Value(value, expiry_ms) => {
                        base = Some(value);
                        self.expiry_ms = self.expiry_ms.min(expiry_ms);
                        break;
                    }
                    KeyVersion::Gone | KeyVersion::Expired => break,
                }
            }
            self.merge.next()?;
        }
        if self.operands.is_empty() {
            return Ok(false);
        }
        self.value = merge_operands(&self.owner, &self.key, base.as_deref(), &self.operands)?;
        self.operands.clear();
        Ok(true)
    }

    /// Moves from the merge's place to the last visible key at or before it.
    fn find_backward(&mut self) -> Result<bool> {
        let mut steps = 0;
        while self.merge.valid() {
            let user_key = self.merge.user_key();
            if self.bounds.is_below(&self.owner.order, user_key) {
                break;
            }
            set_key(&mut self.key, user_key);
            if !self.fold_backward(&mut steps)? {
                if self.pass_deleted()? == Jump::ToEnd {
                    return Ok(false);
                }
                continue;
            }
            if self.is_within_prefix() {
                return self.found(At::Copied);
            }
            self.walk.clear();
        }
        self.end_walk(true);
        Ok(false)
    }

    fn is_within_prefix(&self) -> bool {
        self.prefix.as_ref().is_none_or(|prefix| self.key.starts_with(prefix))
    }

    /// Takes in all versions of `self.key`, oldest first, and leaves the merge
    /// before them. Returns whether the key has a value, which is then held.
    fn fold_backward(&mut self, steps: &mut u32) -> Result<bool> {
        let hidden_below = self.coverage.newest(&self.key)?;
        let mut base = None;
        let mut last_trailer = None;
        self.operands.clear();
        self.expiry_ms = NEVER_MS;
        while self.merge.valid() && self.owner.order.equal(self.merge.user_key(), &self.key) {
            let trailer = self.merge.trailer();
            if trailer_seq(trailer) < hidden_below {
                self.step_over_hidden(steps)?;
                continue;
            }
            *steps = 0;
            if trailer_seq(trailer) <= self.seq && last_trailer.replace(trailer) != Some(trailer) {
                if self.has_spellings {
                    set_key(&mut self.key, self.merge.user_key());
                }
                match self.version()? {
                    KeyVersion::Operand(operand, expiry_ms) => {
                        self.operands.push(operand);
                        self.expiry_ms = self.expiry_ms.min(expiry_ms);
                    }
                    KeyVersion::Value(value, expiry_ms) => {
                        self.operands.clear();
                        base = Some(value);
                        self.expiry_ms = expiry_ms;
                    }
                    gone => {
                        self.operands.clear();
                        base = None;
                        self.expiry_ms = NEVER_MS;
                        if matches!(gone, KeyVersion::Expired) {
                            self.walk.clear();
                        }
                    }
                }
            }
            self.merge.prev()?;
        }
        if self.operands.is_empty() {
            return Ok(base.map(|value| self.value = value).is_some());
        }
        if !self.is_within_prefix() {
            // If the key is not asked for, an error of the operator must not fail the scan.
            self.operands.clear();
            return Ok(true);
        }
        self.operands.reverse();
        self.value = merge_operands(&self.owner, &self.key, base.as_deref(), &self.operands)?;
        self.operands.clear();
        Ok(true)
    }
}

impl Drop for Scan {
    fn drop(&mut self) {
        self.record_length();
        let here = self.owner.counters.here();
        here.entries_scanned.add(self.returned);
        here.entries_skipped.add(self.skipped);
        here.tombstones_walked.add(self.deleted);
    }
}

#[inline]
fn set_key(out: &mut Vec<u8>, user_key: &[u8]) {
    out.clear();
    out.extend_from_slice(user_key);
}

fn set_internal(out: &mut Vec<u8>, user_key: &[u8], trailer: u64) {
    out.clear();
    key::push_internal(out, user_key, trailer);
}

#[cold]
fn misplaced() -> Error {
    Error::corruption("a range tombstone or blob reference among point entries")
}
