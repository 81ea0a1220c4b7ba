//! The files of a directory: its CURRENT, and the manifest that it names, folded.
//!
//! The submodules find the rest: the logs that the manifest needs (`own_files`), a manifest that is
//! appended to (`manifest_tail`), keyspaces that cannot be opened (`keyspaces_left_out`), the owner
//! of other files (`remains`), damaged files that are kept (`originals`), and the traces of a
//! repair that died (`traces`).
//!
//! Owns: finding these files, and their meaning. Never does: change a file, or look at tables and
//! logs.

pub mod keyspaces_left_out;
pub mod manifest_tail;
pub mod originals;
pub mod own_files;
pub mod remains;
pub mod traces;

use crate::discovery::keyspaces_left_out::LeftOut;
use std::path::Path;
use windrow_base::comparator::BYTEWISE_ID;
use windrow_base::{Error, ErrorKind, FileNumber, FileUid, KeyspaceId, Result, check_invariant};
use windrow_env::Env;
use windrow_env::fs::ReadFileOptions;
use windrow_format::current::Current;
use windrow_format::log::{Class, Length, LogKind, LogReader};
use windrow_format::names;
use windrow_read::options::{Components, KeyspaceOptions, Options};
use windrow_store::host::listing::Listing;
use windrow_store::manifest::folded_manifest::FoldedManifest;
use windrow_store::manifest::record::{DEFAULT_KEYSPACE, KeyspaceRecord, ManifestRecord};
use windrow_store::manifest::state::ManifestState;

/// Refuses a directory of a newer format before even the lock file is touched.
///
/// # Errors
/// `NotSupported`. Anything else that is wrong with CURRENT is judged later, under the lock.
pub fn refuse_newer(env: &Env, dir: &Path) -> Result<()> {
    if !env.fs.exists(&dir.join(names::CURRENT))? {
        return Ok(());
    }
    match read_current(env, dir) {
        Err(error) if error.kind() == ErrorKind::NotSupported => Err(error),
        _ => Ok(()),
    }
}

pub fn missing(dir: &Path) -> Error {
    Error::invalid(format!(
        "there is no database in {}: check the path, or open it for writing to create one",
        dir.display()
    ))
}

/// Rule R1: CURRENT is durable before any log or table. So logs or tables without it are the
/// remains of a database, and the directory is no new one.
pub(crate) fn check_no_remains(dir: &Path, listing: &Listing) -> Result<()> {
    if listing.tables.is_empty() && listing.wals.is_empty() {
        return Ok(());
    }
    Err(Error::corruption("CURRENT is missing, and there are logs or tables: try `repair`")
        .with_file(dir.join(names::CURRENT).display().to_string()))
}

/// The manifest that was found, folded.
pub struct FoundManifest {
    pub state: ManifestState,
    pub database_uid: u64,
    /// The manifest that it was folded from; `None` for a state that is compared with no file: a
    /// database that is made now, or repaired.
    pub manifest: Option<FoldedManifest>,
    /// Keyspaces that exist and are not in `state`.
    pub left_out: Vec<KeyspaceRecord>,
    /// CURRENT, where it was used.
    pub current: Option<Current>,
}

pub(crate) fn find_manifest(
    env: &Env,
    dir: &Path,
    listing: &Listing,
    options: &Options,
) -> Result<FoundManifest> {
    if listing.current {
        if options.error_if_exists {
            return Err(Error::invalid(format!(
                "a database exists in {}: open it without error_if_exists",
                dir.display()
            )));
        }
        return read_manifest(env, dir, &options.components, options.read_only);
    }
    check_no_remains(dir, listing)?;
    if !options.create_if_missing || options.read_only {
        return Err(missing(dir));
    }
    let record = new_keyspace(
        KeyspaceId::DEFAULT,
        DEFAULT_KEYSPACE,
        &options.default_keyspace,
        &options.components,
    )?;
    let (tables, logs) = (listing.tables.len(), listing.wals.len());
    let is_new = tables + logs == 0;
    check_invariant!(R1, is_new, "a new database with {tables} tables and {logs} logs of another");
    let mut state = ManifestState::default();
    let first = ManifestState::new_database(record, options.settings.to_text());
    state.apply(&first, &|id| options.components.key_order(id))?;
    let database_uid = env.random.next_u64();
    let (manifest, current, left_out) = (None, None, Vec::new());
    Ok(FoundManifest { state, database_uid, manifest, current, left_out })
}

