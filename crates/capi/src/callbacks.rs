//! The caller's functions that the engine calls: orders of keys, merge operators, compaction filters, listeners.
//!
//! Owns: the caller's `state`, which is destroyed when its last user goes. Never does: catch an exception of a caller's
//! function, which must return.

use crate::bytes::{c_string, text_in, windrow_slice};
use engine::{
    CompactionFilter, Comparator, Error, Event, EventListener, FilterDecision, MergeOperator,
    Result,
};
use std::cmp::Ordering;
use std::ffi::{c_char, c_int, c_void};

/// The first argument of the caller's functions, and the function that destroys it.
pub(crate) struct State {
    pub(crate) state: *mut c_void,
    pub(crate) destroy: Option<extern "C" fn(*mut c_void)>,
}

// SAFETY: the header demands of the caller that functions which are given with a state may be called from any
// thread, and from several at once.
unsafe impl Send for State {}
// SAFETY: as above.
unsafe impl Sync for State {}

impl Drop for State {
    fn drop(&mut self) {
        if let Some(destroy) = self.destroy {
            destroy(self.state);
        }
    }
}

/// An order of keys. Its functions are called from any thread, several at once, and must return.
#[repr(C)]
pub struct windrow_comparator {
    /// The first argument of its functions.
    pub state: *mut c_void,
    /// Its identity, which is stored with a keyspace: another order has another name.
    pub name: *const c_char,
    /// Less than 0, 0, or more than 0, as `a` is before, equal to, or after `b`. A total order.
    pub compare:
        Option<extern "C" fn(state: *mut c_void, a: windrow_slice, b: windrow_slice) -> c_int>,
    /// Whether 0 means equal bytes. If not, tables get no filters.
    pub equal_means_same_bytes: bool,
    /// Called once, when `state` is not needed any more. May be NULL.
    pub destroy: Option<extern "C" fn(state: *mut c_void)>,
}

pub(crate) struct ForeignComparator {
    state: State,
    name: String,
    compare: extern "C" fn(*mut c_void, windrow_slice, windrow_slice) -> c_int,
    equal_means_same_bytes: bool,
}

impl ForeignComparator {
    pub(crate) fn new(of: &windrow_comparator) -> Result<ForeignComparator> {
        let state = State { state: of.state, destroy: of.destroy };
        Ok(ForeignComparator {
            name: text_in(of.name, "the comparator's name")?.to_owned(),
            compare: of.compare.ok_or_else(|| missing("the comparator's compare"))?,
            equal_means_same_bytes: of.equal_means_same_bytes,
            state,
        })
    }
}

impl Comparator for ForeignComparator {
    fn id(&self) -> &str {
        &self.name
    }

    fn compare(&self, a: &[u8], b: &[u8]) -> Ordering {
        (self.compare)(self.state.state, windrow_slice::of(a), windrow_slice::of(b)).cmp(&0)
    }

    fn equality_is_bytewise(&self) -> bool {
        self.equal_means_same_bytes
    }
}

/// The place where a caller's function leaves a value.
pub struct windrow_output(Option<Vec<u8>>);

/// Makes `bytes` the value. They are copied.
#[unsafe(no_mangle)]
pub extern "C" fn windrow_output_set(output: Option<&mut windrow_output>, bytes: windrow_slice) {
    if let (Some(output), Ok(bytes)) = (output, bytes.bytes()) {
        output.0 = Some(bytes.to_vec());
    }
}

/// Combines the operands merged into a key with its value. Its functions are called from any thread, several at once,
/// must return, and must have the same result for the same arguments.
#[repr(C)]
pub struct windrow_merge_operator {
    /// The first argument of its functions.
    pub state: *mut c_void,
    /// Its identity, which is stored with a keyspace.
    pub name: *const c_char,
    /// Sets `output` to the value that `operands`, oldest first, make of `base` (NULL: the key is absent), and
    /// returns true; false if they do not fit.
    pub full_merge: Option<
        extern "C" fn(
            state: *mut c_void,
            key: windrow_slice,
            base: *const windrow_slice,
            operands: *const windrow_slice,
            count: usize,
            output: *mut windrow_output,
        ) -> bool,
    >,
    /// Sets `output` to one operand with the effect of all `operands`, and returns true; false to keep them all. May be
    /// NULL.
    pub partial_merge: Option<
        extern "C" fn(
            state: *mut c_void,
            key: windrow_slice,
            operands: *const windrow_slice,
            count: usize,
            output: *mut windrow_output,
        ) -> bool,
    >,
    /// Called once, when `state` is not needed any more. May be NULL.
    pub destroy: Option<extern "C" fn(state: *mut c_void)>,
}

type FullMerge = extern "C" fn(
    *mut c_void,
    windrow_slice,
    *const windrow_slice,
    *const windrow_slice,
    usize,
    *mut windrow_output,
) -> bool;
type PartialMerge = extern "C" fn(
    *mut c_void,
    windrow_slice,
    *const windrow_slice,
    usize,
    *mut windrow_output,
) -> bool;

