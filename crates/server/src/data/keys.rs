//! All keys that have a value, in their order.
//!
//! Owns: strings and collections as one sequence, without expired ones. Never does: count keys that
//! it does not walk.

use super::head::{Head, Kind};
use super::rows::Rows;
use super::space::Space;
use super::view::View;
use std::cmp::Ordering;
use std::iter::Peekable;
use std::ops::Bound;
use windrow::{Result, Slice};

/// Keys and their values.
pub(crate) struct Keys {
    strings: Peekable<Rows>,
    heads: Peekable<Rows>,
    now_ms: u64,
}

/// Returns the keys from `from` on.
pub(crate) fn keys(view: &View<'_>, from: Bound<Vec<u8>>) -> Keys {
    let rows = |space| view.rows(space, from.clone(), Bound::Unbounded);
    Keys {
        strings: rows(Space::Strings).peekable(),
        heads: rows(Space::Heads).peekable(),
        now_ms: view.now_ms(),
    }
}

impl Iterator for Keys {
    type Item = Result<(Slice, Kind)>;

    fn next(&mut self) -> Option<Self::Item> {
        loop {
            let order = match (self.strings.peek(), self.heads.peek()) {
                (None, None) => return None,
                (Some(Err(_)), _) | (Some(_), None) => Ordering::Less,
                (_, Some(Err(_))) | (None, Some(_)) => Ordering::Greater,
                (Some(Ok((string, _))), Some(Ok((head, _)))) => string.cmp(head),
            };
            if order.is_le() {
                let (key, _) = match self.strings.next()? {
                    Ok(row) => row,
                    Err(error) => return Some(Err(error)),
                };
                // The head belongs to a string with a deadline.
                if order.is_eq() {
                    self.heads.next();
                }
                return Some(Ok((key, Kind::String)));
            }
            let (key, head) = match self.heads.next()? {
                Ok((key, head)) => match Head::decode(&head) {
                    Ok(head) => (key, head),
                    Err(error) => return Some(Err(error)),
                },
                Err(error) => return Some(Err(error)),
            };
            if head.kind != Kind::String && !head.is_expired(self.now_ms) {
                return Some(Ok((key, head.kind)));
            }
        }
    }
}