/// The record of a keyspace that is made with `options`.
///
/// # Errors
/// `InvalidArgument` for a comparator or operator that is not there.
pub(crate) fn new_keyspace(
    id: KeyspaceId,
    name: &str,
    options: &KeyspaceOptions,
    components: &Components,
) -> Result<KeyspaceRecord> {
    let comparator = options.comparator.clone().unwrap_or_else(|| BYTEWISE_ID.to_owned());
    components.key_order(&comparator)?;
    if let Some(operator) = &options.merge_operator {
        components.merge_operator(operator)?;
    }
    let merge_operator = options.merge_operator.clone();
    Ok(KeyspaceRecord { id, name: name.into(), comparator, merge_operator })
}

/// Reads CURRENT, before anything is written, and folds the manifest it names.
fn read_manifest(
    env: &Env,
    dir: &Path,
    components: &Components,
    read_only: bool,
) -> Result<FoundManifest> {
    let current = read_current(env, dir)?;
    let mut state = ManifestState::default();
    let mut left_out = LeftOut::default();
    let order_of = |id: &str| components.key_order(id).map_err(keyspaces_left_out::needed);
    let (number, uid) = (current.manifest_number, Some(current.manifest_uid));
    let folded = fold_manifest(env, dir, number, uid, |record| match read_only {
        true => state.apply(&left_out.filter(record, components), &order_of),
        false => state.apply(record, &order_of),
    })?;
    let (database_uid, manifest) = (current.database_uid, Some(folded));
    let left_out = left_out.records();
    Ok(FoundManifest { state, database_uid, manifest, current: Some(current), left_out })
}

/// Reads CURRENT.
///
/// # Errors
/// `Corruption` naming it, `NotSupported` for a newer format.
pub fn read_current(env: &Env, dir: &Path) -> Result<Current> {
    let path = dir.join(names::CURRENT);
    let named = |e: Error| e.with_file(path.display().to_string());
    Current::decode(&env.fs.read_all(&path)?).map_err(named)
}

/// Passes each record of a manifest to `fold`. `uid`: its identity, where that is known.
///
/// # Errors
/// `Corruption` naming the file and the record's offset.
pub fn fold_manifest(
    env: &Env,
    dir: &Path,
    number: FileNumber,
    uid: Option<FileUid>,
    mut fold: impl FnMut(&ManifestRecord) -> Result<()>,
) -> Result<FoldedManifest> {
    let path = dir.join(names::manifest(number));
    let named = |e: Error| e.with_file(path.display().to_string());
    let file = match env.fs.open(&path, ReadFileOptions::default()) {
        Ok(file) => file,
        Err(e) if windrow_env::fs::is_not_found(&e) => {
            return Err(named(Error::corruption("CURRENT names a manifest that is missing")));
        }
        Err(e) => return Err(e),
    };
    let mut reader = LogReader::open(file, LogKind::Manifest, None)?;
    let header = reader.header().clone();
    if header.number != number || uid.is_some_and(|uid| header.uid != uid) {
        return Err(named(Error::corruption(
            "another manifest is in the place of the one that CURRENT names",
        )));
    }
    let mut records = 0;
    while let Some(record) = reader.next()? {
        let at = record.offset;
        let located = |e: Error| named(e.with_offset(at));
        if record.class != Class::Edit {
            return Err(located(Error::corruption("a record in the manifest is not an edit")));
        }
        ManifestRecord::decode(record.payload).and_then(|r| fold(&r)).map_err(located)?;
        records += 1;
    }
    if records == 0 {
        return Err(named(Error::corruption("the manifest holds no record")));
    }
    let valid = Length { number, bytes: reader.valid_bytes() };
    Ok(FoldedManifest { uid: header.uid, valid, torn_bytes: reader.torn().unwrap_or(0) })
}
