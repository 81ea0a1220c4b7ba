//! The unit of work of a child process.
//!
//! Owns: its form, in which it is sent to another process. Never does: run it.

use crate::store::{Codec, Common};
use crate::workload::{Contender, Workload};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::path::PathBuf;

/// The work of a child; it is sent as one argument.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Unit {
    pub(crate) workload: String,
    /// The workload file's name without its ending.
    pub(crate) file: String,
    /// Its text.
    pub(crate) text: String,
    pub(crate) scale: String,
    pub(crate) seed: u64,
    pub(crate) contender: String,
    pub(crate) round: u32,
    /// First phase, and the one after the last.
    pub(crate) phases: (usize, usize),
    pub(crate) dir: PathBuf,
    pub(crate) setup: Setup,
    /// Rates of open-loop phases, operations per second, by the name of the
    /// phase that searched.
    pub(crate) rates_per_s: BTreeMap<String, f64>,
}

/// The command line's values that override the workload files'.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(crate) struct Setup {
    pub(crate) memory_mib: Option<u64>,
    pub(crate) direct_io: Option<bool>,
    pub(crate) background_threads: u32,
    pub(crate) lz4: bool,
    pub(crate) settings: Vec<(String, String)>,
    pub(crate) verbose: bool,
}

impl Setup {
    /// Returns the settings that a store is opened with for a workload.
    pub(crate) fn common(&self, workload: &Workload, contender: &Contender) -> Common {
        let memory_mib = self.memory_mib.unwrap_or(workload.store.memory_mib);
        let settings = workload.store.settings.iter().chain(&contender.settings);
        Common {
            variant: contender.variant().to_owned(),
            memory_bytes: memory_mib << 20,
            background_threads: self.background_threads,
            direct_io: self.direct_io.unwrap_or(workload.store.direct_io),
            codec: if self.lz4 { Codec::Lz4 } else { Codec::None },
            spaces: workload.data.spaces,
            transactions: workload.transacts(),
            settings: settings.chain(&self.settings).cloned().collect(),
        }
    }
}
