//! Files in memory, and orders of keys, for this crate's tests.
//!
//! Owns: the bytes of the files. Never does: fail a call, or lose a byte.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use windrow_base::{Comparator, Error, KeyOrder, Result};
use windrow_env::sync::{Mutex, Rank};
use windrow_env::{ReadFile, WriteFile};

pub(crate) struct MemFile {
    bytes: Vec<u8>,
    path: PathBuf,
}

pub(crate) fn mem_file(bytes: Vec<u8>) -> Arc<dyn ReadFile> {
    Arc::new(MemFile { bytes, path: PathBuf::from("mem/000001.sst") })
}

impl ReadFile for MemFile {
    fn read_at(&self, offset: u64, buf: &mut [u8]) -> Result<()> {
        let held = usize::try_from(offset).ok().and_then(|from| self.bytes.get(from..));
        match held.and_then(|b| b.get(..buf.len())) {
            Some(b) => buf.copy_from_slice(b),
            None => return Err(Error::corruption("read past the end of the file")),
        }
        Ok(())
    }

    fn len(&self) -> u64 {
        self.bytes.len() as u64
    }

    fn path(&self) -> &Path {
        &self.path
    }
}

/// A file being written, whose bytes a test can read afterwards.
#[derive(Clone)]
pub(crate) struct MemWriter(Arc<Mutex<Vec<u8>>>);

impl Default for MemWriter {
    fn default() -> MemWriter {
        MemWriter(Arc::new(Mutex::new(Rank::INNERMOST, Vec::new())))
    }
}

impl MemWriter {
    pub(crate) fn bytes(&self) -> Vec<u8> {
        self.0.lock().clone()
    }
}

impl WriteFile for MemWriter {
    fn append(&mut self, bytes: &[u8]) -> Result<()> {
        self.0.lock().extend_from_slice(bytes);
        Ok(())
    }

    fn len(&self) -> u64 {
        self.0.lock().len() as u64
    }

    fn sync(&mut self) -> Result<()> {
        Ok(())
    }

    fn finish(&mut self) -> Result<()> {
        Ok(())
    }
}

/// Keys from last to first: an order in which no bytewise shortcut holds.
struct Reversed;

impl Comparator for Reversed {
    fn id(&self) -> &str {
        "test.reversed"
    }

    fn compare(&self, a: &[u8], b: &[u8]) -> std::cmp::Ordering {
        b.cmp(a)
    }
}

/// Bytewise without regard to ASCII case: equal keys of different bytes.
struct CaseBlind;

impl Comparator for CaseBlind {
    fn id(&self) -> &str {
        "test.case_blind"
    }

    fn compare(&self, a: &[u8], b: &[u8]) -> std::cmp::Ordering {
        a.to_ascii_lowercase().cmp(&b.to_ascii_lowercase())
    }

    fn equality_is_bytewise(&self) -> bool {
        false
    }
}

pub(crate) fn orders() -> [KeyOrder; 3] {
    [
        KeyOrder::Bytewise,
        KeyOrder::Custom(Arc::new(Reversed)),
        KeyOrder::Custom(Arc::new(CaseBlind)),
    ]
}
