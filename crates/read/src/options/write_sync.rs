//! How durable a write is when it returns.
//!
//! Owns: the choice. Never does: sync.

/// How far a write has gone when the call returns.
///
/// Not `Sync`: `use windrow::*` would hide the marker of that name.
///
/// ```
/// # let dir = tempfile::tempdir().unwrap();
/// # let db = windrow::Db::open(dir.path()).unwrap();
/// use windrow::WriteSync;
/// let mut batch = windrow::Batch::new();
/// batch.put(&db, "order/17", "paid");
/// db.write(batch, WriteSync::Yes)?; // on the device
/// db.put("seen/17", "")?; // `WriteSync::No`: in the kernel
/// db.sync()?; // all of it on the device
/// # Ok::<(), windrow::Error>(())
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum WriteSync {
    /// It is on the device: it survives the loss of power.
    Yes,
    /// It has reached the kernel: it survives the death of the process, and
    /// becomes durable with the next synced write, `Db::sync`, or
    /// `wal_sync_interval_ms`.
    #[default]
    No,
}

impl WriteSync {
    /// Whether the caller waits for the device.
    #[inline]
    pub fn is_yes(self) -> bool {
        self == WriteSync::Yes
    }
}
