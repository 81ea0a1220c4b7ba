//! Words of workload files that take numbers, as in `zipfian(0.99)`.
//!
//! Owns: the split into a name and its arguments. Never does: know the meaning
//! of a word.

/// Splits `name(a, b, c=d)` into its name and the texts between the commas; a
/// bare `name` has none. Returns `None` if the brackets do not match.
pub(crate) fn parts(text: &str) -> Option<(&str, Vec<&str>)> {
    let text = text.trim();
    let Some((name, rest)) = text.split_once('(') else {
        return (!text.contains(')')).then_some((text, Vec::new()));
    };
    let inside = rest.strip_suffix(')')?;
    let clean = !inside.contains(['(', ')']);
    clean.then(|| (name.trim_end(), inside.split(',').map(str::trim).collect()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_and_numbers_come_apart() {
        assert_eq!(parts("uniform"), Some(("uniform", vec![])));
        assert_eq!(parts(" zipfian( 0.99 ) "), Some(("zipfian", vec!["0.99"])));
        assert_eq!(parts("pareto(1, 2, max=3)"), Some(("pareto", vec!["1", "2", "max=3"])));
        for wrong in ["a(1", "a)", "a(1)b", "a((1))", "a(1)(2)"] {
            assert_eq!(parts(wrong), None, "{wrong}");
        }
    }
}
