//! Behaviour on values that the user may bring: merge operators, which combine
//! operands without a read, and compaction filters, which look at every value
//! that a merge passes.
//!
//! An operator is code, and the manifest has only its name. A keyspace whose merge operator is not
//! registered opens, for writing too: its operands pass through flushes and merges as they are, so
//! nothing is combined and nothing is lost. A read that would have to apply them is an error that names
//! the operator, and so is a write that would add one. A repair needs every operator, since it combines
//! operands to tell which of them count twice. (A comparator that is not registered:
//! `recover/src/discovery/keyspaces_left_out.rs`.)
//!
//! Owns: the two traits, the built-in operators `add`, `append`, `max`.
//! Never does: decide when they are called (`read/` and `merge/` do).

use std::sync::Arc;

/// Combines merge operands with the value they apply to.
///
/// Named in the manifest: the same name must mean the same function for as
/// long as the keyspace lives. Called from any thread; must not panic and must
/// depend on its arguments alone, since the same operands are combined again
/// by every read until a merge has written the result.
///
/// ```
/// # let dir = tempfile::tempdir().unwrap();
/// use std::sync::Arc;
/// use windrow::{Db, KeyspaceOptions, MergeOperator, Options};
///
/// /// The shortest of all that was merged in.
/// struct Shortest;
///
/// impl MergeOperator for Shortest {
///     fn name(&self) -> &str {
///         "shortest"
///     }
///
///     fn full_merge(&self, _: &[u8], base: Option<&[u8]>, operands: &[&[u8]]) -> Option<Vec<u8>> {
///         let all = base.into_iter().chain(operands.iter().copied());
///         all.min_by_key(|value| value.len()).map(<[u8]>::to_vec)
///     }
///
///     fn accepts(&self, _: &[u8], operand: &[u8]) -> bool {
///         !operand.is_empty()
///     }
///
///     fn partial_merge(&self, key: &[u8], operands: &[&[u8]]) -> Option<Vec<u8>> {
///         self.full_merge(key, None, operands)
///     }
/// }
///
/// let mut options = Options::default();
/// options.components.merge_operators.push(Arc::new(Shortest));
/// let db = Db::open_with(dir.path(), options)?;
/// let shortest = KeyspaceOptions { merge_operator: Some("shortest".into()), ..Default::default() };
/// let names = db.keyspace_with("names", shortest)?;
/// for name in ["Augusta Ada", "Ada", "Countess of Lovelace"] {
///     names.merge("7", name)?;
/// }
/// assert_eq!(names.get("7")?.as_deref(), Some(&b"Ada"[..]));
/// assert!(names.merge("7", "").is_err(), "it is not accepted");
/// # Ok::<(), windrow::Error>(())
/// ```
pub trait MergeOperator: Send + Sync + 'static {
    /// Identity, stored with the keyspace.
    fn name(&self) -> &str;

    /// The key's value: `operands` (oldest first, at least one) applied to
    /// `base` (`None`: the key was absent). `None` says that they do not fit,
    /// which the reader sees as a `MergeRefused` error; merges and flushes keep them as they are.
    fn full_merge(&self, key: &[u8], base: Option<&[u8]>, operands: &[&[u8]]) -> Option<Vec<u8>>;

    /// Whether `operand` is one at all, whatever it will be applied to: asked before
    /// it is written, where the caller still hears of it. An operand that fits
    /// nothing would be found by readers, whom it gives a `MergeRefused` error.
    /// `true` (the default): anything goes.
    fn accepts(&self, _key: &[u8], _operand: &[u8]) -> bool {
        true
    }

    /// One operand with the effect of `operands` (oldest first, at least two), applied one after the
    /// other, whatever they apply to; made of some of them first and of the rest later, it must
    /// come to the same bytes, since merges meet them in any groups. `None` (the default): keep them all. Worth it where the one is
    /// smaller than they are, as a sum is; what only puts them together, as a list does, is read as fast
    /// without it, and written again by every merge with it.
    fn partial_merge(&self, _key: &[u8], _operands: &[&[u8]]) -> Option<Vec<u8>> {
        None
    }
}

