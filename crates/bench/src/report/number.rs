//! Numbers for readers: three significant digits, thousands set apart, never an exponent.
//!
//! Owns: their text. Never does: know what a number measures.

use super::spread::Spread;

/// Formats three significant digits; all digits left of the point up to a million, from there on
/// `1.23M`, `1.23G`, `1.23T`.
pub(crate) fn number(value: f64) -> String {
    let size = value.abs();
    for (unit, letter) in [(1e12, "T"), (1e9, "G"), (1e6, "M")] {
        // A value just below the unit would round up to four digits of the unit below.
        if size >= unit * 0.9995 {
            return format!("{}{letter}", three_digits(value / unit));
        }
    }
    three_digits(value)
}

fn three_digits(value: f64) -> String {
    let size = value.abs();
    if size == 0.0 {
        return "0".to_owned();
    }
    if size >= 999.5 {
        return with_commas(value);
    }
    let before_point = size.log10().floor() as i32 + 1;
    let decimals = (3 - before_point).clamp(0, 9) as usize;
    let text = format!("{value:.decimals$}");
    // A carry may have added a digit: 9.996 is 10.0, not 10.00.
    let digits = text.trim_start_matches(['-', '0', '.']).chars().filter(char::is_ascii_digit);
    if digits.count() > 3 && decimals > 0 {
        let decimals = decimals - 1;
        return format!("{value:.decimals$}");
    }
    text
}

fn with_commas(value: f64) -> String {
    let digits = format!("{:.0}", value.abs());
    let mut text = if value < 0.0 { "-".to_owned() } else { String::new() };
    for (i, digit) in digits.chars().enumerate() {
        if i > 0 && (digits.len() - i).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

/// Formats a round number, of a tick or a setting, without the zeros that three digits would give
/// it.
pub(crate) fn round(value: f64) -> String {
    let text = number(value);
    match text.split_once('.') {
        Some((whole, rest)) => {
            let letter: String = rest.chars().filter(char::is_ascii_alphabetic).collect();
            let digits = rest.trim_end_matches(char::is_alphabetic).trim_end_matches('0');
            let point = if digits.is_empty() { "" } else { "." };
            format!("{whole}{point}{digits}{letter}")
        }
        None => text,
    }
}

/// Formats the median, and the ends where they differ from it in print.
pub(crate) fn spread(spread: Spread) -> String {
    let [median, min, max] = [spread.median, spread.min, spread.max].map(number);
    if min == max { median } else { format!("{median} ({min}–{max})") }
}

/// Formats a ratio with its range: `2.36× (2.28–2.47)`.
pub(crate) fn times_spread(spread: Spread) -> String {
    let [median, min, max] = [spread.median, spread.min, spread.max].map(number);
    if min == max { format!("{median}×") } else { format!("{median}× ({min}–{max})") }
}

/// Formats microseconds in the unit that suits them: `250 ns`, `1.2 ms`, `3 s`.
pub(crate) fn time_us(us: f64) -> String {
    let (value, unit) = match us.abs() {
        v if v >= 1e6 => (us / 1e6, "s"),
        v if v >= 1e3 => (us / 1e3, "ms"),
        v if v >= 1.0 => (us, "µs"),
        _ => (us * 1e3, "ns"),
    };
    let text = number(value);
    let short =
        if text.contains('.') { text.trim_end_matches('0').trim_end_matches('.') } else { &text };
    format!("{short} {unit}")
}

/// Formats bytes in binary units: `64 MiB`.
pub(crate) fn bytes(bytes: u64) -> String {
    for (shift, unit) in [(40, "TiB"), (30, "GiB"), (20, "MiB"), (10, "KiB")] {
        if bytes >> shift > 0 {
            let text = number(bytes as f64 / (1u64 << shift) as f64);
            let text = if text.contains('.') {
                text.trim_end_matches('0').trim_end_matches('.').to_owned()
            } else {
                text
            };
            return format!("{text} {unit}");
        }
    }
    format!("{bytes} B")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_have_three_digits() {
        for (value, text) in [
            (0.0, "0"),
            (0.000_123_4, "0.000123"),
            (0.0457, "0.0457"),
            (0.9996, "1.00"),
            (1.0, "1.00"),
            (9.996, "10.0"),
            (99.96, "100"),
            (123.4, "123"),
            (999.6, "1,000"),
            (12_345.6, "12,346"),
            (999_499.0, "999,499"),
            (999_600.0, "1.00M"),
            (1_234_567.0, "1.23M"),
            (4.5e9, "4.50G"),
            (7e15, "7,000T"),
            (-2.5, "-2.50"),
            (-1234.0, "-1,234"),
        ] {
            assert_eq!(number(value), text, "{value}");
        }
    }

    #[test]
    fn round_numbers_have_no_zeros_behind_them() {
        let ticks = [0.0, 0.5, 2.5, 10.0, 800.0, 1e4, 1e7, 2.5e9, 1e-4];
        let texts = ["0", "0.5", "2.5", "10", "800", "10,000", "10M", "2.5G", "0.0001"];
        assert_eq!(ticks.map(round), texts);
    }

    #[test]
    fn times_and_bytes_take_their_units() {
        let times: Vec<String> =
            [0.2, 1.0, 12.5, 1000.0, 2500.0, 3e6, 6e8].into_iter().map(time_us).collect();
        assert_eq!(times, ["200 ns", "1 µs", "12.5 µs", "1 ms", "2.5 ms", "3 s", "600 s"]);
        let sizes: Vec<String> = [100, 1536, 64 << 20, 24 << 30].into_iter().map(bytes).collect();
        assert_eq!(sizes, ["100 B", "1.5 KiB", "64 MiB", "24 GiB"]);
        let same = Spread { median: 2.0, min: 2.0, max: 2.001 };
        assert_eq!((spread(same), times_spread(same)), ("2.00".to_owned(), "2.00×".to_owned()));
    }
}
