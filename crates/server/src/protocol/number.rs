//! Numbers as the protocol writes them.
//!
//! Owns: strict reading of integers and of floating-point numbers, and printing them. Never does:
//! take blanks, plus signs or leading zeros, which Redis refuses as well.

/// Reads a decimal integer, in the one form in which it is printed.
pub(crate) fn parse_i64(text: &[u8]) -> Option<i64> {
    let (is_negative, digits) = match text {
        [b'-', rest @ ..] => (true, rest),
        _ => (false, text),
    };
    if digits.is_empty() || digits.len() > 19 || (digits[0] == b'0' && text != b"0") {
        return None;
    }
    let mut magnitude: u64 = 0;
    for digit in digits {
        let digit = digit.wrapping_sub(b'0');
        if digit > 9 {
            return None;
        }
        magnitude = magnitude.checked_mul(10)?.checked_add(u64::from(digit))?;
    }
    if is_negative { 0_i64.checked_sub_unsigned(magnitude) } else { i64::try_from(magnitude).ok() }
}

/// Reads a floating-point number, `inf` and `-inf` among them; no NaN, no blanks.
pub(crate) fn parse_f64(text: &[u8]) -> Option<f64> {
    let text = str::from_utf8(text).ok()?;
    if text.is_empty() || text.trim() != text {
        return None;
    }
    let number: f64 = match text.to_ascii_lowercase().as_str() {
        "inf" | "+inf" | "infinity" | "+infinity" => f64::INFINITY,
        "-inf" | "-infinity" => f64::NEG_INFINITY,
        lower => lower.parse().ok()?,
    };
    (!number.is_nan()).then_some(number)
}

/// Prints a floating-point number as Redis does: `3`, `3.5`, `inf`.
pub(crate) fn print_f64(number: f64) -> String {
    if number.is_infinite() {
        return if number > 0.0 { "inf".to_owned() } else { "-inf".to_owned() };
    }
    if number == 0.0 {
        return if number.is_sign_negative() { "-0".to_owned() } else { "0".to_owned() };
    }
    let magnitude = number.abs();
    if (1e-5..1e17).contains(&magnitude) {
        return format!("{number}");
    }
    // The form in which `%.17g` writes an exponent: a sign and two digits at least.
    let text = format!("{number:e}");
    match text.split_once('e') {
        Some((mantissa, exponent)) => {
            let (sign, digits) = match exponent.strip_prefix('-') {
                Some(digits) => ('-', digits),
                None => ('+', exponent),
            };
            format!("{mantissa}e{sign}{digits:0>2}")
        }
        None => text,
    }
}

/// A decimal number: `units` times a power of ten.
#[derive(Clone, Copy)]
struct Decimal {
    units: i128,
    /// Digits after the point.
    scale: u32,
}

impl Decimal {
    /// The most digits to which a sum is exact.
    const SCALE_MAX: u32 = 17;

    fn parse(text: &[u8]) -> Option<Decimal> {
        let (is_negative, digits) = match text {
            [b'-', rest @ ..] => (true, rest),
            [b'+', rest @ ..] => (false, rest),
            _ => (false, text),
        };
        let (mut units, mut scale, mut is_behind, mut any) = (0_i128, 0, false, false);
        for byte in digits {
            match byte {
                b'.' if !is_behind => is_behind = true,
                b'0'..=b'9' => {
                    units = units.checked_mul(10)?.checked_add(i128::from(byte - b'0'))?;
                    scale += u32::from(is_behind);
                    any = true;
                }
                _ => return None,
            }
        }
        let units = if is_negative { -units } else { units };
        (any && scale <= Decimal::SCALE_MAX).then_some(Decimal { units, scale })
    }

    fn at_scale(self, scale: u32) -> Option<i128> {
        self.units.checked_mul(10_i128.checked_pow(scale - self.scale)?)
    }
}

/// Returns the sum of two numbers, exact where both are written without an exponent and are not too
/// long; in the shortest form without an exponent. `None` if it is no finite number.
pub(crate) fn add_f64(a: &[u8], b: &[u8]) -> Option<String> {
    let exact = || {
        let (a, b) = (Decimal::parse(a)?, Decimal::parse(b)?);
        let scale = a.scale.max(b.scale);
        let sum = a.at_scale(scale)?.checked_add(b.at_scale(scale)?)?;
        let (sign, magnitude) = (if sum < 0 { "-" } else { "" }, sum.unsigned_abs());
        let one = 10_u128.pow(scale);
        let text = format!("{sign}{}.{:0>2$}", magnitude / one, magnitude % one, scale as usize);
        Some(text.trim_end_matches('0').trim_end_matches('.').to_owned())
    };
    exact().or_else(|| {
        let sum = parse_f64(a)? + parse_f64(b)?;
        // `Display` never writes an exponent.
        sum.is_finite().then(|| format!("{sum}"))
    })
}

/// Appends `number` in decimal.
pub(crate) fn push_i64(out: &mut Vec<u8>, number: i64) {
    let mut digits = [0; 20];
    let mut at = digits.len();
    let mut magnitude = number.unsigned_abs();
    loop {
        at -= 1;
        digits[at] = b'0' + (magnitude % 10) as u8;
        magnitude /= 10;
        if magnitude == 0 {
            break;
        }
    }
    if number < 0 {
        out.push(b'-');
    }
    out.extend_from_slice(&digits[at..]);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn integers_are_written_in_one_way() {
        for number in [0, 1, -1, 42, i64::MAX, i64::MIN, -100] {
            let mut text = Vec::new();
            push_i64(&mut text, number);
            assert_eq!(text, number.to_string().as_bytes());
            assert_eq!(parse_i64(&text), Some(number));
        }
        for text in ["", "-", "+1", "01", "-0", " 1", "1 ", "1.0", "9223372036854775808", "1x"] {
            assert_eq!(parse_i64(text.as_bytes()), None, "{text:?}");
        }
    }

    #[test]
    fn sums_are_exact_in_decimal() {
        let sum = |a: &str, b: &str| add_f64(a.as_bytes(), b.as_bytes());
        for (a, b, text) in [
            ("1", "-1.1", "-0.1"),
            ("10.5", "0.1", "10.6"),
            ("0", "0", "0"),
            ("3", "-3.0", "0"),
            ("1e3", "5.0", "1005"),
            ("17179869184", "1.5", "17179869185.5"),
            ("1e20", "1", "100000000000000000000"),
        ] {
            assert_eq!(sum(a, b).as_deref(), Some(text), "{a} + {b}");
        }
        assert_eq!(sum("1", "inf"), None);
        assert_eq!(sum("1", "x"), None);
    }

    #[test]
    fn floating_point_numbers_are_printed_short() {
        for (number, text) in [
            (3.0, "3"),
            (3.5, "3.5"),
            (0.1, "0.1"),
            (-0.0, "-0"),
            (1e17, "1e+17"),
            (f64::NEG_INFINITY, "-inf"),
        ] {
            assert_eq!(print_f64(number), text);
            assert_eq!(parse_f64(text.as_bytes()), Some(number));
        }
        for text in ["", " 1", "nan", "1x", "0x1", "-nan"] {
            assert_eq!(parse_f64(text.as_bytes()), None, "{text:?}");
        }
    }
}
