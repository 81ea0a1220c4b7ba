//! Progress of long work, on stderr, only where that is a terminal and the user did not ask for
//! quiet.
//!
//! Owns: the bar, which is cleared before any other message, also where Ctrl-C prints one on
//! another thread. Never does: print on stdout.

use crate::human;
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressState, ProgressStyle};
use std::fmt;
use std::io::{self, IsTerminal};
use std::time::Duration;
use windrow::Db;
use windrow::env::sync::{Mutex, Rank};

/// The bar that is drawn now.
static DRAWN: Mutex<Option<ProgressBar>> = Mutex::new(Rank::INNERMOST, None);

/// Clears the bar for good.
pub(crate) fn clear() {
    let drawn = DRAWN.lock().take();
    drawn.inspect(ProgressBar::finish_and_clear);
}

/// A bar, a spinner, or nothing. Cleared when dropped.
pub(crate) struct Progress(Option<ProgressBar>);

impl Progress {
    fn new(quiet: bool, total: Option<u64>, template: &str) -> Progress {
        Progress::of_style(quiet, total, style(template))
    }

    /// Begins other work, over `total` things.
    pub(crate) fn go_on(&self, what: &str, total: u64) {
        if let Some(bar) = self.0.as_ref().filter(|bar| !bar.is_finished()) {
            bar.set_style(style(&format!("{what} {{bar:30}} {{percent:>3}} %")));
            bar.set_position(0);
            bar.set_length(total);
        }
    }

    fn of_style(quiet: bool, total: Option<u64>, style: ProgressStyle) -> Progress {
        if quiet || !io::stderr().is_terminal() {
            return Progress(None);
        }
        let target = ProgressDrawTarget::stderr_with_hz(10);
        let bar = ProgressBar::with_draw_target(total, target);
        bar.set_style(style);
        bar.tick();
        bar.enable_steady_tick(Duration::from_millis(100));
        *DRAWN.lock() = Some(bar.clone());
        Progress(Some(bar))
    }

    /// Makes a bar over `total` bytes, with `what` before it.
    pub(crate) fn bytes(quiet: bool, what: &str, total: u64) -> Progress {
        let template =
            format!("{what} {{bar:30}} {{percent:>3}} % {{binary_bytes_per_sec}}, {{eta}} left");
        Progress::new(quiet, Some(total), &template)
    }

    /// Makes a bar over about `total` pairs.
    pub(crate) fn pairs(quiet: bool, what: &str, total: u64) -> Progress {
        let template = format!(
            "{what} {{bar:30}} about {{percent:>3}} % {{human_pos}} ({{per_sec}}), {{eta}} left"
        );
        Progress::new(quiet, Some(total), &template)
    }

    /// Makes a bar over `total` things.
    pub(crate) fn steps(quiet: bool, what: &str, total: u64) -> Progress {
        let template = format!("{what} {{bar:30}} {{percent:>3}} %");
        Progress::new(quiet, Some(total), &template)
    }

    /// Makes a spinner that counts things whose number is unknown.
    pub(crate) fn counting(quiet: bool, what: &str) -> Progress {
        Progress::new(quiet, None, &format!("{{spinner}} {what} {{human_pos}} ({{per_sec}})"))
    }

    /// Makes a spinner for work of unknown progress.
    pub(crate) fn waiting(quiet: bool, what: &str) -> Progress {
        Progress::new(quiet, None, &format!("{{spinner}} {what} {{elapsed}}"))
    }

    /// Makes a spinner for a compaction: the bytes written, the bytes in tables, and an estimate of
    /// the progress from both. The bytes that merges will drop, or need not rewrite, are unknown
    /// before.
    pub(crate) fn compacting(quiet: bool, db: &Db) -> Progress {
        let (before, db) = (db.stats().tables_written_bytes(), db.clone());
        let figures = move |state: &ProgressState, text: &mut dyn fmt::Write| {
            let stats = db.stats();
            let written = stats.tables_written_bytes().saturating_sub(before);
            let held = stats.tree_bytes();
            let _ =
                write!(text, "{} written, {} in tables", human::size(written), human::size(held));
            if let Some((percent, left)) = about(written, held, state.elapsed()) {
                let _ = write!(text, ", about {percent} %, {} left", human::time(left));
            }
        };
        let style = ProgressStyle::with_template("{spinner} compacting: {figures}, {elapsed}")
            .unwrap_or_else(|_| ProgressStyle::default_spinner())
            .with_key("figures", figures);
        Progress::of_style(quiet, None, style)
    }

    /// Sets the position.
    pub(crate) fn at(&self, position: u64) {
        if let Some(bar) = self.0.as_ref().filter(|bar| !bar.is_finished()) {
            bar.set_position(position);
        }
    }
}

/// Estimates the percentage and the rest of a compaction that writes each byte of the tables once;
/// `None` before it has written some.
fn about(written: u64, held: u64, elapsed: Duration) -> Option<(u64, Duration)> {
    let share = (written as f64 / held.max(1) as f64).min(0.99);
    let percent = (share * 100.0) as u64;
    (percent > 0).then(|| (percent, elapsed.mul_f64((1.0 - share) / share)))
}

fn style(template: &str) -> ProgressStyle {
    ProgressStyle::with_template(template)
        .unwrap_or_else(|_| ProgressStyle::default_bar())
        .progress_chars("█▉▊▋▌▍▎▏ ")
}

impl Drop for Progress {
    fn drop(&mut self) {
        // A bar that was cleared is not cleared again: a message may have been printed since.
        if self.0.take().is_some() {
            clear();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::about;
    use std::time::Duration;

    #[test]
    fn the_rest_of_a_compaction_is_in_proportion() {
        assert_eq!(about(0, 100, Duration::from_secs(1)), None);
        assert_eq!(about(25, 100, Duration::from_secs(1)), Some((25, Duration::from_secs(3))));
        // It has written more than the tables hold: its end is near, and not reached.
        let (percent, left) = about(300, 100, Duration::from_secs(99)).unwrap();
        assert!(percent == 99 && left.as_secs() <= 1, "{percent} {left:?}");
    }
}
