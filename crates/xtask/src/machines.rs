//! Pages and records of runs that name a directory of the machine that made them: it exists on no
//! other machine, and the name is private.
//!
//! Owns: the list of such names. Never does: look into the source, whose tests have such names.

use crate::findings::Findings;
use std::error::Error;
use std::fs;
use std::path::Path;

/// The directories where measurements keep their files.
const PLACES: [&str; 4] = ["/tmp/", "/home/", "/root/", "/work/"];

/// Finds such names in `docs` and the pages at the root.
///
/// # Errors
/// If a directory or file cannot be read.
pub fn check(root: &Path) -> Findings {
    let mut findings = Vec::new();
    look_into(root, &root.join("docs"), &mut findings)?;
    for entry in fs::read_dir(root)? {
        let path = entry?.path();
        if path.extension().is_some_and(|extension| extension == "md") {
            look_at(root, &path, &mut findings)?;
        }
    }
    findings.sort();
    Ok(findings)
}

fn look_into(root: &Path, dir: &Path, findings: &mut Vec<String>) -> Result<(), Box<dyn Error>> {
    for entry in fs::read_dir(dir)? {
        let entry = entry?;
        match entry.file_type()?.is_dir() {
            true => look_into(root, &entry.path(), findings)?,
            false => look_at(root, &entry.path(), findings)?,
        }
    }
    Ok(())
}

fn look_at(root: &Path, file: &Path, findings: &mut Vec<String>) -> Result<(), Box<dyn Error>> {
    // A picture in points is not text.
    let Ok(text) = String::from_utf8(fs::read(file)?) else { return Ok(()) };
    let shown = file.strip_prefix(root).unwrap_or(file).display();
    for (line, text) in (1..).zip(text.lines()) {
        if let Some(place) = place_in(text) {
            findings.push(format!("{shown}:{line}: names a place of one machine: `{place}...`"));
        }
    }
    Ok(())
}

/// Returns the first such name of a line: at the beginning of a word or a string.
fn place_in(line: &str) -> Option<&'static str> {
    let begins = |at: usize| {
        let before = line[..at].chars().next_back();
        before.is_none_or(|before| !before.is_alphanumeric() && !"/._-".contains(before))
    };
    let is_in = |place: &&str| line.match_indices(*place).any(|(at, _)| begins(at));
    PLACES.iter().find(|place| is_in(place)).copied()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_places_are_found_where_they_begin() {
        assert_eq!(place_in(r#"["--dir","/tmp/db"]"#), Some("/tmp/"));
        assert_eq!(place_in("cd /home/me && ls"), Some("/home/"));
        assert_eq!(place_in("see src/work/mod.rs, and ../tmp/x"), None);
        assert_eq!(place_in("https://example.org/home/page"), None);
    }
}
