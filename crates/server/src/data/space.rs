//! The keyspaces that values are spread over.
//!
//! Owns: their names. Never does: read or write.

use windrow::{Db, Keyspace, Result};

/// Which rows.
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
    /// The same by score.
    Scores,
    /// Collections by the moment at which they expire.
    Deadlines,
    /// Entries of streams, and their groups.
    Streams,
}

/// All of them, in the order of [`Space`].
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

/// All of them.
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
    /// Those of `db`, made where they are missing.
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
