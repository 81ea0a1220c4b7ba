//! Deletes collections whose deadline has passed. (Strings expire by the engine's own clock.)
//!
//! Owns: when it looks, and how much at once. Never does: decide whether a reader still sees them:
//! each judges by the deadline itself.

use crate::clock;
use crate::data::head::{Head, Kind};
use crate::data::key_locks::KeyGuards;
use crate::data::space::Space;
use crate::data::staged::Staged;
use crate::data::store::Store;
use crate::data::value::deadline_row;
use crate::data::view::View;
use crate::fault::Outcome;
use std::ops::Bound;
use windrow::Batch;

/// Collections that are deleted in one go, before others are let in.
const ROUND: usize = 256;

/// Deletes what expired; how many there were, and whether there may be more.
pub(crate) fn sweep(store: &Store) -> Outcome<(u64, bool)> {
    let now_ms = clock::wall_ms();
    let behind = deadline_row(now_ms.saturating_add(1), b"");
    let none = Staged::default();
    let view = View::new(store, &none);
    let mut due = Vec::new();
    for row in view.rows(Space::Deadlines, Bound::Unbounded, Bound::Excluded(behind)).take(ROUND) {
        due.push(row?.0);
    }
    let (mut deleted, mut batch) = (0, Batch::new());
    for row in &due {
        let Some(key) = row.get(8..) else { continue };
        let mut held = KeyGuards::new(&store.locks);
        held.wait([key].into_iter());
        let mut view = View::new(store, &none);
        let head = view.row(Space::Heads, key)?;
        match head.map(|head| Head::decode(&head)).transpose()? {
            Some(head) if head.kind != Kind::String && head.is_expired(now_ms) => {
                view.remove_collection(key, &head)?;
                deleted += 1;
            }
            // It was written since, with another deadline or none.
            _ => {}
        }
        view.delete_row(Space::Deadlines, row);
        store.write(&mut view.finish().staged, &mut batch)?;
    }
    Ok((deleted, due.len() == ROUND))
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
            let none = Staged::default();
            let mut view = View::new(&store, &none);
            let (key, mut head) = (key.as_bytes(), Head::new(Kind::Hash));
            for field in 0..fields {
                let row = crate::data::element::row(key, format!("f{field}").as_bytes());
                view.put_row(Space::Hashes, &row, b"v").unwrap();
            }
            head.end = fields;
            head.deadline_ms = Some(deadline_ms);
            view.put_row(Space::Deadlines, &deadline_row(deadline_ms, key), b"").unwrap();
            view.put_head(key, &head).unwrap();
            store.write(&mut view.finish().staged, &mut Batch::new()).unwrap();
        }
        assert_eq!(sweep(&store).unwrap(), (2, false));
        assert_eq!(sweep(&store).unwrap(), (0, false));
        let rows = |space| store.spaces.get(space).count(..).unwrap();
        assert_eq!(SPACES.map(rows), [0, 1, 2, 0, 0, 0, 0, 1], "only `later` is left");
    }
}