pub(crate) struct ForeignMergeOperator {
    state: State,
    name: String,
    full: FullMerge,
    partial: Option<PartialMerge>,
}

impl ForeignMergeOperator {
    pub(crate) fn new(of: &windrow_merge_operator) -> Result<ForeignMergeOperator> {
        let state = State { state: of.state, destroy: of.destroy };
        Ok(ForeignMergeOperator {
            name: text_in(of.name, "the merge operator's name")?.to_owned(),
            full: of.full_merge.ok_or_else(|| missing("the merge operator's full_merge"))?,
            partial: of.partial_merge,
            state,
        })
    }
}

fn slices(bytes: &[&[u8]]) -> Vec<windrow_slice> {
    bytes.iter().map(|bytes| windrow_slice::of(bytes)).collect()
}

impl MergeOperator for ForeignMergeOperator {
    fn name(&self) -> &str {
        &self.name
    }

    fn full_merge(&self, key: &[u8], base: Option<&[u8]>, operands: &[&[u8]]) -> Option<Vec<u8>> {
        let mut output = windrow_output(None);
        let operands = slices(operands);
        let base = base.map(windrow_slice::of);
        let base = base.as_ref().map_or(std::ptr::null(), std::ptr::from_ref);
        let (key, first) = (windrow_slice::of(key), operands.as_ptr());
        let fits = (self.full)(self.state.state, key, base, first, operands.len(), &mut output);
        output.0.filter(|_| fits)
    }

    fn partial_merge(&self, key: &[u8], operands: &[&[u8]]) -> Option<Vec<u8>> {
        let partial = self.partial?;
        let mut output = windrow_output(None);
        let operands = slices(operands);
        let (key, first) = (windrow_slice::of(key), operands.as_ptr());
        let is_one = partial(self.state.state, key, first, operands.len(), &mut output);
        output.0.filter(|_| is_one)
    }
}

/// The decision of a compaction filter on a value.
#[repr(C)]
pub enum windrow_filter_decision {
    /// It stays.
    Keep = 0,
    /// The key is absent from here on.
    Remove = 1,
    /// The value becomes the one that `output` was set to.
    Change = 2,
}

/// Decides on the values that merges write. Its function is called from background threads, and must return.
#[repr(C)]
pub struct windrow_compaction_filter {
    /// The first argument of its function.
    pub state: *mut c_void,
    /// Its name in messages.
    pub name: *const c_char,
    /// A windrow_filter_decision; any other number keeps the value.
    pub filter: Option<
        extern "C" fn(
            state: *mut c_void,
            level: u32,
            key: windrow_slice,
            value: windrow_slice,
            output: *mut windrow_output,
        ) -> c_int,
    >,
    /// Called once, when `state` is not needed any more. May be NULL.
    pub destroy: Option<extern "C" fn(state: *mut c_void)>,
}

pub(crate) struct ForeignFilter {
    state: State,
    name: String,
    filter:
        extern "C" fn(*mut c_void, u32, windrow_slice, windrow_slice, *mut windrow_output) -> c_int,
}

impl ForeignFilter {
    pub(crate) fn new(of: &windrow_compaction_filter) -> Result<ForeignFilter> {
        let state = State { state: of.state, destroy: of.destroy };
        Ok(ForeignFilter {
            name: text_in(of.name, "the compaction filter's name")?.to_owned(),
            filter: of.filter.ok_or_else(|| missing("the compaction filter's filter"))?,
            state,
        })
    }
}

impl CompactionFilter for ForeignFilter {
    fn name(&self) -> &str {
        &self.name
    }

    fn filter(&self, level: u32, key: &[u8], value: &[u8]) -> FilterDecision {
        const REMOVE: c_int = windrow_filter_decision::Remove as c_int;
        const CHANGE: c_int = windrow_filter_decision::Change as c_int;
        let mut output = windrow_output(None);
        let (key, value) = (windrow_slice::of(key), windrow_slice::of(value));
        match (self.filter)(self.state.state, level, key, value, &mut output) {
            REMOVE => FilterDecision::Remove,
            CHANGE => output.0.map_or(FilterDecision::Keep, FilterDecision::Change),
            _ => FilterDecision::Keep,
        }
    }
}

/// A listener, which receives each event of the database as a sentence.
pub(crate) struct ForeignListener {
    pub(crate) state: State,
    pub(crate) on_event: extern "C" fn(state: *mut c_void, event: *const c_char),
}

impl EventListener for ForeignListener {
    fn on_event(&self, event: &Event) {
        (self.on_event)(self.state.state, c_string(event.to_string()).as_ptr());
    }
}

#[cold]
fn missing(what: &str) -> Error {
    Error::invalid(format!("{what} is NULL"))
}
