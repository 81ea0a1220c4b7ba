//! Fuzz target: operations against the model. Any six bytes are one operation.
//!
//! Owns: the meaning of the bytes. Never does: compose or judge an operation (`testkit` does).

use windrow_testkit::cases::{self, Switching};
use windrow_testkit::compose::Raw;
use windrow_testkit::variant::Variant;

/// Bytes before the operations: variant, switching, the kinds left out.
const HEAD_BYTES: usize = 6;

/// Bytes of an operation.
const OPERATION_BYTES: usize = 6;

pub(super) fn run(input: &[u8]) -> bool {
    let Some((head, rest)) = input.split_first_chunk::<HEAD_BYTES>() else { return false };
    let variants: Vec<&'static Variant> = Variant::simulated().collect();
    let variant = variants[usize::from(head[0]) % variants.len()];
    let switching = if head[1].is_multiple_of(2) { Switching::No } else { Switching::Always };
    let omitted = u32::from_le_bytes([head[2], head[3], head[4], head[5]]);
    let raw = |bytes: &[u8; OPERATION_BYTES]| Raw {
        kind: u16::from_le_bytes([bytes[0], bytes[1]]),
        operands: [bytes[2], bytes[3], bytes[4], bytes[5]],
    };
    let raws: Vec<Raw> = rest.as_chunks().0.iter().map(raw).collect();
    let outcome = cases::check(variant, u64::from(head[1]), omitted, &raws, switching);
    outcome.unwrap_or_else(|difference| panic!("{difference}"));
    true
}
