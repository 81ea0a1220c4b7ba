//! The caller's comparators and filter policies.
//!
//! Owns: the caller's state. Never does: call a filter policy; filters are Windrow's.

use crate::callbacks::State;
use engine::Comparator;
use libc::{c_char, c_int, c_void};
use std::cmp::Ordering;
use std::ffi::CStr;
use std::sync::Arc;

type Compare = extern "C" fn(*mut c_void, *const c_char, usize, *const c_char, usize) -> c_int;
type Name = extern "C" fn(*mut c_void) -> *const c_char;
type Destructor = Option<extern "C" fn(*mut c_void)>;

/// An order of keys.
pub struct leveldb_comparator_t(pub(super) Arc<Order>);

pub(super) struct Order {
    state: State,
    compare: Compare,
    name: String,
}

impl Comparator for Order {
    fn id(&self) -> &str {
        &self.name
    }

    fn compare(&self, a: &[u8], b: &[u8]) -> Ordering {
        let (first, second) = (a.as_ptr().cast(), b.as_ptr().cast());
        (self.compare)(self.state.state, first, a.len(), second, b.len()).cmp(&0)
    }

    fn equality_is_bytewise(&self) -> bool {
        // LevelDB's interface does not tell.
        false
    }
}

/// Makes an order of the caller's functions. NULL if one is missing.
#[unsafe(no_mangle)]
pub extern "C" fn leveldb_comparator_create(
    state: *mut c_void,
    destructor: Destructor,
    compare: Option<Compare>,
    name: Option<Name>,
) -> Option<Box<leveldb_comparator_t>> {
    let (compare, name) = (compare?, name?);
    let text = name(state);
    if text.is_null() {
        return None;
    }
    // SAFETY: the function gives a text that ends with a zero byte.
    let name = unsafe { CStr::from_ptr(text) }.to_string_lossy().into_owned();
    let state = State { state, destroy: destructor };
    Some(Box::new(leveldb_comparator_t(Arc::new(Order { state, compare, name }))))
}

/// Frees an order. Databases that are open with it keep its state until they are closed.
#[unsafe(no_mangle)]
pub extern "C" fn leveldb_comparator_destroy(comparator: Option<Box<leveldb_comparator_t>>) {
    drop(comparator);
}

/// A filter policy, which is kept and never called.
pub struct leveldb_filterpolicy_t {
    _state: Option<State>,
}

type CreateFilter = extern "C" fn(
    *mut c_void,
    *const *const c_char,
    *const usize,
    c_int,
    *mut usize,
) -> *mut c_char;
type KeyMayMatch = extern "C" fn(*mut c_void, *const c_char, usize, *const c_char, usize) -> u8;

/// Makes a filter policy of the caller's functions.
#[unsafe(no_mangle)]
pub extern "C" fn leveldb_filterpolicy_create(
    state: *mut c_void,
    destructor: Destructor,
    _create_filter: Option<CreateFilter>,
    _key_may_match: Option<KeyMayMatch>,
    _name: Option<Name>,
) -> Box<leveldb_filterpolicy_t> {
    Box::new(leveldb_filterpolicy_t { _state: Some(State { state, destroy: destructor }) })
}

/// Makes a policy of Bloom filters. Tables have filters with or without it.
#[unsafe(no_mangle)]
pub extern "C" fn leveldb_filterpolicy_create_bloom(
    _bits_per_key: c_int,
) -> Box<leveldb_filterpolicy_t> {
    Box::new(leveldb_filterpolicy_t { _state: None })
}

/// Frees a policy.
#[unsafe(no_mangle)]
pub extern "C" fn leveldb_filterpolicy_destroy(policy: Option<Box<leveldb_filterpolicy_t>>) {
    drop(policy);
}
