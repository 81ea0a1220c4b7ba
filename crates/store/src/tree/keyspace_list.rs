//! The keyspaces of an open database: by id, as a list that readers load at once and that is copied
//! in pieces when it changes, and by name.
//!
//! Making or dropping one of 10,000 copies a piece of the list and pointers to the others, not all
//! of it. Changed under the manifest's lock alone.
//!
//! Owns: the list and the names. Never does: make a tree, or decide that a keyspace is dropped.

use crate::tree::Tree;
use std::collections::HashMap;
use std::sync::Arc;
use windrow_base::KeyspaceId;
use windrow_env::sync::{ArcSwap, Guard, Mutex};
use windrow_read::lock_ranks;

/// Most keyspaces of a piece.
pub const PIECE_MAX: usize = 128;

/// The keyspaces of one moment, by id ascending.
#[derive(Clone, Default)]
pub struct Trees {
    /// None is empty.
    pieces: Vec<Arc<Vec<Arc<Tree>>>>,
}

impl Trees {
    /// Makes the list of these trees, which are sorted by id.
    fn new(trees: &[Arc<Tree>]) -> Trees {
        Trees { pieces: trees.chunks(PIECE_MAX).map(|piece| Arc::new(piece.to_vec())).collect() }
    }

    /// The number of pieces.
    #[cfg(any(test, feature = "testing"))]
    pub fn pieces(&self) -> usize {
        self.pieces.len()
    }

    /// All trees, by id ascending.
    #[inline]
    pub fn iter(&self) -> impl Iterator<Item = &Arc<Tree>> {
        self.pieces.iter().flat_map(|piece| piece.iter())
    }

    /// The tree with this id.
    #[inline]
    pub fn get(&self, id: KeyspaceId) -> Option<&Arc<Tree>> {
        let piece = &self.pieces[self.piece_of(id)?];
        piece.binary_search_by_key(&id, |tree| tree.id).ok().map(|at| &piece[at])
    }

    /// The piece that would have this id.
    fn piece_of(&self, id: KeyspaceId) -> Option<usize> {
        self.pieces.partition_point(|piece| piece[0].id <= id).checked_sub(1)
    }

    /// Returns the list with one more tree, whose id is the largest.
    fn with(&self, tree: Arc<Tree>) -> Trees {
        let mut trees = self.clone();
        match trees.pieces.last_mut().filter(|piece| piece.len() < PIECE_MAX) {
            Some(piece) => Arc::make_mut(piece).push(tree),
            None => trees.pieces.push(Arc::new(vec![tree])),
        }
        trees
    }

    /// Returns the list without one tree. A piece that has become small is joined with the next.
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
pub struct Keyspaces {
    list: ArcSwap<Trees>,
    names: Mutex<HashMap<Arc<str>, Arc<Tree>>>,
}

impl Keyspaces {
    /// Makes the list and the names of these trees, which are sorted by id.
    pub fn new(trees: &[Arc<Tree>]) -> Keyspaces {
        let names = trees.iter().map(|tree| (tree.name.clone(), tree.clone())).collect();
        Keyspaces {
            list: ArcSwap::from_pointee(Trees::new(trees)),
            names: Mutex::new(lock_ranks::NAMES, names),
        }
    }

    /// The list of now.
    #[inline]
    pub fn load(&self) -> Guard<Arc<Trees>> {
        self.list.load()
    }

    /// The tree of this name.
    pub fn named(&self, name: &str) -> Option<Arc<Tree>> {
        self.names.lock().get(name).cloned()
    }

    /// Adds a tree, whose id is the largest.
    pub fn add(&self, tree: &Arc<Tree>) {
        self.list.store(Arc::new(self.list.load().with(tree.clone())));
        self.names.lock().insert(tree.name.clone(), tree.clone());
    }

    /// Removes a tree.
    pub fn remove(&self, tree: &Tree) {
        self.list.store(Arc::new(self.list.load().without(tree.id)));
        self.names.lock().remove(&tree.name);
    }
}
