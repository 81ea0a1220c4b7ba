//! The effect of a power loss on unsynced changes, drawn from a seed.
//!
//! Owns: the damage model, with weaker guarantees than ext4's: of unsynced changes any part may be
//! missing, in any order, in pieces of a sector, and a missing sector of new space may show another
//! file's bytes. Never does: damage synced bytes or names.

use super::directory::Directory;
use super::image::Image;
use super::inode::{Inode, Pending, SECTOR_BYTES};
use super::random::Rng;

/// Damage to a file's unsynced changes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FileDamage {
    /// All changes are lost.
    DropAll,
    /// All changes have reached the device.
    KeepAll,
    /// The first few changes have reached the device, and a part of the next.
    Prefix,
    /// Each sector has reached the device or not. A missing one keeps its old bytes; in new space
    /// it reads as zeros, or as another file's bytes.
    Sectors,
}

/// Damage to a directory's unsynced names.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NameDamage {
    /// All changes are lost.
    DropAll,
    /// All changes have reached the device.
    KeepAll,
    /// The first few changes have reached the device.
    Prefix,
    /// Each change has reached the device or not.
    Subset,
}

/// A power loss: a seed, and the kinds of damage, unless they are drawn for each file and
/// directory.
#[derive(Clone, Copy, Debug, Default)]
pub struct PowerLoss {
    /// The seed from which all other choices are drawn.
    pub seed: u64,
    /// The damage to every file; `None`: drawn for each.
    pub files: Option<FileDamage>,
    /// The damage to every directory; `None`: drawn for each.
    pub names: Option<NameDamage>,
}

/// Applies the damage to a directory. The names that are left are durable.
pub(super) fn damage_names(dir: &mut Directory, loss: &PowerLoss, rng: &mut Rng) {
    let damage = loss.names.unwrap_or_else(|| {
        use NameDamage::*;
        [DropAll, KeepAll, Prefix, Subset][rng.below(4) as usize]
    });
    let count = dir.pending.len();
    let prefix = rng.below(count as u64 + 1) as usize;
    let probability = probability(rng);
    for (index, op) in std::mem::take(&mut dir.pending).into_iter().enumerate() {
        let kept = match damage {
            NameDamage::DropAll => false,
            NameDamage::KeepAll => true,
            NameDamage::Prefix => index < prefix,
            NameDamage::Subset => rng.chance(probability),
        };
        if kept {
            op.apply(&mut dir.durable);
        }
    }
    dir.visible = dir.durable.clone();
}

/// Applies the damage to a file. The bytes that are left are durable. Missing sectors of new space
/// may show the bytes of `donor`.
pub(super) fn damage_file(
    inode: &mut Inode,
    loss: &PowerLoss,
    rng: &mut Rng,
    donor: Option<&Image>,
) {
    let damage = loss.files.unwrap_or_else(|| {
        use FileDamage::*;
        [DropAll, KeepAll, Prefix, Sectors][rng.below(4) as usize]
    });
    let pending = std::mem::take(&mut inode.pending);
    let image = &mut inode.durable;
    match damage {
        FileDamage::DropAll => {}
        FileDamage::KeepAll => pending.iter().for_each(|op| op.apply(image)),
        FileDamage::Prefix => {
            let kept = rng.below(pending.len() as u64 + 1) as usize;
            pending[..kept].iter().for_each(|op| op.apply(image));
            if let Some(Pending::Write { offset, bytes }) = pending.get(kept) {
                image.write(*offset, &bytes[..torn_len(*offset, bytes.len(), rng)]);
            }
        }
        FileDamage::Sectors => {
            let full_len = inode.visible.len();
            keep_sectors(image, &pending, full_len, rng, donor);
        }
    }
    inode.visible = inode.durable.clone();
}

/// Draws the length of a torn write that has reached the device: to any byte, or to a sector's end.
fn torn_len(offset: u64, len: usize, rng: &mut Rng) -> usize {
    let any = rng.below(len as u64 + 1);
    if rng.chance(0.5) {
        return any as usize;
    }
    let end = (offset + any) / SECTOR_BYTES * SECTOR_BYTES;
    end.saturating_sub(offset) as usize
}

fn keep_sectors(
    image: &mut Image,
    pending: &[Pending],
    full_len: u64,
    rng: &mut Rng,
    donor: Option<&Image>,
) {
    let probability = probability(rng);
    let keep_len = rng.chance(0.5);
    let donor = donor.filter(|_| rng.chance(0.5));
    // A synced byte must stay: other files' bytes show only beyond the durable length.
    let mut new_from = image.len();
    for op in pending {
        match op {
            Pending::SetLen(len) => {
                if rng.chance(0.5) {
                    image.set_len(*len);
                    new_from = new_from.min(*len);
                }
            }
            Pending::Write { offset, bytes } => {
                let mut at = 0;
                while at < bytes.len() {
                    let place = offset + at as u64;
                    let room = SECTOR_BYTES - place % SECTOR_BYTES;
                    let now = (room as usize).min(bytes.len() - at);
                    if rng.chance(probability) {
                        image.write(place, &bytes[at..at + now]);
                    } else if let Some(donor) = donor
                        && place >= new_from
                    {
                        let mut stale = [0u8; SECTOR_BYTES as usize];
                        donor.read(place, &mut stale[..now]);
                        image.write(place, &stale[..now]);
                    }
                    at += now;
                }
            }
        }
    }
    if keep_len {
        image.set_len(image.len().max(full_len));
    }
}

fn probability(rng: &mut Rng) -> f64 {
    [0.1, 0.5, 0.9][rng.below(3) as usize]
}
