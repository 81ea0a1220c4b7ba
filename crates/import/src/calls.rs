//! The C interfaces of LevelDB and RocksDB, which differ only in names and column families.
//!
//! Owns: the libraries' names and the types of their functions. Never does: call any for itself.

#![allow(unsafe_code, reason = "functions of another language's library")]

use libloading::{Library, Symbol};
use std::ffi::{CStr, c_char, c_int, c_uchar, c_void};
use windrow::{Error, ErrorKind, Result};

/// The store that a database belongs to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// A database of LevelDB.
    LevelDb,
    /// A database of RocksDB.
    RocksDb,
}

impl Kind {
    fn prefix(self) -> &'static str {
        match self {
            Kind::LevelDb => "leveldb",
            Kind::RocksDb => "rocksdb",
        }
    }

    /// The store's name, for messages.
    fn name(self) -> &'static str {
        match self {
            Kind::LevelDb => "LevelDB",
            Kind::RocksDb => "RocksDB",
        }
    }

    /// The library's file names, newest first, and Debian's package of it.
    fn names(self) -> (&'static [&'static str], &'static str) {
        match self {
            Kind::LevelDb => {
                (&["libleveldb.so.1d", "libleveldb.so.1", "libleveldb.so"], "libleveldb1d")
            }
            Kind::RocksDb => {
                const NAMES: &[&str] = &[
                    "librocksdb.so",
                    "librocksdb.so.10",
                    "librocksdb.so.9",
                    "librocksdb.so.8",
                    "librocksdb.so.7.8",
                    "librocksdb.so.7",
                    "librocksdb.so.6",
                ];
                (NAMES, "librocksdb7.8")
            }
        }
    }
}

pub(crate) type Handle = *mut c_void;
type Make = unsafe extern "C" fn() -> Handle;
type Act = unsafe extern "C" fn(Handle);
type Flag = unsafe extern "C" fn(Handle, c_uchar);

/// The functions of one library that this crate calls. They stay valid as long as the library is loaded.
pub(crate) struct Calls {
    pub(crate) options_create: Make,
    pub(crate) options_destroy: Act,
    pub(crate) create_if_missing: Flag,
    pub(crate) error_if_exists: Flag,
    pub(crate) read_options_create: Make,
    pub(crate) read_options_destroy: Act,
    pub(crate) fill_cache: Flag,
    pub(crate) write_options_create: Make,
    pub(crate) write_options_destroy: Act,
    pub(crate) open: unsafe extern "C" fn(Handle, *const c_char, *mut *mut c_char) -> Handle,
    pub(crate) close: Act,
    pub(crate) free: Act,
    pub(crate) iterator: unsafe extern "C" fn(Handle, Handle) -> Handle,
    pub(crate) iter_destroy: Act,
    pub(crate) iter_first: Act,
    pub(crate) iter_next: Act,
    pub(crate) iter_valid: unsafe extern "C" fn(Handle) -> c_uchar,
    pub(crate) iter_key: unsafe extern "C" fn(Handle, *mut usize) -> *const c_char,
    pub(crate) iter_value: unsafe extern "C" fn(Handle, *mut usize) -> *const c_char,
    pub(crate) iter_error: unsafe extern "C" fn(Handle, *mut *mut c_char),
    pub(crate) batch_create: Make,
    pub(crate) batch_destroy: Act,
    pub(crate) batch_clear: Act,
    pub(crate) batch_put: unsafe extern "C" fn(Handle, *const c_char, usize, *const c_char, usize),
    pub(crate) write: unsafe extern "C" fn(Handle, Handle, Handle, *mut *mut c_char),
    /// Functions that only RocksDB has.
    pub(crate) families: Option<Families>,
    _library: Library,
}

/// The functions about column families.
pub(crate) struct Families {
    pub(crate) list: unsafe extern "C" fn(
        Handle,
        *const c_char,
        *mut usize,
        *mut *mut c_char,
    ) -> *mut *mut c_char,
    pub(crate) list_destroy: unsafe extern "C" fn(*mut *mut c_char, usize),
    pub(crate) open: unsafe extern "C" fn(
        Handle,
        *const c_char,
        c_int,
        *const *const c_char,
        *const Handle,
        *mut Handle,
        c_uchar,
        *mut *mut c_char,
    ) -> Handle,
    pub(crate) iterator: unsafe extern "C" fn(Handle, Handle, Handle) -> Handle,
    pub(crate) handle_destroy: Act,
}

