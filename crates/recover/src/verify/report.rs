//! The report of a verification, for the user.
//!
//! Owns: the type, and which problems are damage. Never does: look for any.

use windrow_base::{Error, ErrorKind, Result};
use windrow_read::records_left_out::RecordsLeftOut;

/// The report of a verification.
///
/// ```
/// # let dir = tempfile::tempdir().unwrap();
/// # let db = windrow::Db::open(dir.path()).unwrap();
/// db.put("a", "1")?;
/// db.flush()?;
/// let report = db.verify()?;
/// println!("{} tables", report.tables);
/// report.into_result()?; // an error where anything is damaged
/// # Ok::<(), windrow::Error>(())
/// ```
#[derive(Clone, Debug, Default)]
pub struct VerifyReport {
    /// Tables that were read.
    pub tables: u64,
    /// Their bytes.
    pub bytes: u64,
    /// Their entries.
    pub entries: u64,
    /// Records of the manifest in force.
    pub manifest_records: u64,
    /// Logs that were read.
    pub logs: u64,
    /// Their bytes, without the space that is reserved for more records.
    pub log_bytes: u64,
    /// Batches in them. Writes that were flushed since their log was begun are in a table too.
    pub log_batches: u64,
    /// Operations in those batches: puts, deletes, merges, range deletes.
    pub log_operations: u64,
    /// Whole batches of logs that the open of this database did not take over
    /// ([`Db::records_left_out`](struct.Db.html#method.records_left_out)). They were never
    /// promised, so this alone is nothing wrong.
    pub records_left_out: Vec<RecordsLeftOut>,
    /// Everything that is wrong, each naming its file and offset.
    pub problems: Vec<Error>,
}

impl VerifyReport {
    /// Whether nothing is wrong.
    pub fn is_ok(&self) -> bool {
        self.problems.is_empty()
    }

    /// Problems of files that the system could not read (an I/O error, no permission): their
    /// content may be whole.
    pub fn unreadable(&self) -> impl Iterator<Item = &Error> {
        self.problems.iter().filter(|error| is_refusal(error))
    }

    /// Problems of files that were read, and differ from what was written.
    pub fn damaged(&self) -> impl Iterator<Item = &Error> {
        self.problems.iter().filter(|error| !is_refusal(error))
    }

    /// The first problem as an error.
    ///
    /// # Errors
    /// That problem.
    pub fn into_result(self) -> Result<VerifyReport> {
        match self.problems.first() {
            Some(error) => Err(error.clone()),
            None => Ok(self),
        }
    }
}

fn is_refusal(error: &Error) -> bool {
    error.kind() == ErrorKind::Io
}
