//! What a database looks like: `tree`; what it can be set to: `options`.

use crate::args::{OptionsArgs, TreeArgs};
use crate::bytes;
use crate::failure::Result;
use crate::human::{self, Paint};
use crate::picture::{self, FileView, LevelView};
use crate::store::{self, Access};
use serde_json::{Value, json};
use std::io::{self, Write};
use windrow::Settings;

pub(crate) fn tree(args: &TreeArgs, quiet: bool) -> Result<()> {
    store::with(&args.open, Access::Read, |db| {
        if let Some(name) = &args.keyspace {
            store::keyspace(db, name)?;
        }
        let mut out = io::stdout().lock();
        let mut trees = picture::of(db);
        trees.retain(|tree| args.keyspace.as_ref().is_none_or(|name| *name == tree.keyspace));
        if args.json {
            let trees: Vec<Value> = trees.iter().map(tree_to_json).collect();
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

fn tree_to_json(tree: &picture::TreeView) -> Value {
    let files = |files: &[FileView]| files.iter().map(file_to_json).collect::<Value>();
    let level = |(number, level): (u32, &LevelView)| json!({ "level": number, "run": files(&level.run), "sst_log": files(&level.sst_log) });
    let levels: Vec<Value> = (0..).zip(&tree.levels).map(level).collect();
    json!({ "name": tree.keyspace, "levels": levels })
}

/// Keys are bytes, and so in hexadecimal.
fn file_to_json(file: &FileView) -> Value {
    let hex = |key: &[u8]| {
        let mut digits = Vec::new();
        bytes::encode_hex(key, &mut digits);
        String::from_utf8_lossy(&digits).into_owned()
    };
    json!({
        "number": file.number,
        "epoch": file.epoch,
        "bytes": file.bytes,
        "entries": file.entries,
        "tombstones": file.tombstones,
        "smallest_hex": hex(&file.smallest),
        "largest_hex": hex(&file.largest),
    })
}

/// The library's own table of settings, so that this list cannot grow old.
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