/// The decision of a compaction filter about one value.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum FilterDecision {
    /// It stays as it is.
    Keep,
    /// The key is absent from here on, as if it had been deleted.
    Remove,
    /// The value becomes this one; it stays as it is where this is longer than a value may be.
    Change(Vec<u8>),
}

/// Looks at the values that merges write and may remove or change them.
///
/// Called for the newest value of a key among a merge's inputs, and only where
/// no snapshot taken before the merge can see it; never for tombstones or merge
/// operands. Where one taken during the merge sees what was removed or changed
/// as the merge ends, its work is thrown away and done again without the
/// filter, so snapshots taken often and held for long keep a filter from its
/// work. When (and whether, and how often) a given value meets the filter is up
/// to the tree: an answer must not depend on the others. Called from background
/// threads, and from one that asked for a compaction; a panic there stops writes,
/// as any background panic does, and on the latter goes on to the caller.
///
/// ```
/// # let dir = tempfile::tempdir().unwrap();
/// use std::sync::Arc;
/// use windrow::{CompactionFilter, Db, FilterDecision, Options};
///
/// /// Forgets drafts, and the part of an entry behind a newline.
/// struct Tidy;
///
/// impl CompactionFilter for Tidy {
///     fn name(&self) -> &str {
///         "tidy"
///     }
///
///     fn filter(&self, _level: u32, key: &[u8], value: &[u8]) -> FilterDecision {
///         if key.starts_with(b"draft/") {
///             return FilterDecision::Remove;
///         }
///         match value.iter().position(|byte| *byte == b'\n') {
///             Some(end) => FilterDecision::Change(value[..end].to_vec()),
///             None => FilterDecision::Keep,
///         }
///     }
/// }
///
/// let mut options = Options::default();
/// options.components.compaction_filters.push(("texts".into(), Arc::new(Tidy)));
/// let db = Db::open_with(dir.path(), options)?;
/// let texts = db.keyspace("texts")?;
/// texts.put("draft/1", "to be")?;
/// texts.put("page/1", "to be\nor not")?;
/// texts.compact()?; // sooner or later merges in the background do it
/// assert!(!texts.contains_key("draft/1")?);
/// assert_eq!(texts.get("page/1")?.as_deref(), Some(&b"to be"[..]));
/// # Ok::<(), windrow::Error>(())
/// ```
pub trait CompactionFilter: Send + Sync + 'static {
    /// Its name, for messages.
    fn name(&self) -> &str;

    /// Decides on one value, on its way to `level`.
    fn filter(&self, level: u32, key: &[u8], value: &[u8]) -> FilterDecision;
}

/// Names of the built-in merge operators.
pub(crate) const BUILT_IN_NAMES: [&str; 3] = ["add", "append", "max"];

/// The built-in merge operator of this name.
pub fn built_in(name: &str) -> Option<Arc<dyn MergeOperator>> {
    match name {
        "add" => Some(Arc::new(Add)),
        "append" => Some(Arc::new(Append)),
        "max" => Some(Arc::new(Max)),
        _ => None,
    }
}

/// `add`: a counter. Base and operands are i64, eight bytes little endian; the
/// sum wraps; an absent base counts as 0.
#[derive(Clone, Copy, Debug, Default)]
struct Add;

fn counter(bytes: &[u8]) -> Option<i64> {
    Some(i64::from_le_bytes(bytes.try_into().ok()?))
}

impl MergeOperator for Add {
    fn name(&self) -> &str {
        "add"
    }

    fn full_merge(&self, _key: &[u8], base: Option<&[u8]>, operands: &[&[u8]]) -> Option<Vec<u8>> {
        let mut sum = base.map_or(Some(0), counter)?;
        for operand in operands {
            sum = sum.wrapping_add(counter(operand)?);
        }
        Some(sum.to_le_bytes().to_vec())
    }

    fn accepts(&self, _key: &[u8], operand: &[u8]) -> bool {
        counter(operand).is_some()
    }

