//! The keyspaces of an open database: by id, as a list that readers load at
//! once and that is copied in pieces when it changes, and by name.
//!
//! Making or dropping one of 10,000 copies a piece of the list and pointers to
//! the others, not all of it. Changed under the manifest's lock alone.

use crate::tree::Tree;
use std::collections::HashMap;
use std::sync::Arc;
use windrow_base::KeyspaceId;
use windrow_env::sync::{ArcSwap, Guard, Mutex};
use windrow_read::lock_ranks;

/// Most keyspaces of a piece.
const PIECE_MAX: usize = 128;

/// The keyspaces of one moment, by id ascending.
#[derive(Clone, Default)]
pub(crate) struct Trees {
    /// None is empty.
    pieces: Vec<Arc<Vec<Arc<Tree>>>>,
}

impl Trees {
    /// The list of these, which are sorted by id.
    fn new(trees: &[Arc<Tree>]) -> Trees {
        Trees { pieces: trees.chunks(PIECE_MAX).map(|piece| Arc::new(piece.to_vec())).collect() }
    }

    /// All of them, by id ascending.
    pub(crate) fn iter(&self) -> impl Iterator<Item = &Arc<Tree>> {
        self.pieces.iter().flat_map(|piece| piece.iter())
    }

    /// The one with this id.
    #[inline]
    pub(crate) fn get(&self, id: KeyspaceId) -> Option<&Arc<Tree>> {
        let piece = &self.pieces[self.piece_of(id)?];
        piece.binary_search_by_key(&id, |tree| tree.id).ok().map(|at| &piece[at])
    }

    /// The piece that this id would be in.
    fn piece_of(&self, id: KeyspaceId) -> Option<usize> {
        self.pieces.partition_point(|piece| piece[0].id <= id).checked_sub(1)
    }

    /// The list with one more, whose id is the largest.
    fn with(&self, tree: Arc<Tree>) -> Trees {
        let mut trees = self.clone();
        match trees.pieces.last_mut().filter(|piece| piece.len() < PIECE_MAX) {
            Some(piece) => Arc::make_mut(piece).push(tree),
            None => trees.pieces.push(Arc::new(vec![tree])),
        }
        trees
    }

    /// The list without one. A piece that has become small is joined with the next.
    fn without(&self, id: KeyspaceId) -> Trees {
        let mut trees = self.clone();
        let Some(at) = trees.piece_of(id) else { return trees };
        let piece = Arc::make_mut(&mut trees.pieces[at]);
        piece.retain(|tree| tree.id != id);
        if piece.is_empty() {
            trees.pieces.remove(at);
            return trees;
        }
        let next = trees.pieces.get(at + 1).map_or(PIECE_MAX, |next| next.len());
        if trees.pieces[at].len() + next <= PIECE_MAX / 2 {
            let next = trees.pieces.remove(at + 1);
            Arc::make_mut(&mut trees.pieces[at]).extend(next.iter().cloned());
        }
        trees
    }
}

/// The keyspaces that are open now.
pub(crate) struct Keyspaces {
    list: ArcSwap<Trees>,
    names: Mutex<HashMap<Arc<str>, Arc<Tree>>>,
}

impl Keyspaces {
    /// These, which are sorted by id.
    pub(crate) fn new(trees: &[Arc<Tree>]) -> Keyspaces {
        let names = trees.iter().map(|tree| (tree.name.clone(), tree.clone())).collect();
        Keyspaces {
            list: ArcSwap::from_pointee(Trees::new(trees)),
            names: Mutex::new(lock_ranks::NAMES, names),
        }
    }

    /// All of them.
    #[inline]
    pub(crate) fn load(&self) -> Guard<Arc<Trees>> {
        self.list.load()
    }

    /// The one of this name.
    pub(crate) fn named(&self, name: &str) -> Option<Arc<Tree>> {
        self.names.lock().get(name).cloned()
    }

    /// One more, whose id is the largest.
    pub(crate) fn add(&self, tree: &Arc<Tree>) {
        self.list.store(Arc::new(self.list.load().with(tree.clone())));
        self.names.lock().insert(tree.name.clone(), tree.clone());
    }

    /// One less.
    pub(crate) fn remove(&self, tree: &Tree) {
        self.list.store(Arc::new(self.list.load().without(tree.id)));
        self.names.lock().remove(&tree.name);
    }
}

#[cfg(test)]
mod tests {
    use crate::{Db, Options};

    #[test]
    fn a_list_that_grew_and_shrank_has_all_that_are_there() {
        let (env, _handles) = windrow_env::testing::env(1);
        let mut options = Options::default();
        options.components.env = Some(env);
        let db = Db::open_with("db", options).unwrap();
        let name = |n: u32| format!("ks{n}");
        let made: Vec<_> = (0..600).map(|n| db.keyspace(&name(n)).unwrap()).collect();
        let gone = |n: u32| !n.is_multiple_of(7) && n % 100 > 3;
        (0..600).filter(|&n| gone(n)).for_each(|n| db.drop_keyspace(&name(n)).unwrap());
        let again = db.keyspace(&name(5)).unwrap();
        assert_ne!(again.tree.id, made[5].tree.id);
        for (n, made) in (0..).zip(&made) {
            let found = db.open_keyspace(&name(n)).unwrap().map(|space| space.tree.id);
            let expected = (!gone(n)).then_some(made.tree.id).or((n == 5).then_some(again.tree.id));
            assert_eq!(found, expected, "{n}");
            assert_eq!(db.database().tree(made.tree.id).is_ok(), !gone(n), "{n}");
        }
        let trees = db.database().trees();
        let kept = 1 + (0..600).filter(|&n| !gone(n)).count() + 1;
        assert_eq!(trees.iter().count(), kept);
        assert!(trees.iter().zip(trees.iter().skip(1)).all(|(a, b)| a.id < b.id));
        assert!(trees.pieces.len() <= 4 * kept / super::PIECE_MAX + 2, "{}", trees.pieces.len());
    }
}
