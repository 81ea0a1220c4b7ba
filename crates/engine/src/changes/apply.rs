//! Changes of one database, applied to another.
//!
//! Owns: which write makes a change. Never does: read a log.

use super::change::{Change, Operation};
use crate::db::Db;
use windrow_base::{Error, Kind, Result};
use windrow_read::options::WriteSync;
use windrow_store::write::batch::Batch;

impl Change {
    /// Applies the change to another database as one write; keyspaces that it lacks are made with
    /// default options. A consumer that must not apply one twice writes the number with it
    /// ([`Change::add_to`]), or asks for it before ([`crate::changes`] has an example).
    ///
    /// # Errors
    /// `NotSupported` for [`Operation::Ingested`], with nothing written; those of [`Db::write`].
    pub fn apply(&self, db: &Db) -> Result<()> {
        let mut batch = Batch::new();
        self.add_to(&mut batch, db)?;
        db.write(batch, WriteSync::No).map(drop)
    }

    /// Adds the operations to a batch of another database; keyspaces that it lacks are made with
    /// default options. A drop of a keyspace is no write: it is done at once.
    ///
    /// # Errors
    /// `NotSupported` for [`Operation::Ingested`]; those of making or dropping a keyspace.
    pub fn add_to(&self, batch: &mut Batch, db: &Db) -> Result<()> {
        for operation in &self.operations {
            match operation {
                Operation::Ingested { keyspace } => {
                    return Err(Error::not_supported(format!(
                        "entries were ingested into `{keyspace}` at {}: copy the keyspace",
                        self.seq
                    )));
                }
                Operation::KeyspaceDropped { keyspace } => {
                    if db.open_keyspace(keyspace)?.is_some() {
                        db.drop_keyspace(keyspace)?;
                    }
                }
                operation => operation.add_to(batch, db)?,
            }
        }
        Ok(())
    }
}

impl Operation {
    fn add_to(&self, batch: &mut Batch, db: &Db) -> Result<()> {
        let keyspace = &db.keyspace(self.keyspace())?;
        match self {
            Operation::Put { key, value, expiry_ms, .. } => {
                let kind = if expiry_ms.is_some() { Kind::PutExpiry } else { Kind::Put };
                batch.push_as(keyspace, kind, (key, value), *expiry_ms);
            }
            Operation::Merge { key, operand, expiry_ms, .. } => {
                let kind = if expiry_ms.is_some() { Kind::MergeExpiry } else { Kind::Merge };
                batch.push_as(keyspace, kind, (key, operand), *expiry_ms);
            }
            Operation::Delete { key, .. } => batch.delete(keyspace, key),
            Operation::SingleDelete { key, .. } => batch.single_delete(keyspace, key),
            Operation::DeleteRange { from, to, .. } => batch.delete_range(keyspace, from, to),
            Operation::Ingested { .. } | Operation::KeyspaceDropped { .. } => {}
        }
        Ok(())
    }
}
