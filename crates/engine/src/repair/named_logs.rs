//! Logs that the manifest names, and that are gone or shorter than they were made.
//!
//! Where a log ends, nothing behind it says that there was more: to a replay one
//! that is missing, or was cut between two records, looks like one that was never
//! written to. Only the manifest knows better, and nobody knows what is lost.
//!
//! Owns: what is said of them. Never does: replay.

use super::Repair;
use super::report::DamagedLog;
use crate::manifest::state::WalState;
use std::path::Path;
use windrow_base::{Error, FileNumber, Result};
use windrow_format::names;

impl Repair<'_> {
    /// Reports a log if it is not all there and nothing was said of it yet.
    /// `found`: where it is, and up to which byte it is valid.
    ///
    /// # Errors
    /// `Io`.
    pub(super) fn account_for_log(
        &mut self,
        number: FileNumber,
        wal: &WalState,
        found: Option<(&Path, Option<&u64>)>,
    ) -> Result<()> {
        let file = names::wal(number);
        if self.report.logs.iter().any(|log| log.file == file) {
            return Ok(());
        }
        let Some((path, valid)) = found else {
            let path = self.dir.join(&file).display().to_string();
            let what = "a log that the manifest names is missing";
            self.report.problems.push(Error::corruption(what).with_file(path));
            self.report.logs.push(DamagedLog { file, from_byte: 0, bytes: 0 });
            return Ok(());
        };
        let bytes = self.env.fs.len(path)?;
        if wal.bytes <= bytes {
            return Ok(());
        }
        let from_byte = valid.copied().unwrap_or(0);
        let what = format!("the log is {bytes} bytes long, and was made with {}", wal.bytes);
        let problem = Error::corruption(what).with_file(path.display().to_string());
        self.report.problems.push(problem.with_offset(from_byte));
        self.report.logs.push(DamagedLog { file: file.clone(), from_byte, bytes });
        self.keep_original(file)
    }
}
