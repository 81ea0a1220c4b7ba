//! The Rust files of the workspace, read and parsed.
//!
//! Owns: which files count as ours. Never does: judge them.

use std::error::Error;
use std::fs;
use std::path::Path;

/// The crates that the engine is made of, by directory, lowest first.
pub(crate) const ENGINE: [&str; 4] = ["read", "store", "recover", "engine"];

/// One Rust file.
pub struct Source {
    /// Path from the workspace root, with `/` between its parts.
    pub path: String,
    /// Its text.
    pub text: String,
    /// The parsed text; spans carry lines.
    pub syntax: syn::File,
}

impl Source {
    /// Parses a file's text.
    ///
    /// # Errors
    /// If it is not Rust; the message names the line.
    pub fn parse(path: &str, text: &str) -> Result<Source, Box<dyn Error>> {
        let syntax =
            syn::parse_file(text).map_err(|e| format!("{path}:{}: {e}", e.span().start().line))?;
        Ok(Source { path: path.to_owned(), text: text.to_owned(), syntax })
    }

    /// Returns the crate's directory name, for a file under `crates/`.
    pub fn crate_dir(&self) -> &str {
        self.path.strip_prefix("crates/").and_then(|p| p.split('/').next()).unwrap_or("")
    }
}

/// Loads every Rust file under `crates/`, in the order of their paths.
///
/// # Errors
/// If a directory or file cannot be read or parsed.
pub fn load(root: &Path) -> Result<Vec<Source>, Box<dyn Error>> {
    let mut paths = Vec::new();
    collect(root, "crates", &mut paths)?;
    paths.sort();
    if paths.is_empty() {
        return Err(format!("{} holds no Rust files", root.join("crates").display()).into());
    }
    paths.iter().map(|path| Source::parse(path, &fs::read_to_string(root.join(path))?)).collect()
}

/// Adds the paths below `dir`. Build output and hidden directories are not ours.
fn collect(root: &Path, dir: &str, paths: &mut Vec<String>) -> Result<(), Box<dyn Error>> {
    for entry in fs::read_dir(root.join(dir)).map_err(|e| format!("{dir}: {e}"))? {
        let entry = entry?;
        let Ok(name) = entry.file_name().into_string() else { continue };
        let path = format!("{dir}/{name}");
        if root.join(&path).is_dir() {
            if name != "target" && !name.starts_with('.') {
                collect(root, &path, paths)?;
            }
        } else if name.ends_with(".rs") {
            paths.push(path);
        }
    }
    Ok(())
}
