//! The keys of a collection's rows.
//!
//! Owns: their layout: the length of the collection's key (u32, big-endian), the key, the rest. The
//! length makes the rows of two collections disjoint ranges. Never does: know the meaning of the
//! rest.

/// Returns the prefix of the rows of the collection `key`.
pub(crate) fn prefix(key: &[u8]) -> Vec<u8> {
    let mut row = Vec::with_capacity(4 + key.len() + 32);
    let len = u32::try_from(key.len()).unwrap_or(u32::MAX);
    row.extend_from_slice(&len.to_be_bytes());
    row.extend_from_slice(key);
    row
}

/// Returns the row of `rest` in the collection `key`.
pub(crate) fn row(key: &[u8], rest: &[u8]) -> Vec<u8> {
    let mut row = prefix(key);
    row.extend_from_slice(rest);
    row
}

/// Returns the part of a row's key after its collection's.
pub(crate) fn rest<'a>(key: &[u8], row: &'a [u8]) -> &'a [u8] {
    row.get(4 + key.len()..).unwrap_or_default()
}

/// Returns the first key after all that begin with `prefix`. There is one, since a length of only
/// 255s is longer than any key may be.
pub(crate) fn end_of(prefix: &[u8]) -> Vec<u8> {
    let mut end = prefix.to_vec();
    while let Some(last) = end.pop() {
        if last < u8::MAX {
            end.push(last + 1);
            break;
        }
    }
    end
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn collections_are_disjoint_ranges() {
        let keys: [&[u8]; 5] = [b"", b"a", b"ab", b"b", b"\xff\xff"];
        for key in keys {
            let (begin, end) = (prefix(key), end_of(&prefix(key)));
            for other in keys {
                for rest_of_row in [&b""[..], b"a", b"\xff\xff\xff"] {
                    let row = row(other, rest_of_row);
                    assert_eq!(row >= begin && row < end, key == other);
                    assert_eq!(rest(other, &row), rest_of_row);
                }
            }
        }
    }
}
