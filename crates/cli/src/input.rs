//! The input of `load`: a file or standard input, in large reads, by the line,
//! and interruptible by Ctrl-C while it waits.
//!
//! Owns: reads and lines. Never does: parse. A line is the bytes between line
//! feeds, whatever they are.

use crate::failure::{Failure, Result};
use crate::stop;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use std::fs::File;
use std::io::{self, Read};
use std::os::fd::{AsFd, BorrowedFd};
use std::path::Path;

/// The number of bytes read from the system at once.
const READ_BYTES: usize = 1 << 20;

/// The time for which a read waits before it checks for Ctrl-C again, in ms.
const WAIT_MS: i64 = 100;

/// The longest line: the longest key and value, in hexadecimal, with room for
/// quoting.
const LINE_BYTES_MAX: usize = (1 << 32) - 1;

/// A file or standard input.
pub(crate) struct Source {
    file: Option<File>,
    name: String,
    bytes_total: Option<u64>,
}

impl Source {
    /// Opens `path`; `None` and `-` are standard input.
    ///
    /// # Errors
    /// `Failed`, naming the file.
    #[allow(clippy::disallowed_methods, reason = "the user's own file, outside any database")]
    pub(crate) fn open(path: Option<&Path>) -> Result<Source> {
        let Some(path) = path.filter(|path| path.as_os_str() != "-") else {
            return Ok(Source { file: None, name: "standard input".to_owned(), bytes_total: None });
        };
        let name = path.display().to_string();
        let open = || {
            let file = File::open(path)?;
            let metadata = file.metadata()?;
            if metadata.is_dir() {
                return Err(io::Error::from(io::ErrorKind::IsADirectory));
            }
            Ok((file, metadata.is_file().then_some(metadata.len())))
        };
        let (file, bytes_total) = open().map_err(|error| Failure::file("read", &name, &error))?;
        Ok(Source { file: Some(file), name, bytes_total })
    }

    /// Returns the name for messages.
    pub(crate) fn name(&self) -> &str {
        &self.name
    }

    /// Returns the length in bytes, if it has one.
    pub(crate) fn bytes_total(&self) -> Option<u64> {
        self.bytes_total
    }

    /// Waits up to `wait_ms` for bytes to read (or the end). Regular files are
    /// always ready.
    fn ready(&self, wait_ms: i64) -> io::Result<bool> {
        if self.bytes_total.is_some() {
            return Ok(true);
        }
        let stdin = io::stdin();
        let fd: BorrowedFd<'_> = match &self.file {
            Some(file) => file.as_fd(),
            None => stdin.as_fd(),
        };
        let timeout = Timespec { tv_sec: wait_ms / 1000, tv_nsec: (wait_ms % 1000) * 1_000_000 };
        match poll(&mut [PollFd::new(&fd, PollFlags::IN)], Some(&timeout)) {
            Ok(ready) => Ok(ready > 0),
            Err(rustix::io::Errno::INTR) => Ok(false),
            Err(error) => Err(error.into()),
        }
    }
}

/// Reads fail once Ctrl-C was pressed; a caller that gets an error checks
/// [`stop::requested`] first.
impl Read for Source {
    fn read(&mut self, buf: &mut [u8]) -> io::Result<usize> {
        loop {
            if stop::requested() {
                return Err(io::Error::other("stopped"));
            }
            if !self.ready(WAIT_MS)? {
                continue;
            }
            let outcome = match &mut self.file {
                Some(file) => file.read(buf),
                None => io::stdin().lock().read(buf),
            };
            match outcome {
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                outcome => return outcome,
            }
        }
    }
}

/// The result of reading a line.
pub(crate) enum Line<'a> {
    /// A line without its line feed; the last may have had none.
    Text(&'a [u8]),
    /// There is nothing to read for a moment; there may be more.
    Idle,
    /// The input is at its end.
    End,
}

/// Cuts a source into lines, without an allocation per line.
pub(crate) struct Lines {
    source: Source,
    buffer: Vec<u8>,
    /// The bytes that are read and not yet returned: `buffer[start..end]`.
    start: usize,
    end: usize,
    number: u64,
    bytes_read: u64,
    ended: bool,
}

impl Lines {
    pub(crate) fn new(source: Source) -> Lines {
        Lines {
            source,
            buffer: vec![0; 2 * READ_BYTES],
            start: 0,
            end: 0,
            number: 0,
            bytes_read: 0,
            ended: false,
        }
    }

