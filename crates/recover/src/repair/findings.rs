//! The findings of a repair so far, and the files that it keeps.
//!
//! Owns: the report as it grows, and the choice of the files that are kept as they were
//! (`originals.rs`). Never does: judge a file.

use super::report::{DamagedLog, RepairReport};
use super::site::Site;
use crate::discovery::originals::Originals;
use windrow_base::{Error, FileNumber};
use windrow_format::names;
use windrow_plan::tree::File;

/// The findings of a repair so far.
#[derive(Default)]
pub(super) struct Findings {
    pub(super) report: RepairReport,
    pub(super) originals: Originals,
    /// Whether some records of the logs were not taken over: all logs are kept then.
    logs_in_doubt: bool,
}

impl Findings {
    /// Adds a problem.
    pub(super) fn problem(&mut self, error: Error) {
        self.report.problems.push(error);
    }

    /// Counts the entries that were saved of a damaged table.
    pub(super) fn count_saved(&mut self, saved: &[File]) {
        match saved.is_empty() {
            true => self.report.tables_lost += 1,
            false => self.report.tables_salvaged += 1,
        }
        self.report.entries_salvaged += saved.iter().map(|f| f.entries).sum::<u64>();
    }

    /// Leaves out a table that was made for another database: it is kept and reported.
    pub(super) fn another_databases(
        &mut self,
        site: &Site<'_>,
        number: FileNumber,
        is_assumed: bool,
    ) {
        let (name, path) = (names::table(number), site.table_path(number).display().to_string());
        let why = match is_assumed {
            true => {
                "another database than most of the tables here; CURRENT does not say which is right"
            }
            false => "another database",
        };
        let what = format!("the table was made for {why}, and is left out");
        self.problem(Error::corruption(what).with_file(path));
        self.report.tables_of_another_database.push(name.clone());
        self.keep_original(name);
    }

    /// Reports all logs, and marks them to be kept: records in them were perhaps not taken over.
    pub(super) fn doubt_logs(&mut self, site: &Site<'_>) {
        self.logs_in_doubt = true;
        for &number in &site.listing.wals {
            let file = names::wal(number);
            if self.report.logs.iter().all(|log| log.file != file) {
                let bytes = site.env.fs.len(&site.dir.join(&file)).unwrap_or(0);
                self.report.logs.push(DamagedLog { file, bytes, ..DamagedLog::default() });
            }
        }
    }

    /// Keeps all logs where [`Findings::doubt_logs`] was called.
    pub(super) fn keep_logs_in_doubt(&mut self, site: &Site<'_>) {
        if self.logs_in_doubt {
            for &number in &site.listing.wals {
                self.keep_original(names::wal(number));
            }
        }
    }

    /// Keeps a file from which not everything was taken over in `lost/`.
    pub(super) fn keep_original(&mut self, name: String) {
        self.originals.add(name);
    }
}