    fn partial_merge(&self, key: &[u8], operands: &[&[u8]]) -> Option<Vec<u8>> {
        self.full_merge(key, None, operands)
    }
}

/// `append`: base and operands one after the other, oldest first.
#[derive(Clone, Copy, Debug, Default)]
struct Append;

impl MergeOperator for Append {
    fn name(&self) -> &str {
        "append"
    }

    fn full_merge(&self, _key: &[u8], base: Option<&[u8]>, operands: &[&[u8]]) -> Option<Vec<u8>> {
        let base = base.unwrap_or_default();
        let len = base.len() + operands.iter().map(|o| o.len()).sum::<usize>();
        let mut out = Vec::with_capacity(len);
        out.extend_from_slice(base);
        operands.iter().for_each(|o| out.extend_from_slice(o));
        Some(out)
    }

    fn partial_merge(&self, _key: &[u8], operands: &[&[u8]]) -> Option<Vec<u8>> {
        Some(operands.concat())
    }
}

/// `max`: the bytewise largest of base and operands.
#[derive(Clone, Copy, Debug, Default)]
struct Max;

impl MergeOperator for Max {
    fn name(&self) -> &str {
        "max"
    }

    fn full_merge(&self, _key: &[u8], base: Option<&[u8]>, operands: &[&[u8]]) -> Option<Vec<u8>> {
        Some(operands.iter().copied().chain(base).max()?.to_vec())
    }

    fn partial_merge(&self, key: &[u8], operands: &[&[u8]]) -> Option<Vec<u8>> {
        self.full_merge(key, None, operands)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn le(value: i64) -> Vec<u8> {
        value.to_le_bytes().to_vec()
    }

    #[test]
    fn add_counts_wraps_and_refuses_other_widths() {
        let add = built_in("add").unwrap();
        assert_eq!(add.full_merge(b"k", None, &[&le(2), &le(-5)]), Some(le(-3)));
        assert_eq!(add.full_merge(b"k", Some(&le(i64::MAX)), &[&le(1)]), Some(le(i64::MIN)));
        assert_eq!(add.full_merge(b"k", Some(b"7"), &[&le(1)]), None);
        assert_eq!(add.full_merge(b"k", None, &[b"123456789"]), None);
        assert_eq!(add.partial_merge(b"k", &[&le(1), b""]), None);
    }

    #[test]
    fn append_and_max() {
        let append = built_in("append").unwrap();
        assert_eq!(append.full_merge(b"k", Some(b"a"), &[b"b", b"c"]), Some(b"abc".to_vec()));
        assert_eq!(append.full_merge(b"k", None, &[b"b", b""]), Some(b"b".to_vec()));
        let max = built_in("max").unwrap();
        assert_eq!(max.full_merge(b"k", Some(b"b"), &[b"a", b"ab"]), Some(b"b".to_vec()));
        assert_eq!(max.full_merge(b"k", None, &[b"a", b"ab"]), Some(b"ab".to_vec()));
        assert!(built_in("min").is_none());
    }

    /// Where operands were combined before the base was known, the result is the same.
    #[test]
    fn partial_merges_change_nothing() {
        let operands = [le(3), le(-9), le(i64::MAX), le(40)];
        let all: Vec<&[u8]> = operands.iter().map(Vec::as_slice).collect();
        for name in BUILT_IN_NAMES {
            let operator = built_in(name).unwrap();
            assert_eq!(operator.name(), name);
            for base in [None, Some(le(11))] {
                let want = operator.full_merge(b"k", base.as_deref(), &all).unwrap();
                for cut in 1..all.len() {
                    let fold = |part: &[&[u8]]| match part {
                        [one] => one.to_vec(),
                        _ => operator.partial_merge(b"k", part).unwrap(),
                    };
                    let (older, newer) = (fold(&all[..cut]), fold(&all[cut..]));
                    let got = operator.full_merge(b"k", base.as_deref(), &[&older, &newer]);
                    assert_eq!(got.as_deref(), Some(want.as_slice()), "{name} cut at {cut}");
                }
            }
        }
    }
}
