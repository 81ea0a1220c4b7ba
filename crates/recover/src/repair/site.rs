//! The site of a repair: a directory, its files, and the options of the repair.
//!
//! Owns: these, as they were when the repair began. Never does: change, or judge, more than one
//! file at a time.

use crate::discovery::traces;
use std::path::{Path, PathBuf};
use windrow_base::{Error, FileNumber, Result};
use windrow_env::Env;
use windrow_env::fs::ReadFileOptions;
use windrow_format::names;
use windrow_format::table::{self, Expect};
use windrow_plan::tree::File;
use windrow_read::options::Options;
use windrow_store::host::listing::Listing;
use windrow_store::tree::Tree;

/// The directory that is repaired.
pub(super) struct Site<'a> {
    pub(super) env: Env,
    pub(super) dir: &'a Path,
    pub(super) options: &'a Options,
    /// Without the files that a repair which was cut short had written.
    pub(super) listing: Listing,
    /// The largest number of a file, including the files of such a repair.
    pub(super) number_max: FileNumber,
    /// Whether there was such a repair: its trace is there.
    pub(super) is_begun: bool,
}

impl<'a> Site<'a> {
    /// Reads the directory, and removes the files that a repair which was cut short has written.
    ///
    /// # Errors
    /// The error of the file system.
    pub(super) fn new(env: Env, dir: &'a Path, options: &'a Options) -> Result<Site<'a>> {
        let mut listing = Listing::read(&env, dir)?;
        let number_max = listing.number_max();
        let is_begun = traces::forget(&env, dir, &mut listing)?.is_some();
        Ok(Site { env, dir, options, listing, number_max, is_begun })
    }

    pub(super) fn table_path(&self, number: FileNumber) -> PathBuf {
        self.dir.join(names::table(number))
    }

    pub(super) fn wal_path(&self, number: FileNumber) -> PathBuf {
        self.dir.join(names::wal(number))
    }

    /// Returns the damage of a table, if there is any.
    ///
    /// # Errors
    /// The error of opening the table: it may be whole.
    pub(super) fn check(&self, tree: &Tree, file: &File) -> Result<Option<Error>> {
        let raw = self.env.fs.open(&self.table_path(file.number), ReadFileOptions::default())?;
        let expect =
            Expect { file_bytes: file.bytes, uid: file.uid, order: tree.reads.order.clone() };
        Ok(table::verify(&raw, expect).err())
    }
}
