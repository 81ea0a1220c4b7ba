//! Reading: gets, scans, and the merging iterator that merges share.
//!
//! `view` is the state that a read sees; `get` and `multi_get` answer for keys; `scan` turns
//! `merge_iter` over `table_iter` and `level_iter` into visible entries; `readahead` decides how
//! much a device read takes at once.
//!
//! Owns: the order in which places are asked, and which entries hide which. Never does: write, or
//! wait for a writer.

pub mod access;
pub mod cost;
pub mod coverage;
pub mod cursor;
pub mod get;
pub mod level_iter;
pub mod merge_iter;
pub mod multi_get;
mod partition;
pub mod readahead;
pub mod scan;
pub mod scan_length;
pub mod scan_options;
mod scan_sources;
pub mod statistics;
pub mod table_iter;
pub mod view;
mod walk;

#[cfg(test)]
pub(crate) mod testing;
#[cfg(test)]
mod tests;

use crate::cache::{BlockCache, OpenTable, TableCache};
use crate::fork::forked;
use crate::gaps::Gaps;
use crate::operators::MergeOperator;
use crate::slice::Slice;
use crate::stats::Counters;
use std::sync::Arc;
use windrow_base::{Error, ErrorKind, KeyOrder, Result, SeqNo};
use windrow_env::{Env, Process};
use windrow_format::block::Block;
use windrow_format::table::{BlockHandle, BlockKind};

use access::Access;
use cost::ReadCost;
use view::ReadView;

/// The context that every read of a keyspace needs in addition to its view. Shared by all of them.
pub struct ReadOwner {
    pub tables: Arc<TableCache>,
    pub blocks: Arc<BlockCache>,
    pub env: Arc<Env>,
    pub order: KeyOrder,
    pub operator: Option<Arc<dyn MergeOperator>>,
    /// The operator that the keyspace was made with, registered or not.
    pub operator_name: Option<Box<str>>,
    pub counters: Arc<Counters>,
    pub access: Access,
    pub cost: ReadCost,
    /// Ranges in which scans found deleted keys alone.
    pub gaps: Gaps,
    /// The process that opened the database, and may read it.
    pub process: Process,
}

impl ReadOwner {
    /// Whether the running process may read at all. A scan outlives the checks
    /// of the handle that made it.
    ///
    /// # Errors
    /// `Closed` in a child made by `fork`.
    #[inline]
    pub fn check_process(&self) -> Result<()> {
        if self.process.is_this() { Ok(()) } else { Err(forked(&self.process)) }
    }

    /// The data block at `handle`, from the cache or the device.
    ///
    /// # Errors
    /// `Corruption` naming file and offset if the block is damaged, `Io`.
    #[inline]
    pub fn block(&self, open: &OpenTable, handle: BlockHandle) -> Result<Arc<Block>> {
        if let Some(block) = self.blocks.get(open.cached_as, handle.offset) {
            self.counters.cache_hit();
            return Ok(block);
        }
        self.block_from_device(open, handle)
    }

    #[cold]
    fn block_from_device(&self, open: &OpenTable, handle: BlockHandle) -> Result<Arc<Block>> {
        self.counters.block_read(u64::from(handle.bytes));
        let block = self.blocks.admit(open.read_block(handle, BlockKind::Data)?);
        self.blocks.insert(open.cached_as, handle.offset, Arc::clone(&block));
        Ok(block)
    }
}

/// The newest state for a cursor that is refreshed. It keeps the database (or its snapshot) open
/// for as long as the cursor exists.
pub trait Latest: Send + Sync + 'static {
    /// The view, sequence number and time (ms since 1970) to read at from now on.
    ///
    /// # Errors
    /// `Closed` if the keyspace is gone.
    fn latest(&self) -> Result<(Arc<ReadView>, SeqNo, u64)>;

    /// Returns a view of now, if every later view still has all entries of this moment: on a
    /// snapshot. `None` elsewhere.
    fn later_view(&self) -> Option<Arc<ReadView>>;
}

/// Bytes of expiry before the value of the `*Expiry` kinds.
pub const EXPIRY_BYTES: usize = 8;

/// Splits the stored value of an `*Expiry` kind into expiry (ms since 1970) and value.
///
/// # Errors
/// `Corruption` if it is too short for an expiry.
#[inline]
pub fn split_expiry(stored: &[u8]) -> Result<(u64, &[u8])> {
    match stored.split_first_chunk::<EXPIRY_BYTES>() {
        Some((expiry, value)) => Ok((u64::from_le_bytes(*expiry), value)),
        None => Err(Error::corruption("an expiring value is shorter than its expiry")),
    }
}

/// Whether an entry has expired at `now_ms`: from its expiry on it is gone.
#[inline]
pub fn is_expired(expiry_ms: u64, now_ms: u64) -> bool {
    expiry_ms <= now_ms
}

/// The error of a read or write that needs to apply operands, without an operator.
pub fn unregistered_operator(name: Option<&str>) -> Error {
    Error::invalid(match name {
        Some(name) => format!(
            "the keyspace's merge operator `{name}` is not registered: open the database with it \
             in Components::merge_operators"
        ),
        None => "the keyspace holds merge operands and has no merge operator: it was made \
                 without one (KeyspaceOptions::merge_operator)"
            .to_owned(),
    })
}

/// Applies merge operands, newest first as reads find them, to their base.
///
/// # Errors
/// `InvalidArgument` without a merge operator, `MergeRefused` if it says that base and operands do
/// not fit.
pub fn merge_operands(
    owner: &ReadOwner,
    key: &[u8],
    base: Option<&[u8]>,
    newest_first: &[Slice],
) -> Result<Slice> {
    let Some(operator) = &owner.operator else {
        return Err(unregistered_operator(owner.operator_name.as_deref()));
    };
    let operands: Vec<&[u8]> = newest_first.iter().rev().map(|operand| &**operand).collect();
    match operator.full_merge(key, base, &operands) {
        Some(value) => Ok(Slice::from(value)),
        None => Err(refused_merge(operator.name(), key, base, operands.len())),
    }
}

/// Nothing is damaged: a writer has put a value that the operator cannot be applied to.
#[cold]
fn refused_merge(operator: &str, key: &[u8], base: Option<&[u8]>, operands: usize) -> Error {
    let under =
        base.map_or_else(|| "no value".to_owned(), |b| format!("a value of {} bytes", b.len()));
    Error::new(
        ErrorKind::MergeRefused,
        format!(
            "merge operator `{operator}` does not take what is stored for key \"{}\" ({under}, \
             {operands} merged into it): put or delete the key",
            key.escape_ascii()
        ),
    )
}

/// Whether the result of a get means that the key exists.
#[inline]
pub fn is_there(value: Result<Option<Slice>>) -> Result<bool> {
    match value {
        Err(error) if is_refused_merge(&error) => Ok(true),
        value => value.map(|value| value.is_some()),
    }
}

/// Whether the error of a read is about one key alone, so that a scan may go on.
#[inline]
pub fn is_refused_merge(error: &Error) -> bool {
    error.kind() == ErrorKind::MergeRefused
}
