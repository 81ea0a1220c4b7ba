//! Any bytes as any file (P22): what a reader of bytes from disk is asked, one
//! target for each, and what it may take.
//!
//! A target is a plain function of the input. libFuzzer calls it (`fuzz/`),
//! and so does `cargo test`, with every input of `corpora/`. Whatever the
//! bytes, a reader answers with what it read or an error: it does not panic,
//! abort or hang, and takes memory only in proportion to the input.
//!
//! Owns: the list of targets, their bounds, and the count of what a run
//! allocates. Never does: mutate inputs (libFuzzer does) or judge what damaged
//! bytes should have meant (`flip` does).

pub mod archive;
pub mod checksums;
pub mod extremes;
pub mod seeds;

mod agree;
mod block;
mod directory;
mod log;
mod manifest;
mod memory_file;
mod operations;
mod options;
mod records;
mod short_logs;
mod table;

use peak_alloc::PeakAlloc;
use std::path::PathBuf;

/// One kind of bytes, and the reader it is given to.
#[derive(Debug)]
pub struct Target {
    /// Its name: of its program, and of its directory in `corpora/`.
    pub name: &'static str,
    /// Longest input that is worth its time, in bytes.
    pub input_bytes_max: usize,
    /// Bytes a run may allocate at once: so many for each byte of the input,
    /// and so many at any rate.
    pub memory: (usize, usize),
    /// Runs an input. Says whether it was accepted to its end, as it was or with recomputed checksums.
    pub run: fn(&[u8]) -> bool,
}

/// A compressed block may become 255 times its size, and is held twice at most.
const PER_BYTE: usize = 2 * 256;

/// A log is read through a window, a block has some slack.
const READER_BYTES: usize = 1 << 20;

/// An open database: memtables' first chunks, its simulated machine, and a
/// model of what is in it.
const DATABASE_BYTES: usize = 48 << 20;

/// Every target.
pub const TARGETS: &[Target] = &[
    Target {
        name: "log",
        input_bytes_max: 4 << 10,
        memory: (PER_BYTE, READER_BYTES),
        run: log::run,
    },
    Target {
        name: "manifest",
        input_bytes_max: 4 << 10,
        memory: (PER_BYTE, READER_BYTES),
        run: manifest::run,
    },
    Target {
        name: "block",
        input_bytes_max: 2 << 10,
        memory: (PER_BYTE, READER_BYTES),
        run: block::run,
    },
    Target {
        name: "table",
        input_bytes_max: 8 << 10,
        memory: (PER_BYTE, READER_BYTES),
        run: table::run,
    },
    Target {
        name: "options",
        input_bytes_max: 2 << 10,
        memory: (PER_BYTE, READER_BYTES),
        run: options::run,
    },
    Target {
        name: "directory",
        input_bytes_max: 16 << 10,
        memory: (PER_BYTE, DATABASE_BYTES),
        run: directory::run,
    },
    Target {
        name: "operations",
        input_bytes_max: 1 << 10,
        memory: (PER_BYTE, DATABASE_BYTES),
        run: operations::run,
    },
];

/// The target of a name.
pub fn target(name: &str) -> Option<&'static Target> {
    TARGETS.iter().find(|target| target.name == name)
}

impl Target {
    /// Where its inputs are kept.
    pub fn corpus(&self) -> PathBuf {
        PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("corpora").join(self.name)
    }

    /// Bytes a run of an input of this length may allocate at once.
    pub fn memory_bytes_max(&self, input_bytes: usize) -> usize {
        let (per_byte, always) = self.memory;
        per_byte.saturating_mul(input_bytes).saturating_add(always)
    }

    /// Runs an input and counts what it allocates. `memory` is the global
    /// allocator of this program, and nothing else runs meanwhile.
    ///
    /// # Panics
    /// If the input takes more than its share of memory, or breaks its reader.
    pub fn check(&self, input: &[u8], memory: &PeakAlloc) -> bool {
        let before = memory.current_usage();
        memory.reset_peak_usage();
        let accepted = (self.run)(input);
        let taken = memory.peak_usage().saturating_sub(before);
        let limit = self.memory_bytes_max(input.len());
        assert!(
            taken <= limit,
            "{}: an input of {} bytes took {taken} bytes of memory, more than {limit}",
            self.name,
            input.len()
        );
        accepted
    }
}