    /// Returns the number of the line returned last, from 1.
    pub(crate) fn number(&self) -> u64 {
        self.number
    }

    /// Returns the bytes of the lines returned so far.
    pub(crate) fn position(&self) -> u64 {
        self.bytes_read - (self.end - self.start) as u64
    }

    /// Returns the name of the source.
    pub(crate) fn name(&self) -> &str {
        self.source.name()
    }

    /// Returns the next line. [`Line::Idle`] only with `tell_idle`, and only
    /// where the source has nothing for now.
    ///
    /// # Errors
    /// `Failed` naming the source, `Interrupted` after Ctrl-C.
    pub(crate) fn next(&mut self, tell_idle: bool) -> Result<Line<'_>> {
        let mut searched = self.start;
        loop {
            if let Some(at) = memchr::memchr(b'\n', &self.buffer[searched..self.end]) {
                let line = self.start..searched + at;
                self.start = line.end + 1;
                self.number += 1;
                return Ok(Line::Text(&self.buffer[line]));
            }
            if self.ended {
                return Ok(self.rest());
            }
            if tell_idle && !self.source.ready(WAIT_MS / 2).map_err(|error| self.broken(&error))? {
                return Ok(Line::Idle);
            }
            let unfinished_bytes = self.end - self.start;
            self.fill()?;
            searched = self.start + unfinished_bytes;
        }
    }

    /// Returns the bytes after the last line feed.
    fn rest(&mut self) -> Line<'_> {
        if self.start == self.end {
            return Line::End;
        }
        let line = self.start..self.end;
        self.start = self.end;
        self.number += 1;
        Line::Text(&self.buffer[line])
    }

    /// Moves the unfinished line to the front and reads on behind it.
    fn fill(&mut self) -> Result<()> {
        self.buffer.copy_within(self.start..self.end, 0);
        self.end -= self.start;
        self.start = 0;
        if self.buffer.len() - self.end < READ_BYTES {
            if self.end > LINE_BYTES_MAX {
                let (number, name) = (self.number + 1, self.name());
                let why = format!("line {number} of {name} is longer than 4 GiB");
                let hint = "check that its lines end with a line feed: a value has 1 GiB at most";
                return Err(Failure::failed(why).hint(hint));
            }
            self.buffer.resize(self.buffer.len() * 2, 0);
        }
        let outcome = self.source.read(&mut self.buffer[self.end..]);
        let bytes = outcome.map_err(|error| self.broken(&error))?;
        self.ended = bytes == 0;
        self.end += bytes;
        self.bytes_read += bytes as u64;
        Ok(())
    }

    fn broken(&self, error: &io::Error) -> Failure {
        if stop::requested() {
            Failure::Interrupted
        } else {
            Failure::file("read", self.name(), error)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Write;

    fn lines_of(text: &[u8]) -> Vec<Vec<u8>> {
        let mut file = tempfile::NamedTempFile::new().unwrap();
        file.write_all(text).unwrap();
        let mut lines = Lines::new(Source::open(Some(file.path())).unwrap());
        let mut out = Vec::new();
        while let Line::Text(line) = lines.next(true).unwrap() {
            out.push(line.to_vec());
            assert_eq!(lines.number(), out.len() as u64);
        }
        assert_eq!(lines.position(), text.len() as u64);
        out
    }

    #[test]
    fn lines_are_what_is_between_line_feeds() {
        assert_eq!(lines_of(b""), Vec::<Vec<u8>>::new());
        assert_eq!(lines_of(b"a\n\nb\r\n"), [b"a".to_vec(), b"".to_vec(), b"b\r".to_vec()]);
        assert_eq!(lines_of(b"a\nlast"), [b"a".to_vec(), b"last".to_vec()]);
    }

    #[test]
    fn lines_longer_than_the_buffer_and_across_its_end() {
        let mut text = Vec::new();
        let mut expected = Vec::new();
        for bytes in [READ_BYTES - 1, 7, 2 * READ_BYTES, 5 * READ_BYTES + 3, 0, 1, READ_BYTES] {
            let line = vec![b'a' + (bytes % 26) as u8; bytes];
            text.extend_from_slice(&line);
            text.push(b'\n');
            expected.push(line);
        }
        assert!(lines_of(&text) == expected);
    }

    #[test]
    fn a_missing_file_is_named() {
        let Err(Failure::Failed { message, .. }) = Source::open(Some(Path::new("no-such-file")))
        else {
            panic!("opened");
        };
        assert!(message.contains("no-such-file"), "{message}");
    }
}
