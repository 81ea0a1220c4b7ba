//! The iterators of users: `Cursor`, which moves and lends, and `Iter`, a double-ended iterator of
//! owned pairs.
//!
//! Owns: the scans below, and a hold on the database that keeps it open. Never does: the work of a
//! scan.

use super::scan::Scan;
use super::scan_options::ScanOptions;
use super::view::ReadView;
use super::{Latest, ReadOwner, is_refused_merge};
use crate::slice::Slice;
use std::cmp::Ordering;
use std::iter::FusedIterator;
use std::sync::Arc;
use windrow_base::{Error, Result, SeqNo};
use windrow_env::NotInherited;

/// A position in a keyspace as it was at one moment, which moves both ways.
///
/// Owned and `Send`; keeps the database open, and the files and memtables of
/// its moment alive: [`Cursor::refresh`] one that is kept for long.
///
/// ```
/// # let dir = tempfile::tempdir().unwrap();
/// # let db = windrow::Db::open(dir.path()).unwrap();
/// for key in ["ada", "alan", "grace"] {
///     db.put(key, "")?;
/// }
/// let mut cursor = db.cursor(windrow::ReadOptions::default());
/// assert!(cursor.seek("alice")?);
/// assert_eq!(cursor.key(), b"grace");
/// assert!(cursor.prev()?);
/// assert_eq!(cursor.key(), b"alan");
/// // It sees what was there when it was made, or refreshed.
/// db.put("alfred", "")?;
/// cursor.refresh()?;
/// assert!(cursor.seek_before("b")?);
/// assert_eq!(cursor.key(), b"alfred");
/// # Ok::<(), windrow::Error>(())
/// ```
pub struct Cursor {
    scan: NotInherited<Scan>,
    latest: Arc<dyn Latest>,
}

impl Cursor {
    #[doc(hidden)]
    pub fn new(scan: Scan, latest: Arc<dyn Latest>) -> Cursor {
        Cursor { scan: NotInherited::new(scan), latest }
    }

    /// Moves to the first entry. Returns whether there is one, as all moves do.
    ///
    /// # Errors
    /// `Corruption` naming file and offset of damaged data, `Io`. Sticky: the
    /// cursor stays failed until it is refreshed.
    ///
    /// `MergeRefused` is about one key alone, which [`Cursor::key`] then gives: the next move
    /// goes on from there.
    #[inline]
    pub fn seek_first(&mut self) -> Result<bool> {
        self.scan.seek_first()
    }

    /// Moves to the last entry.
    ///
    /// # Errors
    /// As [`Cursor::seek_first`].
    #[inline]
    pub fn seek_last(&mut self) -> Result<bool> {
        self.scan.seek_last()
    }

    /// Moves to the first entry with a key at or after `key`.
    ///
    /// # Errors
    /// As [`Cursor::seek_first`].
    #[inline]
    pub fn seek(&mut self, key: impl AsRef<[u8]>) -> Result<bool> {
        self.scan.seek(key.as_ref())
    }

    /// Moves to the last entry with a key before `key`.
    ///
    /// # Errors
    /// As [`Cursor::seek_first`].
    #[inline]
    pub fn seek_before(&mut self, key: impl AsRef<[u8]>) -> Result<bool> {
        self.scan.seek_before(key.as_ref())
    }

    /// Moves to the next entry. Does nothing if the cursor is not at one.
    ///
    /// # Errors
    /// As [`Cursor::seek_first`].
    // A cursor is no `Iterator`: it lends its entry.
    #[allow(clippy::should_implement_trait)]
    #[inline]
    pub fn next(&mut self) -> Result<bool> {
        self.scan.next()
    }

    /// Moves to the entry before. Does nothing if the cursor is not at one.
    ///
    /// # Errors
    /// As [`Cursor::seek_first`].
    #[inline]
    pub fn prev(&mut self) -> Result<bool> {
        self.scan.prev()
    }

    /// Whether the cursor is at an entry.
    #[inline]
    pub fn valid(&self) -> bool {
        self.scan.valid()
    }

    /// The entry's key; after `MergeRefused`, the key that has no value; else empty.
    #[inline]
    pub fn key(&self) -> &[u8] {
        self.scan.key()
    }

    /// The entry's value; empty if the cursor is not at one.
    #[inline]
    pub fn value(&self) -> &[u8] {
        self.scan.value()
    }

    /// The entry's value, to keep: pins its block instead of copying.
    #[inline]
    pub fn value_slice(&self) -> Slice {
        self.scan.value_slice()
    }

    /// When the entry expires, in ms since 1970; `None` if it never does. A merged value expires
    /// with the first of its parts.
    #[inline]
    pub fn expiry_ms(&self) -> Option<u64> {
        self.scan.expiry_ms()
    }

    /// Whether the cursor works, and its last move did.
    ///
    /// # Errors
    /// The error that it failed with.
    #[inline]
    pub fn status(&self) -> Result<()> {
        self.scan.status()
    }

