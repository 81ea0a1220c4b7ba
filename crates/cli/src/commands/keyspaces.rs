//! `keyspaces`: which there are; making and dropping one.

use crate::args::{CreateArgs, DropArgs, KeyspacesAction, KeyspacesArgs};
use crate::failure::{Failure, Result};
use crate::store::{self, Access};
use serde_json::json;
use std::io::{self, IsTerminal, Write};
use windrow::KeyspaceOptions;

pub(crate) fn run(args: &KeyspacesArgs) -> Result<()> {
    match &args.action {
        None => list(args),
        Some(KeyspacesAction::Create(create)) => self::create(args, create),
        Some(KeyspacesAction::Drop(drop)) => drop_one(args, drop),
    }
}

fn list(args: &KeyspacesArgs) -> Result<()> {
    let keyspaces = store::keyspaces(&args.open)?;
    let mut out = io::stdout().lock();
    if args.json {
        let list: Vec<_> = keyspaces
            .iter()
            .map(|of| {
                json!({
                    "name": of.name,
                    "comparator": of.comparator,
                    "merge_operator": of.merge_operator,
                })
            })
            .collect();
        writeln!(out, "{}", json!({ "keyspaces": list }))?;
        return Ok(out.flush()?);
    }
    for keyspace in keyspaces {
        writeln!(out, "{}", keyspace.name)?;
    }
    Ok(out.flush()?)
}

/// One that is there already is no error, if it has that merge operator.
fn create(args: &KeyspacesArgs, CreateArgs { name, merge }: &CreateArgs) -> Result<()> {
    store::check_keyspace_name(name)?;
    store::with(&args.open, Access::Create, |db| {
        let options = KeyspaceOptions { merge_operator: merge.clone(), ..Default::default() };
        Ok(db.keyspace_with(name, options).map(drop)?)
    })
}

/// Asks on a terminal, since there is no way back; a script has decided.
fn drop_one(args: &KeyspacesArgs, DropArgs { name, yes }: &DropArgs) -> Result<()> {
    store::with(&args.open, Access::Change, |db| {
        store::keyspace(db, name)?;
        if !yes && io::stdin().is_terminal() {
            let _ = write!(io::stderr(), "Drop keyspace {name} and all that is in it? Type yes: ");
            let mut answer = String::new();
            io::stdin()
                .read_line(&mut answer)
                .map_err(|error| Failure::file("read", "the answer", &error))?;
            if answer.trim() != "yes" {
                return Err(Failure::failed(format!("keyspace {name} is left as it is"))
                    .hint("type yes, or say --yes, to drop it"));
            }
        }
        Ok(db.drop_keyspace(name)?)
    })
}
