//! The commands of streams, on the model.
//!
//! Owns no state. Never does: use the server's code.

use super::stream::{ModelGroup, ModelStream};
use super::value::{Model, ModelValue, int, wrong_type};
use crate::testing::reply::{ModelReply, bulk, ok};
use std::collections::BTreeMap;

fn error(text: &str) -> ModelReply {
    ModelReply::Error(text.to_owned())
}

fn id(number: u64) -> String {
    format!("{number}-0")
}

fn entry(number: u64, fields: &[String]) -> ModelReply {
    let fields = fields.iter().map(bulk).collect();
    ModelReply::Array(vec![bulk(id(number)), ModelReply::Array(fields)])
}

fn number(arg: &str) -> u64 {
    arg.parse().expect("an identifier of the model")
}

pub(super) fn run(model: &mut Model, args: &[String]) -> ModelReply {
    let place = match args[0].as_str() {
        "XGROUP" => 2,
        "XREAD" => 4,
        "XREADGROUP" => 7,
        _ => 1,
    };
    let key = &args[place];
    if args[0] == "XADD" && !model.contains_key(key) {
        model.insert(key.clone(), ModelValue::Stream(ModelStream::default()));
    }
    let stream = match model.get_mut(key) {
        None => return without_stream(args, key),
        Some(ModelValue::Stream(stream)) => stream,
        Some(_) => return wrong_type(),
    };
    match args[0].as_str() {
        "XADD" => add(stream, args),
        "XDEL" => {
            int(args[2..].iter().filter(|id| stream.entries.remove(&number(id)).is_some()).count())
        }
        "XLEN" => int(stream.entries.len()),
        "XRANGE" => ModelReply::Array(
            stream.entries.iter().map(|(id, fields)| entry(*id, fields)).collect(),
        ),
        "XTRIM" => int(stream.trim(2)),
        "XREAD" => {
            let behind = stream.entries.range(number(&args[5]) + 1..).take(2);
            of_stream(key, behind.map(|(id, fields)| entry(*id, fields)).collect())
        }
        "XGROUP" if args[1] == "CREATE" => {
            if stream.groups.contains_key(&args[3]) {
                return error("BUSYGROUP Consumer Group name already exists");
            }
            stream.groups.insert(args[3].clone(), ModelGroup::default());
            ok()
        }
        "XGROUP" => int(usize::from(stream.groups.remove(&args[3]).is_some())),
        _ => of_group(stream, args, key),
    }
}

fn add(stream: &mut ModelStream, args: &[String]) -> ModelReply {
    let is_trimmed = args[2] == "MAXLEN";
    let at = if is_trimmed { 4 } else { 2 };
    let new = number(&args[at]);
    if new <= stream.last {
        return error(
            "ERR The ID specified in XADD is equal or smaller than the target stream top item",
        );
    }
    stream.entries.insert(new, args[at + 1..].to_vec());
    stream.last = new;
    if is_trimmed {
        stream.trim(3);
    }
    bulk(id(new))
}

fn without_stream(args: &[String], key: &str) -> ModelReply {
    match args[0].as_str() {
        "XDEL" | "XLEN" | "XTRIM" | "XACK" => int(0),
        "XRANGE" => ModelReply::Array(Vec::new()),
        "XREAD" => ModelReply::Null,
        "XGROUP" => error(
            "ERR The XGROUP subcommand requires the key to exist. Note that for CREATE you may want to use \
             the MKSTREAM option to create an empty stream automatically.",
        ),
        _ => without_group(args, key),
    }
}

fn without_group(args: &[String], key: &str) -> ModelReply {
    let (group, of) = match args[0].as_str() {
        "XREADGROUP" => (&args[2], " in XREADGROUP with GROUP option"),
        _ => (&args[2], ""),
    };
    error(&format!("NOGROUP No such key '{key}' or consumer group '{group}'{of}"))
}

fn of_stream(key: &str, entries: Vec<ModelReply>) -> ModelReply {
    match entries.is_empty() {
        true => ModelReply::Null,
        false => {
            ModelReply::Array(vec![ModelReply::Array(vec![bulk(key), ModelReply::Array(entries)])])
        }
    }
}

fn of_group(stream: &mut ModelStream, args: &[String], key: &str) -> ModelReply {
    let Some(group) = stream.groups.get_mut(&args[2]) else {
        return if args[0] == "XACK" { int(0) } else { without_group(args, key) };
    };
    match args[0].as_str() {
        "XREADGROUP" => {
            let behind = stream.entries.range(group.last + 1..).take(2);
            let mut read = Vec::new();
            for (id, fields) in behind {
                group.pending.insert(*id, args[3].clone());
                group.consumers.insert(args[3].clone());
                group.last = *id;
                read.push(entry(*id, fields));
            }
            of_stream(key, read)
        }
        "XACK" => {
            int(args[3..].iter().filter(|id| group.pending.remove(&number(id)).is_some()).count())
        }
        "XCLAIM" => {
            let claimed = number(&args[5]);
            group.consumers.insert(args[3].clone());
            let Some(fields) = stream.entries.get(&claimed) else {
                group.pending.remove(&claimed);
                return ModelReply::Array(Vec::new());
            };
            match group.pending.get_mut(&claimed) {
                None => ModelReply::Array(Vec::new()),
                Some(consumer) => {
                    consumer.clone_from(&args[3]);
                    ModelReply::Array(vec![entry(claimed, fields)])
                }
            }
        }
        "XPENDING" => summary(group),
        other => panic!("{other}"),
    }
}

fn summary(group: &ModelGroup) -> ModelReply {
    let (Some((first, _)), Some((last, _))) =
        (group.pending.first_key_value(), group.pending.last_key_value())
    else {
        return ModelReply::Array(vec![
            int(0),
            ModelReply::Null,
            ModelReply::Null,
            ModelReply::Null,
        ]);
    };
    let mut by_consumer: BTreeMap<&str, usize> = BTreeMap::new();
    for consumer in group.pending.values() {
        *by_consumer.entry(consumer).or_default() += 1;
    }
    let consumers = by_consumer
        .into_iter()
        .map(|(name, count)| ModelReply::Array(vec![bulk(name), bulk(count.to_string())]))
        .collect();
    ModelReply::Array(vec![
        int(group.pending.len()),
        bulk(id(*first)),
        bulk(id(*last)),
        ModelReply::Array(consumers),
    ])
}
