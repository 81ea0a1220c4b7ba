//! The pickers, as an axis.
//!
//! Owns: the choice between them. Never does: look at the tree itself.

use super::level_limits::Levels;
use super::leveled::Leveled;
use super::sst_log::{LogMode, LogShare, SstLog};
use crate::decision::Decision;
use crate::tree::Version;
use crate::view::{PlanSettings, View};

/// Which files move down from the other levels, and when.
#[derive(Clone, Debug, PartialEq)]
pub enum Picker {
    /// From the level most over its capacity, one file and what it overlaps.
    Leveled(Leveled),
    /// Files move to the SST-log of their level first, and down together (L2SM).
    SstLog(SstLog),
}

impl Picker {
    /// Returns the most urgent job that can start now.
    pub(crate) fn pick(&self, levels: Levels<'_>, view: &View<'_>) -> Decision {
        match self {
            Picker::Leveled(leveled) => leveled.pick(levels, view),
            Picker::SstLog(sst_log) => sst_log.pick(levels, view),
        }
    }

    /// Bytes that `level`'s SST-log may hold; 0 where the picker empties it.
    pub(crate) fn log_limit(
        &self,
        levels: Levels<'_>,
        version: &Version,
        settings: &PlanSettings,
        level: u32,
    ) -> u64 {
        match self {
            Picker::Leveled(_) => 0,
            Picker::SstLog(sst_log) => {
                sst_log.log_limit(levels, version, settings, level).unwrap_or(0)
            }
        }
    }

    /// Whether it goes by the use of the keyspace.
    pub(crate) fn is_by_dial(&self) -> bool {
        matches!(self, Picker::SstLog(log) if log.share == LogShare::Dial)
    }

    /// Whether files enter the last level by partitions of level 0.
    pub(crate) fn takes_columns(&self) -> bool {
        matches!(self, Picker::SstLog(log) if log.mode == LogMode::Columns)
    }

    /// Whether output tables must record how hot their keys are (`hotness/`).
    pub(crate) fn wants_hotness(&self) -> bool {
        matches!(self, Picker::SstLog(log) if log.mode == LogMode::Paper)
    }
}
