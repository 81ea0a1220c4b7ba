//! Keyspaces that an open for reading leaves out. Their comparator is not registered, so no key of
//! them can be found by order, and their writes that are in logs alone cannot be sorted.
//!
//! Their fields are taken out of the manifest's records before those are folded. The replay passes
//! over operations of keyspaces that are not in the state.
//!
//! Owns: the records of these keyspaces. Never does: anything in an open for writing, which would
//! lose them with the next manifest.

use std::collections::BTreeMap;
use windrow_base::{Error, KeyspaceId, Result};
use windrow_read::options::Components;
use windrow_store::manifest::record::{Field, KeyspaceRecord, ManifestRecord};
use windrow_store::tree;

/// The keyspaces that were left out so far.
#[derive(Default)]
pub struct LeftOut(BTreeMap<KeyspaceId, KeyspaceRecord>);

impl LeftOut {
    /// Returns the record without the fields of keyspaces whose order is not known.
    pub fn filter(&mut self, record: &ManifestRecord, components: &Components) -> ManifestRecord {
        let mut fields = Vec::with_capacity(record.0.len());
        for field in &record.0 {
            match field {
                Field::Snapshot => {
                    self.0.clear();
                    fields.push(field.clone());
                }
                Field::KeyspaceCreate(made) if components.key_order(&made.comparator).is_err() => {
                    self.0.insert(made.id, made.clone());
                    // Tells the replay that the keyspace was made.
                    fields.push(Field::NextKeyspace(made.id.0.saturating_add(1)));
                }
                Field::KeyspaceEdit(id, edit) if self.0.contains_key(id) => {
                    // Perhaps no log has these sequence numbers any more, only tables.
                    fields.extend(edit.flushed_through.map(Field::LastSeq));
                }
                Field::KeyspaceSettings(id, _) if self.0.contains_key(id) => {}
                Field::KeyspaceDrop(id) if self.0.contains_key(id) => _ = self.0.remove(id),
                _ => fields.push(field.clone()),
            }
        }
        ManifestRecord(fields)
    }

    /// The keyspaces that were not dropped since, in the order in which they were made.
    pub fn records(&self) -> Vec<KeyspaceRecord> {
        self.0.values().cloned().collect()
    }
}

/// # Errors
/// `InvalidArgument` if the keyspace of this name is there and was left out.
pub fn check(left_out: &[KeyspaceRecord], name: &str) -> Result<()> {
    match left_out.iter().find(|record| &*record.name == name) {
        Some(record) => Err(tree::left_out(record)),
        None => Ok(()),
    }
}

/// Why an open for writing cannot do without a comparator.
pub(crate) fn needed(error: Error) -> Error {
    let why = error.message();
    Error::invalid(format!("{why} (an open for reading leaves out the keyspace that needs it)"))
}
