//! `windrow-bench report`: files in, a page, pictures and tables out.
//!
//! Owns: the files that are read and written. Never does: draw.

#![allow(clippy::disallowed_methods, reason = "reports are the user's files, outside any database")]

use super::pictures::{self, Picture};
use super::results::{self, Results};
use super::{markdown, page, table};
use crate::args::ReportArgs;
use crate::output;
use crate::store::Result;
use std::path::Path;

/// Reads runs, writes the page, the pictures and, if asked for, the tables in
/// Markdown; prints the tables and where the page is.
///
/// # Errors
/// A file that cannot be read or written, and what is wrong with its lines.
pub(crate) fn write(args: &ReportArgs) -> Result<()> {
    let mut files = Vec::new();
    for path in &args.runs {
        let name = path.display().to_string();
        let text = std::fs::read_to_string(path).map_err(|e| format!("{name}: {e}"))?;
        files.push((name, text));
    }
    let run = results::read(&files)?;
    let page = draw(&run, &args.out)?;
    if let Some(path) = &args.markdown {
        put(path, &markdown::markdown(&run))?;
    }
    output::print(table::tables(&run))?;
    output::print(format_args!("\npage: {page}\n"))
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

fn put(path: &Path, text: &str) -> Result<()> {
    Ok(std::fs::write(path, text).map_err(|e| format!("{}: {e}", path.display()))?)
}
