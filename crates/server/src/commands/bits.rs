//! Strings as arrays of bits.
//!
//! Owns: single bits, counts, positions, and integers of any width (`BITFIELD`). Never does: know rows.

use super::call::{Call, int, is};
use super::command::{Command, READ, WRITE, keyed, keyed_at};
use super::strings::{check_len, range};
use crate::fault::{Outcome, SYNTAX, fail};

/// The number of bits of the longest string.
const BITS_MAX: u64 = 512 << 23;

pub(super) const COMMANDS: &[Command] = &[
    keyed("setbit", 4, WRITE, setbit),
    keyed("getbit", 3, READ, getbit),
    keyed("bitcount", -2, READ, bitcount),
    keyed("bitpos", -3, READ, bitpos),
    keyed_at("bitop", -4, WRITE, (2, -1, 1), bitop),
    keyed("bitfield", -2, WRITE, |call| bitfield(call, false)),
    keyed("bitfield_ro", -2, READ, |call| bitfield(call, true)),
];

fn offset(arg: &[u8]) -> Outcome<u64> {
    let offset = int(arg).ok().and_then(|offset| u64::try_from(offset).ok());
    match offset.filter(|offset| *offset < BITS_MAX) {
        Some(offset) => Ok(offset),
        None => fail("ERR bit offset is not an integer or out of range"),
    }
}

fn bit(arg: &[u8]) -> Option<bool> {
    match arg {
        b"0" => Some(false),
        b"1" => Some(true),
        _ => None,
    }
}

fn bit_of(bytes: &[u8], offset: u64) -> bool {
    let byte = bytes.get((offset / 8) as usize).copied().unwrap_or(0);
    byte >> (7 - offset % 8) & 1 == 1
}

fn set_bit_of(bytes: &mut [u8], offset: u64, is_set: bool) {
    let (byte, mask) = (&mut bytes[(offset / 8) as usize], 1 << (7 - offset % 8));
    if is_set {
        *byte |= mask;
    } else {
        *byte &= !mask;
    }
}

fn setbit(call: &mut Call<'_, '_>) -> Outcome {
    let offset = offset(call.args[2])?;
    let Some(is_set) = bit(call.args[3]) else {
        return fail("ERR bit is not an integer or out of range");
    };
    let (before, deadline_ms) = call.view.string_until(call.key())?;
    let mut string = before.map(|before| before.to_vec()).unwrap_or_default();
    let bytes = (offset / 8) as usize + 1;
    check_len(bytes, 0)?;
    string.resize(string.len().max(bytes), 0);
    let was_set = bit_of(&string, offset);
    set_bit_of(&mut string, offset, is_set);
    call.view.put_string(call.key(), &string, deadline_ms)?;
    call.out.one_if(was_set);
    Ok(())
}

fn getbit(call: &mut Call<'_, '_>) -> Outcome {
    let offset = offset(call.args[2])?;
    let string = call.view.string(call.key())?;
    call.out.one_if(string.is_some_and(|string| bit_of(&string, offset)));
    Ok(())
}

/// Returns whether places are those of bits: `BYTE` or `BIT`.
fn is_of_bits(arg: Option<&&[u8]>) -> Outcome<bool> {
    match arg {
        None => Ok(false),
        Some(arg) if is(arg, "BYTE") => Ok(false),
        Some(arg) if is(arg, "BIT") => Ok(true),
        Some(_) => fail(SYNTAX),
    }
}

/// Returns the bits from `begin` to `end`, which are places of bytes or of bits.
fn bits(string: &[u8], (begin, end): (i64, i64), is_of_bits: bool) -> std::ops::Range<u64> {
    let unit = if is_of_bits { 1 } else { 8 };
    let places = range(begin, end, string.len() * 8 / unit);
    (places.start * unit) as u64..(places.end * unit) as u64
}

fn count_bits(string: &[u8], bits: std::ops::Range<u64>) -> u64 {
    let whole = bits.start.div_ceil(8) * 8..bits.end / 8 * 8;
    if whole.start >= whole.end {
        return bits.map(|offset| u64::from(bit_of(string, offset))).sum();
    }
    let edges = (bits.start..whole.start).chain(whole.end..bits.end);
    let of_edges: u64 = edges.map(|offset| u64::from(bit_of(string, offset))).sum();
    let bytes = &string[(whole.start / 8) as usize..(whole.end / 8) as usize];
    of_edges + bytes.iter().map(|byte| u64::from(byte.count_ones())).sum::<u64>()
}

