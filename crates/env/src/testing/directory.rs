//! A directory: its names on the device, the names that processes see, and the changes between the
//! two that no directory sync has covered.
//!
//! Owns: the names. Never does: decide which changes survive (`power_loss.rs`).

use super::inode::Inode;
use crate::sync::{Arc, Mutex};
use std::collections::BTreeMap;

/// A file as directories and handles refer to it.
pub(super) type InodeRef = Arc<Mutex<Inode>>;

/// One change of names since the last sync. A rename is by inode: it can
/// reach the device although the link of its old name did not.
#[derive(Clone)]
pub(super) enum NameOp {
    Link(String, InodeRef),
    Unlink(String),
    Rename { from: String, to: String, node: InodeRef },
}

impl NameOp {
    pub(super) fn apply(&self, names: &mut BTreeMap<String, InodeRef>) {
        match self {
            NameOp::Link(name, node) => {
                names.insert(name.clone(), node.clone());
            }
            NameOp::Unlink(name) => {
                names.remove(name);
            }
            NameOp::Rename { from, to, node } => {
                names.remove(from);
                names.insert(to.clone(), node.clone());
            }
        }
    }
}

#[derive(Clone, Default)]
pub(super) struct Directory {
    /// Its identity, which stays when it is moved.
    pub(super) id: u64,
    pub(super) visible: BTreeMap<String, InodeRef>,
    pub(super) durable: BTreeMap<String, InodeRef>,
    pub(super) pending: Vec<NameOp>,
    /// Whether it was removed without a later sync of its parent: a power loss may bring it back.
    pub(super) removed: bool,
}

impl Directory {
    pub(super) fn change(&mut self, op: NameOp) {
        op.apply(&mut self.visible);
        self.pending.push(op);
    }

    pub(super) fn sync(&mut self) {
        for op in self.pending.drain(..) {
            op.apply(&mut self.durable);
        }
    }

    /// Every file that some state of the directory may show.
    pub(super) fn nodes_mut(&mut self) -> impl Iterator<Item = &mut InodeRef> {
        let pending = self.pending.iter_mut().filter_map(|op| match op {
            NameOp::Link(_, node) | NameOp::Rename { node, .. } => Some(node),
            NameOp::Unlink(_) => None,
        });
        self.visible.values_mut().chain(self.durable.values_mut()).chain(pending)
    }
}
