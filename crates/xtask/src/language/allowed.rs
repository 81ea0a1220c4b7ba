//! The exceptions to the table of words, and the files that are not clean yet.
//!
//! Owns: both lists. They may only get shorter: an entry that nothing needs fails the check. Never
//! does: look for words.

/// An exception, with its reason.
pub(super) struct Allowed {
    /// Beginning of the paths for which it holds; empty for all.
    pub(super) path: &'static str,
    /// Words in lower case; a use within them is no finding.
    pub(super) phrase: &'static str,
    /// The reason, which a finding about it repeats.
    pub(super) why: &'static str,
}

/// Files whose words are not replaced yet.
pub(super) struct NotYet {
    /// Beginning of the paths for which it holds.
    pub(super) path: &'static str,
    /// First forms of terms.
    pub(super) words: &'static [&'static str],
}

const fn allowed(path: &'static str, phrase: &'static str, why: &'static str) -> Allowed {
    Allowed { path, phrase, why }
}

/// All exceptions.
pub(super) const ALLOWED: &[Allowed] = &[
    allowed("crates/xtask/src/language", "", "the table itself, and its tests"),
    allowed("", "round trip", "the field's word for there and back"),
    allowed("", "round trips", "the same"),
    allowed("", "stands for", "means: represents"),
    allowed("", "stand for", "means: represent"),
    allowed("", "sst log of a level", "it says which log"),
    allowed("", "sst log of the level", "the same"),
    allowed("crates/bench/workloads/", "beside", "a key of workload files, which users have"),
    allowed("crates/bench/src/workload.rs", "beside", "the same key"),
    allowed("crates/bench/src/report/", "role", "an attribute of HTML and SVG"),
    allowed("crates/bench/src/store/windrow.rs", "level log files", "a public figure's name"),
    allowed("crates/server/src/commands/", "role", "a command of Redis, and a word of its replies"),
    allowed("crates/plan/src/pick/sst_log.rs", "level log mode", "two words, with a comma"),
    allowed("crates/plan/src/preset.rs", "lanes", "the parameter's name in the text form"),
    allowed("", "partitioned lanes", "a policy's text form, which users and databases have"),
    allowed("STYLE.md", "lanes in a policy", "the same, in the glossary"),
    allowed("docs/policies/partitioned.md", "lanes", "the same, explained"),
];

/// The files that are not clean yet.
pub(super) const NOT_YET: &[NotYet] = &[];
