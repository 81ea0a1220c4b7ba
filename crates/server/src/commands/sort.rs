//! `SORT`: the elements of a list, a set or a sorted set in another order.
//!
//! Owns: orders by other keys, and the values that are sent instead of the elements. Never does:
//! sort elements that are not in memory.

use super::call::{Call, is};
use super::command::{Command, READ, WRITE, keyed_at};
use super::lists::{End, push_all};
use super::sorted_sets::{by_score, scored};
use crate::data::element;
use crate::data::field::Field;
use crate::data::head::Kind;
use crate::data::space::Space;
use crate::data::value::Value;
use crate::data::view::View;
use crate::fault::{Fault, Outcome, SYNTAX, WRONG_TYPE, fail};
use crate::protocol::number::parse_f64;
use std::cmp::Ordering;

pub(super) const COMMANDS: &[Command] = &[
    keyed_at("sort", -2, WRITE, (1, -1, 1), |call| sort(call, false)),
    keyed_at("sort_ro", -2, READ, (1, -1, 1), |call| sort(call, true)),
];

#[derive(Default)]
struct SortOptions<'c> {
    by: Option<&'c [u8]>,
    gets: Vec<&'c [u8]>,
    skipped: i64,
    limit: Option<i64>,
    is_descending: bool,
    is_alpha: bool,
    target: Option<&'c [u8]>,
}

impl<'c> SortOptions<'c> {
    fn of(call: &Call<'c, '_>, only_reads: bool) -> Outcome<SortOptions<'c>> {
        let mut options = SortOptions::default();
        let mut at = 2;
        while let Some(word) = call.args.get(at) {
            match word {
                word if is(word, "ASC") => options.is_descending = false,
                word if is(word, "DESC") => options.is_descending = true,
                word if is(word, "ALPHA") => options.is_alpha = true,
                word if is(word, "LIMIT") => {
                    (options.skipped, options.limit) = (call.int(at + 1)?, Some(call.int(at + 2)?));
                    at += 2;
                }
                word if is(word, "BY") => {
                    options.by = Some(call.arg(at + 1)?);
                    at += 1;
                }
                word if is(word, "GET") => {
                    options.gets.push(call.arg(at + 1)?);
                    at += 1;
                }
                word if is(word, "STORE") && !only_reads => {
                    options.target = Some(call.arg(at + 1)?);
                    at += 1;
                }
                _ => return fail(SYNTAX),
            }
            at += 1;
        }
        Ok(options)
    }

    /// Returns whether elements keep their order: `BY` names no key.
    fn is_unsorted(&self) -> bool {
        self.by.is_some_and(|by| !by.contains(&b'*'))
    }
}

/// Returns the elements of a value, in their order; of a sorted set backwards where that is asked
/// for.
fn elements(
    view: &View<'_>,
    key: &[u8],
    is_backwards: bool,
) -> Outcome<(Option<Kind>, Vec<Vec<u8>>)> {
    let head = match view.value(key)? {
        None => return Ok((None, Vec::new())),
        Some(Value::String(..)) => return fail(WRONG_TYPE),
        Some(Value::Collection(head)) => head,
    };
    let prefix = element::prefix(key);
    let found: Outcome<Vec<Vec<u8>>> = match head.kind {
        Kind::List => view
            .gather(view.rows_of(Space::Lists, &prefix))
            .map(|row| Ok(row?.1.to_vec()))
            .collect(),
        Kind::Set => view
            .gather(view.rows_of(Space::Sets, &prefix))
            .map(|row| Ok(element::rest(key, &row?.0).to_vec()))
            .collect(),
        Kind::SortedSet => by_score(view, key).map(|row| Ok(scored(key, &row?.0)?.0)).collect(),
        _ => fail(WRONG_TYPE),
    };
    let mut found = found?;
    if head.kind == Kind::SortedSet && is_backwards {
        found.reverse();
    }
    Ok((Some(head.kind), found))
}

