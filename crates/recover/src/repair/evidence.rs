//! Evidence: the metadata in tables and logs where the manifest is lost, and the state that follows
//! from it.
//!
//! Owns: the list of keyspaces. Never does: read an entry of a table, or decide which entries of a
//! table count (`rebuild.rs`).

use super::findings::Findings;
use super::identity::Identity;
use super::site::Site;
use crate::discovery::{FoundManifest, new_keyspace};
use crate::log::logs_at_rest::Proof;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use windrow_base::comparator::BYTEWISE_ID;
use windrow_base::{Error, FileNumber, FileUid, KeyOrder, KeyspaceId, Result};
use windrow_env::fs::ReadFileOptions;
use windrow_format::batch;
use windrow_format::log::{Class, LogKind, LogReader};
use windrow_format::table::{self, Expect, Properties, Table};
use windrow_plan::tree::Version;
use windrow_read::options::{KeyspaceOptions, KeyspaceSettings};
use windrow_store::manifest::record::DEFAULT_KEYSPACE;
use windrow_store::manifest::state::{KeyspaceState, ManifestState};

/// The metadata that the files hold themselves.
#[derive(Default)]
pub(super) struct FileEvidence {
    /// The properties of each table; `None` where they cannot be read.
    pub(super) tables: BTreeMap<FileNumber, Option<Properties>>,
    /// The proof that a gap in the logs does not end them.
    pub(super) proof: Proof,
}

impl FileEvidence {
    /// Looks at all tables and logs. Returns their metadata, and a state in which only the
    /// keyspaces are known: those that have a table, or an operation in a log.
    ///
    /// # Errors
    /// The error of opening a table, which may be whole. `InvalidArgument` for a comparator that is
    /// not registered.
    pub(super) fn gather(
        site: &Site<'_>,
        findings: &mut Findings,
    ) -> Result<(FileEvidence, FoundManifest)> {
        findings.report.manifest_rebuilt = true;
        let mut evidence = FileEvidence::default();
        let mut state = ManifestState::default();
        let mut comparators: BTreeMap<KeyspaceId, String> = BTreeMap::new();
        let asked = site.options.default_keyspace.comparator.clone();
        comparators.insert(KeyspaceId::DEFAULT, asked.unwrap_or_else(|| BYTEWISE_ID.to_owned()));
        for &number in &site.listing.tables {
            evidence.tables.insert(number, look_at(site, number)?);
        }
        let identity = evidence.leave_others_out(site, findings);
        for properties in evidence.tables.values().flatten() {
            comparators.insert(properties.keyspace, properties.comparator.clone());
        }
        let tables = evidence.tables.values().flatten();
        evidence.proof.seq = tables.map(|table| table.seq_max).max().unwrap_or(0);
        for &number in &site.listing.wals {
            let mut found = BTreeSet::new();
            // Damage is reported as the log is replayed.
            let _ = evidence.keyspaces_of_log(site, number, &mut found);
            for id in found {
                if comparators.contains_key(&id) {
                    continue;
                }
                comparators.insert(id, BYTEWISE_ID.to_owned());
                if !site.options.components.comparators.is_empty() {
                    let what = format!(
                        "keyspace {id} is known from logs alone, which do not name its comparator"
                    );
                    let log = site.wal_path(number).display().to_string();
                    findings.problem(Error::corruption(what).with_file(log));
                    findings.doubt_logs(site);
                }
            }
        }
        for (id, comparator) in comparators {
            let default = id == KeyspaceId::DEFAULT;
            let name = if default { DEFAULT_KEYSPACE.into() } else { format!("keyspace-{id}") };
            if !default {
                findings.report.keyspaces_renamed.push(name.clone());
            }
            let operator = &site.options.default_keyspace.merge_operator;
            let options = KeyspaceOptions {
                comparator: Some(comparator),
                merge_operator: operator.clone().filter(|_| default),
                settings: KeyspaceSettings::default(),
            };
            let record = new_keyspace(id, &name, &options, &site.options.components)?;
            let order = site.options.components.key_order(&record.comparator)?;
            let version = Arc::new(Version::empty(order));
            state.keyspaces.insert(id, KeyspaceState::new(record, version));
            state.next_keyspace = id.0.saturating_add(1);
        }
        let database_uid = identity.uid;
        let (manifest, current, left_out) = (None, None, Vec::new());
        Ok((evidence, FoundManifest { state, database_uid, manifest, current, left_out }))
    }

    /// Leaves out the tables that were made for another database. They are kept and reported.
    /// Returns the identity of this one.
    fn leave_others_out(&mut self, site: &Site<'_>, findings: &mut Findings) -> Identity {
        let known = self.tables.iter().filter_map(|(n, p)| Some((*n, p.as_ref()?)));
        let identity = Identity::find(site, known);
        for (number, properties) in std::mem::take(&mut self.tables) {
            match properties {
                Some(table) if identity.is_another(&table) => {
                    findings.another_databases(site, number, identity.is_assumed);
                }
                properties => {
                    let unknown = properties.as_ref().is_some_and(|p| p.database_uid.is_none());
                    findings.report.tables_of_unknown_database += u64::from(unknown);
                    self.tables.insert(number, properties);
                }
            }
        }
        identity
    }

    /// Adds the keyspaces that a log has operations of, as far as it can be read, and notes its
    /// statement about older logs.
    fn keyspaces_of_log(
        &mut self,
        site: &Site<'_>,
        number: FileNumber,
        found: &mut BTreeSet<KeyspaceId>,
    ) -> Result<()> {
        let file = site.env.fs.open(&site.wal_path(number), ReadFileOptions::default())?;
        let mut reader = LogReader::open(file, LogKind::Wal, None)?;
        while let Some(record) = reader.next()? {
            if record.durable_up_to > 0 {
                self.proof.log = self.proof.log.max(number);
            }
            if record.class != Class::Batch {
                continue;
            }
            for op in batch::decode(record.payload, record.framing)?.2 {
                found.insert(op?.keyspace);
            }
        }
        Ok(())
    }
}

/// The properties of a table, even if other parts of it are damaged.
///
/// # Errors
/// The error of opening it: it may be whole.
pub(super) fn look_at(site: &Site<'_>, number: FileNumber) -> Result<Option<Properties>> {
    let file = site.env.fs.open(&site.table_path(number), ReadFileOptions::default())?;
    let custom = site.options.components.comparators.iter().cloned().map(KeyOrder::Custom);
    let orders: Vec<KeyOrder> = [KeyOrder::Bytewise].into_iter().chain(custom).collect();
    let uids = table::uids(&*file);
    for &uid in &uids {
        for order in &orders {
            let expect = Expect { file_bytes: file.len(), uid, order: order.clone() };
            if let Ok(table) = Table::open(&file, expect) {
                return Ok(Some(table.properties().clone()));
            }
        }
    }
    let found = |uid: &FileUid| table::remains(&file, *uid, &KeyOrder::Bytewise).properties;
    Ok(uids.iter().find_map(found))
}