fn bitcount(call: &mut Call<'_, '_>) -> Outcome {
    let places = match call.args.len() {
        2 => None,
        4 | 5 => Some((call.int(2)?, call.int(3)?)),
        _ => return fail(SYNTAX),
    };
    let is_of_bits = is_of_bits(call.args.get(4))?;
    let string = call.view.string(call.key())?;
    let string = string.as_deref().unwrap_or_default();
    let bits = bits(string, places.unwrap_or((0, -1)), is_of_bits);
    call.out.int(count_bits(string, bits) as i64);
    Ok(())
}

fn bitpos(call: &mut Call<'_, '_>) -> Outcome {
    let wanted = int(call.args[2])?;
    let wanted = match wanted {
        0 => false,
        1 => true,
        _ => return fail("ERR The bit argument must be 1 or 0."),
    };
    if call.args.len() > 6 {
        return fail(SYNTAX);
    }
    let begin = if call.args.len() > 3 { call.int(3)? } else { 0 };
    let end = if call.args.len() > 4 { call.int(4)? } else { -1 };
    let is_of_bits = is_of_bits(call.args.get(5))?;
    let Some(string) = call.view.string(call.key())? else {
        call.out.int(if wanted { -1 } else { 0 });
        return Ok(());
    };
    let range = bits(&string, (begin, end), is_of_bits);
    let skipped = if wanted { 0 } else { u8::MAX };
    let mut at = range.start;
    while at < range.end {
        // Eight bits at once, all with the other value.
        if at.is_multiple_of(8) && at + 8 <= range.end && string[(at / 8) as usize] == skipped {
            at += 8;
        } else if bit_of(&string, at) == wanted {
            call.out.int(at as i64);
            return Ok(());
        } else {
            at += 1;
        }
    }
    // A string without a given end is followed by zeros without end.
    let is_behind = !wanted && call.args.len() < 5 && !range.is_empty();
    call.out.int(if is_behind { range.end as i64 } else { -1 });
    Ok(())
}

fn bitop(call: &mut Call<'_, '_>) -> Outcome {
    let operation: fn(u8, u8) -> u8 = match call.args[1] {
        word if is(word, "AND") => |a, b| a & b,
        word if is(word, "OR") => |a, b| a | b,
        word if is(word, "XOR") => |a, b| a ^ b,
        word if is(word, "NOT") && call.args.len() > 4 => {
            return fail("ERR BITOP NOT must be called with a single source key.");
        }
        word if is(word, "NOT") => |a, _| !a,
        _ => return fail(SYNTAX),
    };
    let target = call.args[2];
    let mut strings = Vec::new();
    for key in &call.args[3..] {
        strings.push(call.view.string(key)?.map(|s| s.to_vec()).unwrap_or_default());
    }
    let len = strings.iter().map(Vec::len).max().unwrap_or(0);
    strings.iter_mut().for_each(|string| string.resize(len, 0));
    let mut result = strings.swap_remove(0);
    if is(call.args[1], "NOT") {
        result.iter_mut().for_each(|byte| *byte = operation(*byte, 0));
    }
    for string in &strings {
        result.iter_mut().zip(string).for_each(|(a, b)| *a = operation(*a, *b));
    }
    if result.is_empty() {
        call.view.remove(target)?;
    } else {
        call.view.set_string(target, &result, None)?;
    }
    call.out.count(len);
    Ok(())
}

// ---- BITFIELD

/// The treatment of a number that is too large for its field.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Overflow {
    Wrap,
    Saturate,
    Fail,
}

/// A field: its width, whether it has a sign, and its first bit.
#[derive(Clone, Copy)]
struct BitField {
    bits: u32,
    is_signed: bool,
    offset: u64,
}

#[derive(Clone, Copy)]
enum Step {
    Get,
    Set(i64),
    Add(i64),
}

impl BitField {
    fn of(kind: &[u8], place: &[u8]) -> Outcome<BitField> {
        let invalid = || {
            fail(
                "ERR Invalid bitfield type. Use something like i16 u8. Note that u64 is not \
                 supported but i64 is.",
            )
        };
        let (is_signed, digits) = match kind {
            [b'i', digits @ ..] => (true, digits),
            [b'u', digits @ ..] => (false, digits),
            _ => return invalid(),
        };
        let widest = if is_signed { 64 } else { 63 };
        let Ok(bits @ 1..) = int(digits) else { return invalid() };
        if bits > widest {
            return invalid();
        }
        let (is_counted, place) = match place {
            [b'#', place @ ..] => (true, place),
            _ => (false, place),
        };
        let out_of_range = "ERR bit offset is not an integer or out of range";
        let place = int(place).ok().and_then(|place| u64::try_from(place).ok());
        let step = if is_counted { bits as u64 } else { 1 };
        let offset = place.and_then(|place| place.checked_mul(step));
        match offset.filter(|offset| offset + bits as u64 <= BITS_MAX) {
            Some(offset) => Ok(BitField { bits: bits as u32, is_signed, offset }),
            None => fail(out_of_range),
        }
    }

