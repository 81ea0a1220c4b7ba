//! The ledger: the acknowledgements that a worker got, kept outside of its process.
//!
//! A file in shared memory if there is one, so that a note costs a system call and no device: each
//! writer has a region of 8-byte entries, one for each of its batches in this session, in order. An
//! entry is the batch's last sequence number, with the top bit set if the batch was synced; 0
//! without an acknowledgement. Owns: that layout. Never does: judge.

use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

/// Bytes before the first region: the flag that the database was opened, and what it then had.
const HEAD_BYTES: u64 = 4096;
/// Where the numbers of each writer's batches at the begin of the session are.
const BEGIN_AT: u64 = 8;
/// Bytes of a writer's region: half a day of batches. The file is sparse.
const REGION_BYTES: u64 = 1 << 30;
const SYNCED: u64 = 1 << 63;

/// An acknowledged batch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ack {
    /// Its last sequence number.
    pub seq: u64,
    /// It was promised to survive a power cut.
    pub synced: bool,
}

/// The acknowledgements of one session.
#[derive(Debug)]
pub struct Ledger {
    file: File,
}

impl Ledger {
    /// Returns the directory for ledgers: in memory if possible, else for temporary files.
    pub fn directory() -> PathBuf {
        let shared = Path::new("/dev/shm");
        if shared.is_dir() { shared.to_path_buf() } else { std::env::temp_dir() }
    }

    /// Makes an empty ledger.
    ///
    /// # Errors
    /// The system's error.
    pub fn create(path: &Path) -> io::Result<Ledger> {
        let mut options = File::options();
        let file = options.read(true).write(true).create(true).truncate(true).open(path)?;
        Ok(Ledger { file })
    }

    /// Opens an existing ledger.
    ///
    /// # Errors
    /// The system's error.
    pub fn open(path: &Path) -> io::Result<Ledger> {
        Ok(Ledger { file: File::options().read(true).write(true).open(path)? })
    }

    /// Notes that the worker has opened the database, with these numbers of batches in it.
    ///
    /// # Errors
    /// The system's error.
    pub fn set_opened(&self, begin: &[u64]) -> io::Result<()> {
        let begin: Vec<u8> = begin.iter().flat_map(|number| number.to_le_bytes()).collect();
        self.file.write_all_at(&begin, BEGIN_AT)?;
        self.file.write_all_at(&[1], 0)
    }

    /// Returns the numbers that [`Ledger::set_opened`] noted; `None` before that.
    ///
    /// # Errors
    /// The system's error.
    pub fn begin(&self, writers: u32) -> io::Result<Option<Vec<u64>>> {
        if !self.is_opened() {
            return Ok(None);
        }
        let mut bytes = vec![0; 8 * writers as usize];
        self.file.read_exact_at(&mut bytes, BEGIN_AT)?;
        Ok(Some(bytes.as_chunks().0.iter().map(|number| u64::from_le_bytes(*number)).collect()))
    }

    /// Whether the worker has opened the database.
    pub fn is_opened(&self) -> bool {
        let mut byte = [0];
        self.file.read_exact_at(&mut byte, 0).is_ok() && byte[0] == 1
    }

    /// Notes that the `index`-th batch of a writer in this session was acknowledged.
    ///
    /// # Errors
    /// The system's error; a full region.
    pub fn note(&self, writer: u32, index: u64, ack: Ack) -> io::Result<()> {
        if index >= REGION_BYTES / 8 {
            return Err(io::Error::other("the ledger is full"));
        }
        let entry = ack.seq | if ack.synced { SYNCED } else { 0 };
        self.file.write_all_at(&entry.to_le_bytes(), region(writer) + 8 * index)
    }

    /// Returns all acknowledgements of a writer, in order.
    ///
    /// # Errors
    /// The system's error.
    pub fn acks(&self, writer: u32) -> io::Result<Vec<Ack>> {
        self.acks_from(writer, 0)
    }

    /// Returns the acknowledgements of a writer from its `index`-th on.
    ///
    /// # Errors
    /// The system's error.
    pub fn acks_from(&self, writer: u32, index: u64) -> io::Result<Vec<Ack>> {
        let mut acks = Vec::new();
        let mut bytes = vec![0; 64 << 10];
        loop {
            let at = region(writer) + 8 * (index + acks.len() as u64);
            let end = (region(writer) + REGION_BYTES - at).min(bytes.len() as u64) as usize;
            let read = self.file.read_at(&mut bytes[..end], at)? / 8 * 8;
            for entry in bytes[..read].chunks_exact(8) {
                let entry = u64::from_le_bytes(entry.try_into().expect("chunks of 8"));
                if entry == 0 {
                    return Ok(acks);
                }
                acks.push(Ack { seq: entry & !SYNCED, synced: entry & SYNCED != 0 });
            }
            if read == 0 {
                return Ok(acks);
            }
        }
    }

    /// Returns the acknowledgements of `writers` writers.
    ///
    /// # Errors
    /// The system's error.
    pub fn all(&self, writers: u32) -> io::Result<Vec<Vec<Ack>>> {
        (0..writers).map(|writer| self.acks(writer)).collect()
    }
}

fn region(writer: u32) -> u64 {
    HEAD_BYTES + u64::from(writer) * REGION_BYTES
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_noted_is_read_up_to_the_first_gap() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("ledger");
        let ledger = Ledger::create(&path).unwrap();
        let ack = |seq, synced| Ack { seq, synced };
        for index in 0..20_000 {
            ledger.note(1, index, ack(index + 1, index % 3 == 0)).unwrap();
        }
        ledger.note(0, 1, ack(5, true)).unwrap();
        assert!(!ledger.is_opened());
        ledger.set_opened(&[7, 8, 9]).unwrap();
        let again = Ledger::open(&path).unwrap();
        assert!(again.is_opened());
        assert_eq!(again.begin(3).unwrap(), Some(vec![7, 8, 9]));
        let all = again.all(3).unwrap();
        assert_eq!((all[0].len(), all[1].len(), all[2].len()), (0, 20_000, 0));
        assert_eq!((all[1][0], all[1][1]), (ack(1, true), ack(2, false)));
        assert_eq!(again.acks_from(1, 19_998).unwrap(), [ack(19_999, true), ack(20_000, false)]);
    }
}