/// Returns the value that a pattern names for an element: itself for `#`, else a string, or the
/// field of a hash after `->`.
fn named(view: &View<'_>, pattern: &[u8], element: &[u8]) -> Outcome<Option<Vec<u8>>> {
    if pattern == b"#" {
        return Ok(Some(element.to_vec()));
    }
    let Some(star) = pattern.iter().position(|byte| *byte == b'*') else { return Ok(None) };
    let arrow = pattern[star..].windows(2).position(|two| two == b"->").map(|at| star + at);
    // An arrow at the end is a part of the key.
    let arrow = arrow.filter(|at| at + 2 < pattern.len());
    let end = arrow.unwrap_or(pattern.len());
    let key = [&pattern[..star], element, &pattern[star + 1..end]].concat();
    let value = match arrow {
        None => view.string(&key).map(|value| value.map(|value| value.to_vec())),
        Some(arrow) => match view.collection(&key, Kind::Hash) {
            Ok(Some(_)) => {
                let row = element::row(&key, &pattern[arrow + 2..]);
                let row = view.row(Space::Hashes, &row)?;
                Ok(row.map(Field::decode).transpose()?.map(|field| field.to_vec()))
            }
            Ok(None) => Ok(None),
            Err(fault) => Err(fault),
        },
    };
    match value {
        Ok(value) => Ok(value),
        Err(fault) if fault.0 == WRONG_TYPE => Ok(None),
        Err(fault) => Err(fault),
    }
}

/// The weight that an element is sorted by.
enum Weight {
    Number(f64),
    Text(Option<Vec<u8>>),
}

fn weight(view: &View<'_>, options: &SortOptions<'_>, element: &[u8]) -> Outcome<Weight> {
    let text = match options.by {
        Some(by) => named(view, by, element)?,
        None => Some(element.to_vec()),
    };
    if options.is_alpha {
        return Ok(Weight::Text(text));
    }
    let number = text.map_or(Some(0.0), |text| parse_f64(&text));
    number
        .map(Weight::Number)
        .ok_or_else(|| Fault("ERR One or more scores can't be converted into double".into()))
}

fn compare(a: &(Weight, Vec<u8>), b: &(Weight, Vec<u8>)) -> Ordering {
    match (&a.0, &b.0) {
        (Weight::Number(x), Weight::Number(y)) => x.total_cmp(y).then_with(|| a.1.cmp(&b.1)),
        (Weight::Text(x), Weight::Text(y)) => x.cmp(y),
        _ => Ordering::Equal,
    }
}

fn sort(call: &mut Call<'_, '_>, only_reads: bool) -> Outcome {
    let options = SortOptions::of(call, only_reads)?;
    let is_backwards = options.is_unsorted() && options.is_descending;
    let (kind, mut sorted) = elements(&call.view, call.key(), is_backwards)?;
    // A set has no order of its own that a list could keep.
    let is_stored_set = kind == Some(Kind::Set) && options.target.is_some();
    if !options.is_unsorted() {
        let mut weighted = Vec::with_capacity(sorted.len());
        for element in sorted {
            weighted.push((weight(&call.view, &options, &element)?, element));
        }
        weighted.sort_by(compare);
        if options.is_descending {
            weighted.reverse();
        }
        sorted = weighted.into_iter().map(|(_, element)| element).collect();
    } else if is_stored_set {
        sorted.sort();
    }
    let skipped = usize::try_from(options.skipped).unwrap_or(0);
    let limit = match options.limit {
        Some(limit) => usize::try_from(limit).unwrap_or(usize::MAX),
        None => usize::MAX,
    };
    let mut result = Vec::new();
    for element in sorted.into_iter().skip(skipped).take(limit) {
        if options.gets.is_empty() {
            result.push(Some(element));
            continue;
        }
        for pattern in &options.gets {
            result.push(named(&call.view, pattern, &element)?);
        }
    }
    let Some(target) = options.target else {
        call.out.array(result.len());
        for value in result {
            call.out.bulk_or_null(value.as_deref());
            call.check_room()?;
        }
        return Ok(());
    };
    call.view.remove(target)?;
    if !result.is_empty() {
        let values: Vec<&[u8]> = result.iter().map(|v| v.as_deref().unwrap_or_default()).collect();
        push_all(&mut call.view, target, End::Right, &values)?;
    }
    call.out.count(result.len());
    Ok(())
}
