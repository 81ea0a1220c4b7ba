//! The result of a check.
//!
//! Owns: the form of a check. Never does: check.

use std::error::Error;
use std::path::Path;

/// The findings of a check, a line each that begins with the place; or why it could not look.
pub type Findings = Result<Vec<String>, Box<dyn Error>>;

/// A check of the workspace at a root directory.
pub type Check = fn(&Path) -> Findings;
