//! `top`: the work of a database that another process has open, frame after frame.
//!
//! It reads the statistics that the process writes into the directory, and nothing else: the
//! process does not notice it.
//!
//! Owns: when the next frame is due. Never does: open the database.

mod frame;
mod reading;
mod screen;

use crate::args::TopArgs;
use crate::failure::{Failure, Result};
use crate::human::{Paint, Stopwatch};
use crate::{stop, store};
use frame::WatchedProcess;
use reading::{Reading, Span};
use screen::{Key, Screen};
use std::io::{self, Write};
use std::time::Duration;
use windrow::Db;
use windrow::stats::RunningStats;

/// The least time between two frames.
const INTERVAL_MIN: Duration = Duration::from_millis(50);

pub(crate) fn run(args: &TopArgs) -> Result<()> {
    store::must_exist(&args.path)?;
    // Before the screen is taken: an error must be printed where it stays.
    let mut shown = Shown::of(&running(args)?)?;
    let screen = Screen::take();
    let mut is_paused = false;
    for frame in 1.. {
        let lines = shown.lines(&args.path.display().to_string(), is_paused);
        match &screen {
            Some(screen) => screen.draw(&lines)?,
            None => writeln!(io::stdout(), "{}\n", lines.join("\n"))?,
        }
        if args.count == Some(frame) || !wait(args, screen.as_ref(), &mut is_paused) {
            return Ok(());
        }
        if !is_paused {
            shown.take(&running(args)?)?;
        }
    }
    Ok(())
}

/// Waits for the next frame. Returns whether there is one.
fn wait(args: &TopArgs, screen: Option<&Screen>, is_paused: &mut bool) -> bool {
    let (begin, interval) = (Stopwatch::start(), args.interval.max(INTERVAL_MIN));
    while let Some(left) = interval.checked_sub(begin.elapsed()) {
        // The wait is short, so that Ctrl-C is noticed soon.
        let left = left.min(Duration::from_millis(100));
        match screen {
            Some(screen) => match screen.key(left) {
                Some(Key::Quit) => return false,
                Some(Key::Pause) => {
                    *is_paused = !*is_paused;
                    return true;
                }
                None => {}
            },
            None => screen::wait(left),
        }
        if stop::requested() {
            return false;
        }
    }
    true
}

/// Returns the statistics that the process at the database wrote last.
fn running(args: &TopArgs) -> Result<RunningStats> {
    let path = args.path.display();
    Db::running_stats(&args.path)?.ok_or_else(|| {
        Failure::failed(format!("no process writes statistics into {path}")).hint(
            "the program that has the database open for writing writes them every 10 seconds \
             (stats_period_ms), and removes them when it closes; open it there, or wait",
        )
    })
}

/// The last two readings.
struct Shown {
    before: Option<Reading>,
    now: Reading,
    process: u32,
    written_ms: u64,
}

impl Shown {
    fn of(stats: &RunningStats) -> Result<Shown> {
        let now = parse(stats)?;
        let (process, written_ms) = (stats.process, stats.written_ms);
        Ok(Shown { before: None, now, process, written_ms })
    }

    /// Moves on to newer statistics, if there are any.
    fn take(&mut self, stats: &RunningStats) -> Result<()> {
        if (stats.process, stats.written_ms) == (self.process, self.written_ms) {
            return Ok(());
        }
        let is_same = stats.process == self.process;
        let next = Shown::of(stats)?;
        let before = std::mem::replace(self, next).now;
        self.before = is_same.then_some(before);
        Ok(())
    }

    fn lines(&self, database: &str, is_paused: bool) -> Vec<String> {
        let now_ms = windrow::env::Env::os(1).clock.wall_ms();
        let age = Duration::from_millis(now_ms.saturating_sub(self.written_ms));
        let source = WatchedProcess { database, process: self.process, age, is_paused };
        frame::lines(&source, &Span::new(self.before.as_ref(), &self.now), Paint::stdout())
    }
}

fn parse(stats: &RunningStats) -> Result<Reading> {
    serde_json::from_str(&stats.json).map_err(|error| {
        Failure::failed(format!(
            "the statistics of process {} cannot be read: {error}",
            stats.process
        ))
        .hint("another version of windrow may have written them: use that one")
    })
}
