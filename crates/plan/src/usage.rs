//! The use of a keyspace, as far as its policy is told.
//!
//! Owns: the uses, and the price of a file and the ceiling of space that go with each. Never does:
//! derive a limit from them; `dial.rs` does.

use core::fmt;

/// The use of a keyspace, as far as the policy is told.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Use {
    /// Fewer bytes written than `leveled` writes, and about as many files over a point.
    #[default]
    Balanced,
    /// As few files over a point as partitions allow.
    Reads,
    /// As few bytes written as space allows.
    Writes,
    /// Whichever of these is measured; the default until something was (`use_measure.rs`).
    Measured,
}

impl Use {
    /// Every use, by the name that a policy's text has for it.
    pub const ALL: [(&'static str, Use); 4] = [
        ("balanced", Use::Balanced),
        ("reads", Use::Reads),
        ("writes", Use::Writes),
        ("measured", Use::Measured),
    ];

    /// Its price of a file, in hundredths of a byte rewritten per byte put.
    pub fn file_price_percent(self) -> u32 {
        match self {
            Use::Balanced | Use::Measured => 100,
            Use::Reads => 800,
            Use::Writes => 20,
        }
    }

    /// Bytes of all tables over those of the last level, in hundredths, where the user sets none.
    pub fn space_max_percent(self) -> u32 {
        match self {
            Use::Balanced | Use::Reads | Use::Measured => 130,
            Use::Writes => 150,
        }
    }
}

impl fmt::Display for Use {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let name = Use::ALL.into_iter().find(|(_, usage)| usage == self);
        f.pad(name.map_or("", |(name, _)| name))
    }
}
