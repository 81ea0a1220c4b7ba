//! A model of the server's values: the reply of each command, and the values after it.
//!
//! Owns: its commands but those of streams, and random requests. Never does: use the server's code.

mod stream;
mod stream_commands;
mod value;

use super::reply::{ModelReply, bulk, bulks};
use std::collections::{BTreeMap, BTreeSet, VecDeque};
pub use stream::{ModelGroup, ModelStream};
pub use value::{Model, ModelValue};
use value::{int, wrong_type};

/// The source of a session's choices.
pub trait Choices {
    /// Returns a number below `end`.
    fn below(&mut self, end: u64) -> u64;
}

/// Pseudo-random choices.
#[derive(Clone, Debug)]
pub struct Rng(pub u64);

impl Choices for Rng {
    fn below(&mut self, end: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0 % end
    }
}

/// A fuzzer's bytes, one for each choice.
#[derive(Clone, Debug)]
pub struct Bytes<'a>(pub &'a [u8]);

impl Bytes<'_> {
    /// Returns whether there are no more.
    pub fn is_over(&self) -> bool {
        self.0.is_empty()
    }
}

impl Choices for Bytes<'_> {
    fn below(&mut self, end: u64) -> u64 {
        let Some((first, rest)) = self.0.split_first() else { return 0 };
        self.0 = rest;
        u64::from(*first) % end
    }
}

/// Returns the value of a key as this kind, made where there is none; an error for another kind.
macro_rules! of_kind {
    ($model:expr, $key:expr, $kind:ident, $new:expr) => {
        match $model.entry($key.to_owned()).or_insert_with(|| ModelValue::$kind($new)) {
            ModelValue::$kind(value) => value,
            _ => return wrong_type(),
        }
    };
}

fn is_empty(value: &ModelValue) -> bool {
    match value {
        ModelValue::String(_) => false,
        ModelValue::Hash(fields) => fields.is_empty(),
        ModelValue::Set(members) => members.is_empty(),
        ModelValue::List(elements) => elements.is_empty(),
        ModelValue::Sorted(members) => members.is_empty(),
        // A stream stays when its last entry is deleted.
        ModelValue::Stream(_) => false,
    }
}

/// Runs a command of [`request`]; returns its reply.
///
/// # Panics
/// On any other command.
pub fn run(model: &mut Model, args: &[String]) -> ModelReply {
    let reply = run_on(model, args);
    model.retain(|_, value| !is_empty(value));
    reply
}

fn run_on(model: &mut Model, args: &[String]) -> ModelReply {
    if args[0].starts_with('X') {
        return stream_commands::run(model, args);
    }
    let key = args.get(1).cloned().unwrap_or_default();
    let arg = |at: usize| args[at].clone();
    match args[0].as_str() {
        "SET" => {
            model.insert(key, ModelValue::String(arg(2)));
            ModelReply::Simple("OK".to_owned())
        }
        "GET" => match model.get(&key) {
            None => ModelReply::Null,
            Some(ModelValue::String(text)) => bulk(text),
            Some(_) => wrong_type(),
        },
        "APPEND" => {
            let text = of_kind!(model, key, String, String::new());
            text.push_str(&arg(2));
            int(text.len())
        }
        "DEL" => int(args[1..].iter().filter(|key| model.remove(*key).is_some()).count()),
        "HSET" | "HDEL" | "HGETALL" => run_on_hash(of_kind!(model, key, Hash, Vec::new()), args),
        "SADD" => {
            let members = of_kind!(model, key, Set, BTreeSet::new());
            int(args[2..].iter().filter(|member| members.insert((*member).clone())).count())
        }
        "SREM" => {
            let members = of_kind!(model, key, Set, BTreeSet::new());
            int(args[2..].iter().filter(|member| members.remove(*member)).count())
        }
        "SMEMBERS" => bulks(of_kind!(model, key, Set, BTreeSet::new()).iter()),
        "RPUSH" | "LPUSH" | "LPOP" | "RPOP" | "LREM" | "LINSERT" | "LRANGE" => {
            let elements = of_kind!(model, key, List, VecDeque::new());
            run_on_list(elements, args)
        }
        "ZADD" | "ZREM" | "ZRANGE" => {
            run_on_sorted_set(of_kind!(model, key, Sorted, BTreeMap::new()), args)
        }
        "RENAME" => match model.remove(&key) {
            None => ModelReply::Error("ERR no such key".to_owned()),
            Some(value) => {
                model.insert(arg(2), value);
                ModelReply::Simple("OK".to_owned())
            }
        },
        "PEXPIREAT" => int(usize::from(model.remove(&key).is_some())),
        "DBSIZE" => int(model.len()),
        other => panic!("{other}"),
    }
}

