//! The manifest of a database that another process has open, as far as it was read.
//!
//! Owns: the state that it folds to. Never does: look at tables or logs.

use crate::discovery::keyspaces_left_out::LeftOut;
use crate::discovery::read_current;
use crate::log::growing_log::{GrowingLog, Took};
use std::path::Path;
use windrow_base::{Error, Result, SeqNo};
use windrow_env::Env;
use windrow_env::fs::ReadFileOptions;
use windrow_format::current::Current;
use windrow_format::log::{Class, Length, LogKind, LogReader};
use windrow_format::names;
use windrow_plan::tree::{File, Version};
use windrow_read::options::Components;
use windrow_store::manifest::record::ManifestRecord;
use windrow_store::manifest::state::ManifestState;

/// A manifest, up to where it was read.
pub struct ManifestTail {
    current: Current,
    /// Where reading ended.
    at: u64,
    pub left_out: LeftOut,
    pub state: ManifestState,
}

impl ManifestTail {
    /// Reads the manifest that CURRENT names.
    ///
    /// # Errors
    /// `Corruption`; `NotSupported` for a newer format; `Io`.
    pub fn read(env: &Env, dir: &Path, components: &Components) -> Result<ManifestTail> {
        let mut tail = ManifestTail {
            current: read_current(env, dir)?,
            at: 0,
            left_out: LeftOut::default(),
            state: ManifestState::default(),
        };
        tail.read_on(env, dir, components)?;
        if tail.at == 0 {
            let error = Error::corruption("the manifest holds no record");
            return Err(error.with_file(tail.path(dir)));
        }
        Ok(tail)
    }

    /// Reads the records that were appended since; `false` if CURRENT names another manifest by
    /// now.
    ///
    /// # Errors
    /// As [`ManifestTail::read`]; the folded state is of no use then.
    pub fn go_on(&mut self, env: &Env, dir: &Path, components: &Components) -> Result<bool> {
        let current = read_current(env, dir)?;
        if current.database_uid != self.current.database_uid {
            return Err(Error::invalid(format!(
                "the database in {} was replaced by another one: open it again",
                dir.display()
            )));
        }
        if current != self.current {
            return Ok(false);
        }
        self.read_on(env, dir, components)?;
        Ok(true)
    }

    /// The length of the manifest up to where it was read.
    pub fn length(&self) -> Length {
        Length { number: self.current.manifest_number, bytes: self.at }
    }

    /// The last sequence number that is in tables.
    pub fn stored_seq(&self) -> SeqNo {
        let keyspaces = self.state.keyspaces.values();
        keyspaces.map(|keyspace| keyspace.version.flushed_through).max().unwrap_or(0)
    }

    /// The last sequence number that is certainly in tables. The record of an ingestion may be
    /// there and not be durable: if it is not made durable, there was no ingestion. Everything
    /// before it was published.
    pub fn surely_stored_seq(&self) -> SeqNo {
        let of_version = |version: &Version| {
            let through = version.flushed_through;
            let is_last = |file: &File| file.is_ingested && file.seq_max == through;
            let is_ingestion = version.files().any(|(_, _, file)| is_last(file));
            through.saturating_sub(SeqNo::from(is_ingestion))
        };
        let keyspaces = self.state.keyspaces.values();
        keyspaces.map(|keyspace| of_version(&keyspace.version)).max().unwrap_or(0)
    }

    /// Checks that it was read as far as a log says that it was durable, if a log said so before.
    ///
    /// # Errors
    /// `Corruption`, with the text of an open.
    pub fn check_length(&self, dir: &Path, promised: Length) -> Result<()> {
        if (self.length().number, self.at) >= (promised.number, promised.bytes) {
            return Ok(());
        }
        let error = Error::corruption(format!(
            "the manifest ends at byte {}, but a log says that {} bytes of manifest {} were \
             durable: `windrow verify` and `windrow repair` say more",
            self.at, promised.bytes, promised.number
        ));
        Err(error.with_file(self.path(dir)))
    }

    /// The identity of the database.
    pub fn database_uid(&self) -> u64 {
        self.current.database_uid
    }

    fn path(&self, dir: &Path) -> String {
        dir.join(names::manifest(self.current.manifest_number)).display().to_string()
    }

    fn read_on(&mut self, env: &Env, dir: &Path, components: &Components) -> Result<()> {
        let ManifestTail { current, at, left_out, state } = self;
        let order_of = |id: &str| components.key_order(id);
        read_records(env, dir, current, at, &mut |record| {
            state.apply(&left_out.filter(record, components), &order_of)
        })
    }
}

/// Passes the records of a manifest that may be appended to from `at` on to `each`, and moves `at`
/// behind those that it took.
///
/// # Errors
/// `Corruption`; what `each` says; `Io`. Each names the file.
pub(crate) fn read_records(
    env: &Env,
    dir: &Path,
    current: &Current,
    at: &mut u64,
    each: &mut dyn FnMut(&ManifestRecord) -> Result<()>,
) -> Result<()> {
    let (number, uid) = (current.manifest_number, current.manifest_uid);
    let path = dir.join(names::manifest(number));
    let bytes = env.fs.open(&path, ReadFileOptions::default())?.len();
    let open = || {
        let file = env.fs.open(&path, ReadFileOptions::default())?;
        let reader = LogReader::open(file, LogKind::Manifest, None)?;
        let header = reader.header();
        match (header.number, header.uid) == (number, uid) {
            true => Ok(reader),
            false => Err(Error::corruption(
                "another manifest is in the place of the one that CURRENT names",
            )),
        }
    };
    let mut take = |record: &windrow_format::log::LogRecord<'_>| {
        if record.class != Class::Edit {
            return Err(Error::corruption("a record in the manifest is not an edit"));
        }
        each(&ManifestRecord::decode(record.payload)?)?;
        Ok(Took::It)
    };
    let mut tail = GrowingLog { open: &open, at: *at };
    let mut read = tail.read(&mut take);
    if read.is_ok() && tail.at < bytes {
        read = tail.read_promised(&mut take);
    }
    *at = tail.at;
    read.map(drop).map_err(|error| error.with_file(path.display().to_string()))
}
