//! Starting write-out of dirty pages without waiting for it.
//!
//! Owns: no state. Never does: make anything durable, or report a failure.

use std::os::fd::{AsRawFd, BorrowedFd};

/// Asks the kernel to start writing the dirty pages of a range to the device, so that the
/// `fdatasync` at the file's end finds little left and does not stall the syncs of other files. It
/// is a hint: that `fdatasync` reports failures.
pub(crate) fn start(fd: BorrowedFd<'_>, offset: u64, len: u64) {
    // SAFETY: takes no pointers; the descriptor is open while borrowed.
    unsafe {
        libc::sync_file_range(
            fd.as_raw_fd(),
            offset as i64,
            len as i64,
            libc::SYNC_FILE_RANGE_WRITE,
        );
    }
}
