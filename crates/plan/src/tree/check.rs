//! Checks a whole version for the invariants that metadata can show.
//!
//! [`Version::apply`] checks the files that an edit touches; [`Version::check`] checks all, for
//! tests, for `verify`, and after every edit of a small tree in debug builds. I3 and I4 speak of
//! keys: metadata refutes them only where two files are known to share a key, which their point
//! bounds are.
//!
//! Owns: those checks. Never does: change a version, or read a table.

use super::file::{File, Part};
use super::version::{LEVELS_MAX, Version};
use alloc::collections::BTreeSet;
use alloc::format;
use alloc::sync::Arc;
use windrow_base::key::KEY_BYTES_MAX;
use windrow_base::{Error, Result};

/// Checks all of them.
///
/// # Errors
/// `Corruption` naming the level and files at fault.
pub(super) fn all(version: &Version) -> Result<()> {
    if version.levels.is_empty() || version.levels.len() > LEVELS_MAX as usize {
        return Err(Error::corruption(format!("a tree of {} levels", version.levels.len())));
    }
    for (n, level) in version.levels.iter().enumerate() {
        if n == 0 && !level.run.is_empty() {
            return Err(Error::corruption("level 0 has a run"));
        }
        level.check(&version.order).map_err(|e| e.context(format!("level {n}")))?;
    }
    let mut numbers = BTreeSet::new();
    for (_, part, file) in version.files() {
        if !numbers.insert(file.number) {
            return Err(Error::corruption(format!("table {} is there twice (I2)", file.number)));
        }
        if part == Part::SstLog && file.epoch >= version.next_epoch {
            return Err(Error::corruption(format!(
                "table {} has epoch {}, and the next one is {} (I4)",
                file.number, file.epoch, version.next_epoch
            )));
        }
    }
    boundaries(version)?;
    ages(version)
}

/// I3 and I4: of two files that share a bound key, the later in read
/// order must not be newer as a whole.
fn ages(version: &Version) -> Result<()> {
    for (n, level) in version.levels.iter().enumerate() {
        let n = n as u32;
        let run = level.run.iter().map(|f| (Part::Run, f));
        for (part, upper) in run.chain(level.sst_log.iter().map(|f| (Part::SstLog, f))) {
            let place = upper.place(n, part);
            for below in n..version.levels.len() as u32 {
                for half in [Part::Run, Part::SstLog] {
                    let later = version.overlapping_span(below, half, upper.span());
                    for (_, lower) in later {
                        if lower.place(below, half) > place {
                            pair(version, upper, lower)?;
                        }
                    }
                }
            }
        }
    }
    Ok(())
}

fn pair(version: &Version, upper: &Arc<File>, lower: &Arc<File>) -> Result<()> {
    let (Some(a), Some(b)) = (&upper.point_bounds, &lower.point_bounds) else {
        return Ok(());
    };
    let equal = |x: &[u8], y: &[u8]| version.order.equal(x, y);
    let share = equal(&a.0, &b.0) || equal(&a.1, &b.1) || equal(&a.0, &b.1) || equal(&a.1, &b.0);
    if !share || upper.seq_max >= lower.seq_min {
        return Ok(());
    }
    Err(Error::corruption(format!(
        "tables {} and {} share a key, and the older entry is read first (I3, I4)",
        upper.number, lower.number
    )))
}
/// Checks that the boundaries of the partitions ascend, and are keys.
///
/// # Errors
/// `Corruption` if not.
pub(super) fn boundaries(version: &Version) -> Result<()> {
    let ascending =
        version.boundaries.windows(2).all(|w| version.order.compare(&w[0], &w[1]).is_lt());
    if ascending && version.boundaries.iter().all(|l| l.len() <= KEY_BYTES_MAX) {
        return Ok(());
    }
    Err(Error::corruption("the boundaries of the partitions do not ascend"))
}
