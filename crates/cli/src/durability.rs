//! The moment at which a server's writes are on the device, by the words of its
//! flag.
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
