//! A scenario with a forked child, which has a copy of its parent's handle.
//!
//! Owns: the child. Never does: more than a few calls; `torture surroundings` does.

use super::steps::{ensure, open};
use windrow::ErrorKind;
use windrow_env::testing::{env, in_child};

/// A child neither reads nor writes.
pub(super) fn a_forked_child_is_refused() -> Result<(), String> {
    let (_, handles) = env(1);
    let db = open(&handles)?;
    db.put("a", "1").map_err(|e| e.to_string())?;
    let is_closed =
        |error: Option<windrow::Error>| error.is_some_and(|e| e.kind() == ErrorKind::Closed);
    let refused = in_child(|| {
        is_closed(db.get("a").err())
            && is_closed(db.put("a", "2").err())
            && is_closed(db.sync().err())
            && is_closed(db.close().err())
    });
    ensure(refused, "a forked child uses its parent's database")?;
    ensure(db.get("a").is_ok_and(|value| value.as_deref() == Some(b"1")), "its parent lost it")
}
