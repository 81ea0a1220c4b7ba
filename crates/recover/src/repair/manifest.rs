//! The choice of the manifest that a repair uses.
//!
//! Owns: that judgement. Never does: make a state where there is no manifest to use
//! (`evidence.rs`), or look at tables.

use super::evidence::look_at;
use super::findings::Findings;
use super::identity::Identity;
use super::site::Site;
use crate::discovery::own_files::is_own;
use crate::discovery::{FoundManifest, fold_manifest, read_current};
use crate::log::log_source::is_log;
use windrow_base::{KeyspaceId, Result};
use windrow_env::fs::ReadFileOptions;
use windrow_format::log::{Class, Length, LogKind, LogReader, Mark};
use windrow_store::manifest::folded_manifest::FoldedManifest;
use windrow_store::manifest::record::ManifestRecord;
use windrow_store::manifest::state::ManifestState;

/// The state of the manifest in force: the one that CURRENT names, or, where CURRENT cannot be
/// read, the newest. `None` if it is damaged or shorter than the logs remember it. A manifest that
/// was cut short names files that are gone and misses others, and an older one even more so. The
/// tables then give the better answer.
pub(super) fn best(site: &Site<'_>, findings: &mut Findings) -> Result<Option<FoundManifest>> {
    let newest = site.listing.manifests.last().copied();
    let (number, uid, known_uid) = match read_current(&site.env, site.dir) {
        Ok(current) => {
            (Some(current.manifest_number), Some(current.manifest_uid), Some(current.database_uid))
        }
        Err(error) => {
            findings.problem(error);
            (newest, None, None)
        }
    };
    let Some(number) = number else { return Ok(None) };
    let mut state = ManifestState::default();
    let order_of = |id: &str| site.options.components.key_order(id);
    let fold = |record: &ManifestRecord| state.apply(record, &order_of);
    let folded = fold_manifest(&site.env, site.dir, number, uid, fold)
        .and_then(|folded| cross_check(site, &state, &folded));
    match folded {
        Ok(()) if state.keyspaces.contains_key(&KeyspaceId::DEFAULT) => {
            let (manifest, current, left_out) = (None, None, Vec::new());
            let database_uid = match known_uid {
                Some(uid) => uid,
                None => uid_of_tables(site, &state)?,
            };
            Ok(Some(FoundManifest { state, database_uid, manifest, current, left_out }))
        }
        Ok(()) => Ok(None),
        Err(error) if error.is_corruption() => {
            findings.problem(error);
            Ok(None)
        }
        // A manifest that cannot be read now may be whole. A state that is made again from the
        // tables would lose the names of keyspaces.
        Err(error) => Err(error),
    }
}

/// The database's uid where CURRENT is lost, from the tables that the manifest names: files written
/// from here on belong to the same database as they do.
///
/// # Errors
/// The error of opening a table.
fn uid_of_tables(site: &Site<'_>, state: &ManifestState) -> Result<u64> {
    let mut tables = Vec::new();
    for (_, _, file) in state.keyspaces.values().flat_map(|k| k.version.files()) {
        // A table that is missing is reported where the trees are repaired.
        if site.listing.tables.contains(&file.number) {
            tables.extend(look_at(site, file.number)?.map(|table| (file.number, table)));
        }
    }
    Ok(Identity::find(site, tables.iter().map(|(number, table)| (*number, table))).uid)
}

/// Checks the manifest against every log that can be read.
fn cross_check(site: &Site<'_>, state: &ManifestState, manifest: &FoldedManifest) -> Result<()> {
    for &number in &site.listing.wals {
        let path = site.wal_path(number);
        let file = site.env.fs.open(&path, ReadFileOptions::default())?;
        let Ok(mut reader) = LogReader::open(file, LogKind::Wal, None) else { continue };
        let header = reader.header();
        let known = state.wals.get(&number);
        if !is_log(header, number, known)
            || known.is_none() && !is_own(&site.env, site.dir, header, Some(manifest))?
        {
            continue;
        }
        let (seen, bytes) = (header.manifest_number, header.manifest_durable_bytes);
        manifest.check(site.dir, Length { number: seen, bytes }, number)?;
        while let Ok(Some(record)) = reader.next() {
            if record.class == Class::Mark {
                let mark = Mark::decode(record.payload);
                mark.and_then(|mark| manifest.check(site.dir, mark.manifest, number))?;
            }
        }
    }
    Ok(())
}
