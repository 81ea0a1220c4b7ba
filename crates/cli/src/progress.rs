//! Progress of long work, on stderr, only where that is a terminal and the
//! user did not ask for quiet.

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use std::io::{self, IsTerminal};
use std::time::Duration;

/// A bar, a spinner, or nothing. Cleared when dropped.
pub(crate) struct Progress(Option<ProgressBar>);

impl Progress {
    fn new(quiet: bool, total: Option<u64>, template: &str) -> Progress {
        if quiet || !io::stderr().is_terminal() {
            return Progress(None);
        }
        let target = ProgressDrawTarget::stderr_with_hz(10);
        let bar = ProgressBar::with_draw_target(total, target);
        let style = ProgressStyle::with_template(template)
            .unwrap_or_else(|_| ProgressStyle::default_bar())
            .progress_chars("█▉▊▋▌▍▎▏ ");
        bar.set_style(style);
        bar.enable_steady_tick(Duration::from_millis(100));
        Progress(Some(bar))
    }

    /// A bar over `total` bytes, with `what` before it.
    pub(crate) fn bytes(quiet: bool, what: &str, total: u64) -> Progress {
        let template =
            format!("{what} {{bar:30}} {{percent:>3}} % {{binary_bytes_per_sec}}, {{eta}} left");
        Progress::new(quiet, Some(total), &template)
    }

    /// A bar over `total` things.
    pub(crate) fn steps(quiet: bool, what: &str, total: u64) -> Progress {
        let template = format!("{what} {{bar:30}} {{percent:>3}} %");
        Progress::new(quiet, Some(total), &template)
    }

    /// A spinner that counts things whose number nobody knows yet.
    pub(crate) fn counting(quiet: bool, what: &str) -> Progress {
        Progress::new(quiet, None, &format!("{{spinner}} {what} {{human_pos}} ({{per_sec}})"))
    }

    /// A spinner for work that cannot say how far it is.
    pub(crate) fn waiting(quiet: bool, what: &str) -> Progress {
        Progress::new(quiet, None, &format!("{{spinner}} {what} {{elapsed}}"))
    }

    /// How far it is.
    pub(crate) fn at(&self, position: u64) {
        if let Some(bar) = &self.0 {
            bar.set_position(position);
        }
    }
}

impl Drop for Progress {
    fn drop(&mut self) {
        if let Some(bar) = self.0.take() {
            bar.finish_and_clear();
        }
    }
}
