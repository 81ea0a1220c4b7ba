//! The files that a repair replaces, kept in `lost/` as they were.
//!
//! They are linked into `lost/` before a manifest without them is in force, and their names in the
//! database's directory are removed after it. So whenever a repair dies, each of them is where the
//! manifest in force looks for it, and none is ever in neither place. (Rejected: to move them.
//! Between the move and the new manifest the old one misses them.) On a file system without links
//! they are moved once the new manifest is in force.
//!
//! Owns: the list of these files. Never does: overwrite a file in `lost/`.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use windrow_base::{ErrorKind, Result};
use windrow_env::Env;
use windrow_env::fs::ReadFileOptions;
use windrow_format::names::{self, FileKind};
use windrow_store::host::listing::Listing;

/// The directory in which damaged files are kept.
const LOST: &str = "lost";
/// Bytes compared at a time.
const COMPARE_BYTES: usize = 1 << 20;

/// The files that will be kept.
#[derive(Default)]
pub struct Originals {
    /// By name: their names in `lost/`.
    names: BTreeMap<String, String>,
    /// The files that could not be linked, and the path to move each to.
    to_move: Vec<(String, PathBuf)>,
    /// The paths of the files that were kept.
    pub kept: Vec<PathBuf>,
}

impl Originals {
    /// Adds a file of the database's directory.
    pub fn add(&mut self, name: String) {
        self.names.insert(name.clone(), name);
    }

    /// Adds a file that is kept under another name.
    pub(crate) fn add_as(&mut self, name: String, kept_as: String) {
        self.names.insert(name, kept_as);
    }

    /// Adds the files of another list.
    pub fn extend(&mut self, other: Originals) {
        self.names.extend(other.names);
        self.to_move.extend(other.to_move);
        self.kept.extend(other.kept);
    }

    /// The paths where the files that were linked are, or will be.
    pub fn places(&self) -> impl Iterator<Item = &PathBuf> {
        self.kept.iter().chain(self.to_move.iter().map(|(_, to)| to))
    }

    /// Links the files into `lost/`, durably.
    ///
    /// # Errors
    /// The error of the file system; nothing was removed.
    pub fn link(&mut self, env: &Env, dir: &Path) -> Result<()> {
        let lost = lost(dir);
        for (name, kept_as) in std::mem::take(&mut self.names) {
            let from = dir.join(&name);
            if !env.fs.exists(&from)? {
                continue;
            }
            env.fs.create_dir(&lost)?;
            let to = match place_for(env, &from, &lost, &kept_as)? {
                PlaceFor::Kept(there) => {
                    self.kept.push(there);
                    continue;
                }
                PlaceFor::Free(to) => to,
            };
            match env.fs.link(&from, &to) {
                Ok(()) => self.kept.push(to),
                Err(e) if e.kind() == ErrorKind::NotSupported => self.to_move.push((name, to)),
                Err(e) => return Err(e),
            }
        }
        if !self.kept.is_empty() {
            env.fs.sync_dir(&lost)?;
        }
        Ok(())
    }

    /// Takes the files that will be moved out of `listing`, so that none is removed before.
    pub fn spare(&self, listing: &mut Listing) {
        for (name, _) in &self.to_move {
            match names::parse(name) {
                Some((FileKind::Table, number)) => _ = listing.tables.remove(&number),
                Some((FileKind::Wal, number)) => _ = listing.wals.remove(&number),
                _ => {}
            }
        }
    }

    /// Moves the files that could not be linked. The manifest in force does without them.
    ///
    /// # Errors
    /// The error of the file system.
    pub fn finish(&mut self, env: &Env, dir: &Path) -> Result<()> {
        if self.to_move.is_empty() {
            return Ok(());
        }
        for (name, to) in self.to_move.drain(..) {
            env.fs.rename(&dir.join(name), &to)?;
            self.kept.push(to);
        }
        env.fs.sync_dir(&lost(dir))?;
        env.fs.sync_dir(dir)
    }
}

/// The path of a file that the manifest in force names and that is missing, as an earlier repair
/// that was cut short has kept it.
pub(crate) fn place_in_lost(dir: &Path, name: &str) -> PathBuf {
    lost(dir).join(name)
}

/// The directory in which damaged files are kept.
pub fn lost(dir: &Path) -> PathBuf {
    dir.join(LOST)
}

/// The place of a file in `lost/`.
enum PlaceFor {
    /// An earlier repair has kept the file here.
    Kept(PathBuf),
    /// The file may go here.
    Free(PathBuf),
}

/// Where in `lost/` a file is, or may go: under its own name, or a longer one
/// where an earlier repair has kept another file of that name.
fn place_for(env: &Env, from: &Path, lost: &Path, name: &str) -> Result<PlaceFor> {
    let mut place = lost.join(name);
    let mut copy = 1;
    while env.fs.exists(&place)? {
        let ids = (env.fs.stamp(from)?, env.fs.stamp(&place)?);
        let are_one = matches!(ids, (Some(a), Some(b)) if a.id == b.id);
        if are_one || are_alike(env, from, &place) {
            return Ok(PlaceFor::Kept(place));
        }
        copy += 1;
        place = lost.join(format!("{name}.{copy}"));
    }
    Ok(PlaceFor::Free(place))
}

/// Whether two files hold the same bytes, as far as they can be read.
fn are_alike(env: &Env, one: &Path, other: &Path) -> bool {
    let compare = || -> Result<bool> {
        let one = env.fs.open(one, ReadFileOptions::default())?;
        let other = env.fs.open(other, ReadFileOptions::default())?;
        if one.len() != other.len() {
            return Ok(false);
        }
        let (mut a, mut b) = (vec![0; COMPARE_BYTES], vec![0; COMPARE_BYTES]);
        let mut at = 0;
        while at < one.len() {
            let chunk = COMPARE_BYTES.min((one.len() - at) as usize);
            one.read_at(at, &mut a[..chunk])?;
            other.read_at(at, &mut b[..chunk])?;
            if a[..chunk] != b[..chunk] {
                return Ok(false);
            }
            at += chunk as u64;
        }
        Ok(true)
    };
    compare().unwrap_or(false)
}
