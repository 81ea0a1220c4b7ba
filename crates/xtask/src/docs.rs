//! Pages that are generated from code, so that they cannot contradict it.
//!
//! Owns: the list of pages, and whether each is as the code makes it. Never does: make a page's
//! contents; the crates that own the facts do.

use crate::findings::Findings;
use std::error::Error;
use std::fs;
use std::path::Path;

/// A page's path, and its required contents.
type Page = (String, String);

/// Makes each page from the code.
fn pages() -> Result<Vec<Page>, Box<dyn Error>> {
    let mut pages =
        vec![("docs/options.md".to_owned(), windrow::settings::Settings::to_markdown())];
    for picture in windrow_lab::picture::PICTURES {
        let svg = picture.svg().map_err(|error| error.to_string())?;
        pages.push((format!("docs/policies/pictures/{}.svg", picture.name), svg));
    }
    for strip in windrow_lab::strip::STRIPS {
        let svg = strip.svg().map_err(|error| error.to_string())?;
        pages.push((format!("docs/papers/pictures/lab-{}.svg", strip.name), svg));
    }
    Ok(pages)
}

/// Finds pages that differ from the code's.
///
/// # Errors
/// The page that cannot be made. An absent page is a finding.
pub fn check(root: &Path) -> Findings {
    Ok(pages()?.iter().filter_map(|page| judge(root, page)).collect())
}

fn judge(root: &Path, (path, made): &Page) -> Option<String> {
    let remedy = "run `cargo run -p windrow-xtask -- docs`";
    match fs::read_to_string(root.join(path)) {
        Ok(text) if text == *made => None,
        Ok(_) => Some(format!("{path}: is not what the code says; {remedy}")),
        Err(error) => Some(format!("{path}: {error}; {remedy}")),
    }
}

/// Writes the pages that differ from the code's; returns their paths.
///
/// # Errors
/// If a page cannot be made or written.
pub fn write(root: &Path) -> Result<Vec<String>, Box<dyn Error>> {
    let mut written = Vec::new();
    for page in pages()?.into_iter().filter(|page| judge(root, page).is_some()) {
        let path = root.join(&page.0);
        if let Some(dir) = path.parent() {
            fs::create_dir_all(dir)?;
        }
        fs::write(&path, page.1)?;
        written.push(page.0);
    }
    Ok(written)
}
