//! When a server's writes are on the device, as its flag says it.
//!
//! Owns: the words. Never does: sync.

/// When a write is on the device.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum ServeSync {
    /// Before its reply.
    Always,
    /// Within a second.
    Everysec,
    /// Whenever the system writes it.
    No,
}