    /// Goes over to the newest state of the keyspace (of its snapshot, if it was made on one),
    /// letting the old one go. The cursor then is at the first entry at or after its place, and
    /// works again if it had failed.
    ///
    /// # Errors
    /// As [`Cursor::seek_first`]; `Closed` if the keyspace was dropped.
    pub fn refresh(&mut self) -> Result<bool> {
        let (view, seq, now_ms) = self.latest.latest()?;
        self.scan.refresh(view, seq, now_ms)
    }
}

/// Steps after which an iterator counts as one that moves: until then it gives
/// up its place while memory is short, at the cost of a seek for each step.
const STEPS_PARKED: u64 = 32;

/// An iterator over the entries of a range, from both ends. The ends meet: no entry is returned
/// twice. After an error it ends, except for
/// [`ErrorKind::MergeRefused`](windrow_base::ErrorKind::MergeRefused): that is about one key alone,
/// and the next call goes on past it.
///
/// Thousands of iterators may be idle: once their memory has taken half of the block cache's, one
/// that made few steps keeps its key alone, as the bound of the rest of its range, and seeks when
/// it is asked again. It keeps no memtable or file of its moment alive then, if it was made on a
/// snapshot or when memory was short already (it takes a snapshot by itself).
///
/// ```
/// # let dir = tempfile::tempdir().unwrap();
/// # let db = windrow::Db::open(dir.path()).unwrap();
/// for key in ["a", "b", "c", "d"] {
///     db.put(key, "")?;
/// }
/// let mut iter = db.range("b"..);
/// let (first, _) = iter.next().transpose()?.expect("there are three");
/// let (last, _) = iter.next_back().transpose()?.expect("there are two");
/// assert_eq!((&*first, &*last), (&b"b"[..], &b"d"[..]));
/// assert_eq!(iter.count(), 1);
/// # Ok::<(), windrow::Error>(())
/// ```
pub struct Iter {
    owner: Arc<ReadOwner>,
    /// `None` when it was let go: its entries are in any later view.
    view: Option<Arc<ReadView>>,
    seq: SeqNo,
    now_ms: u64,
    options: ScanOptions,
    /// Boxed, so that one which gave up its place is small.
    front: Option<Box<Scan>>,
    back: Option<Box<Scan>>,
    /// The number of steps of the scans that were given up, at most [`STEPS_PARKED`]; shows with
    /// `front` and `back` whether an end has moved.
    parked_steps: u64,
    is_done: bool,
    /// Given before anything else, if the keyspace was closed from the start.
    error: Option<Error>,
    latest: Arc<dyn Latest>,
}

impl Iter {
    /// Makes an iterator over the entries of a [`Scan::new`]. Reads nothing yet.
    #[doc(hidden)]
    pub fn new(
        owner: Arc<ReadOwner>,
        view: Arc<ReadView>,
        seq: SeqNo,
        now_ms: u64,
        options: ScanOptions,
        latest: Arc<dyn Latest>,
    ) -> Iter {
        Iter {
            owner,
            view: Some(view),
            seq,
            now_ms,
            options,
            front: None,
            back: None,
            parked_steps: 0,
            is_done: false,
            error: None,
            latest,
        }
    }

    /// Has it return this error and end.
    #[doc(hidden)]
    pub fn failing(mut self, error: Option<Error>) -> Iter {
        self.error = error;
        self
    }

    fn take_error<T>(&mut self) -> Option<Result<T>> {
        let error = self.error.take()?;
        self.is_done = true;
        Some(Err(error))
    }

    /// Makes a scan of the rest. Its first move fails in another process.
    fn new_scan(&self) -> Box<Scan> {
        let view = self.view.clone().or_else(|| self.latest.later_view());
        let view = view.expect("a view is let go only where there is a later one");
        let (owner, options) = (Arc::clone(&self.owner), self.options.clone());
        Box::new(Scan::new(owner, view, self.seq, self.now_ms, options))
    }

    /// The next entry from one end, with the key also if the merge operator refuses its value.
    #[doc(hidden)]
    pub fn next_keyed(&mut self, from_front: bool) -> Option<Result<(Slice, Result<Slice>)>> {
        let item = if from_front { self.step(pair) } else { self.step_back(pair) };
        Some(match item? {
            Ok((key, value)) => Ok((key, Ok(value))),
            Err(error) if is_refused_merge(&error) => Ok((self.end_key(from_front), Err(error))),
            Err(error) => Err(error),
        })
    }

    /// The key that one end is at.
    fn end_key(&self, from_front: bool) -> Slice {
        let scan = if from_front { self.front.as_deref() } else { self.back.as_deref() };
        scan.map_or_else(Slice::default, key)
    }

    /// The keys alone, from both ends as well. No value is made ready or kept.
    pub fn keys(self) -> Keys {
        Keys(self)
    }