fn run_on_hash(fields: &mut Vec<(String, String)>, args: &[String]) -> ModelReply {
    let before = fields.len();
    match args[0].as_str() {
        "HSET" => {
            for pair in args[2..].chunks(2) {
                match fields.iter_mut().find(|(field, _)| *field == pair[0]) {
                    Some((_, value)) => value.clone_from(&pair[1]),
                    None => fields.push((pair[0].clone(), pair[1].clone())),
                }
            }
            int(fields.len() - before)
        }
        "HDEL" => {
            fields.retain(|(field, _)| !args[2..].contains(field));
            int(before - fields.len())
        }
        _ => bulks(fields.iter().flat_map(|(field, value)| [field.clone(), value.clone()])),
    }
}

fn run_on_list(elements: &mut VecDeque<String>, args: &[String]) -> ModelReply {
    match args[0].as_str() {
        "RPUSH" | "LPUSH" => {
            for value in &args[2..] {
                match args[0].as_str() {
                    "RPUSH" => elements.push_back(value.clone()),
                    _ => elements.push_front(value.clone()),
                }
            }
            int(elements.len())
        }
        "LPOP" | "RPOP" => {
            let popped = if args[0] == "LPOP" { elements.pop_front() } else { elements.pop_back() };
            popped.map_or(ModelReply::Null, bulk)
        }
        "LREM" => {
            let before = elements.len();
            elements.retain(|element| *element != args[3]);
            int(before - elements.len())
        }
        "LINSERT" => {
            if elements.is_empty() {
                return ModelReply::Int(0);
            }
            let Some(place) = elements.iter().position(|element| *element == args[3]) else {
                return ModelReply::Int(-1);
            };
            elements.insert(place + usize::from(args[2] == "AFTER"), args[4].clone());
            int(elements.len())
        }
        "LRANGE" => bulks(elements.iter()),
        other => panic!("{other}"),
    }
}

fn run_on_sorted_set(members: &mut BTreeMap<String, i64>, args: &[String]) -> ModelReply {
    match args[0].as_str() {
        "ZADD" => {
            let before = members.len();
            for pair in args[2..].chunks(2) {
                members.insert(pair[1].clone(), pair[0].parse().unwrap());
            }
            int(members.len() - before)
        }
        "ZREM" => int(args[2..].iter().filter(|member| members.remove(*member).is_some()).count()),
        "ZRANGE" => {
            let mut all: Vec<_> = members.iter().map(|(member, score)| (*score, member)).collect();
            all.sort_unstable();
            bulks(all.into_iter().flat_map(|(score, member)| [member.clone(), score.to_string()]))
        }
        other => panic!("{other}"),
    }
}

/// Returns a request on few keys and few elements, so that requests meet.
pub fn request(choices: &mut impl Choices) -> Vec<String> {
    const SHAPES: &[&str] = &[
        "SET k v",
        "SET k v",
        "GET k",
        "APPEND k v",
        "DEL k",
        "DEL k k k",
        "HSET k e v",
        "HSET k e v e v e v",
        "HDEL k e e",
        "HGETALL k",
        "SADD k e e e",
        "SREM k e e",
        "SMEMBERS k",
        "RPUSH k e e",
        "LPUSH k e",
        "LPOP k",
        "RPOP k",
        "LREM k 0 e",
        "LINSERT k BEFORE e e",
        "LINSERT k AFTER e e",
        "LRANGE k 0 -1",
        "ZADD k n e",
        "ZADD k n e n e",
        "ZREM k e",
        "ZRANGE k 0 -1 WITHSCORES",
        "RENAME k k",
        "PEXPIREAT k 1",
        "DBSIZE",
        "XADD k i e v",
        "XADD k i e v e v",
        "XADD k MAXLEN 3 i e v",
        "XDEL k i i",
        "XLEN k",
        "XRANGE k - +",
        "XTRIM k MAXLEN 2",
        "XREAD COUNT 2 STREAMS k i",
        "XGROUP CREATE k g 0",
        "XGROUP DESTROY k g",
        "XREADGROUP GROUP g c COUNT 2 STREAMS k >",
        "XACK k g i i",
        "XCLAIM k g c 0 i",
        "XPENDING k g",
    ];
    let shape = SHAPES[choices.below(SHAPES.len() as u64) as usize];
    let words = shape.split(' ').map(|word| match word {
        "k" => format!("key{}", choices.below(5)),
        "e" => format!("e{}", choices.below(6)),
        "v" => format!("v{}", choices.below(100)),
        "i" => (choices.below(12) + 1).to_string(),
        "g" => format!("g{}", choices.below(2)),
        "c" => format!("c{}", choices.below(2)),
        "n" => (choices.below(9) as i64 - 4).to_string(),
        other => other.to_owned(),
    });
    words.collect()
}
