//! Followers: reading a database that another process has open.
//!
//! Owns: the handle. Never does: write to the database.

use crate::bytes::path_in;
use crate::database::windrow_db;
use crate::edge::{caught, done, given};
use crate::error::windrow_error;
use crate::options::windrow_options;
use engine::{Follower, Options};
use std::ffi::{c_char, c_int};
use std::time::Duration;

/// A database of another process, as of the last refresh. Any number of threads may use it at once.
pub struct windrow_follower(Follower);

/// Follows the database in a directory. `options` may be NULL.
#[unsafe(no_mangle)]
pub extern "C" fn windrow_follower_open(
    path: *const c_char,
    options: Option<&windrow_options>,
    error: *mut *mut windrow_error,
) -> Option<Box<windrow_follower>> {
    caught(error, || {
        let options = options.map_or_else(Options::default, |of| of.options.clone());
        Ok(Box::new(windrow_follower(Follower::open_with(path_in(path)?, options)?)))
    })
}

/// Frees a follower, and so releases all that it held.
#[unsafe(no_mangle)]
pub extern "C" fn windrow_follower_free(follower: Option<Box<windrow_follower>>) {
    drop(follower);
}

/// The database as of the last refresh, read-only. Later refreshes do not change it. To be freed by
/// windrow_free.
#[unsafe(no_mangle)]
pub extern "C" fn windrow_follower_db(
    follower: Option<&windrow_follower>,
) -> Option<Box<windrow_db>> {
    follower.map(|follower| Box::new(windrow_db(follower.0.db())))
}

/// Reads the writes since the last refresh. Returns 1 if there were any, 0 if not, -1 on an error.
#[unsafe(no_mangle)]
pub extern "C" fn windrow_follower_refresh(
    follower: Option<&windrow_follower>,
    error: *mut *mut windrow_error,
) -> c_int {
    caught(error, || given(follower, "follower")?.0.refresh()).map_or(-1, c_int::from)
}

/// Refreshes in the background every `interval_ms` milliseconds; 0 ends that.
#[unsafe(no_mangle)]
pub extern "C" fn windrow_follower_refresh_every(
    follower: Option<&windrow_follower>,
    interval_ms: u64,
) {
    if let Some(follower) = follower {
        follower.0.refresh_every(Duration::from_millis(interval_ms));
    }
}

/// Makes a copy of the database as of the last refresh in a directory that is empty or does not
/// exist.
#[unsafe(no_mangle)]
pub extern "C" fn windrow_follower_checkpoint(
    follower: Option<&windrow_follower>,
    path: *const c_char,
    error: *mut *mut windrow_error,
) -> bool {
    done(error, || given(follower, "follower")?.0.checkpoint(path_in(path)?))
}
