//! Deletes collections whose deadline has passed. (Strings expire by the engine's own clock.)
//!
//! Owns: the size of a round. Never does: decide whether a reader still sees them: each judges by
//! the deadline itself.

use crate::clock;
use crate::data::head::{Head, Kind};
use crate::data::key_locks::KeyGuards;
use crate::data::space::Space;
use crate::data::staged_writes::StagedWrites;
use crate::data::store::Store;
use crate::data::value::deadline_row;
use crate::data::view::View;
use crate::fault::Outcome;
use std::ops::Bound;
use windrow::Batch;

/// The most collections that are deleted in one round, before other work.
const ROUND: usize = 256;

/// Deletes the collections that expired after the row `after`. Returns their number, and the last
/// row that was looked at if there may be more. Meaningless rows of another program are skipped.
pub(crate) fn sweep(store: &Store, after: Option<Vec<u8>>) -> Outcome<(u64, Option<Vec<u8>>)> {
    let now_ms = clock::wall_ms();
    let behind = deadline_row(now_ms.saturating_add(1), b"");
    let mut staged = StagedWrites::default();
    let view = View::new(store, &mut staged);
    let mut due = Vec::new();
    let from = after.map_or(Bound::Unbounded, Bound::Excluded);
    for row in view.rows(Space::Deadlines, from, Bound::Excluded(behind)).take(ROUND) {
        due.push(row?.0);
    }
    let (mut deleted, mut batch) = (0, Batch::new());
    for row in &due {
        let Some(key) = row.get(8..) else { continue };
        let mut held = KeyGuards::new(&store.locks);
        held.wait([key].into_iter());
        let mut view = View::new(store, &mut staged);
        let head = view.row(Space::Heads, key)?;
        let Ok(head) = head.map(|head| Head::decode(&head)).transpose() else { continue };
        match head {
            Some(head) if head.kind != Kind::String && head.is_expired(now_ms) => {
                view.remove_collection(key, &head)?;
                deleted += 1;
            }
            // The key was written since, with another deadline or none.
            _ => {}
        }
        view.delete_row(Space::Deadlines, row);
        let fresh = view.finish();
        store.write(&mut staged, &mut batch)?;
        store.wake(&fresh, &mut Vec::new());
    }
    let last = (due.len() == ROUND).then(|| due.last().map(|row| row.to_vec())).flatten();
    Ok((deleted, last))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::data::space::SPACES;
    use windrow::Db;

    #[test]
    fn an_expired_collection_leaves_no_row() {
        let dir = tempfile::tempdir().unwrap();
        let store = Store::new(Db::open(dir.path()).unwrap()).unwrap();
        for (key, fields, deadline_ms) in [("few", 3, 1), ("many", 100, 1), ("later", 2, u64::MAX)]
        {
            let mut staged = StagedWrites::default();
            let mut view = View::new(&store, &mut staged);
            let (key, mut head) = (key.as_bytes(), Head::new(Kind::Hash));
            for field in 0..fields {
                let row = crate::data::element::row(key, format!("f{field}").as_bytes());
                view.put_row(Space::Hashes, row, b"v").unwrap();
            }
            head.end = fields;
            head.deadline_ms = Some(deadline_ms);
            view.put_row(Space::Deadlines, deadline_row(deadline_ms, key), b"").unwrap();
            view.put_head(key, &head).unwrap();
            store.write(&mut staged, &mut Batch::new()).unwrap();
        }
        assert_eq!(sweep(&store, None).unwrap(), (2, None));
        assert_eq!(sweep(&store, None).unwrap(), (0, None));
        let rows = |space| store.spaces.get(space).count(..).unwrap();
        assert_eq!(SPACES.map(rows), [0, 1, 2, 0, 0, 0, 0, 1, 0], "only `later` is left");
    }

    #[test]
    fn rows_that_mean_nothing_stop_no_sweep() {
        let dir = tempfile::tempdir().unwrap();
        let store = Store::new(Db::open(dir.path()).unwrap()).unwrap();
        let deadlines = store.spaces.get(Space::Deadlines);
        // More than a round of invalid rows before one that is due: too short, and without a valid
        // head.
        for row in 0..ROUND as u16 + 10 {
            deadlines.put([&[0; 4][..], &row.to_be_bytes()].concat(), "").unwrap();
        }
        deadlines.put(deadline_row(1, b"bad"), "").unwrap();
        store.spaces.get(Space::Heads).put("bad", "no head").unwrap();
        let head = Head { deadline_ms: Some(1 << 32), end: 1, ..Head::new(Kind::Set) };
        store.spaces.get(Space::Heads).put("due", head.encode()).unwrap();
        deadlines.put(deadline_row(1 << 32, b"due"), "").unwrap();
        let (mut after, mut deleted, mut rounds) = (None, 0, 0);
        loop {
            let (more, last) = sweep(&store, after).unwrap();
            (after, deleted, rounds) = (last, deleted + more, rounds + 1);
            if after.is_none() {
                break;
            }
            assert!(rounds < 10, "it does not end");
        }
        assert_eq!((deleted, rounds), (1, 2));
        assert!(!store.spaces.get(Space::Heads).contains_key("due").unwrap());
    }
}
