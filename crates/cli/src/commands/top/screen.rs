//! The terminal, while frames are drawn on it: a screen of its own, no cursor, keys one by one.
//!
//! Owns: the state of the terminal, which it restores on every path. Never does: know what is
//! drawn.

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::{Errno, read};
use rustix::termios::{LocalModes, OptionalActions, Termios, tcgetattr, tcgetwinsize, tcsetattr};
use std::io::{self, IsTerminal, Write};
use std::time::Duration;

/// A command from the terminal.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Key {
    /// The user quits, or the terminal is gone.
    Quit,
    Pause,
}

/// The byte that Ctrl-C sends where it is no signal.
const CTRL_C: u8 = 3;

/// A terminal that is drawn on.
pub(super) struct Screen {
    before: Option<Termios>,
}

impl Screen {
    /// Takes standard output, if it is a terminal; keys come from standard input, if that is a
    /// terminal.
    pub(super) fn take() -> Option<Screen> {
        if !io::stdout().is_terminal() {
            return None;
        }
        let before = tcgetattr(io::stdin()).ok();
        if let Some(mut keys) = before.clone() {
            // Ctrl-C is a key: as a signal, a second one would leave the terminal as it is now.
            keys.local_modes.remove(LocalModes::ICANON | LocalModes::ECHO | LocalModes::ISIG);
            let _ = tcsetattr(io::stdin(), OptionalActions::Now, &keys);
        }
        let _ = write!(io::stdout(), "\x1b[?1049h\x1b[?25l");
        Some(Screen { before })
    }

    /// Draws lines in place of those before, as far as they fit.
    ///
    /// # Errors
    /// Those of the terminal.
    pub(super) fn draw(&self, lines: &[String]) -> io::Result<()> {
        let size = tcgetwinsize(io::stdout()).ok();
        // A terminal of unknown size reports 0.
        let or =
            |told: Option<u16>, or: usize| told.map(usize::from).filter(|&n| n > 0).unwrap_or(or);
        let rows = or(size.map(|size| size.ws_row), 24);
        let columns = or(size.map(|size| size.ws_col), 80);
        let mut text = String::from("\x1b[H");
        for (n, line) in lines.iter().take(rows).enumerate() {
            text += if n == 0 { "" } else { "\r\n" };
            text += &cut(line, columns);
            text += "\x1b[0m\x1b[K";
        }
        text += "\x1b[J";
        let mut out = io::stdout().lock();
        out.write_all(text.as_bytes())?;
        out.flush()
    }

    /// Waits for a key that has a meaning, for `most` at most.
    pub(super) fn key(&self, most: Duration) -> Option<Key> {
        let stdin = io::stdin();
        if self.before.is_none() {
            wait(most);
            return None;
        }
        let timeout = Timespec::try_from(most).ok()?;
        match poll(&mut [PollFd::new(&stdin, PollFlags::IN)], Some(&timeout)) {
            Ok(1..) => {
                let mut key = [0];
                asks(read(&stdin, &mut key).map(|n| key[..n].first().copied()))
            }
            _ => None,
        }
    }
}

/// Interprets the result of a read: a byte, the end, or an error.
fn asks(key: Result<Option<u8>, Errno>) -> Option<Key> {
    match key {
        Ok(Some(b'q' | CTRL_C) | None) => Some(Key::Quit),
        Ok(Some(b' ')) => Some(Key::Pause),
        Ok(Some(_)) | Err(Errno::INTR | Errno::AGAIN) => None,
        Err(_) => Some(Key::Quit),
    }
}

/// Waits where there are no keys.
#[allow(clippy::disallowed_methods, reason = "a command waits, and nothing of the engine")]
pub(super) fn wait(time: Duration) {
    std::thread::sleep(time);
}

/// Returns the part of a line that fits into `columns`. Colours take no columns.
fn cut(line: &str, columns: usize) -> String {
    let (mut text, mut left, mut in_colour) = (String::new(), columns, false);
    for c in line.chars() {
        in_colour |= c == '\x1b';
        if !in_colour {
            if left == 0 {
                break;
            }
            left -= 1;
        }
        in_colour &= c != 'm';
        text.push(c);
    }
    text
}

impl Drop for Screen {
    fn drop(&mut self) {
        let mut out = io::stdout();
        let _ = write!(out, "\x1b[?25h\x1b[?1049l");
        let _ = out.flush();
        if let Some(before) = &self.before {
            let _ = tcsetattr(io::stdin(), OptionalActions::Now, before);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_terminal_that_is_gone_ends_it() {
        assert_eq!(asks(Ok(Some(b' '))), Some(Key::Pause));
        assert_eq!(asks(Ok(Some(b'x'))), None);
        assert_eq!(asks(Err(Errno::INTR)), None);
        for end in [Ok(Some(b'q')), Ok(Some(CTRL_C)), Ok(None), Err(Errno::IO)] {
            assert_eq!(asks(end), Some(Key::Quit), "{end:?}");
        }
    }

    #[test]
    fn a_line_is_cut_by_what_is_seen_of_it() {
        assert_eq!(cut("levels", 4), "leve");
        assert_eq!(cut("\x1b[1mbold\x1b[0m and", 6), "\x1b[1mbold\x1b[0m a");
        assert_eq!(cut("µs", 2), "µs");
    }
}
