//! Exports a keyspace into a new database of LevelDB or RocksDB.
//!
//! Owns: the handles of the new database. Never does: write to a database that exists.

#![allow(unsafe_code, reason = "functions of another language's library")]

use crate::calls::{Calls, Handle, Kind};
use crate::copy::{Step, TOLD_PAIRS};
use crate::place::check_target;
use crate::source::Source;
use std::ffi::CString;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use windrow::{Error, Keyspace, ReadOptions, Result, Slice};

/// Bytes of keys and values at which a batch is written.
const BATCH_BYTES: usize = 1 << 20;

/// A new database of the library, open for writing.
struct Sink {
    calls: Calls,
    options: Handle,
    write_options: Handle,
    batch: Handle,
    db: Handle,
}

impl Sink {
    fn create(kind: Kind, dir: &Path) -> Result<Sink> {
        check_target(dir)?;
        let calls = Calls::load(kind)?;
        let path = CString::new(dir.as_os_str().as_bytes())
            .map_err(|_| Error::invalid("the directory's path has a zero byte"))?;
        // SAFETY: functions of this library on handles of this library.
        let (options, write_options, batch) = unsafe {
            let options = (calls.options_create)();
            (calls.create_if_missing)(options, 1);
            (calls.error_if_exists)(options, 1);
            (options, (calls.write_options_create)(), (calls.batch_create)())
        };
        let mut sink = Sink { calls, options, write_options, batch, db: std::ptr::null_mut() };
        // SAFETY: as above, and a text that ends with a zero byte.
        let open = |error| unsafe { (sink.calls.open)(options, path.as_ptr(), error) };
        sink.db = sink.calls.checked(&format!("create {}", dir.display()), open)?;
        Ok(sink)
    }

    fn add(&mut self, key: &[u8], value: &[u8]) {
        let (key_at, value_at) = (key.as_ptr().cast(), value.as_ptr().cast());
        // SAFETY: the library copies the bytes.
        unsafe { (self.calls.batch_put)(self.batch, key_at, key.len(), value_at, value.len()) };
    }

    fn write(&mut self) -> Result<()> {
        let (db, options, batch) = (self.db, self.write_options, self.batch);
        // SAFETY: handles of this library.
        let write = |error| unsafe { (self.calls.write)(db, options, batch, error) };
        self.calls.checked("write", write)?;
        // SAFETY: as above.
        unsafe { (self.calls.batch_clear)(self.batch) };
        Ok(())
    }
}

impl Drop for Sink {
    fn drop(&mut self) {
        // SAFETY: each is freed once.
        unsafe {
            if !self.db.is_null() {
                (self.calls.close)(self.db);
            }
            (self.calls.batch_destroy)(self.batch);
            (self.calls.write_options_destroy)(self.write_options);
            (self.calls.options_destroy)(self.options);
        }
    }
}

fn pairs_of(keyspace: &Keyspace) -> impl Iterator<Item = Result<(Slice, Slice)>> {
    keyspace.iter_with(ReadOptions { fill_cache: false, ..ReadOptions::default() })
}

/// Copies a keyspace, as it is now, to a new database in a directory, and compares the two. Returns the number of
/// pairs. Times of expiry are not copied. `progress` is called as by [`crate::import`].
///
/// # Errors
/// `NotSupported` for a keyspace of another order than the bytewise one, or without the library; `Io` with the
/// library's words; `InvalidArgument` for a directory that is not empty; errors of reading and of `progress`.
pub fn export(
    keyspace: &Keyspace,
    kind: Kind,
    dir: &Path,
    progress: &mut dyn FnMut(Step, u64) -> Result<()>,
) -> Result<u64> {
    let mut sink = Sink::create(kind, dir)?;
    let (mut pairs, mut bytes, mut last) = (0_u64, 0, Vec::new());
    for pair in pairs_of(keyspace) {
        let (key, value) = pair?;
        if pairs > 0 && *key <= *last {
            return Err(Error::not_supported(
                "the keyspace has an order of its own, which is left behind",
            ));
        }
        last.clear();
        last.extend_from_slice(&key);
        sink.add(&key, &value);
        bytes += key.len() + value.len();
        pairs += 1;
        if bytes >= BATCH_BYTES {
            sink.write()?;
            bytes = 0;
            progress(Step::Copying, pairs)?;
        }
    }
    sink.write()?;
    drop(sink);
    let source = Source::open(kind, dir)?;
    let (mut ours, mut read) = (pairs_of(keyspace), 0_u64);
    source.each("default", |key, value| {
        read += 1;
        if read.is_multiple_of(TOLD_PAIRS) {
            progress(Step::Verifying, read)?;
        }
        match ours.next().transpose()? {
            Some((our_key, our_value)) if *our_key == *key && *our_value == *value => Ok(()),
            _ => Err(Error::corruption(format!(
                "what was exported differs from the key \"{}\" on (was the keyspace written to meanwhile?)",
                key.escape_ascii()
            ))),
        }
    })?;
    if read == pairs {
        Ok(pairs)
    } else {
        Err(Error::corruption("what was exported is not all there is"))
    }
}
