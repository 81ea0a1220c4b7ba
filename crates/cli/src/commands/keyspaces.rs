//! `keyspaces`: the list of them; making and dropping one.
//!
//! Owns: their output. Never does: decide whether to ask first (`ask.rs` does).

use super::ask::ask;
use crate::args::{CreateArgs, DropArgs, KeyspacesAction, KeyspacesArgs};
use crate::failure::Result;
use crate::human;
use crate::store::{self, Access};
use serde_json::json;
use std::io::{self, Write};
use windrow::KeyspaceOptions;
use windrow::inspect::StoredKeyspace;
use windrow::settings::KeyspaceSettings;

/// The comparator of a keyspace that names none.
const BYTEWISE: &str = "windrow.bytewise";

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
        let own = own(&keyspace).map(|text| format!("\t{text}")).unwrap_or_default();
        writeln!(out, "{}{own}", keyspace.name)?;
    }
    Ok(out.flush()?)
}

/// Returns a keyspace's own settings, printed after its name and a tab.
fn own(keyspace: &StoredKeyspace) -> Option<String> {
    let KeyspaceSettings { policy, compression, ttl, .. } = &keyspace.settings;
    let parts = [
        keyspace.merge_operator.as_ref().map(|name| format!("merge {name}")),
        Some(&keyspace.comparator)
            .filter(|id| *id != BYTEWISE)
            .map(|id| format!("comparator {id}")),
        policy.as_ref().map(|text| format!("policy {text}")),
        compression.as_ref().map(|text| format!("compression {text}")),
        ttl.map(|ttl| format!("ttl {}", human::time(ttl))),
    ];
    let parts: Vec<String> = parts.into_iter().flatten().collect();
    (!parts.is_empty()).then(|| parts.join(", "))
}

/// Makes a keyspace. One that exists is no error, if it has that merge operator; the other settings
/// given are stored with it from then on.
fn create(args: &KeyspacesArgs, create: &CreateArgs) -> Result<()> {
    let CreateArgs { name, merge, policy, compression, ttl } = create;
    store::check_keyspace_name(name)?;
    store::with(&args.open, Access::Create, |db| {
        let settings = KeyspaceSettings {
            policy: policy.clone(),
            compression: compression.clone(),
            ttl: *ttl,
        };
        let options =
            KeyspaceOptions { merge_operator: merge.clone(), settings, ..Default::default() };
        Ok(db.keyspace_with(name, options).map(drop)?)
    })
}

fn drop_one(args: &KeyspacesArgs, DropArgs { name, yes }: &DropArgs) -> Result<()> {
    store::with(&args.open, Access::Change, |db| {
        store::keyspace(db, name)?;
        let what = format!("keyspace {name}");
        ask(*yes, &format!("Drop {what} and all that is in it?"), &what)?;
        Ok(db.drop_keyspace(name)?)
    })
}