impl Calls {
    /// Loads the library.
    pub(crate) fn load(kind: Kind) -> Result<Calls> {
        let (names, package) = kind.names();
        let library = names.iter().find_map(|name| {
            // SAFETY: the libraries' initialisers are those of C++: they may run at any time.
            unsafe { Library::new(*name) }.ok()
        });
        let library = library.ok_or_else(|| {
            Error::not_supported(format!(
                "the library of {} is not on this machine ({}): install it (Debian: {package})",
                kind.name(),
                names.join(", ")
            ))
        })?;
        let find = Finder { library: &library, prefix: kind.prefix() };
        Ok(Calls {
            options_create: find.call("options_create")?,
            options_destroy: find.call("options_destroy")?,
            create_if_missing: find.call("options_set_create_if_missing")?,
            error_if_exists: find.call("options_set_error_if_exists")?,
            read_options_create: find.call("readoptions_create")?,
            read_options_destroy: find.call("readoptions_destroy")?,
            fill_cache: find.call("readoptions_set_fill_cache")?,
            write_options_create: find.call("writeoptions_create")?,
            write_options_destroy: find.call("writeoptions_destroy")?,
            open: find.call("open")?,
            close: find.call("close")?,
            free: find.call("free")?,
            iterator: find.call("create_iterator")?,
            iter_destroy: find.call("iter_destroy")?,
            iter_first: find.call("iter_seek_to_first")?,
            iter_next: find.call("iter_next")?,
            iter_valid: find.call("iter_valid")?,
            iter_key: find.call("iter_key")?,
            iter_value: find.call("iter_value")?,
            iter_error: find.call("iter_get_error")?,
            batch_create: find.call("writebatch_create")?,
            batch_destroy: find.call("writebatch_destroy")?,
            batch_clear: find.call("writebatch_clear")?,
            batch_put: find.call("writebatch_put")?,
            write: find.call("write")?,
            families: match kind {
                Kind::LevelDb => None,
                Kind::RocksDb => Some(Families {
                    list: find.call("list_column_families")?,
                    list_destroy: find.call("list_column_families_destroy")?,
                    open: find.call("open_for_read_only_column_families")?,
                    iterator: find.call("create_iterator_cf")?,
                    handle_destroy: find.call("column_family_handle_destroy")?,
                }),
            },
            _library: library,
        })
    }

    /// Calls a function that reports an error through a pointer, and turns that error into one of Windrow.
    pub(crate) fn checked<T>(
        &self,
        doing: &str,
        call: impl FnOnce(*mut *mut c_char) -> T,
    ) -> Result<T> {
        let mut error = std::ptr::null_mut();
        let result = call(&mut error);
        if error.is_null() {
            return Ok(result);
        }
        // SAFETY: the library gives a text that ends with a zero byte, to be freed by its `free`.
        let text = unsafe { CStr::from_ptr(error) }.to_string_lossy().into_owned();
        // SAFETY: as above, and no reference to the text is left.
        unsafe { (self.free)(error.cast()) };
        Err(Error::new(ErrorKind::Io, format!("{doing}: {text}")))
    }
}

struct Finder<'a> {
    library: &'a Library,
    prefix: &'a str,
}

impl Finder<'_> {
    /// The function of this name, as one of type `F`.
    fn call<F: Copy>(&self, name: &str) -> Result<F> {
        let name = format!("{}_{name}", self.prefix);
        // SAFETY: the types above are those of the libraries' headers, which have not changed since 2013.
        let found: std::result::Result<Symbol<'_, F>, _> =
            unsafe { self.library.get(name.as_bytes()) };
        found.map(|symbol| *symbol).map_err(|error| {
            Error::not_supported(format!("the library on this machine has no {name}: {error}"))
        })
    }
}
