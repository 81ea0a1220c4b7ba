//! Any bytes as requests.
//!
//! Owns: the comparison of parses at once and in pieces. Never does: run a request.

use crate::protocol::{Limits, RequestParser};

/// Complete requests, and whether a fault ended them.
type Requests = (Vec<Vec<Vec<u8>>>, bool);

/// Reads requests that arrive in pieces, which end at `cuts`.
fn requests(input: &[u8], cuts: impl Iterator<Item = usize>) -> Requests {
    let limits = Limits { args_max: 1 << 20, arg_bytes_max: 1 << 20, is_stranger: false };
    let mut parser = RequestParser::default();
    let (mut found, mut done, mut len) = (Vec::new(), 0, 0);
    for end in cuts {
        loop {
            let bytes = &input[done..end];
            let arrived = parser.advance_all(bytes, limits, 3);
            for (args, bytes) in arrived.requests(&arrived.args(bytes)) {
                found.push(args.iter().map(|arg| arg.to_vec()).collect());
                len = bytes;
            }
            done += std::mem::take(&mut len);
            if arrived.wrong.is_some() {
                return (found, true);
            }
            if arrived.is_all {
                break;
            }
        }
    }
    (found, false)
}

/// Reads bytes as requests, at once and in pieces, whose lengths the first byte decides: both are
/// the same.
///
/// # Panics
/// If they are not.
pub fn check_requests(input: &[u8]) {
    let Some((step, input)) = input.split_first() else { return };
    let step = usize::from(*step).max(1);
    let at_once = requests(input, std::iter::once(input.len()));
    let cuts = (step..input.len()).step_by(step).chain([input.len()]);
    assert_eq!(requests(input, cuts), at_once, "in pieces of {step}");
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pieces_make_no_difference() {
        let inputs: [&[u8]; 6] = [
            b"*2\r\n$3\r\nGET\r\n$1\r\na\r\nPING\r\n",
            b"SET a \"b c\"\r\n*0\r\n*-1\r\n",
            b"*1\r\n$4\r\nPI\r\nx",
            b"*1\r\n$-4\r\n",
            b"*x\r\nPING\r\n",
            b"\r\n\r\nPING 'a\r\n",
        ];
        for input in inputs {
            for step in 0..=input.len() as u8 {
                check_requests(&[&[step], input].concat());
            }
        }
    }
}
