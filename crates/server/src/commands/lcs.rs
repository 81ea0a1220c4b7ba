//! `LCS`: the longest common subsequence of two strings.
//!
//! Owns: the table of lengths and the path back through it. Never does: take more memory than
//! [`CELLS_MAX`] cells.

use super::call::{Call, int, is};
use super::command::{Command, READ, keyed_at};
use crate::fault::{Fault, Outcome, SYNTAX, WRONG_TYPE, fail};
use std::ops::Range;

/// The most cells of the table.
const CELLS_MAX: usize = 16 << 20;

pub(super) const COMMANDS: &[Command] = &[keyed_at("lcs", -3, READ, (1, 2, 1), lcs)];

/// A stretch that is in both strings.
struct Match {
    a: Range<usize>,
    b: Range<usize>,
}

#[derive(Default)]
struct LcsOptions {
    len: bool,
    idx: bool,
    with_len: bool,
    len_min: usize,
}

impl LcsOptions {
    fn of(args: &[&[u8]]) -> Outcome<LcsOptions> {
        let mut options = LcsOptions::default();
        let mut rest = args;
        while let [word, others @ ..] = rest {
            rest = others;
            match word {
                word if is(word, "LEN") => options.len = true,
                word if is(word, "IDX") => options.idx = true,
                word if is(word, "WITHMATCHLEN") => options.with_len = true,
                word if is(word, "MINMATCHLEN") => {
                    let [number, others @ ..] = rest else { return fail(SYNTAX) };
                    options.len_min = usize::try_from(int(number)?).unwrap_or(0);
                    rest = others;
                }
                _ => return fail(SYNTAX),
            }
        }
        if options.len && options.idx {
            return fail("ERR If you want both the length and indexes, please just use IDX.");
        }
        Ok(options)
    }
}

fn lcs(call: &mut Call<'_, '_>) -> Outcome {
    let options = LcsOptions::of(&call.args[3..])?;
    let string = |key: &[u8]| {
        call.view.string(key).map(|string| string.map(|s| s.to_vec()).unwrap_or_default()).map_err(
            |fault| match fault.0 == WRONG_TYPE {
                true => Fault("ERR The specified keys must contain string values".into()),
                false => fault,
            },
        )
    };
    let (a, b) = (string(call.args[1])?, string(call.args[2])?);
    if (a.len() + 1).saturating_mul(b.len() + 1) > CELLS_MAX {
        return fail("ERR String too long for LCS");
    }
    let (common, mut matches) = common(&a, &b);
    if options.len {
        call.out.count(common.len());
    } else if !options.idx {
        call.out.bulk(&common);
    } else {
        matches.retain(|found| found.a.len() >= options.len_min);
        call.out.map(2);
        call.out.bulk(b"matches");
        call.out.array(matches.len());
        for found in &matches {
            call.out.array(if options.with_len { 3 } else { 2 });
            for range in [&found.a, &found.b] {
                call.out.array(2);
                call.out.count(range.start);
                call.out.count(range.end - 1);
            }
            if options.with_len {
                call.out.count(found.a.len());
            }
        }
        call.out.bulk(b"len");
        call.out.count(common.len());
    }
    Ok(())
}

/// Returns the longest common subsequence, and its stretches from the last to the first.
fn common(a: &[u8], b: &[u8]) -> (Vec<u8>, Vec<Match>) {
    let width = b.len() + 1;
    let mut lengths = vec![0_u32; (a.len() + 1) * width];
    for (i, byte) in a.iter().enumerate() {
        for (j, other) in b.iter().enumerate() {
            let at = (i + 1) * width + j + 1;
            lengths[at] = match byte == other {
                true => lengths[at - width - 1] + 1,
                false => lengths[at - 1].max(lengths[at - width]),
            };
        }
    }
    let (mut common, mut matches): (Vec<u8>, Vec<Match>) = (Vec::new(), Vec::new());
    let (mut i, mut j) = (a.len(), b.len());
    while i > 0 && j > 0 {
        if a[i - 1] == b[j - 1] {
            (i, j) = (i - 1, j - 1);
            common.push(a[i]);
            match matches.last_mut() {
                Some(last) if last.a.start == i + 1 && last.b.start == j + 1 => {
                    (last.a.start, last.b.start) = (i, j);
                }
                _ => matches.push(Match { a: i..i + 1, b: j..j + 1 }),
            }
        } else if lengths[(i - 1) * width + j] > lengths[i * width + j - 1] {
            i -= 1;
        } else {
            j -= 1;
        }
    }
    common.reverse();
    (common, matches)
}

#[cfg(test)]
mod tests {
    use super::common;

    #[test]
    fn the_longest_is_found_with_its_stretches() {
        let (text, matches) = common(b"ohmytext", b"mynewtext");
        assert_eq!(text, b"mytext");
        let places: Vec<_> = matches.iter().map(|m| (m.a.clone(), m.b.clone())).collect();
        assert_eq!(places, [(4..8, 5..9), (2..4, 0..2)]);
        assert_eq!(common(b"", b"a").0, b"");
    }
}
