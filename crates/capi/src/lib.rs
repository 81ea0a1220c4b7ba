//! Windrow for programs in C, and for languages that call C.
//!
//! cbindgen makes `include/windrow.h` from this crate, with the comments of its functions. `compat/leveldb/c.h` is
//! LevelDB's C interface on the same engine.
//!
//! Rules that hold for every function:
//!
//! - A handle is freed once, by the function of its type, in any order: a handle keeps alive the parts of others that
//!   it needs. NULL may be freed.
//! - A handle whose database was closed is valid until it is freed: calls give `WINDROW_ERROR_KIND_CLOSED`. They do so
//!   in a forked child, too.
//! - Databases, keyspaces, snapshots and followers may be used by many threads at once; a batch, a cursor,
//!   a transaction, an ingestion and options by one at a time.
//! - No panic passes the edge: it becomes `WINDROW_ERROR_KIND_INTERNAL`. Functions of the caller must not throw exceptions.
//!
//! Owns: the conversion of types and errors. Never does: anything that the library in Rust does not.

#![allow(non_camel_case_types, reason = "types have the names that programs in C write")]
#![allow(unsafe_code, reason = "names without mangling, and pointers, are what C calls")]
#![allow(
    clippy::not_unsafe_ptr_arg_deref,
    reason = "C calls them, which has no `unsafe`: what it promises is said above"
)]

pub mod batch;
pub mod bytes;
pub mod callbacks;
pub mod cursor;
pub mod database;
pub mod edge;
pub mod error;
pub mod follower;
pub mod ingest;
pub mod keyspace;
/// cbindgen:ignore
#[cfg(feature = "leveldb")]
pub mod leveldb;
pub mod options;
pub mod snapshot;
pub mod transaction;
pub mod upkeep;

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    const OWN: &[&str] = &[
        include_str!("batch.rs"),
        include_str!("bytes.rs"),
        include_str!("callbacks.rs"),
        include_str!("cursor.rs"),
        include_str!("database.rs"),
        include_str!("error.rs"),
        include_str!("follower.rs"),
        include_str!("ingest.rs"),
        include_str!("keyspace.rs"),
        include_str!("options.rs"),
        include_str!("snapshot.rs"),
        include_str!("transaction.rs"),
        include_str!("upkeep.rs"),
    ];
    const LEVELDB: &[&str] = &[
        include_str!("leveldb/batch.rs"),
        include_str!("leveldb/callbacks.rs"),
        include_str!("leveldb/database.rs"),
        include_str!("leveldb/iterator.rs"),
        include_str!("leveldb/memory.rs"),
        include_str!("leveldb/options.rs"),
    ];

    /// The names between `before` and an opening bracket.
    fn names<'a>(text: &'a str, before: &str, prefix: &str) -> BTreeSet<&'a str> {
        let is_part = |c: char| c.is_ascii_alphanumeric() || c == '_';
        let mut names = BTreeSet::new();
        for (at, _) in text.match_indices(prefix) {
            let end = at + text[at..].find(|c| !is_part(c)).unwrap_or(0);
            let starts = !text[..at].ends_with(is_part) && text[..at].ends_with(before);
            if starts && text[end..].starts_with('(') {
                names.insert(&text[at..end]);
            }
        }
        names
    }

    fn compare(sources: &[&str], header: &str, prefix: &str, inline: &[&str]) -> usize {
        let exported = sources.iter().flat_map(|text| names(text, "extern \"C\" fn ", prefix));
        let exported: BTreeSet<&str> = exported.collect();
        let mut declared = names(header, "", prefix);
        inline.iter().for_each(|name| assert!(declared.remove(name), "{name} is missing"));
        assert_eq!(exported, declared, "run tests/c/header.sh");
        exported.len()
    }

    #[test]
    fn the_headers_declare_what_there_is() {
        let own = include_str!("../include/windrow.h");
        assert!(compare(OWN, own, "windrow_", &["windrow_text", "windrow_bytes"]) > 90);
        let compat = include_str!("../compat/leveldb/c.h");
        assert_eq!(compare(LEVELDB, compat, "leveldb_", &[]), 68);
    }
}
