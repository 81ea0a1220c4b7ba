//! The setting whose name is nearest to a misspelt one.
//!
//! Owns: the comparison of names. Never does: know a setting.

/// Returns `; did you mean NAME?` for the name that differs least, if it differs little.
pub(super) fn nearest<'a>(name: &str, known: impl Iterator<Item = &'a str>) -> String {
    let by_distance = known.map(|known| (distance(name.as_bytes(), known.as_bytes()), known));
    match by_distance.min() {
        Some((distance, known)) if distance <= name.len().min(known.len()) / 3 => {
            format!("; did you mean `{known}`?")
        }
        _ => String::new(),
    }
}

/// The least number of letters to insert, remove or change to make one of the other.
fn distance(a: &[u8], b: &[u8]) -> usize {
    // Of the read beginning of `a`, to each beginning of `b`.
    let mut row: Vec<usize> = (0..=b.len()).collect();
    for (i, x) in a.iter().enumerate() {
        let mut diagonal = std::mem::replace(&mut row[0], i + 1);
        for (j, y) in b.iter().enumerate() {
            let changed = diagonal + usize::from(x != y);
            diagonal = row[j + 1];
            row[j + 1] = changed.min(row[j] + 1).min(diagonal + 1);
        }
    }
    row[b.len()]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_that_is_nearly_right_is_named() {
        assert_eq!(distance(b"kitten", b"sitting"), 3);
        assert_eq!((distance(b"", b"abc"), distance(b"abc", b"abc")), (3, 0));
        let of = |name: &str| nearest(name, ["memory_bytes", "memtable_bytes"].into_iter());
        assert_eq!(of("memory_byte"), "; did you mean `memory_bytes`?");
        assert_eq!(of("memtabel_bytes"), "; did you mean `memtable_bytes`?");
        assert_eq!(of("nothing"), "");
    }
}
