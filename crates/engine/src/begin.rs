//! The manifest and the log that writing begins with: in an open, and in a resume
//! after writing was off.
//!
//! Owns: their order. The manifest comes first and is in force before the log is
//! made, so that the logs of before can go in between. Never does: remove a file.

use crate::core::{Core, Manifest};
use crate::manifest::log::ManifestLog;
use crate::manifest::record::Record;
use crate::manifest::state::ManifestState;
use crate::write::wal::Wal;
use windrow_base::{Result, SeqNo};
use windrow_env::sync::atomic::Ordering;

impl Core {
    /// Writes a new manifest, in which all up to `last_seq` is in tables, and has
    /// CURRENT name it: no log of before is in force from then on.
    pub(crate) fn begin_manifest(
        &self,
        state: &mut ManifestState,
        last_seq: SeqNo,
    ) -> Result<ManifestLog> {
        let manifest_number = self.new_file_number();
        state.clean_close = None;
        state.last_seq = last_seq;
        state.log_number = self.new_file_number();
        state.log_first_seq = last_seq + 1;
        state.wals.clear();
        state.settings_text = self.settings.to_text();
        state.next_file = self.next_file.load(Ordering::Relaxed);
        let log = ManifestLog::create(&self.env, &self.dir, manifest_number, &state.snapshot())?;
        self.put_in_force(&log)?;
        Ok(log)
    }

    /// Makes the log that a manifest just begun waits for, and tells it.
    pub(crate) fn first_wal(&self, manifest: &mut Manifest) -> Result<Wal> {
        let log = manifest.log.as_ref().expect("just begun");
        let (number, in_force) = (manifest.state.log_number, log.in_force());
        let wal = self.new_wal(number, in_force, self.wal_capacity_bytes()).create()?;
        let record = Record(vec![wal.added()]);
        self.append_record(manifest, &record, true)?;
        manifest.state.apply(&record, &|id| self.components.key_order(id))?;
        Ok(wal)
    }
}
