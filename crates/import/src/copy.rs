//! Copies a source into keyspaces, and compares the copies with it.
//!
//! Owns: the rule that a keyspace appears whole or not at all, and the comparison. Never does: print.

use crate::source::Source;
use windrow::{Db, Error, Keyspace, ReadOptions, Result};

/// The two passes over a column family.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Step {
    /// Its pairs are read and written to tables.
    Copying,
    /// The source and the copy are read and compared.
    Verifying,
}

/// A keyspace that was copied.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Copied {
    /// Its name.
    pub keyspace: String,
    /// Pairs in it.
    pub pairs: u64,
    /// The keyspace held these pairs already.
    pub was_there: bool,
}

/// The number of pairs between two calls of `progress`.
pub(crate) const TOLD_PAIRS: u64 = 4096;

/// Copies every column family to the keyspace of its name, and compares the two. Calls `progress` every few thousand
/// pairs with the pass and the number of pairs that it has handled; an error of `progress` ends the import.
///
/// # Errors
/// `InvalidArgument` where a keyspace has other pairs already, or a name cannot be a keyspace's; errors of the source,
/// of writing, and of `progress`. Keyspaces that were finished before stay. The one that failed is empty if the
/// copy failed, and whole if the comparison did: the next import compares it again.
pub fn import(
    source: &Source,
    db: &Db,
    progress: &mut dyn FnMut(Step, u64) -> Result<()>,
) -> Result<Vec<Copied>> {
    source.names().iter().try_for_each(|name| Keyspace::check_name(name))?;
    let copy = |name: &&str| -> Result<Copied> {
        let keyspace = db.keyspace(name)?;
        let was_there = !keyspace.is_empty()?;
        if !was_there {
            copy(source, name, &keyspace, progress)?;
        }
        let pairs =
            compare(source, name, &keyspace, progress).map_err(|error| match was_there {
                true => error.context(format!(
                    "keyspace {name} is not empty, and not what is imported: choose a new database"
                )),
                false => error,
            })?;
        Ok(Copied { keyspace: (*name).to_owned(), pairs, was_there })
    };
    let names = source.names();
    let mut copy = copy;
    names.iter().map(&mut copy).collect()
}

fn copy(
    source: &Source,
    name: &str,
    keyspace: &Keyspace,
    progress: &mut dyn FnMut(Step, u64) -> Result<()>,
) -> Result<()> {
    let (mut ingest, mut pairs) = (keyspace.ingest()?, 0_u64);
    source.each(name, |key, value| {
        pairs += 1;
        if pairs.is_multiple_of(TOLD_PAIRS) {
            progress(Step::Copying, pairs)?;
        }
        ingest.put(key, value)
    })?;
    if pairs > 0 {
        ingest.finish()?;
    }
    Ok(())
}

/// Reads the source and the copy, and returns the number of pairs.
fn compare(
    source: &Source,
    name: &str,
    keyspace: &Keyspace,
    progress: &mut dyn FnMut(Step, u64) -> Result<()>,
) -> Result<u64> {
    let mut ours = keyspace.iter_with(ReadOptions { fill_cache: false, ..ReadOptions::default() });
    let mut pairs = 0_u64;
    let differs = |key: &[u8]| {
        Error::corruption(format!(
            "the copy of {name} differs from the key \"{}\" on",
            key.escape_ascii()
        ))
    };
    source.each(name, |key, value| {
        pairs += 1;
        if pairs.is_multiple_of(TOLD_PAIRS) {
            progress(Step::Verifying, pairs)?;
        }
        match ours.next().transpose()? {
            Some((our_key, our_value)) if *our_key == *key && *our_value == *value => Ok(()),
            _ => Err(differs(key)),
        }
    })?;
    match ours.next().transpose()? {
        Some((key, _)) => Err(differs(&key)),
        None => Ok(pairs),
    }
}
