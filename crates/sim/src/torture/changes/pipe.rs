//! The pipe `windrow changes --follow | windrow apply`, which dies at one of its ends.
//!
//! Owns: both processes, and how the other one must end. Never does: decide when one dies.

use super::super::program::{Death, End, Program, Running};
use std::ffi::OsString;
use std::path::Path;
use std::process::Stdio;
use std::time::Duration;

/// The longest time that `windrow apply` may take to end once its input has.
const PATIENCE: Duration = Duration::from_secs(60);

/// The time that `windrow changes` is left once nobody reads.
const LAST_LINE: Duration = Duration::from_millis(5);
/// The words of `windrow apply` about a line that is cut off. No other refusal of a line is right.
const CUT_LINE: &str = "not a line of `windrow changes --json`: EOF while parsing";

/// An end of the pipe.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Side {
    /// `windrow changes`.
    Changes,
    /// `windrow apply`.
    Apply,
}

/// The running pipe.
pub(super) struct Pipe {
    changes: Running,
    apply: Running,
}

impl Pipe {
    /// Starts it behind what the mirror has. `death`: the end that dies, and how. Without one, the pipe
    /// ends with the changes that are there.
    ///
    /// # Errors
    /// The system's error.
    pub(super) fn start(
        program: &Program,
        (db, mirror): (&Path, &Path),
        from: u64,
        death: Option<(Side, Death)>,
    ) -> Result<Pipe, String> {
        let of = |side| death.filter(|(victim, _)| *victim == side).map_or(Death::Never, |d| d.1);
        let mut args: Vec<OsString> =
            vec!["changes".into(), db.into(), "--json".into(), "--hex".into()];
        args.extend(["--from".into(), from.to_string().into()]);
        args.extend(death.map(|_| "--follow".into()));
        let both = (Stdio::null(), Stdio::piped());
        let mut changes = program.start(&args, of(Side::Changes), both)?;
        let output = changes.output().ok_or("it has no output")?;
        let args: [OsString; 3] = ["apply".into(), mirror.into(), "--hex".into()];
        let apply = program.start(&args, of(Side::Apply), (output.into(), Stdio::null()))?;
        Ok(Pipe { changes, apply })
    }

    /// Waits for the death of one end, or brings it about, and then for the end of the other one. Returns
    /// how the victim ended.
    ///
    /// # Errors
    /// If an end ended otherwise than it must.
    pub(super) fn die(self, victim: Side, death: Death) -> Result<End, String> {
        let Pipe { changes, apply } = self;
        let ends = match victim {
            Side::Changes => {
                let end = changes.die(death)?;
                (end, apply.end_within(PATIENCE)?)
            }
            Side::Apply => {
                let end = apply.die(death)?;
                // It notices with its next line, and there may be none.
                (end, changes.die(Death::After(LAST_LINE))?)
            }
        };
        let is_right = match &ends {
            // Neither ends by itself while the other one is there.
            (End::Failed(_) | End::Done, _) | (_, End::Overdue) => false,
            // The last line that the victim wrote has no end.
            (_, End::Failed(said)) => victim == Side::Changes && said.contains(CUT_LINE),
            (_, End::Killed) => victim == Side::Apply,
            (_, End::Done) => true,
        };
        match is_right {
            true => Ok(ends.0),
            false => Err(format!("the victim and the other end: {ends:?}")),
        }
    }

    /// Waits for the end of both.
    ///
    /// # Errors
    /// If one fails.
    pub(super) fn end(self) -> Result<(), String> {
        let ends = [self.changes.die(Death::Never)?, self.apply.die(Death::Never)?];
        match ends {
            [End::Done, End::Done] => Ok(()),
            ends => Err(format!("the pipe that nobody kills: {ends:?}")),
        }
    }
}
