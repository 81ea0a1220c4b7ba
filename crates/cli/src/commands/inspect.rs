//! The shape of a database, `tree` and `viz`, and its settings: `options`.
//!
//! Owns: their output. Never does: change a database.

use crate::args::{OptionsArgs, TreeArgs, VizArgs};
use crate::failure::Result;
use crate::human::{self, Paint};
use crate::picture;
use crate::store::{self, Access};
use serde_json::{Value, json};
use std::io::{self, Write};
use windrow::settings::Settings;
use windrow_dashboard::Film;

pub(crate) fn tree(args: &TreeArgs, quiet: bool) -> Result<()> {
    store::with(&args.open, Access::Read, |db| {
        if let Some(name) = &args.keyspace {
            store::keyspace(db, name)?;
        }
        let mut out = io::stdout().lock();
        let mut trees = picture::of(db);
        trees.retain(|tree| args.keyspace.as_ref().is_none_or(|name| *name == tree.keyspace));
        if args.json {
            let mut trees = windrow_dashboard::trees(db);
            let is_wanted =
                |tree: &Value| args.keyspace.as_ref().is_none_or(|name| tree["name"] == **name);
            if let Some(trees) = trees.as_array_mut() {
                trees.retain(is_wanted);
            }
            writeln!(out, "{}", json!({ "keyspaces": trees }))?;
            return Ok(out.flush()?);
        }
        for tree in trees {
            write!(out, "{}", picture::draw(&tree, human::columns(), Paint::stdout()))?;
            if args.files {
                write!(out, "{}", picture::list(&tree))?;
            }
        }
        if !quiet {
            write!(out, "{}", picture::legend(Paint::stdout()))?;
        }
        Ok(out.flush()?)
    })
}

pub(crate) fn viz(args: &VizArgs) -> Result<()> {
    store::with(&args.open, Access::Read, |db| {
        let mut state = windrow_dashboard::state(db);
        state["status"] = json!("a picture: nothing is asked of the database");
        Film::of_manifest(&args.open.path, args.moments as usize)?.put_into(&mut state);
        let mut out = io::stdout().lock();
        out.write_all(windrow_dashboard::page::of(&state).as_bytes())?;
        Ok(out.flush()?)
    })
}

/// Prints the library's own table of settings, so that the list is never out of
/// date.
pub(crate) fn options(args: &OptionsArgs) -> Result<()> {
    let paint = Paint::stdout();
    let mut out = io::stdout().lock();
    if args.json {
        let rows = Settings::table().iter().map(|row| {
            json!({
                "name": row.name,
                "default": row.default_value(),
                "help": row.help,
                "takes": row.range.describe(row.unit),
            })
        });
        writeln!(out, "{}", json!({ "options": rows.collect::<Vec<Value>>() }))?;
        return Ok(out.flush()?);
    }
    for row in Settings::table() {
        writeln!(out, "{} = {}", paint.bold(row.name), row.default_value())?;
        writeln!(out, "    {}", row.help)?;
        writeln!(out, "    {}", paint.dim(row.range.describe(row.unit)))?;
    }
    Ok(out.flush()?)
}
