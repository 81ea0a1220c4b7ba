//! The records that were appended to a log behind the place where reading ended before.
//!
//! While the log is written to, it may end with a part of a record, or have a complete record
//! behind one that is not. Reading stops there, and goes on later. Damage looks the same. So if
//! there is a reason to believe that a whole record should be there, the end is judged
//! (`windrow_format::log::LogReader`), and judged again: the evidence against it was written later
//! than the record itself, but may have been read before the record was written.
//!
//! Owns: that rule. Never does: interpret a record.

use windrow_base::Result;
use windrow_format::log::{LogReader, LogRecord};

/// The answer of a consumer to a record.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Took {
    /// It was taken, and the next one may follow.
    It,
    /// It was not, and must be passed again.
    Nothing,
}

/// A log that is read from the place where reading ended before.
pub struct GrowingLog<'a> {
    /// Opens the log from its start.
    pub open: &'a dyn Fn() -> Result<LogReader>,
    /// Where reading ended; 0 for a log that was not read yet.
    pub at: u64,
}

impl GrowingLog<'_> {
    /// Passes the whole records that are there now to `take`. Returns whether all of them were
    /// taken.
    ///
    /// # Errors
    /// The errors of `take`; `Io`.
    pub fn read(&mut self, mut take: impl FnMut(&LogRecord<'_>) -> Result<Took>) -> Result<bool> {
        let mut reader = self.reader()?.of_live();
        self.pass(&mut reader, &mut take)
    }

    /// As [`GrowingLog::read`], where another source says that more records are durable.
    ///
    /// # Errors
    /// `Corruption` where what is durable is damaged; as [`GrowingLog::read`].
    pub(crate) fn read_promised(
        &mut self,
        mut take: impl FnMut(&LogRecord<'_>) -> Result<Took>,
    ) -> Result<bool> {
        let mut judged = None;
        loop {
            match self.reader().and_then(|mut reader| self.pass(&mut reader, &mut take)) {
                // It is damaged where two judgements of one place agree.
                Err(error) if error.is_corruption() && judged != Some(self.at) => {
                    judged = Some(self.at);
                }
                passed => return passed,
            }
        }
    }

    fn reader(&self) -> Result<LogReader> {
        let reader = (self.open)()?;
        Ok(if self.at == 0 { reader } else { reader.go_on_at(self.at) })
    }

    fn pass(
        &mut self,
        reader: &mut LogReader,
        take: &mut impl FnMut(&LogRecord<'_>) -> Result<Took>,
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

#[cfg(all(test, not(any(loom, shuttle))))]
mod tests {
    use super::*;
    use std::cell::Cell;
    use std::path::Path;
    use windrow_env::fs::ReadFileOptions;
    use windrow_env::testing::env;
    use windrow_format::log::{
        Class, FileHeader, Framing, LogKind, LogPosition, encode_file_header, frame,
    };

    const UID: u64 = 0x1122_3344_5566_7788;

    /// A log of records whose payload is their number. Each says that those before it were durable.
    fn log(records: u8) -> (Vec<u8>, Vec<usize>) {
        let framing = Framing::Fixed;
        let header = FileHeader {
            kind: LogKind::Wal,
            framing,
            number: 1,
            uid: UID,
            manifest_number: 2,
            manifest_durable_bytes: 0,
            manifest_uid: 3,
        };
        let (mut bytes, mut begins) = (encode_file_header(&header), Vec::new());
        for number in 0..records {
            let offset = bytes.len() as u64;
            begins.push(bytes.len());
            let place = LogPosition { framing, uid: UID, offset, durable_up_to: offset };
            frame(&mut bytes, &[number; 40], Class::Batch, place);
        }
        (bytes, begins)
    }

    /// The numbers of the records that are read where the log is `images[n]` when it is opened for
    /// the `n`th time, and how the reading ended.
    fn read(images: &[Vec<u8>]) -> (Vec<u8>, Result<bool>) {
        let (env, handles) = env(1);
        let (path, opened) = (Path::new("/log"), Cell::new(0));
        let open = || {
            let image = &images[opened.get().min(images.len() - 1)];
            opened.set(opened.get() + 1);
            handles.fs.write_file(path, image);
            LogReader::open(env.fs.open(path, ReadFileOptions::default())?, LogKind::Wal, None)
        };
        let (mut tail, mut taken) = (GrowingLog { open: &open, at: 0 }, Vec::new());
        let ended = tail.read_promised(|record| {
            taken.push(record.payload[0]);
            Ok(Took::It)
        });
        (taken, ended)
    }

    /// A missing record may be written after the reader was there and before it looks behind it.
    #[test]
    fn a_place_is_damaged_if_it_was_judged_twice() {
        let (whole, begins) = log(6);
        let without = |number: usize| {
            let mut bytes = whole.clone();
            bytes[begins[number]..begins[number + 1]].fill(0);
            bytes
        };
        let (taken, ended) = read(&[without(1), without(3), without(4), whole.clone()]);
        assert_eq!((taken, ended.unwrap()), ((0..6).collect(), true));
        let (taken, ended) = read(&[without(3), without(3), whole.clone()]);
        assert!(taken == [0, 1, 2] && ended.unwrap_err().is_corruption());
    }
}
