//! The log that writing begins with: in an open, and in a resume after writing was
//! off.
//!
//! Owns: its order. The manifest comes first ([`Catalog::begin`]) and is in force
//! before the log is made, so that the logs of before can go in between. Never
//! does: remove a file.
//!
//! [`Catalog::begin`]: crate::manifest::catalog::Catalog::begin

use crate::core::Core;
use crate::manifest::catalog::Locked;
use crate::write::wal::Wal;
use windrow_base::Result;

impl Core {
    /// Makes the log that a manifest just begun waits for, and tells it.
    pub(crate) fn first_wal(&self, catalog: &mut Locked<'_>) -> Result<Wal> {
        let number = catalog.state().log_number;
        let wal = self.new_wal(number, catalog.in_force(), self.wal_capacity_bytes()).create()?;
        catalog.append(vec![wal.added()])?;
        Ok(wal)
    }
}
