//! A database of another store, open for reading.
//!
//! Owns: the handles of the database. Never does: write a pair.

#![allow(unsafe_code, reason = "functions of another language's library")]

use crate::calls::{Calls, Handle, Kind};
use crate::place::check_source;
use std::ffi::{CStr, CString, c_char, c_int};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use windrow::{Error, Result};

/// A database of LevelDB or RocksDB. LevelDB takes the database's lock, and writes the records of the log to a table;
/// RocksDB opens for reading only.
pub struct Source {
    calls: Calls,
    options: Handle,
    db: Handle,
    /// The names and handles of the column families. A database of LevelDB has one, without a handle.
    families: Vec<(String, Handle)>,
}

impl Source {
    /// Opens the database in a directory.
    ///
    /// # Errors
    /// `InvalidArgument` for a directory that is not such a database (it is not touched); `NotSupported` if the library
    /// is not on this machine; `Io` with the library's words, above all where the database is open or has an order of
    /// keys that the library does not know.
    pub fn open(kind: Kind, dir: &Path) -> Result<Source> {
        check_source(kind, dir)?;
        let calls = Calls::load(kind)?;
        let path = CString::new(dir.as_os_str().as_bytes())
            .map_err(|_| Error::invalid("the directory's path has a zero byte"))?;
        // SAFETY: a function without arguments.
        let options = unsafe { (calls.options_create)() };
        let mut source = Source { calls, options, db: std::ptr::null_mut(), families: Vec::new() };
        let doing = format!("open {}", dir.display());
        match source.calls.families.is_some() {
            true => source.open_families(&path, &doing)?,
            false => {
                // SAFETY: options of this library, and a text that ends with a zero byte.
                let open = |error| unsafe { (source.calls.open)(options, path.as_ptr(), error) };
                source.db = source.calls.checked(&doing, open)?;
                source.families.push(("default".to_owned(), std::ptr::null_mut()));
            }
        }
        Ok(source)
    }

    fn open_families(&mut self, path: &CStr, doing: &str) -> Result<()> {
        let Some(families) = &self.calls.families else { return Ok(()) };
        let mut count = 0;
        // SAFETY: as in `open`; the library sets the count.
        let list =
            |error| unsafe { (families.list)(self.options, path.as_ptr(), &mut count, error) };
        let names = self.calls.checked(doing, list)?;
        let texts: Vec<CString> = (0..count)
            // SAFETY: `count` texts that end with a zero byte.
            .map(|at| unsafe { CStr::from_ptr(*names.add(at)) }.to_owned())
            .collect();
        // SAFETY: the list came from the library, and is not used after this.
        unsafe { (families.list_destroy)(names, count) };
        let pointers: Vec<*const c_char> = texts.iter().map(|text| text.as_ptr()).collect();
        let options = vec![self.options; count];
        let mut handles = vec![std::ptr::null_mut(); count];
        let count =
            c_int::try_from(count).map_err(|_| Error::invalid("too many column families"))?;
        // SAFETY: three arrays of this length, which the library reads or fills during the call.
        let open = |error| unsafe {
            (families.open)(
                self.options,
                path.as_ptr(),
                count,
                pointers.as_ptr(),
                options.as_ptr(),
                handles.as_mut_ptr(),
                0,
                error,
            )
        };
        self.db = self.calls.checked(doing, open)?;
        let names = texts.iter().map(|text| text.to_string_lossy().into_owned());
        self.families = names.zip(handles).collect();
        Ok(())
    }

    /// The names of the column families. A database of LevelDB has `default` alone.
    pub fn names(&self) -> Vec<&str> {
        self.families.iter().map(|(name, _)| name.as_str()).collect()
    }

    /// Passes the pairs of a column family in the order of their keys.
    ///
    /// # Errors
    /// Errors of the library (a damaged table, or operands of a merge operator that it does not know) and of `take`.
    pub fn each(&self, name: &str, mut take: impl FnMut(&[u8], &[u8]) -> Result<()>) -> Result<()> {
        let mut entries = self.entries(name)?;
        while let Some((key, value)) = entries.next()? {
            take(key, value)?;
        }
        Ok(())
    }

    /// The pairs of a column family, one at a time.
    pub(crate) fn entries(&self, name: &str) -> Result<Entries<'_>> {
        let (calls, known) = (&self.calls, self.families.iter().find(|(known, _)| known == name));
        let (_, family) =
            known.ok_or_else(|| Error::invalid(format!("there is no column family {name}")))?;
        // SAFETY: handles of this library; the iterator ends before the database.
        let (options, iterator) = unsafe {
            let options = (calls.read_options_create)();
            (calls.fill_cache)(options, 0);
            let iterator = match &calls.families {
                Some(families) => (families.iterator)(self.db, options, *family),
                None => (calls.iterator)(self.db, options),
            };
            (calls.iter_first)(iterator);
            (options, iterator)
        };
        Ok(Entries { source: self, options, iterator, is_first: true })
    }
}

impl Drop for Source {
    fn drop(&mut self) {
        // SAFETY: each is freed once, those that need the database before it.
        unsafe {
            if let Some(families) = &self.calls.families {
                self.families.iter().for_each(|(_, handle)| (families.handle_destroy)(*handle));
            }
            if !self.db.is_null() {
                (self.calls.close)(self.db);
            }
            (self.calls.options_destroy)(self.options);
        }
    }
}

/// An iterator of the library.
pub(crate) struct Entries<'a> {
    source: &'a Source,
    options: Handle,
    iterator: Handle,
    is_first: bool,
}

impl Entries<'_> {
    /// Returns the next pair. The bytes are valid until the next call.
    pub(crate) fn next(&mut self) -> Result<Option<(&[u8], &[u8])>> {
        let calls = &self.source.calls;
        if !std::mem::take(&mut self.is_first) {
            // SAFETY: it is at an entry: callers stop at the first `None`.
            unsafe { (calls.iter_next)(self.iterator) };
        }
        // SAFETY: an iterator of this library.
        if unsafe { (calls.iter_valid)(self.iterator) } == 0 {
            // SAFETY: as above.
            let status = |error| unsafe { (calls.iter_error)(self.iterator, error) };
            return calls.checked("read", status).map(|()| None);
        }
        let bytes = |of: unsafe extern "C" fn(Handle, *mut usize) -> *const c_char| -> &[u8] {
            let mut len = 0;
            // SAFETY: it is at an entry, whose bytes stay until the iterator is moved, which needs `&mut self`.
            unsafe {
                let first = of(self.iterator, &mut len);
                if len == 0 { &[] } else { std::slice::from_raw_parts(first.cast(), len) }
            }
        };
        Ok(Some((bytes(calls.iter_key), bytes(calls.iter_value))))
    }
}

impl Drop for Entries<'_> {
    fn drop(&mut self) {
        // SAFETY: each is freed once.
        unsafe {
            (self.source.calls.iter_destroy)(self.iterator);
            (self.source.calls.read_options_destroy)(self.options);
        }
    }
}