    fn end(self) -> u64 {
        self.offset + u64::from(self.bits)
    }

    fn get(self, string: &[u8]) -> i64 {
        let raw = (self.offset..self.end())
            .fold(0_u64, |raw, offset| raw << 1 | u64::from(bit_of(string, offset)));
        self.of_raw(raw)
    }

    /// Returns the number in the lowest bits of `raw`.
    fn of_raw(self, raw: u64) -> i64 {
        let unused = 64 - self.bits;
        let shifted = raw << unused;
        if self.is_signed { (shifted as i64) >> unused } else { (shifted >> unused) as i64 }
    }

    fn set(self, string: &mut [u8], number: i64) {
        for (place, offset) in (self.offset..self.end()).rev().enumerate() {
            set_bit_of(string, offset, number >> place & 1 == 1);
        }
    }

    /// Returns the number as it fits; `None` where it does not and nothing must be written.
    fn fit(self, number: i128, overflow: Overflow) -> Option<i64> {
        let (least, most) = match self.is_signed {
            true => (-(1_i128 << (self.bits - 1)), (1_i128 << (self.bits - 1)) - 1),
            false => (0, (1_i128 << self.bits) - 1),
        };
        match overflow {
            _ if (least..=most).contains(&number) => Some(number as i64),
            Overflow::Wrap => Some(self.of_raw(number as u64)),
            Overflow::Saturate => Some(number.clamp(least, most) as i64),
            Overflow::Fail => None,
        }
    }
}

/// Reads the steps of a `BITFIELD`, each with its treatment of an overflow.
fn steps(call: &Call<'_, '_>, only_reads: bool) -> Outcome<Vec<(BitField, Step, Overflow)>> {
    let mut overflow = Overflow::Wrap;
    let mut steps = Vec::new();
    let mut at = 2;
    while let Some(word) = call.args.get(at) {
        if is(word, "OVERFLOW") {
            overflow = match call.arg(at + 1)? {
                word if is(word, "WRAP") => Overflow::Wrap,
                word if is(word, "SAT") => Overflow::Saturate,
                word if is(word, "FAIL") => Overflow::Fail,
                _ => return fail("ERR Invalid OVERFLOW type specified"),
            };
            at += 2;
            continue;
        }
        let make: fn(i64) -> Step = match word {
            word if is(word, "GET") => |_| Step::Get,
            word if is(word, "SET") => Step::Set,
            word if is(word, "INCRBY") => Step::Add,
            _ => return fail(SYNTAX),
        };
        let field = BitField::of(call.arg(at + 1)?, call.arg(at + 2)?)?;
        let is_get = is(word, "GET");
        if only_reads && !is_get {
            return fail("ERR BITFIELD_RO only supports the GET subcommand");
        }
        let number = if is_get { 0 } else { call.int(at + 3)? };
        steps.push((field, make(number), overflow));
        at += if is_get { 3 } else { 4 };
    }
    Ok(steps)
}

fn bitfield(call: &mut Call<'_, '_>, only_reads: bool) -> Outcome {
    let steps = steps(call, only_reads)?;
    let (before, deadline_ms) = call.view.string_until(call.key())?;
    let mut string = before.map(|before| before.to_vec()).unwrap_or_default();
    let writes = steps.iter().filter(|(_, step, _)| !matches!(step, Step::Get));
    if let Some(end) = writes.map(|(field, ..)| field.end()).max() {
        let bytes = end.div_ceil(8) as usize;
        check_len(bytes, 0)?;
        string.resize(string.len().max(bytes), 0);
    }
    let mut has_written = false;
    call.out.array(steps.len());
    for (field, step, overflow) in steps {
        let before = field.get(&string);
        let (after, reply) = match step {
            Step::Get => (None, Some(before)),
            Step::Set(number) => {
                // A number without a sign is passed as its bits.
                let after = field.fit(i128::from(number), overflow);
                (after, after.map(|_| before))
            }
            Step::Add(by) => {
                let after = field.fit(i128::from(before) + i128::from(by), overflow);
                (after, after)
            }
        };
        if let Some(after) = after {
            field.set(&mut string, after);
            has_written = true;
        }
        match reply {
            Some(number) => call.out.int(number),
            None => call.out.null(),
        }
    }
    if has_written {
        call.view.put_string(call.key(), &string, deadline_ms)?;
    }
    Ok(())
}
