//! Walks over more elements than one reply may have: `SCAN`, `HSCAN` and their like.
//!
//! Owns: their options and their positions. Never does: keep anything open between two calls.

use super::call::{Call, int, is};
use super::command::{Command, READ, keyed, plain};
use crate::data::element;
use crate::data::field::Field;
use crate::data::head::Kind;
use crate::data::keys;
use crate::data::score;
use crate::data::space::Space;
use crate::fault::{Outcome, SYNTAX, fail};
use crate::glob::Pattern;
use crate::protocol::number::print_f64;
use std::ops::Bound;

const COUNT_DEFAULT: usize = 10;
/// The most elements that a call looks at, for any `COUNT`.
const COUNT_MAX: usize = 100_000;

pub(super) const COMMANDS: &[Command] = &[
    plain("scan", -2, READ, scan),
    keyed("hscan", -3, READ, |call| scan_of(call, Kind::Hash)),
    keyed("sscan", -3, READ, |call| scan_of(call, Kind::Set)),
    keyed("zscan", -3, READ, |call| scan_of(call, Kind::SortedSet)),
];

/// The options of a scan.
struct Scan<'p> {
    number: u64,
    /// The last key that the client was sent.
    after: Option<Vec<u8>>,
    pattern: Option<Pattern<'p>>,
    count: usize,
    /// The name of a kind of value.
    kind: Option<&'p [u8]>,
}

impl<'p> Scan<'p> {
    /// Reads the arguments from `at` on.
    fn of(call: &Call<'p, '_>, at: usize) -> Outcome<Scan<'p>> {
        let Ok(number) = str::from_utf8(call.arg(at)?).unwrap_or_default().parse::<u64>() else {
            return fail("ERR invalid cursor");
        };
        let mut scan =
            Scan { number, after: None, pattern: None, count: COUNT_DEFAULT, kind: None };
        let mut at = at + 1;
        while let Some(word) = call.args.get(at) {
            let value = call.arg(at + 1)?;
            if is(word, "MATCH") {
                scan.pattern = Some(Pattern::new(value)?);
            } else if is(word, "COUNT") {
                match usize::try_from(int(value)?) {
                    Ok(count @ 1..) => scan.count = count.min(COUNT_MAX),
                    _ => return fail(SYNTAX),
                }
            } else if is(word, "TYPE") && is(call.args[0], "SCAN") {
                scan.kind = Some(value);
            } else {
                return fail(SYNTAX);
            }
            at += 2;
        }
        if number != 0 {
            scan.after = call.shared.positions.get(number);
            if scan.after.is_none() {
                return fail(
                    "ERR unknown cursor: the server has forgotten where this scan was, or it was \
                     another server's; begin again at 0",
                );
            }
        }
        Ok(scan)
    }

    fn from(&self, begin: Bound<Vec<u8>>) -> Bound<Vec<u8>> {
        self.after.clone().map_or(begin, Bound::Excluded)
    }

    fn matches(&self, text: &[u8]) -> bool {
        self.pattern.as_ref().is_none_or(|pattern| pattern.matches(text))
    }

    /// Writes the head of the reply: the number of the next call, 0 at the end.
    fn reply(&self, call: &mut Call<'_, '_>, last: Option<&[u8]>) {
        let number = last.map_or(0, |last| call.shared.positions.add(last, self.number));
        call.out.array(2);
        call.out.bulk(number.to_string().as_bytes());
    }
}

fn scan(call: &mut Call<'_, '_>) -> Outcome {
    let scan = Scan::of(call, 1)?;
    let (mut found, mut last, mut looked_at) = (Vec::new(), None, 0);
    for key in keys::keys(&call.view, scan.from(Bound::Unbounded)) {
        let (key, kind) = key?;
        let is_wanted = scan.kind.is_none_or(|name| is(name, kind.name()));
        if is_wanted && scan.matches(&key) {
            found.push(key.clone());
        }
        looked_at += 1;
        if looked_at == scan.count {
            last = Some(key);
            break;
        }
    }
    scan.reply(call, last.as_deref());
    call.out.array(found.len());
    found.iter().for_each(|key| call.out.bulk(key));
    Ok(())
}

fn scan_of(call: &mut Call<'_, '_>, kind: Kind) -> Outcome {
    let scan = Scan::of(call, 2)?;
    let key = call.key();
    let space = match kind {
        Kind::Hash => Space::Hashes,
        Kind::Set => Space::Sets,
        _ => Space::Members,
    };
    let (mut found, mut last, mut looked_at) = (Vec::new(), None, 0);
    if call.view.collection(key, kind)?.is_some() {
        let prefix = element::prefix(key);
        let end = Bound::Excluded(element::end_of(&prefix));
        for row in call.view.rows(space, scan.from(Bound::Included(prefix)), end) {
            let (row, value) = row?;
            let element = element::rest(key, &row);
            if scan.matches(element) {
                call.view.keep(element.len() + value.len())?;
                found.push((element.to_vec(), value));
            }
            looked_at += 1;
            if looked_at == scan.count {
                last = Some(row);
                break;
            }
        }
    }
    scan.reply(call, last.as_deref());
    call.out.array(if kind == Kind::Set { found.len() } else { 2 * found.len() });
    for (element, value) in found {
        call.out.bulk(&element);
        match kind {
            Kind::Hash => call.out.bulk(&Field::decode(value)?),
            Kind::Set => {}
            _ => call.out.bulk(print_f64(score::decode(&value)?).as_bytes()),
        }
    }
    Ok(())
}
