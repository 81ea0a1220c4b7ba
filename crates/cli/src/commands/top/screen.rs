//! The terminal, while frames are drawn on it: a screen of its own, no cursor, keys one by one.
//!
//! Owns: that the terminal is as before, whatever happens. Never does: know what is drawn.

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::termios::{LocalModes, OptionalActions, Termios, tcgetattr, tcgetwinsize, tcsetattr};
use std::io::{self, IsTerminal, Read, Write};
use std::time::Duration;

/// A terminal that is drawn on.
pub(super) struct Screen {
    before: Option<Termios>,
}

impl Screen {
    /// Takes standard output, if it is a terminal; keys come from standard input, if that is one.
    pub(super) fn take() -> Option<Screen> {
        if !io::stdout().is_terminal() {
            return None;
        }
        let before = tcgetattr(io::stdin()).ok();
        if let Some(mut keys) = before.clone() {
            // Ctrl-C stays a signal.
            keys.local_modes.remove(LocalModes::ICANON | LocalModes::ECHO);
            let _ = tcsetattr(io::stdin(), OptionalActions::Now, &keys);
        }
        let _ = write!(io::stdout(), "\x1b[?1049h\x1b[?25l");
        Some(Screen { before })
    }

    /// Draws lines in place of those before, as far as they fit.
    ///
    /// # Errors
    /// What the terminal said.
    pub(super) fn draw(&self, lines: &[String]) -> io::Result<()> {
        let size = tcgetwinsize(io::stdout()).ok();
        let rows = size.map_or(24, |size| usize::from(size.ws_row)).max(1);
        let columns = size.map_or(80, |size| usize::from(size.ws_col)).max(1);
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

    /// Waits for a key, so long at most.
    pub(super) fn key(&self, most: Duration) -> Option<u8> {
        let stdin = io::stdin();
        if self.before.is_none() {
            wait(most);
            return None;
        }
        let timeout = Timespec::try_from(most).ok()?;
        match poll(&mut [PollFd::new(&stdin, PollFlags::IN)], Some(&timeout)) {
            Ok(1..) => {
                let mut key = [0];
                stdin.lock().read(&mut key).ok().filter(|&n| n == 1).map(|_| key[0])
            }
            _ => None,
        }
    }
}

/// Waits, for want of keys.
#[allow(clippy::disallowed_methods, reason = "a command waits, and nothing of the engine")]
pub(super) fn wait(time: Duration) {
    std::thread::sleep(time);
}

/// The beginning of a line: so many columns, colours not counted.
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
    use super::cut;

    #[test]
    fn a_line_is_cut_by_what_is_seen_of_it() {
        assert_eq!(cut("levels", 4), "leve");
        assert_eq!(cut("\x1b[1mbold\x1b[0m and", 6), "\x1b[1mbold\x1b[0m a");
        assert_eq!(cut("µs", 2), "µs");
    }
}
