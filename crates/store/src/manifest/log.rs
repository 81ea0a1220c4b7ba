//! The manifest file: records appended one by one, each synced unless nothing is lost with it. When
//! it has grown to twice its snapshot, a new file with a full snapshot takes its place.
//!
//! Order (rules R1, R7, R9): a new manifest is written and synced, its name made durable, and only
//! then named by CURRENT, which is replaced by temporary file, sync, rename, and sync of the
//! directory. Any failure is a background error: no file is unlinked and no number reused after it.
//!
//! Owns: the file, its durable length, and the error that ended it. Never does: decide what a
//! record says, or turn writing off (`catalog` does).

use crate::host::database_directory::DatabaseDirectory;
use crate::manifest::record::{Field, ManifestRecord};
use std::path::{Path, PathBuf};
use windrow_base::{
    Error, FileNumber, FileUid, Result, check_invariant, debug_invariant, unless_mutant,
};
use windrow_env::fs::{FileId, WriteOptions};
use windrow_env::{Env, WriteFile};
use windrow_format::current::Current;
use windrow_format::log::{self, Class, FileHeader, Framer, Length, LogKind};
use windrow_format::names;

/// The manifest that is written now.
pub struct ManifestLog {
    pub number: FileNumber,
    pub uid: FileUid,
    path: PathBuf,
    file: Box<dyn WriteFile>,
    /// The file that its name led to when it was made.
    id: Option<FileId>,
    /// Bytes that are durable.
    durable_bytes: u64,
    snapshot_bytes: u64,
    /// The error of a write or sync that failed: it takes no record any more.
    failed: Option<Error>,
}

/// The manifest in force, and its durable length.
#[derive(Clone, Copy)]
pub struct InForce {
    pub uid: FileUid,
    pub durable: Length,
}

impl ManifestLog {
    /// Writes a new manifest that begins with `snapshot`, durable with its name.
    /// CURRENT does not name it yet.
    pub fn create(
        env: &Env,
        dir: &Path,
        number: FileNumber,
        snapshot: &ManifestRecord,
    ) -> Result<ManifestLog> {
        let is_whole = matches!(snapshot.0.first(), Some(Field::Snapshot));
        check_invariant!(R2, is_whole, "manifest {number} would go on from another one");
        let path = dir.join(names::manifest(number));
        let uid = env.random.next_u64();
        let header = FileHeader {
            kind: LogKind::Manifest,
            framing: LogKind::Manifest.framing(),
            number,
            uid,
            manifest_number: number,
            manifest_durable_bytes: 0,
            manifest_uid: uid,
        };
        let mut file = env.fs.create(&path, WriteOptions::default())?;
        let id = env.fs.stamp(&path)?.map(|stamp| stamp.id);
        file.append(&log::encode_file_header(&header))?;
        let mut manifest = ManifestLog {
            number,
            uid,
            path,
            file,
            id,
            durable_bytes: 0,
            snapshot_bytes: 0,
            failed: None,
        };
        manifest.append(snapshot)?;
        manifest.snapshot_bytes = manifest.durable_bytes;
        unless_mutant!(ManifestNameSync, env.fs.sync_dir(dir)?);
        Ok(manifest)
    }

    /// Whether its name still leads to it, and it is at least as long as was made durable.
    ///
    /// # Errors
    /// `Io` that says that it was replaced.
    pub(crate) fn check_in_place(&self, place: &DatabaseDirectory) -> Result<()> {
        place.check()?;
        place.check_file(&self.path, self.id, self.durable_bytes)
    }

    /// Appends a record, and makes it and all before it durable.
    ///
    /// # Errors
    /// An error of the file system; the manifest takes no record after that.
    pub fn append(&mut self, record: &ManifestRecord) -> Result<()> {
        let before = self.durable_bytes;
        self.write(record)?;
        let synced = self.file.sync();
        self.failed = synced.as_ref().err().cloned();
        synced?;
        self.durable_bytes = self.file.len();
        let after = self.durable_bytes;
        check_invariant!(R7, before < after, "a record is durable up to {after}, after {before}");
        Ok(())
    }

    /// Appends a record that power loss may take: one that no file's existence depends on, such as
    /// a move. No later record can be durable without it.
    ///
    /// # Errors
    /// As [`ManifestLog::append`].
    pub fn append_unsynced(&mut self, record: &ManifestRecord) -> Result<()> {
        self.write(record)
    }

    fn write(&mut self, record: &ManifestRecord) -> Result<()> {
        if let Some(first) = &self.failed {
            return Err(Error::after(first, "an earlier write of the manifest failed")
                .with_file(self.path.display().to_string()));
        }
        let before = self.file.len();
        let written = self.write_fields(record);
        let after = self.file.len();
        debug_invariant!(R5, written.is_err() || before < after, "a record takes no bytes");
        self.failed = written.as_ref().err().cloned();
        written
    }

    /// Writes field by field, so that a record with the bounds of all tables is not held as bytes.
    fn write_fields(&mut self, record: &ManifestRecord) -> Result<()> {
        let (offset, durable) = (self.file.len(), self.durable_bytes);
        check_invariant!(
            R5,
            durable <= offset,
            "a record at {offset} says that {durable} is durable"
        );
        let framing = LogKind::Manifest.framing();
        let place = log::LogPosition { framing, uid: self.uid, offset, durable_up_to: durable };
        let mut framer = Framer::new(Class::Edit, place);
        let mut put = |_, fragment: &[u8]| self.file.append(fragment);
        record.encode_parts(|part| framer.push(part, &mut put))?;
        framer.finish(put)
    }

    /// Bytes of the manifest, durable or not.
    pub fn bytes(&self) -> u64 {
        self.file.len()
    }

    /// How much of the manifest is durable.
    pub fn durable(&self) -> Length {
        Length { number: self.number, bytes: self.durable_bytes }
    }

    /// The manifest's identity and durable length, which a log made now remembers.
    pub fn in_force(&self) -> InForce {
        InForce { uid: self.uid, durable: self.durable() }
    }

    /// The contents of CURRENT that name this manifest.
    pub fn current(&self, database_uid: FileUid) -> Current {
        Current {
            format_version: windrow_format::current::FORMAT_VERSION,
            required_features: 0,
            manifest_number: self.number,
            manifest_uid: self.uid,
            database_uid,
        }
    }

    /// Whether it has grown beyond `bytes_min`, and to more than twice its snapshot.
    pub(crate) fn wants_roll(&self, bytes_min: u64) -> bool {
        debug_assert!(self.snapshot_bytes <= self.bytes(), "a manifest shorter than its snapshot");
        self.bytes() > bytes_min.max(self.snapshot_bytes * 2)
    }

    /// Closes the file; nothing is lost if it fails, since every record that
    /// matters was synced.
    pub fn finish(&mut self) -> Result<()> {
        self.file.finish()
    }
}

/// Makes CURRENT name a manifest, durably (rule R9).
pub fn set_current(env: &Env, dir: &Path, current: &Current) -> Result<()> {
    let temporary = dir.join(names::temp(current.manifest_number));
    let encoded = current.encode();
    let mut file = env.fs.create(&temporary, WriteOptions::default())?;
    file.append(&encoded)?;
    let (len, due) = (file.len(), encoded.len() as u64);
    check_invariant!(R9, len == due, "CURRENT would have {len} bytes of {due}");
    file.sync()?;
    file.finish()?;
    env.fs.rename(&temporary, &dir.join(names::CURRENT))?;
    unless_mutant!(CurrentNameSync, env.fs.sync_dir(dir)?);
    Ok(())
}
