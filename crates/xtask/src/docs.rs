//! Pages that are generated from code, so that they cannot say something else.
//!
//! Owns: the list of pages, and whether each is as the code makes it.

use crate::findings::Findings;
use std::error::Error;
use std::fs;
use std::path::Path;

type Page = (&'static str, fn() -> String);

/// Each page and what makes it.
const PAGES: &[Page] = &[("docs/options.md", windrow::Settings::to_markdown)];

/// Finds pages that are not as the code makes them.
///
/// # Errors
/// None: an absent page is a finding.
pub fn check(root: &Path) -> Findings {
    Ok(PAGES.iter().filter_map(|page| judge(root, page)).collect())
}

fn judge(root: &Path, (path, make): &Page) -> Option<String> {
    let remedy = "run `cargo run -p windrow-xtask -- docs`";
    match fs::read_to_string(root.join(path)) {
        Ok(text) if text == make() => None,
        Ok(_) => Some(format!("{path}: is not what the code says; {remedy}")),
        Err(error) => Some(format!("{path}: {error}; {remedy}")),
    }
}

/// Writes the pages that are not as the code makes them; returns their paths.
///
/// # Errors
/// If a page cannot be written.
pub fn write(root: &Path) -> Result<Vec<&'static str>, Box<dyn Error>> {
    let mut written = Vec::new();
    for page in PAGES.iter().filter(|page| judge(root, page).is_some()) {
        let path = root.join(page.0);
        if let Some(dir) = path.parent() {
            fs::create_dir_all(dir)?;
        }
        fs::write(&path, (page.1)())?;
        written.push(page.0);
    }
    Ok(written)
}
