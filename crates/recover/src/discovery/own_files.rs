//! Checks of the files that a manifest names: that they are there, and are this database's own.
//!
//! Owns: that judgement. Never does: read a record.

use crate::log::log_source::LogSource;
use std::cmp::Ordering;
use std::path::Path;
use windrow_base::{Error, ErrorKind, FileNumber, FileUid, Result};
use windrow_env::Env;
use windrow_env::fs::ReadFileOptions;
use windrow_format::log::{FileHeader, Length, LogKind, LogReader};
use windrow_format::names;
use windrow_store::host::listing::Listing;
use windrow_store::manifest::folded_manifest::FoldedManifest;
use windrow_store::manifest::state::ManifestState;

/// Checks that each file that the manifest names is there and not shorter than it was, and that the
/// manifest is as long as the logs remember it (rules R4, R11).
pub(crate) fn check_files(
    env: &Env,
    dir: &Path,
    listing: &Listing,
    state: &ManifestState,
    manifest: &FoldedManifest,
) -> Result<()> {
    let bad = |name: String, what: String| {
        Err(Error::corruption(what).with_file(dir.join(name).display().to_string()))
    };
    for keyspace in state.keyspaces.values() {
        for (_, _, file) in keyspace.version.files() {
            let name = names::table(file.number);
            if !listing.tables.contains(&file.number) {
                return bad(name, "a table that the manifest names is missing".into());
            }
            let bytes = env.fs.len(&dir.join(&name))?;
            if bytes != file.bytes {
                let what = format!("the table is {bytes} bytes long, not {}", file.bytes);
                return bad(name, what);
            }
        }
    }
    if let Some((wal, bytes)) = state.clean_close {
        let name = names::wal(wal);
        if !listing.wals.contains(&wal) {
            return bad(name, "the log that a clean close left is missing".into());
        }
        let found = env.fs.len(&dir.join(&name))?;
        if found != bytes {
            return bad(name, format!("a clean close left {bytes} bytes here, not {found}"));
        }
    }
    for (&number, wal) in &state.wals {
        let name = names::wal(number);
        if !listing.wals.contains(&number) {
            return bad(name, "a log that the manifest names is missing".into());
        }
        let bytes = env.fs.len(&dir.join(&name))?;
        if bytes < wal.bytes {
            return bad(
                name,
                format!("the log is {bytes} bytes long, and was made with {}", wal.bytes),
            );
        }
    }
    for &wal in listing.wals.range(state.log_number..) {
        if let Some(header) = wal_header(env, dir, wal, state, Some(manifest))? {
            let (number, bytes) = (header.manifest_number, header.manifest_durable_bytes);
            manifest.check(dir, Length { number, bytes }, wal)?;
        }
    }
    Ok(())
}

/// The header of a log; `None` where the log was never known to be complete.
pub(crate) fn wal_header(
    env: &Env,
    dir: &Path,
    number: FileNumber,
    state: &ManifestState,
    manifest: Option<&FoldedManifest>,
) -> Result<Option<FileHeader>> {
    let known = state.wals.get(&number);
    match LogSource::of(dir, number, known).open(&*env.fs) {
        Ok(reader) => {
            let header = reader.header().clone();
            let is_own = known.is_some() || is_own(env, dir, &header, manifest)?;
            Ok(is_own.then_some(header))
        }
        // Its header was never synced, so no record can be in it. The bytes are torn, or an older
        // log left them on the same sectors.
        Err(e) if known.is_none() && e.kind() == ErrorKind::Corruption => Ok(None),
        Err(e) => Err(e),
    }
}

/// Whether a log that the manifest does not name is this database's, and current. Where a new log
/// of this number was never synced, another database's log may be on the same sectors, complete.
/// The log is this database's if the manifest that its header names is in force or, since CURRENT
/// may be an older one, exists.
pub(crate) fn is_own(
    env: &Env,
    dir: &Path,
    header: &FileHeader,
    manifest: Option<&FoldedManifest>,
) -> Result<bool> {
    let Some(manifest) = manifest else { return Ok(true) };
    match header.manifest_number.cmp(&manifest.valid.number) {
        Ordering::Equal => Ok(header.manifest_uid == manifest.uid),
        Ordering::Greater => {
            Ok(manifest_uid(env, dir, header.manifest_number)? == Some(header.manifest_uid))
        }
        // That manifest is removed: there is nothing to compare with.
        Ordering::Less => Ok(true),
    }
}

/// The uid of a manifest; `None` where none can be read.
fn manifest_uid(env: &Env, dir: &Path, number: FileNumber) -> Result<Option<FileUid>> {
    let opened = env
        .fs
        .open(&dir.join(names::manifest(number)), ReadFileOptions::default())
        .and_then(|file| LogReader::open(file, LogKind::Manifest, None));
    match opened {
        Ok(reader) => Ok(Some(reader.header().uid)),
        Err(e) if e.is_corruption() || windrow_env::fs::is_not_found(&e) => Ok(None),
        Err(e) => Err(e),
    }
}
