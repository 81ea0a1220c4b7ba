//! Words that the project once used in a sense that the field does not know, and the field's words
//! for them.
//!
//! Owns: the table. Never does: look for them.

/// Where a term is looked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Place {
    /// In prose, in names and in the names of files.
    Anywhere,
    /// In comments, messages and pages, as a word of its own.
    Prose,
    /// In code, with this case.
    Names,
}

/// A word or a phrase that must not be used.
pub(super) struct Term {
    /// Its forms: words in lower case (as they are, for `Place::Names`).
    pub(super) forms: &'static [&'static str],
    pub(super) place: Place,
    /// The words to use in its place.
    pub(super) instead: &'static str,
}

const fn anywhere(forms: &'static [&'static str], instead: &'static str) -> Term {
    Term { forms, place: Place::Anywhere, instead }
}

/// All terms.
pub(super) const TERMS: &[Term] = &[
    anywhere(
        &["mend", "mends", "mended", "mending"],
        "fix, repair or salvage; of checksums: recompute",
    ),
    anywhere(&["anew"], "again, from scratch; of numbers: reuse"),
    anywhere(
        &["elide", "elides", "elided", "eliding", "elision", "elider"],
        "drop or garbage-collect (an entry)",
    ),
    anywhere(&["beside"], "next to, alongside, concurrently with"),
    anywhere(&["stand", "stands", "stood", "standing"], "is, is stored, is written, remains"),
    anywhere(
        &["latch", "latches", "latched", "latching", "unlatched"],
        "background error; read-only state; (for writing) turned off",
    ),
    anywhere(&["trip", "trips", "tripped", "tripping"], "set the background error"),
    anywhere(
        &["land", "lands", "landed", "landing", "landings"],
        "install (an edit), install barrier; of a write: reach",
    ),
    Term { forms: &["Taken"], place: Place::Names, instead: "dropped entries" },
    Term { forms: &["Held"], place: Place::Names, instead: "live, or what it is" },
    anywhere(&["carry out", "carries out", "carried out", "carrying out", "carry it out"], "run"),
    anywhere(
        &["witness", "witnesses", "witnessed", "witnessing"],
        "cross-check, record that confirms it",
    ),
    anywhere(&["vouch", "vouches", "vouched", "vouching"], "cross-check, confirm"),
    anywhere(&["heir", "heirs"], "output that statistics are propagated to"),
    anywhere(&["gift", "gifts"], "propagated statistics"),
    anywhere(&["lane", "lanes"], "level-0 partition"),
    anywhere(&["border", "borders"], "boundary (of a level-0 partition), edge"),
    anywhere(
        &["level s log", "levels logs", "log of a level", "log of the level", "level log"],
        "SST-log (log alone is the write-ahead log)",
    ),
    anywhere(&["scene", "scenes"], "scenario"),
    anywhere(&["life"], "session (of a process or a database), lifetime"),
    anywhere(&["role", "roles"], "client, kind of client"),
    Term { forms: &["err"], place: Place::Prose, instead: "fail" },
    anywhere(&["errs", "erred", "erring"], "fails, failed, failing"),
    anywhere(&["lest"], "so that ... not"),
];
