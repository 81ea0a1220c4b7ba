//! The records that somebody has appended to a log, from where reading ended before.
//!
//! Where the log is written to there may be a part of a record, or one that is complete
//! behind one that is not: reading stops there, and goes on later. Damage looks the same.
//! So if there is a reason to believe that a whole record should be there, the end is
//! judged (`windrow_format::log::Reader`), and judged again: the evidence against it was
//! written after what it is evidence of, but may have been read before it was.
//!
//! Owns: that rule. Never does: know what a record says.

use windrow_base::Result;
use windrow_format::log::{Reader, Record};

/// What becomes of a record.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Took {
    /// It was taken, and the next one may follow.
    It,
    /// It was not, and is to come again.
    Nothing,
}

/// A log that is read from where reading ended before.
pub(super) struct Tail<'a> {
    /// Opens it from its start.
    pub(super) open: &'a dyn Fn() -> Result<Reader>,
    /// Where reading ended; 0 for a log of which nothing was read.
    pub(super) at: u64,
}

impl Tail<'_> {
    /// Passes the whole records that are there now to `take`. Returns whether all were taken.
    ///
    /// # Errors
    /// What `take` says; `Io`.
    pub(super) fn read(
        &mut self,
        mut take: impl FnMut(&Record<'_>) -> Result<Took>,
    ) -> Result<bool> {
        let mut reader = self.reader()?.of_live();
        self.pass(&mut reader, &mut take)
    }

    /// The same where somebody was promised more than that.
    ///
    /// # Errors
    /// `Corruption` where what is durable is damaged; as [`Tail::read`].
    pub(super) fn read_promised(
        &mut self,
        mut take: impl FnMut(&Record<'_>) -> Result<Took>,
    ) -> Result<bool> {
        let before = self.at;
        match self.reader().and_then(|mut reader| self.pass(&mut reader, &mut take)) {
            Err(error) if error.is_corruption() && self.at == before => {
                let mut reader = self.reader()?;
                self.pass(&mut reader, &mut take)
            }
            passed => passed,
        }
    }

    fn reader(&self) -> Result<Reader> {
        let reader = (self.open)()?;
        Ok(if self.at == 0 { reader } else { reader.go_on_at(self.at) })
    }

    fn pass(
        &mut self,
        reader: &mut Reader,
        take: &mut impl FnMut(&Record<'_>) -> Result<Took>,
    ) -> Result<bool> {
        while let Some(record) = reader.next()? {
            let (offset, end) = (record.offset, record.end);
            match take(&record).map_err(|error| error.with_offset(offset))? {
                Took::It => self.at = end,
                Took::Nothing => return Ok(false),
            }
        }
        Ok(true)
    }
}
