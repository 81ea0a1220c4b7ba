//! Options of a database.
//!
//! Owns: the handle. Never does: know the name of a setting; the engine does.

use crate::bytes::{optional_text_in, text_in};
use crate::callbacks::{
    ForeignComparator, ForeignFilter, ForeignListener, ForeignMergeOperator, State,
    windrow_compaction_filter, windrow_comparator, windrow_merge_operator,
};
use crate::edge::{caught, done, given};
use crate::error::windrow_error;
use engine::settings::KeyspaceSettings;
use engine::{KeyspaceOptions, Options};
use std::ffi::{c_char, c_void};
use std::sync::Arc;
use std::time::Duration;

/// How a database is opened. Used by one thread at a time.
#[derive(Default)]
pub struct windrow_options {
    pub(crate) options: Options,
}

/// Makes options with the defaults: a database that is created if it does not exist, with 256 MiB of memory.
#[unsafe(no_mangle)]
pub extern "C" fn windrow_options_new() -> Box<windrow_options> {
    Box::default()
}

/// Frees options. Databases that were opened with them do not need them.
#[unsafe(no_mangle)]
pub extern "C" fn windrow_options_free(options: Option<Box<windrow_options>>) {
    drop(options);
}

/// Sets an option of docs/options.md by its name: `memory_bytes` to `64MiB`, `preset` to `leveled`.
#[unsafe(no_mangle)]
pub extern "C" fn windrow_options_set(
    options: Option<&mut windrow_options>,
    name: *const c_char,
    value: *const c_char,
    error: *mut *mut windrow_error,
) -> bool {
    done(error, || {
        let (name, value) = (text_in(name, "the name")?, text_in(value, "the value")?);
        given(options, "options")?.options.settings.set(name, value)
    })
}

/// Whether a database that does not exist is created. If not, that is an error. (Default: yes.)
#[unsafe(no_mangle)]
pub extern "C" fn windrow_options_create_if_missing(
    options: Option<&mut windrow_options>,
    yes: bool,
) {
    if let Some(options) = options {
        options.options.create_if_missing = yes;
    }
}

/// Whether a database that exists is refused. (Default: no.)
#[unsafe(no_mangle)]
pub extern "C" fn windrow_options_error_if_exists(
    options: Option<&mut windrow_options>,
    yes: bool,
) {
    if let Some(options) = options {
        options.options.error_if_exists = yes;
    }
}

/// Whether the database is opened for reading only. (Default: no.)
#[unsafe(no_mangle)]
pub extern "C" fn windrow_options_read_only(options: Option<&mut windrow_options>, yes: bool) {
    if let Some(options) = options {
        options.options.read_only = yes;
    }
}

/// Sets the options of the default keyspace; NULL: the defaults.
#[unsafe(no_mangle)]
pub extern "C" fn windrow_options_default_keyspace(
    options: Option<&mut windrow_options>,
    of: Option<&windrow_keyspace_options>,
    error: *mut *mut windrow_error,
) -> bool {
    done(error, || {
        given(options, "options")?.options.default_keyspace = keyspace_options(of)?;
        Ok(())
    })
}

/// Registers an order of keys. The struct is copied; its `state` is destroyed when no options and no database need it
/// any more, also if this call fails.
#[unsafe(no_mangle)]
pub extern "C" fn windrow_options_add_comparator(
    options: Option<&mut windrow_options>,
    comparator: Option<&windrow_comparator>,
    error: *mut *mut windrow_error,
) -> bool {
    done(error, || {
        let comparator = Arc::new(ForeignComparator::new(given(comparator, "comparator")?)?);
        given(options, "options")?.options.components.comparators.push(comparator);
        Ok(())
    })
}

/// Registers a merge operator, as windrow_options_add_comparator does an order.
#[unsafe(no_mangle)]
pub extern "C" fn windrow_options_add_merge_operator(
    options: Option<&mut windrow_options>,
    merge_operator: Option<&windrow_merge_operator>,
    error: *mut *mut windrow_error,
) -> bool {
    done(error, || {
        let operator =
            Arc::new(ForeignMergeOperator::new(given(merge_operator, "merge operator")?)?);
        given(options, "options")?.options.components.merge_operators.push(operator);
        Ok(())
    })
}

/// Gives the keyspace of that name a compaction filter.
#[unsafe(no_mangle)]
pub extern "C" fn windrow_options_add_compaction_filter(
    options: Option<&mut windrow_options>,
    keyspace: *const c_char,
    filter: Option<&windrow_compaction_filter>,
    error: *mut *mut windrow_error,
) -> bool {
    done(error, || {
        let filter = Arc::new(ForeignFilter::new(given(filter, "compaction filter")?)?);
        let keyspace = text_in(keyspace, "the keyspace's name")?.to_owned();
        let filters = &mut given(options, "options")?.options.components.compaction_filters;
        filters.push((keyspace, filter));
        Ok(())
    })
}

/// Sets the listener: `on_event` is called with each event of the database, as a sentence that is valid during the
/// call. It is called from any thread, several at once, and must neither wait for the database nor write to it.
/// `destroy` may be NULL.
#[unsafe(no_mangle)]
pub extern "C" fn windrow_options_set_listener(
    options: Option<&mut windrow_options>,
    state: *mut c_void,
    on_event: Option<extern "C" fn(state: *mut c_void, event: *const c_char)>,
    destroy: Option<extern "C" fn(state: *mut c_void)>,
    error: *mut *mut windrow_error,
) -> bool {
    caught(error, || {
        let state = State { state, destroy };
        let on_event = given(on_event, "listener's function")?;
        let listener = Arc::new(ForeignListener { state, on_event });
        given(options, "options")?.options.components.listener = Some(listener);
        Ok(())
    })
    .is_some()
}

/// How a keyspace is created or opened. NULL and 0 mean the stored option, or the default for a new keyspace. For an
/// existing keyspace, order and operator must be those that it was created with; the other options are stored with it
/// from now on.
#[repr(C)]
pub struct windrow_keyspace_options {
    /// The name of a registered order; NULL: by bytes.
    pub comparator: *const c_char,
    /// The name of a registered merge operator, or `add` (8 bytes, little-endian), `append`, `max`; NULL: none.
    pub merge_operator: *const c_char,
    /// The keyspace's own merge policy, as the option `preset`; NULL: the database's.
    pub policy: *const c_char,
    /// The keyspace's own codecs, as the option `compression`; NULL: the database's.
    pub compression: *const c_char,
    /// The number of milliseconds after which a value expires, unless its put says otherwise; 0: never.
    pub ttl_ms: u64,
}

/// Converts the caller's options to the engine's.
pub(crate) fn keyspace_options(
    of: Option<&windrow_keyspace_options>,
) -> engine::Result<KeyspaceOptions> {
    let Some(of) = of else { return Ok(KeyspaceOptions::default()) };
    Ok(KeyspaceOptions {
        comparator: optional_text_in(of.comparator, "the comparator's name")?,
        merge_operator: optional_text_in(of.merge_operator, "the merge operator's name")?,
        settings: KeyspaceSettings {
            policy: optional_text_in(of.policy, "the policy")?,
            compression: optional_text_in(of.compression, "the compression")?,
            ttl: (of.ttl_ms > 0).then(|| Duration::from_millis(of.ttl_ms)),
        },
    })
}
