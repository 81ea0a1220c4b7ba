//! Checks of a directory before a library opens it: LevelDB creates and renames files in any directory that it is asked
//! to open.
//!
//! Owns: the signs by which databases of LevelDB and RocksDB are told apart. Never does: change a directory.

#![allow(clippy::disallowed_methods, reason = "directories that are not a database of Windrow's")]

use crate::calls::Kind;
use std::fs;
use std::io::{self, Read};
use std::path::Path;
use windrow::{Error, ErrorKind, Result};

/// Beginnings of file names that RocksDB has and LevelDB does not.
const OF_ROCKSDB: [&str; 2] = ["IDENTITY", "OPTIONS-"];

/// Refuses a directory that does not hold a database of this kind.
pub(crate) fn check_source(kind: Kind, dir: &Path) -> Result<()> {
    let shown = dir.display();
    let mut head = Vec::new();
    let read = fs::File::open(dir.join("CURRENT"));
    match read.and_then(|file| file.take(9).read_to_end(&mut head)) {
        Ok(_) if head == b"MANIFEST-" => {}
        Ok(_) => {
            return Err(Error::invalid(format!(
                "{shown} is not a database of LevelDB or RocksDB: its file CURRENT is another program's"
            )));
        }
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            return Err(Error::invalid(format!(
                "{shown} is not a database of LevelDB or RocksDB: it has no file CURRENT"
            )));
        }
        Err(error) => return Err(refused(&format!("read {shown}/CURRENT"), error)),
    }
    let is_rocksdb =
        names(dir)?.iter().any(|name| OF_ROCKSDB.iter().any(|of| name.starts_with(of)));
    match kind == Kind::LevelDb && is_rocksdb {
        true => Err(Error::invalid(format!("{shown} is a database of RocksDB: say so"))),
        false => Ok(()),
    }
}

/// Refuses a directory that holds anything.
pub(crate) fn check_target(dir: &Path) -> Result<()> {
    match dir.try_exists() {
        Ok(false) => Ok(()),
        Ok(true) if names(dir)?.is_empty() => Ok(()),
        Ok(true) => {
            let shown = dir.display();
            Err(Error::invalid(format!(
                "{shown} is not empty: choose a directory that is, or is not there"
            )))
        }
        Err(error) => Err(refused(&format!("look for {}", dir.display()), error)),
    }
}

fn names(dir: &Path) -> Result<Vec<String>> {
    let read = fs::read_dir(dir).and_then(|entries| {
        entries.map(|entry| Ok(entry?.file_name().to_string_lossy().into_owned())).collect()
    });
    read.map_err(|error| refused(&format!("list {}", dir.display()), error))
}

fn refused(doing: &str, error: io::Error) -> Error {
    Error::new(ErrorKind::Io, format!("cannot {doing}: {error}")).with_source(error)
}
