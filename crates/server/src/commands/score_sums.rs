//! Combinations of sorted sets: `ZUNIONSTORE`, `ZINTER`, `ZDIFF` and their like.
//!
//! Owns: weights, the aggregation of scores, and plain sets as sorted ones with scores of 1. Never
//! does: walk ranges.

use super::call::{Call, float, int, is};
use super::command::{Command, READ, WRITE, keyed_at};
use super::sets::{Operation, limit, numbered_keys};
use super::sorted_sets::{Scored, by_score, replace, reply, scored};
use crate::data::element;
use crate::data::head::Kind;
use crate::data::space::Space;
use crate::data::value::Value;
use crate::data::view::View;
use crate::fault::{Fault, Outcome, SYNTAX, WRONG_TYPE, fail};
use std::collections::HashMap;

pub(super) const COMMANDS: &[Command] = &[
    keyed_at("zunion", -3, READ, (2, -1, 1), |call| show(call, Operation::Union)),
    keyed_at("zinter", -3, READ, (2, -1, 1), |call| show(call, Operation::Inter)),
    keyed_at("zdiff", -3, READ, (2, -1, 1), |call| show(call, Operation::Diff)),
    keyed_at("zunionstore", -4, WRITE, (1, -1, 1), |call| store(call, Operation::Union)),
    keyed_at("zinterstore", -4, WRITE, (1, -1, 1), |call| store(call, Operation::Inter)),
    keyed_at("zdiffstore", -4, WRITE, (1, -1, 1), |call| store(call, Operation::Diff)),
    keyed_at("zintercard", -3, READ, (2, -1, 1), zintercard),
];

#[derive(Clone, Copy)]
enum Aggregate {
    Sum,
    Min,
    Max,
}

impl Aggregate {
    fn of(self, a: f64, b: f64) -> f64 {
        match self {
            // The sum of both infinities is 0, as in Redis.
            Aggregate::Sum if (a + b).is_nan() => 0.0,
            Aggregate::Sum => a + b,
            Aggregate::Min => a.min(b),
            Aggregate::Max => a.max(b),
        }
    }
}

/// Returns the members of a set of either kind.
fn members(view: &View<'_>, key: &[u8]) -> Outcome<Vec<Scored>> {
    match view.value(key)? {
        None => Ok(Vec::new()),
        Some(Value::Collection(head)) if head.kind == Kind::SortedSet => {
            by_score(view, key).map(|row| scored(key, &row?.0)).collect()
        }
        Some(Value::Collection(head)) if head.kind == Kind::Set => view
            .gather(view.rows_of(Space::Sets, &element::prefix(key)))
            .map(|row| Ok((element::rest(key, &row?.0).to_vec(), 1.0)))
            .collect(),
        Some(_) => fail(WRONG_TYPE),
    }
}

/// Returns the members of the combined sets, in the order of scores and then of members.
fn combine(
    view: &View<'_>,
    keys: &[&[u8]],
    weights: &[f64],
    operation: Operation,
    aggregate: Aggregate,
) -> Outcome<Vec<Scored>> {
    let mut all: HashMap<Vec<u8>, (f64, usize)> = HashMap::new();
    for (place, key) in keys.iter().enumerate() {
        for (member, score) in members(view, key)? {
            let weighted = weights.get(place).map_or(score, |weight| {
                let weighted = score * weight;
                if weighted.is_nan() { 0.0 } else { weighted }
            });
            match all.get_mut(&member) {
                Some((sum, times)) => {
                    *sum = aggregate.of(*sum, weighted);
                    *times += 1;
                }
                None if place > 0 && operation != Operation::Union => {}
                None => {
                    all.insert(member, (weighted, 1));
                }
            }
        }
    }
    let is_in = |times: usize| match operation {
        Operation::Union => true,
        Operation::Inter => times == keys.len(),
        Operation::Diff => times == 1,
    };
    let found = all.into_iter().filter(|(_, (_, times))| is_in(*times));
    let mut found: Vec<Scored> = found.map(|(member, (score, _))| (member, score)).collect();
    found.sort_by(|(a, of_a), (b, of_b)| of_a.total_cmp(of_b).then_with(|| a.cmp(b)));
    Ok(found)
}

/// Returns the members that the arguments from `place` on ask for, and whether with scores.
fn asked(call: &Call<'_, '_>, place: usize, operation: Operation) -> Outcome<(Vec<Scored>, bool)> {
    let is_store = place == 2;
    let name = String::from_utf8_lossy(call.args[0]).to_ascii_lowercase();
    if int(call.arg(place)?)? < 1 {
        return fail(format!("ERR at least 1 input key is needed for '{name}' command"));
    }
    let (keys, rest) = numbered_keys(call, place).map_err(|_| Fault(SYNTAX.into()))?;
    let (mut weights, mut aggregate, mut has_scores) = (Vec::new(), Aggregate::Sum, false);
    let mut at = 0;
    while let Some(word) = rest.get(at) {
        if is(word, "WITHSCORES") && !is_store {
            has_scores = true;
            at += 1;
        } else if is(word, "WEIGHTS") && operation != Operation::Diff {
            let Some(values) = rest.get(at + 1..at + 1 + keys.len()) else { return fail(SYNTAX) };
            let values = values
                .iter()
                .map(|value| float(value).or_else(|_| fail("ERR weight value is not a float")));
            weights = values.collect::<Outcome<Vec<_>>>()?;
            at += 1 + keys.len();
        } else if is(word, "AGGREGATE") && operation != Operation::Diff {
            aggregate = match rest.get(at + 1) {
                Some(word) if is(word, "SUM") => Aggregate::Sum,
                Some(word) if is(word, "MIN") => Aggregate::Min,
                Some(word) if is(word, "MAX") => Aggregate::Max,
                _ => return fail(SYNTAX),
            };
            at += 2;
        } else {
            return fail(SYNTAX);
        }
    }
    Ok((combine(&call.view, keys, &weights, operation, aggregate)?, has_scores))
}

fn show(call: &mut Call<'_, '_>, operation: Operation) -> Outcome {
    let (members, has_scores) = asked(call, 1, operation)?;
    reply(call, &members, has_scores)
}

fn store(call: &mut Call<'_, '_>, operation: Operation) -> Outcome {
    let (members, _) = asked(call, 2, operation)?;
    replace(&mut call.view, call.args[1], &members)?;
    call.out.count(members.len());
    Ok(())
}

fn zintercard(call: &mut Call<'_, '_>) -> Outcome {
    if call.int(1)? < 1 {
        return fail("ERR at least 1 input key is needed for 'zintercard' command");
    }
    let (keys, rest) = numbered_keys(call, 1)?;
    let limit = limit(rest)?;
    let found = combine(&call.view, keys, &[], Operation::Inter, Aggregate::Sum)?.len();
    call.out.count(found.min(limit));
    Ok(())
}
