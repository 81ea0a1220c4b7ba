//! Tests of `recover/src/verify/mod.rs`, with a whole database.
//!
//! Owns: nothing. Never does: use a real file system or clock.

use crate::{Db, Options};
use windrow_env::testing::env;

#[test]
fn progress_is_told_after_each_file() {
    let mut options = Options::default();
    options.components.env = Some(env(1).0);
    let db = Db::open_with("db", options).unwrap();
    for key in ["a", "b"] {
        db.put(key, "value").unwrap();
        db.flush().unwrap();
    }
    let mut seen = Vec::new();
    let report = db.verify_with_progress(|so_far| seen.push((so_far.tables, so_far.bytes)));
    let report = report.unwrap();
    assert!(report.is_ok() && report.logs > 0 && report.tables > 0);
    assert_eq!(seen.len() as u64, report.tables + report.logs);
    assert!(seen.is_sorted() && seen[0].0 == 1 && seen[0].1 > 0, "{seen:?}");
    assert_eq!(seen.last(), Some(&(report.tables, report.bytes)));
    db.close().unwrap();
}
