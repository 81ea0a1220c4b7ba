//! A file without its name: its bytes on the device, its bytes in the page cache, and the
//! operations between the two that no sync has covered.
//!
//! Owns: the bytes of one file. Never does: decide which operations survive (`power_loss.rs`).

use super::image::Image;
use std::sync::Arc;

/// The unit that the device writes whole or not at all, in bytes.
pub(super) const SECTOR_BYTES: u64 = 512;

/// One operation on a file since its last sync.
#[derive(Clone)]
pub(super) enum Pending {
    Write { offset: u64, bytes: Arc<[u8]> },
    SetLen(u64),
}

impl Pending {
    pub(super) fn apply(&self, image: &mut Image) {
        match self {
            Pending::Write { offset, bytes } => image.write(*offset, bytes),
            Pending::SetLen(len) => image.set_len(*len),
        }
    }
}

#[derive(Clone)]
pub(super) struct Inode {
    pub(super) id: u64,
    /// The contents that reads see.
    pub(super) visible: Image,
    /// The contents that a power loss leaves at least.
    pub(super) durable: Image,
    /// The unsynced operations, in order; `durable` and all of these give `visible`, unless a sync
    /// has failed.
    pub(super) pending: Vec<Pending>,
    /// Whether it is written through a buffer in the process, whose content is lost with the
    /// process.
    pub(super) buffered: bool,
    /// The number of changes that processes have seen.
    pub(super) changes: u64,
    /// For a log, the end of its reserved space; the rest of its length is a hole.
    pub(super) reserved: Option<u64>,
}

impl Inode {
    pub(super) fn new(id: u64, buffered: bool) -> Inode {
        Inode {
            id,
            visible: Image::default(),
            durable: Image::default(),
            pending: Vec::new(),
            buffered,
            changes: 0,
            reserved: None,
        }
    }

    /// The bytes that it takes on the device.
    pub(super) fn used_bytes(&self) -> u64 {
        self.reserved.unwrap_or(self.visible.len())
    }

    pub(super) fn write(&mut self, offset: u64, bytes: &[u8]) {
        if !bytes.is_empty() {
            self.changes += 1;
            self.visible.write(offset, bytes);
            self.pending.push(Pending::Write { offset, bytes: bytes.into() });
        }
    }

    /// Writes all but one sector, whose bytes go up to eight sectors further on or back. `draw`
    /// decides the sector and its place.
    pub(super) fn write_misdirected(&mut self, offset: u64, bytes: &[u8], draw: u64) {
        let end = offset + bytes.len() as u64;
        let first = offset / SECTOR_BYTES;
        let sectors = end.div_ceil(SECTOR_BYTES) - first;
        let sector = first + (draw >> 8) % sectors.max(1);
        // The part of the write that lies in this sector.
        let from = (sector * SECTOR_BYTES).max(offset);
        let to = ((sector + 1) * SECTOR_BYTES).min(end);
        let (before, after) = ((from - offset) as usize, (to - offset) as usize);
        let shift = (1 + (draw & 7)) * SECTOR_BYTES;
        let place = if draw & 8 == 0 || from < shift { from + shift } else { from - shift };
        self.write(offset, &bytes[..before]);
        self.write(to, &bytes[after..]);
        self.write(place, &bytes[before..after]);
    }

    pub(super) fn set_len(&mut self, len: u64) {
        if len != self.visible.len() {
            self.changes += 1;
            self.visible.set_len(len);
            self.pending.push(Pending::SetLen(len));
        }
    }

    pub(super) fn sync(&mut self) {
        for op in self.pending.drain(..) {
            op.apply(&mut self.durable);
        }
    }

    /// Applies a failed sync: the pages count as clean, the cache goes on showing them, the device
    /// never gets them, and the next sync succeeds.
    pub(super) fn sync_failed(&mut self) {
        self.pending.clear();
    }

    /// Replaces the contents, on the device too.
    pub(super) fn replace(&mut self, image: Image) {
        self.changes += 1;
        self.reserved = None;
        self.durable = image.clone();
        self.visible = image;
        self.pending.clear();
    }
}
