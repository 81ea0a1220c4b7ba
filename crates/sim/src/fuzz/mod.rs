//! Arbitrary bytes as any file (P22): one target for each reader of bytes from disk, and the memory
//! that it may use.
//!
//! A target is a plain function of the input. libFuzzer calls it (`fuzz/`), and so does
//! `cargo test`, with every input of `corpora/`. For any bytes, a reader answers with its result or
//! an error: it does not panic, abort or hang, and uses memory only in proportion to the input.
//!
//! Owns: the list of targets, their bounds, and the count of a run's allocations. Never does:
//! mutate inputs (libFuzzer does) or judge the meaning of damaged bytes (`rot` does).

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

/// One kind of bytes, and its reader.
#[derive(Debug)]
pub struct Target {
    /// The name of its program, and of its directory in `corpora/`.
    pub name: &'static str,
    /// The longest input that is worth its time, in bytes.
    pub input_bytes_max: usize,
    /// Bytes that a run may have allocated at once: per byte of the input, and in any case.
    pub memory: (usize, usize),
    /// Runs an input. Returns whether it was accepted to its end, unchanged or with recomputed
    /// checksums.
    pub run: fn(&[u8]) -> bool,
}

/// A compressed block may grow to 255 times its size, and is in memory twice at most.
const PER_BYTE: usize = 2 * 256;

/// A log is read through a window, a block has some slack.
const READER_BYTES: usize = 1 << 20;

/// An open database: memtables' first chunks, its simulated machine, and a model of its contents.
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

/// Returns the target of a name.
pub fn target(name: &str) -> Option<&'static Target> {
    TARGETS.iter().find(|target| target.name == name)
}

impl Target {
    /// Returns the directory of its inputs.
    pub fn corpus(&self) -> PathBuf {
        PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("corpora").join(self.name)
    }

    /// Returns the bytes that a run of an input of this length may have allocated at once.
    pub fn memory_bytes_max(&self, input_bytes: usize) -> usize {
        let (per_byte, always) = self.memory;
        per_byte.saturating_mul(input_bytes).saturating_add(always)
    }

    /// Runs an input and counts its allocations. `memory` is the global allocator of this program,
    /// and nothing else runs meanwhile.
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
