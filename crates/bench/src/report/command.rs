//! `windrow-bench report`: files in, a page, pictures and tables out.
//!
//! Owns: the files that are read and written. Never does: draw.

#![allow(clippy::disallowed_methods, reason = "reports are the user's files, outside any database")]

use super::pictures::{self, Picture};
use super::results::{self, Results};
use super::{headlines, markdown, page, paper as of_paper, table};
use crate::args::ReportArgs;
use crate::output;
use crate::paper;
use crate::store::Result;
use std::path::Path;

/// Reads runs, writes the page, the pictures and, if asked for, the tables in
/// Markdown. Prints the tables and the path of the page. If the papers' headlines are asked for,
/// writes nothing else.
///
/// # Errors
/// A file that cannot be read or written, or a fault in its lines.
pub(crate) fn write(args: &ReportArgs) -> Result<()> {
    let mut files = Vec::new();
    for path in &args.runs {
        let name = path.display().to_string();
        let text = std::fs::read_to_string(path).map_err(|e| format!("{name}: {e}"))?;
        files.push((name, text));
    }
    if let Some(path) = &args.headlines {
        return write_headlines(&files, path);
    }
    let run = results::read(&files)?;
    let page = draw(&run, &args.out)?;
    if let Some(path) = &args.markdown {
        put(path, &markdown::markdown(&run))?;
    }
    if let Some(dir) = &args.papers {
        fill_pages(&run, dir)?;
    }
    output::print(table::tables(&run))?;
    output::print(format_args!("\npage: {page}\n"))
}

/// Writes the picture of the papers' headlines. Each file is read alone: they may be of several
/// scales.
fn write_headlines(files: &[(String, String)], path: &Path) -> Result<()> {
    let read = |file: &(String, String)| results::read(std::slice::from_ref(file));
    let runs = files.iter().map(read).collect::<std::result::Result<Vec<_>, _>>()?;
    let picture = headlines::picture(&runs, &paper::all());
    put(path, &picture.ok_or("no file has a headline of a paper")?)?;
    output::print(format_args!("picture: {}\n", path.display()))
}

/// Writes the page and the pictures; returns the page's path.
fn draw(run: &Results, out: &Path) -> Result<String> {
    std::fs::create_dir_all(out).map_err(|e| format!("{}: {e}", out.display()))?;
    let overview = pictures::overview(run);
    let of_workloads: Vec<Vec<Picture>> =
        run.workloads.iter().map(|workload| pictures::of(run, workload)).collect();
    for picture in overview.iter().chain(of_workloads.iter().flatten()) {
        put(&out.join(format!("{}.svg", picture.name)), &pictures::file(run, picture))?;
    }
    let path = out.join("index.html");
    put(&path, &page::page(run, overview.as_ref(), &of_workloads))?;
    Ok(path.display().to_string())
}

/// Fills the rows of the papers' pages that the run has, and writes their pictures.
fn fill_pages(run: &Results, dir: &Path) -> Result<()> {
    for paper in paper::all() {
        let sections = of_paper::sections(run, &paper)?;
        if sections.is_empty() {
            continue;
        }
        let page = dir.join(format!("{}.md", paper.key));
        let name = page.display();
        let text = std::fs::read_to_string(&page).map_err(|e| format!("{name}: {e}"))?;
        put(&page, &of_paper::fill(&text, &sections).map_err(|what| format!("{name}: {what}"))?)?;
        let pictures = dir.join("pictures");
        std::fs::create_dir_all(&pictures).map_err(|e| format!("{}: {e}", pictures.display()))?;
        for section in &sections {
            let path = pictures.join(&section.file);
            match &section.picture {
                Some(svg) => put(&path, svg)?,
                // The page no longer shows it.
                None if path.exists() => {
                    std::fs::remove_file(&path).map_err(|e| format!("{}: {e}", path.display()))?;
                }
                None => {}
            }
        }
    }
    Ok(())
}

fn put(path: &Path, text: &str) -> Result<()> {
    Ok(std::fs::write(path, text).map_err(|e| format!("{}: {e}", path.display()))?)
}
