//! The options of a scan: its range, and how it reads.
//!
//! Owns: the options, and the bounds that follow from them. Never does: read.

use super::readahead::Readahead;
use super::table_iter::Bounds;
use crate::gaps::edge::Edge;
use std::sync::Arc;
use windrow_base::key::prefix_end;

/// The range of a scan, and how it reads.
#[derive(Clone, Debug)]
pub struct ScanOptions {
    /// Inclusive, unless `lower_after`.
    pub lower: Option<Vec<u8>>,
    pub lower_after: bool,
    /// Exclusive, unless `upper_after`.
    pub upper: Option<Vec<u8>>,
    pub upper_after: bool,
    /// Only keys that start with these bytes.
    pub prefix: Option<Vec<u8>>,
    pub fill_cache: bool,
    pub readahead: Readahead,
}

impl ScanOptions {
    /// Cuts the scan to keys that start with `prefix`.
    pub fn with_prefix(mut self, prefix: &[u8]) -> ScanOptions {
        self.prefix = Some(prefix.to_vec());
        self
    }
}

/// Returns the range that options ask for, and the prefix that must be checked key by key. Under
/// the bytewise order a prefix is a range.
pub(super) fn bounds_of(options: ScanOptions, is_bytewise: bool) -> (Bounds, Option<Vec<u8>>) {
    let mut lower = options.lower.map(|key| (key, options.lower_after));
    let mut upper = options.upper.map(|key| (key, options.upper_after));
    let mut prefix = options.prefix;
    if is_bytewise && let Some(prefix) = prefix.take() {
        if let Some(end) = prefix_end(&prefix).map(|end| (end, false))
            && upper.as_ref().is_none_or(|upper| end < *upper)
        {
            upper = Some(end);
        }
        let begin = (prefix, false);
        if lower.as_ref().is_none_or(|lower| *lower < begin) {
            lower = Some(begin);
        }
    }
    let edge = |(key, after): (Vec<u8>, bool)| Edge { key: Arc::from(key), after };
    (Bounds { lower: lower.map(edge), upper: upper.map(edge) }, prefix)
}
