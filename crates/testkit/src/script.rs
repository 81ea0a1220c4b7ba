//! The conformance corpus: scripts with their answers in the file, run against
//! the model (which fills the answers in) and against every option set.
//!
//! Owns: finding, running and rewriting scripts. Never does: know the right
//! answers; a reviewer reads those that the model wrote.

use crate::model::Model;
use crate::op::{Answer, Subject};
use crate::subject::Database;
use crate::text::{self, Line};
use crate::variant::{SMALL_MEMORY_BYTES, Variant};
use crate::world::World;
use std::fmt::Write as _;
use std::path::PathBuf;

/// A script of the corpus.
#[derive(Clone, Debug)]
pub struct Script {
    /// Its file.
    pub path: PathBuf,
    /// Its operations and expected answers.
    pub lines: Vec<Line>,
}

/// Loads every script, by name.
///
/// # Errors
/// A sentence that names the file (and line) that cannot be read.
pub fn corpus() -> Result<Vec<Script>, String> {
    let dir = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("corpus");
    #[allow(clippy::disallowed_methods, reason = "the corpus lies in the source tree")]
    let entries = std::fs::read_dir(&dir).map_err(|e| format!("{}: {e}", dir.display()))?;
    let mut paths: Vec<PathBuf> = entries.filter_map(|e| Some(e.ok()?.path())).collect();
    paths.retain(|path| path.extension().is_some_and(|e| e == "txt"));
    paths.sort();
    paths.into_iter().map(load).collect()
}

fn load(path: PathBuf) -> Result<Script, String> {
    let place = |e: String| format!("{}: {e}", path.display());
    let text = std::fs::read_to_string(&path).map_err(|e| place(e.to_string()))?;
    let lines = text::parse(&text).map_err(place)?;
    Ok(Script { path, lines })
}

/// Returns the model that a database of any variant must agree with.
pub fn model() -> Model {
    Model::new(SMALL_MEMORY_BYTES / 4)
}

/// Checks that the file's answers are the model's; with `rewrite`, makes them so.
///
/// # Errors
/// The first difference, with its line.
pub fn check_model(script: &Script, rewrite: bool) -> Result<(), String> {
    let mut model = model();
    let mut out = String::new();
    let mut same = true;
    for line in &script.lines {
        let answer = text::answer_text(&model.apply(&line.op));
        if answer != line.expected && !rewrite {
            return Err(difference(script, line, &line.expected, &answer, "the model"));
        }
        same &= answer == line.expected;
        let _ = write!(out, "{}{answer}", line.source);
    }
    if !same {
        #[allow(clippy::disallowed_methods, reason = "the corpus lies in the source tree")]
        std::fs::write(&script.path, out).map_err(|e| e.to_string())?;
    }
    Ok(())
}

/// Runs the script on a database of this variant.
///
/// # Errors
/// The first answer that is not the file's, with its line.
pub fn check_engine(script: &Script, variant: &Variant) -> Result<(), String> {
    let options = variant.options().map_err(|e| e.to_string())?;
    let mut database = Database::open(World::new(variant.ground, 1), options)
        .map_err(|e| format!("{}: {e}", variant.name))?;
    for line in &script.lines {
        let answer = database.apply(&line.op);
        let text = text::answer_text(&answer);
        if text != line.expected {
            let mut who = format!("the engine ({})", variant.name);
            if let (Answer::Error(_), Some(error)) = (&answer, database.last_error()) {
                let _ = write!(who, ", {error}");
            }
            return Err(difference(script, line, &line.expected, &text, &who));
        }
    }
    Ok(())
}

fn difference(script: &Script, line: &Line, want: &str, got: &str, who: &str) -> String {
    format!(
        "{}:{}: {}\nexpected:\n{want}{who} says:\n{got}",
        script.path.display(),
        line.number,
        text::op_text(&line.op),
    )
}
