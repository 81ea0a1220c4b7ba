//! The links of pages: each must lead to a file of the repository, and to a heading in it.
//!
//! Owns: the syntax of a link, and the name of a heading in one. Never does: use the network.

use crate::findings::Findings;
use std::collections::BTreeSet;
use std::error::Error;
use std::fs;
use std::path::{Component, Path, PathBuf};

/// Finds links that lead nowhere, or out of the repository.
///
/// # Errors
/// If a directory or page cannot be read.
pub fn check(root: &Path) -> Findings {
    let mut findings = Vec::new();
    for page in &pages(root)? {
        let text = fs::read_to_string(root.join(page))?;
        for (line, link) in links(&text) {
            if let Some(why) = judge(root, page, &link)? {
                findings.push(format!("{}:{line}: `{link}` {why}", page.display()));
            }
        }
    }
    Ok(findings)
}

/// Returns the pages of the repository, in the order of their paths.
pub(crate) fn pages(root: &Path) -> Result<Vec<PathBuf>, Box<dyn Error>> {
    let mut pages = Vec::new();
    collect(root, Path::new(""), &mut pages)?;
    pages.sort();
    Ok(pages)
}

fn collect(root: &Path, dir: &Path, pages: &mut Vec<PathBuf>) -> Result<(), Box<dyn Error>> {
    for entry in fs::read_dir(root.join(dir))? {
        let entry = entry?;
        let path = dir.join(entry.file_name());
        let name = entry.file_name().to_string_lossy().into_owned();
        if entry.file_type()?.is_dir() {
            if name != "target" && !name.starts_with('.') {
                collect(root, &path, pages)?;
            }
        } else if name.ends_with(".md") {
            pages.push(path);
        }
    }
    Ok(())
}

/// Returns the targets of links outside of code, each with its line.
fn links(text: &str) -> Vec<(usize, String)> {
    let mut found = Vec::new();
    let mut is_code = false;
    for (line, text) in (1..).zip(text.lines()) {
        is_code ^= text.trim_start().starts_with("```");
        if is_code {
            continue;
        }
        // Text between backquotes is code as well.
        let prose: String = text.split('`').step_by(2).collect::<Vec<_>>().join("`");
        for part in prose.split("](").skip(1) {
            if let Some((target, _)) = part.split_once(')') {
                found.push((line, target.to_owned()));
            }
        }
    }
    found
}

/// Returns the fault of a link, if it has one.
fn judge(root: &Path, page: &Path, link: &str) -> Result<Option<&'static str>, Box<dyn Error>> {
    if link.starts_with("https://") {
        return Ok(None);
    }
    let (path, heading) = link.split_once('#').map_or((link, None), |(p, h)| (p, Some(h)));
    let target = match path {
        "" => Some(page.to_path_buf()),
        path => within(&page.parent().unwrap_or(Path::new("")).join(path)),
    };
    let Some(target) = target.map(|target| root.join(target)) else {
        return Ok(Some("leads out of the repository"));
    };
    if !target.exists() {
        return Ok(Some("leads to no file"));
    }
    let Some(heading) = heading else { return Ok(None) };
    let is_there = headings(&fs::read_to_string(target)?).contains(heading);
    Ok((!is_there).then_some("leads to no heading"))
}

/// Returns the path without `..`, if it stays below the root.
fn within(path: &Path) -> Option<PathBuf> {
    let mut inside = PathBuf::new();
    for component in path.components() {
        match component {
            Component::Normal(name) => inside.push(name),
            Component::ParentDir if inside.pop() => {}
            Component::CurDir => {}
            _ => return None,
        }
    }
    Some(inside)
}

/// Returns the names by which links address the headings of a page.
fn headings(text: &str) -> BTreeSet<String> {
    let mut names = BTreeSet::new();
    let mut is_code = false;
    for line in text.lines() {
        is_code ^= line.trim_start().starts_with("```");
        let Some(heading) = line.strip_prefix('#').filter(|_| !is_code) else { continue };
        let heading = heading.trim_start_matches('#').trim().to_lowercase();
        let kept = heading.chars().filter(|c| c.is_alphanumeric() || " -_".contains(*c));
        names.insert(kept.map(|c| if c == ' ' { '-' } else { c }).collect());
    }
    names
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn links_are_found_outside_of_code() {
        let text = "a [b](c.md) and ![d](e.svg)\n`[no](x)` [f](g#h)\n```\n[no](y)\n```\n[i](#j)\n";
        let found = links(text);
        let found: Vec<(usize, &str)> = found.iter().map(|(at, link)| (*at, &**link)).collect();
        assert_eq!(found, [(1, "c.md"), (1, "e.svg"), (2, "g#h"), (6, "#j")]);
    }

    #[test]
    fn a_link_that_leads_nowhere_is_found() {
        let judged =
            |link: &str| judge(&crate::root(), Path::new("docs/program.md"), link).unwrap();
        assert_eq!(judged("guide/README.md"), None);
        assert_eq!(judged("../STYLE.md#glossary"), None);
        assert_eq!(judged("#formats"), None);
        assert_eq!(judged("https://www.unicode.org/"), None);
        assert!(judged("guide/READ.md").unwrap().contains("no file"));
        assert!(judged("../STYLE.md#words").unwrap().contains("no heading"));
        assert!(judged("../../elsewhere.md").unwrap().contains("out of"));
        assert!(judged("http://example.org/").unwrap().contains("no file"));
    }

    #[test]
    fn a_heading_is_named_as_renderers_do() {
        let names = headings("# A b\n## `c_d`, E-f!\n```sh\n# not one\n```\n");
        assert_eq!(names.into_iter().collect::<Vec<_>>(), ["a-b", "c_d-e-f"]);
    }
}
