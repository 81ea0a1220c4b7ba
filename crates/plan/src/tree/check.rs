//! The invariants that metadata can show, asked of a whole version.
//!
//! [`Version::apply`] checks what an edit touches; this checks everything,
//! for tests, for `verify`, and after every edit of a small tree in debug builds.
//! I3 and I4 speak of keys: metadata refutes them only where two files are
//! known to share a key, which their point bounds are.

use super::file::{File, Part};
use super::version::{LEVELS_MAX, Version};
use alloc::collections::BTreeSet;
use alloc::format;
use alloc::sync::Arc;
use windrow_base::{Error, Result};

impl Version {
    /// Checks I1, I2 and I4, and I3 where metadata can refute it.
    /// O(n log n) in the number of files.
    ///
    /// # Errors
    /// `Corruption` naming the level and files at fault.
    pub fn check(&self) -> Result<()> {
        if self.levels.is_empty() || self.levels.len() > LEVELS_MAX as usize {
            return Err(Error::corruption(format!("a tree of {} levels", self.levels.len())));
        }
        for (n, level) in self.levels.iter().enumerate() {
            if n == 0 && !level.run.is_empty() {
                return Err(Error::corruption("level 0 has a run"));
            }
            level.check(&self.order).map_err(|e| e.context(format!("level {n}")))?;
        }
        let mut numbers = BTreeSet::new();
        for (_, part, file) in self.files() {
            if !numbers.insert(file.number) {
                return Err(Error::corruption(format!("table {} stands twice (I2)", file.number)));
            }
            if part == Part::Log && file.epoch >= self.next_epoch {
                return Err(Error::corruption(format!(
                    "table {} has epoch {}, and the next one is {} (I4)",
                    file.number, file.epoch, self.next_epoch
                )));
            }
        }
        self.check_lanes()?;
        self.check_ages()
    }

    /// I3 and I4: of two files that share a bound key, the later in read
    /// order must not be newer as a whole.
    fn check_ages(&self) -> Result<()> {
        for (n, level) in self.levels.iter().enumerate() {
            let n = n as u32;
            let run = level.run.iter().map(|f| (Part::Run, f));
            for (part, upper) in run.chain(level.log.iter().map(|f| (Part::Log, f))) {
                let place = upper.place(n, part);
                for below in n..self.levels.len() as u32 {
                    for half in [Part::Run, Part::Log] {
                        let later = self.overlapping_span(below, half, upper.span());
                        for (_, lower) in later {
                            if lower.place(below, half) > place {
                                self.check_pair(upper, lower)?;
                            }
                        }
                    }
                }
            }
        }
        Ok(())
    }

    fn check_pair(&self, upper: &Arc<File>, lower: &Arc<File>) -> Result<()> {
        let (Some(a), Some(b)) = (&upper.point_bounds, &lower.point_bounds) else {
            return Ok(());
        };
        let equal = |x: &[u8], y: &[u8]| self.order.equal(x, y);
        let share =
            equal(&a.0, &b.0) || equal(&a.1, &b.1) || equal(&a.0, &b.1) || equal(&a.1, &b.0);
        if !share || upper.seq_max >= lower.seq_min {
            return Ok(());
        }
        Err(Error::corruption(format!(
            "tables {} and {} share a key, and the older entry is read first (I3, I4)",
            upper.number, lower.number
        )))
    }
}