    /// Moves the front, and returns the result of `entry` at its new place.
    fn step<T>(&mut self, entry: impl FnOnce(&Scan) -> T) -> Option<Result<T>> {
        if self.is_done || self.error.is_some() {
            return self.take_error();
        }
        let moved = match &mut self.front {
            Some(scan) => scan.next(),
            None => {
                let scan = self.new_scan();
                self.front.insert(scan).seek_first()
            }
        };
        self.take(moved, true, entry)
    }

    /// Moves the back, likewise.
    fn step_back<T>(&mut self, entry: impl FnOnce(&Scan) -> T) -> Option<Result<T>> {
        if self.is_done || self.error.is_some() {
            return self.take_error();
        }
        let moved = match &mut self.back {
            Some(scan) => scan.prev(),
            None => {
                let scan = self.new_scan();
                self.back.insert(scan).seek_last()
            }
        };
        self.take(moved, false, entry)
    }

    /// The entry that one end has moved to, unless the other end was there or beyond.
    fn take<T>(
        &mut self,
        moved: Result<bool>,
        from_front: bool,
        entry: impl FnOnce(&Scan) -> T,
    ) -> Option<Result<T>> {
        match moved {
            Err(ref error) if !is_refused_merge(error) => {
                self.is_done = true;
                return moved.err().map(Err);
            }
            Ok(false) => self.is_done = true,
            Ok(true) | Err(_) => {
                if let (Some(front), Some(back)) = (&self.front, &self.back) {
                    let met = self.owner.order.compare(front.key(), back.key()) != Ordering::Less;
                    self.is_done = met;
                }
            }
        }
        if self.is_done {
            // Let the view's blocks go: an exhausted iterator may be kept.
            (self.front, self.back) = (None, None);
            return None;
        }
        if let Err(error) = moved {
            return Some(Err(error));
        }
        let scan = if from_front { self.front.as_ref() } else { self.back.as_ref() };
        let item = scan.map(|scan| Ok(entry(scan)));
        if self.parked_steps < STEPS_PARKED && self.owner.blocks.is_crowded() {
            self.park();
        }
        item
    }

    /// Gives up the scans: the rest of the range begins after the front's key and ends before the
    /// back's. The view stays, or its entries are in every later one, so nothing changes for a
    /// caller that goes on.
    #[cold]
    fn park(&mut self) {
        if let Some(front) = self.front.take() {
            self.options.lower = Some(front.key().to_vec());
            self.options.lower_after = true;
            self.parked_steps += front.returned();
        }
        if let Some(back) = self.back.take() {
            self.options.upper = Some(back.key().to_vec());
            self.options.upper_after = false;
            self.parked_steps += back.returned();
        }
        if self.latest.later_view().is_some() {
            self.view = None;
        }
    }
}

impl Drop for Iter {
    fn drop(&mut self) {
        if self.owner.check_process().is_err() {
            // Memory that the scans hold belongs to the parent process.
            std::mem::forget((self.view.take(), self.front.take(), self.back.take()));
        }
    }
}

fn pair(scan: &Scan) -> (Slice, Slice) {
    (Slice::copy_from(scan.key()), scan.value_slice())
}

fn key(scan: &Scan) -> Slice {
    Slice::copy_from(scan.key())
}

impl Iterator for Iter {
    type Item = Result<(Slice, Slice)>;

    fn next(&mut self) -> Option<Self::Item> {
        self.step(pair)
    }
}

impl DoubleEndedIterator for Iter {
    fn next_back(&mut self) -> Option<Self::Item> {
        self.step_back(pair)
    }
}

impl FusedIterator for Iter {}

/// The keys of a range, from both ends: see [`Iter::keys`]. Includes a key whose value the merge
/// operator refuses.
///
/// ```
/// # let dir = tempfile::tempdir().unwrap();
/// # let db = windrow::Db::open(dir.path()).unwrap();
/// db.put("a", "a long value")?;
/// let keys: Vec<windrow::Slice> = db.iter().keys().collect::<Result<_, _>>()?;
/// assert_eq!(keys, ["a"]);
/// # Ok::<(), windrow::Error>(())
/// ```
pub struct Keys(Iter);

impl Keys {
    fn or_refused(&self, item: Option<Result<Slice>>, from_front: bool) -> Option<Result<Slice>> {
        match item {
            Some(Err(error)) if is_refused_merge(&error) => Some(Ok(self.0.end_key(from_front))),
            item => item,
        }
    }
}

impl Iterator for Keys {
    type Item = Result<Slice>;

    fn next(&mut self) -> Option<Self::Item> {
        let item = self.0.step(key);
        self.or_refused(item, true)
    }
}

impl DoubleEndedIterator for Keys {
    fn next_back(&mut self) -> Option<Self::Item> {
        let item = self.0.step_back(key);
        self.or_refused(item, false)
    }
}

impl FusedIterator for Keys {}
