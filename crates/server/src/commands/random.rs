//! Random elements: `HRANDFIELD`, `SRANDMEMBER` and their like.
//!
//! Owns: the number of elements, and their choice. Never does: favour an element.

use super::call::int;
use crate::data::element;
use crate::data::rows::Rows;
use crate::data::space::Space;
use crate::data::view::View;
use crate::fault::{OUT_OF_RANGE, Outcome, fail};
use std::hash::{BuildHasher, Hasher, RandomState};
use std::ops::Bound;
use windrow::Slice;

/// The most elements of a reply in which an element may come again.
const DRAWN_MAX: u64 = 1 << 20;

/// Unpredictable numbers: SipHash of a counter.
pub(crate) struct Random {
    state: RandomState,
    drawn: u64,
}

impl Random {
    pub(crate) fn new() -> Random {
        Random { state: RandomState::new(), drawn: 0 }
    }

    /// Returns a number below `end`.
    pub(crate) fn below(&mut self, end: u64) -> u64 {
        let mut hasher = self.state.build_hasher();
        hasher.write_u64(self.drawn);
        self.drawn += 1;
        hasher.finish() % end.max(1)
    }
}

/// Reads a count of elements: negative where one may come again.
///
/// # Errors
/// A text that is no integer, or an integer that cannot be negated.
pub(crate) fn count(arg: &[u8], is_doubled: bool) -> Outcome<i64> {
    let count = int(arg)?;
    let least = if is_doubled { i64::MIN / 2 } else { -i64::MAX };
    if count < least { fail(OUT_OF_RANGE) } else { Ok(count) }
}

/// Returns `count` of the `len` rows that begin with `prefix`, as [`choose`] does. A single one of
/// very many rows is the next after a random place between the first and the last: a walk would be
/// long.
///
/// # Errors
/// As [`choose`].
pub(crate) fn rows(
    view: &View<'_>,
    space: Space,
    prefix: &[u8],
    len: u64,
    count: i64,
) -> Outcome<Vec<(Slice, Slice)>> {
    const WALKED_MAX: u64 = 4096;
    if count.unsigned_abs() != 1 || len <= WALKED_MAX {
        return choose(view, view.rows_of(space, prefix), len, count);
    }
    let mut ends = view.rows_of(space, prefix);
    let (Some(first), Some(last)) = (ends.next(), ends.next_back()) else { return Ok(Vec::new()) };
    let from = between(&first?.0, &last?.0);
    let end = Bound::Excluded(element::end_of(prefix));
    let mut behind = view.rows(space, Bound::Included(from), end);
    Ok(behind.next().transpose()?.into_iter().collect())
}

/// Returns a random place between two keys, taken as numbers.
pub(crate) fn between(first: &[u8], last: &[u8]) -> Vec<u8> {
    let shared = first.iter().zip(last).take_while(|(a, b)| a == b).count();
    let number = |key: &[u8]| {
        (0..8).fold(0_u64, |number, place| {
            number << 8 | u64::from(key.get(shared + place).copied().unwrap_or(0))
        })
    };
    let (low, high) = (number(first), number(last));
    let place = low + Random::new().below(high.saturating_sub(low));
    [&first[..shared], &place.to_be_bytes()].concat()
}

/// Chooses from `len` rows: `count` different ones, or `-count` that may repeat.
///
/// # Errors
/// Those of a read; a count that is too large.
pub(crate) fn choose(
    view: &View<'_>,
    rows: Rows,
    len: u64,
    count: i64,
) -> Outcome<Vec<(Slice, Slice)>> {
    let wanted = count.unsigned_abs();
    let mut random = Random::new();
    if len == 0 || count == 0 {
        return Ok(Vec::new());
    }
    if count < 0 && wanted > DRAWN_MAX {
        return fail(format!("{OUT_OF_RANGE}, at most {DRAWN_MAX} elements are drawn at once"));
    }
    // The places among the rows, in ascending order.
    let mut places: Vec<u64> = match count < 0 {
        true => (0..wanted).map(|_| random.below(len)).collect(),
        false if wanted >= len => (0..len).collect(),
        false => sample(&mut random, len, wanted),
    };
    places.sort_unstable();
    let mut chosen = Vec::with_capacity(places.len());
    let mut rows = rows.enumerate();
    let mut row = None;
    for place in places {
        while row.as_ref().is_none_or(|(at, _)| (*at as u64) < place) {
            match rows.next() {
                Some((at, next)) => row = Some((at, next?)),
                None => return Ok(chosen),
            }
        }
        if let Some((_, row)) = &row {
            view.keep(row.0.len() + row.1.len())?;
            chosen.push(row.clone());
        }
    }
    if count < 0 {
        // Elements that may repeat are shuffled: they were read in the order of the rows.
        for place in (1..chosen.len()).rev() {
            chosen.swap(place, random.below(place as u64 + 1) as usize);
        }
    }
    Ok(chosen)
}

/// Returns `wanted` different places below `len`, each set of them equally likely (Floyd's method).
fn sample(random: &mut Random, len: u64, wanted: u64) -> Vec<u64> {
    let mut places = std::collections::HashSet::new();
    for end in len - wanted..len {
        let place = random.below(end + 1);
        if !places.insert(place) {
            places.insert(end);
        }
    }
    places.into_iter().collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn samples_are_of_different_places_and_each_is_as_likely() {
        let mut random = Random::new();
        let mut times = [0; 5];
        for _ in 0..5_000 {
            let places = sample(&mut random, 5, 2);
            assert_eq!(places.len(), 2);
            places.iter().for_each(|place| times[*place as usize] += 1);
        }
        assert!(times.iter().all(|times| (1_800..2_200).contains(times)), "{times:?}");
    }

    #[test]
    fn counts_that_cannot_be_are_refused() {
        assert_eq!(count(b"-3", true).unwrap(), -3);
        assert!(count(b"-9223372036854775808", false).is_err());
        assert!(count(b"-9223372036854770000", true).is_err());
        assert!(count(b"x", false).is_err());
    }
}
