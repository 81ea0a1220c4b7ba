//! The keyspaces that values are spread over.
//!
//! Owns: their names. Never does: read or write.

use windrow::{Db, Keyspace, Result};

/// The kind of rows.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Space {
    /// Plain strings.
    Strings,
    /// Heads of everything else.
    Heads,
    /// Fields of hashes.
    Hashes,
    /// Members of sets.
    Sets,
    /// Elements of lists, by position.
    Lists,
    /// Members of sorted sets.
    Members,
    /// Members of sorted sets, by score.
    Scores,
    /// Collections by the moment at which they expire.
    Deadlines,
    /// Entries of streams, and their groups.
    Streams,
}

/// The names of all but the default keyspace, in the order of [`Space`].
const NAMES: [&str; 8] = [
    "redis.keys",
    "redis.hashes",
    "redis.sets",
    "redis.lists",
    "redis.members",
    "redis.scores",
    "redis.deadlines",
    "redis.streams",
];

/// All spaces.
pub(crate) const SPACES: [Space; 9] = [
    Space::Strings,
    Space::Heads,
    Space::Hashes,
    Space::Sets,
    Space::Lists,
    Space::Members,
    Space::Scores,
    Space::Deadlines,
    Space::Streams,
];

/// The keyspaces of one database.
#[derive(Clone, Debug)]
pub(crate) struct Spaces(Vec<Keyspace>);

impl Spaces {
    /// Returns the keyspaces of `db`, made where they are missing.
    ///
    /// # Errors
    /// Those of [`Db::create_keyspaces`].
    pub(crate) fn of(db: &Db) -> Result<Spaces> {
        let mut all = vec![db.default_keyspace()];
        all.extend(db.create_keyspaces(&NAMES)?);
        Ok(Spaces(all))
    }

    pub(crate) fn get(&self, space: Space) -> &Keyspace {
        &self.0[space as usize]
    }
}
