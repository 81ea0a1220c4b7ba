//! The progress of a run: a bar on a terminal, lines elsewhere, on stderr.
//!
//! Owns: the words and the time that is left. Never does: decide what runs, or
//! touch stdout, where results go.

use crate::output;
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressState, ProgressStyle};
use std::fmt::{self, Write};
use std::io::{self, IsTerminal};
use std::time::Duration;

/// A bar over a known number of units of work.
pub(crate) struct Progress {
    /// `None` off a terminal.
    bar: Option<ProgressBar>,
    total: u64,
    begun: u64,
}

impl Progress {
    /// Makes a bar over this many units.
    pub(crate) fn new(units: usize) -> Progress {
        let total = units as u64;
        let bar = io::stderr().is_terminal().then(|| bar(total));
        Progress { bar, total, begun: 0 }
    }

    /// Begins a unit, which ends the one before it; `what` names it, as in
    /// `ycsb round 1 rocksdb`.
    pub(crate) fn next(&mut self, what: &str) {
        self.begun += 1;
        match &self.bar {
            Some(bar) => {
                bar.set_position(self.begun - 1);
                bar.set_message(what.to_owned());
            }
            None => output::note(line(self.begun, self.total, what)),
        }
    }
}

impl Drop for Progress {
    fn drop(&mut self) {
        if let Some(bar) = self.bar.take() {
            bar.finish_and_clear();
        }
    }
}

fn bar(total: u64) -> ProgressBar {
    let target = ProgressDrawTarget::stderr_with_hz(10);
    let bar = ProgressBar::with_draw_target(Some(total), target);
    let template = "{pos:>3}/{len} {bar:24} {left:>12}  {wide_msg}";
    let style = ProgressStyle::with_template(template)
        .unwrap_or_else(|_| ProgressStyle::default_bar())
        .with_key("left", |state: &ProgressState, text: &mut dyn Write| {
            let done = state.pos();
            let words = left(state.elapsed(), done, state.len().unwrap_or(done));
            let _ = text.write_str(&words);
        })
        .progress_chars("█▉▊▋▌▍▎▏ ");
    bar.set_style(style);
    bar.enable_steady_tick(Duration::from_millis(500));
    bar
}

/// Returns the line for an output that is no terminal: `3/48 ycsb round 1
/// rocksdb`.
fn line(begun: u64, total: u64, what: &str) -> String {
    format!("{begun}/{total} {what}")
}

/// Returns the time that is left if the other units take as long as those
/// before them took on average. Units differ by minutes: the bar's own
/// estimate, which looks at the last seconds only, would jump with each.
fn left(elapsed: Duration, done: u64, total: u64) -> String {
    if done == 0 {
        return String::new();
    }
    let rest = elapsed.mul_f64(total.saturating_sub(done) as f64 / done as f64);
    format!("{} left", Hours(rest))
}

/// A duration as `1:02:03` or `2:03`.
struct Hours(Duration);

impl fmt::Display for Hours {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let seconds = self.0.as_secs();
        let (hours, minutes, seconds) = (seconds / 3600, seconds / 60 % 60, seconds % 60);
        match hours {
            0 => write!(f, "{minutes}:{seconds:02}"),
            _ => write!(f, "{hours}:{minutes:02}:{seconds:02}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn units_are_counted_as_they_begin() {
        let mut progress = Progress { bar: None, total: 48, begun: 2 };
        progress.next("ycsb round 1 rocksdb");
        assert_eq!(progress.begun, 3);
        assert_eq!(line(3, 48, "ycsb round 1 rocksdb"), "3/48 ycsb round 1 rocksdb");
        let hidden = ProgressDrawTarget::hidden();
        let bar = ProgressBar::with_draw_target(Some(48), hidden);
        let mut progress = Progress { bar: Some(bar.clone()), total: 48, begun: 0 };
        progress.next("a");
        assert_eq!((bar.position(), bar.message().as_str()), (0, "a"), "nothing is done yet");
        progress.next("b");
        assert_eq!((bar.position(), bar.message().as_str()), (1, "b"));
        drop(progress);
        assert!(bar.is_finished());
    }

    #[test]
    fn time_left_is_the_mean_of_what_is_done() {
        let seconds = Duration::from_secs;
        assert_eq!(left(seconds(60), 0, 10), "");
        assert_eq!(left(seconds(60), 2, 10), "4:00 left");
        assert_eq!(left(seconds(7200), 1, 2), "2:00:00 left");
        assert_eq!(left(seconds(5), 10, 10), "0:00 left");
        assert_eq!(left(seconds(5), 11, 10), "0:00 left", "more than was said");
    }
}
