//! Small sets of named things: the clients and the hazards of a run.
//!
//! Owns: their text form, which repeats a shrunk run. Never does: draw anything by itself.

use std::marker::PhantomData;
use windrow_env::testing::Rng;

/// A kind with few members, each with a name.
pub trait Member: Copy + PartialEq + 'static {
    /// All of them with their names, at most 32.
    const ALL: &'static [(Self, &'static str)];
}

/// A set of them.
#[derive(Debug, PartialEq, Eq)]
pub struct Set<T> {
    bits: u32,
    of: PhantomData<T>,
}

impl<T> Clone for Set<T> {
    fn clone(&self) -> Set<T> {
        *self
    }
}

impl<T> Copy for Set<T> {}

impl<T: Member> Set<T> {
    /// Returns the empty set.
    pub fn none() -> Set<T> {
        Set { bits: 0, of: PhantomData }
    }

    /// Returns the set of all members.
    pub fn all() -> Set<T> {
        Set { bits: (1 << T::ALL.len()) - 1, of: PhantomData }
    }

    /// Returns the members of these names.
    ///
    /// # Errors
    /// A sentence that lists the known names.
    pub fn parse<'a>(names: impl IntoIterator<Item = &'a str>) -> Result<Set<T>, String> {
        names.into_iter().try_fold(Set::none(), |set, name| {
            let found = T::ALL.iter().find(|(_, n)| *n == name);
            let all = || Set::<T>::all().names().join(",");
            found
                .map(|(member, _)| set.with(*member))
                .ok_or_else(|| format!("there is no `{name}`, but {}", all()))
        })
    }

    /// Returns their names.
    pub fn names(self) -> Vec<&'static str> {
        self.each().map(|(_, name)| name).collect()
    }

    /// Adds this member.
    #[must_use]
    pub fn with(self, member: T) -> Set<T> {
        Set { bits: self.bits | bit(member), ..self }
    }

    /// Removes this member.
    #[must_use]
    pub fn without(self, member: T) -> Set<T> {
        Set { bits: self.bits & !bit(member), ..self }
    }

    /// Returns the members that are in both sets.
    #[must_use]
    pub fn and(self, other: Set<T>) -> Set<T> {
        Set { bits: self.bits & other.bits, ..self }
    }

    /// Keeps each member with this chance in 64.
    #[must_use]
    pub fn some(self, rng: &mut Rng, of_64: u64) -> Set<T> {
        T::ALL.iter().fold(Set::none(), |set, (member, _)| {
            let drawn = rng.below(64) < of_64;
            if drawn && self.has(*member) { set.with(*member) } else { set }
        })
    }

    /// Whether this member is in it.
    pub fn has(self, member: T) -> bool {
        self.bits & bit(member) != 0
    }

    /// Whether it is empty.
    pub fn is_empty(self) -> bool {
        self.bits == 0
    }

    /// Returns its members.
    pub fn members(self) -> impl Iterator<Item = T> {
        self.each().map(|(member, _)| member)
    }

    fn each(self) -> impl Iterator<Item = (T, &'static str)> {
        T::ALL.iter().copied().filter(move |(member, _)| self.has(*member))
    }
}

fn bit<T: Member>(member: T) -> u32 {
    let at = T::ALL.iter().position(|(other, _)| *other == member);
    at.map_or(0, |at| 1 << at)
}
