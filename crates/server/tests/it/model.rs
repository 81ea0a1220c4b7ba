//! Random sessions against a model: every reply, and in the end every row.

use crate::client::{Client, Reply, bulk, bulks, serve};
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use windrow::Db;
use windrow_server::Config;

#[derive(Clone, Debug)]
enum Value {
    String(String),
    Hash(BTreeMap<String, String>),
    Set(BTreeSet<String>),
    List(VecDeque<String>),
    Sorted(BTreeMap<String, i64>),
}

type Model = BTreeMap<String, Value>;

pub(crate) struct Rng(pub(crate) u64);

impl Rng {
    /// A number below `end`.
    pub(crate) fn below(&mut self, end: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0 % end
    }
}

fn wrong_type() -> Reply {
    Reply::Error("WRONGTYPE Operation against a key holding the wrong kind of value".to_owned())
}

fn int(number: usize) -> Reply {
    Reply::Int(number as i64)
}

/// The value of a key as this kind, made where there is none; an error for another kind.
macro_rules! of_kind {
    ($model:expr, $key:expr, $kind:ident, $new:expr) => {
        match $model.entry($key.to_owned()).or_insert_with(|| Value::$kind($new)) {
            Value::$kind(value) => value,
            _ => return wrong_type(),
        }
    };
}

fn is_empty(value: &Value) -> bool {
    match value {
        Value::String(_) => false,
        Value::Hash(fields) => fields.is_empty(),
        Value::Set(members) => members.is_empty(),
        Value::List(elements) => elements.is_empty(),
        Value::Sorted(members) => members.is_empty(),
    }
}

fn run(model: &mut Model, args: &[String]) -> Reply {
    let reply = run_on(model, args);
    model.retain(|_, value| !is_empty(value));
    reply
}

fn run_on(model: &mut Model, args: &[String]) -> Reply {
    let key = args.get(1).cloned().unwrap_or_default();
    let arg = |at: usize| args[at].clone();
    match args[0].as_str() {
        "SET" => {
            model.insert(key, Value::String(arg(2)));
            Reply::Simple("OK".to_owned())
        }
        "GET" => match model.get(&key) {
            None => Reply::Null,
            Some(Value::String(text)) => bulk(text),
            Some(_) => wrong_type(),
        },
        "APPEND" => {
            let text = of_kind!(model, key, String, String::new());
            text.push_str(&arg(2));
            int(text.len())
        }
        "DEL" => int(args[1..].iter().filter(|key| model.remove(*key).is_some()).count()),
        "HSET" => {
            let fields = of_kind!(model, key, Hash, BTreeMap::new());
            let before = fields.len();
            for pair in args[2..].chunks(2) {
                fields.insert(pair[0].clone(), pair[1].clone());
            }
            int(fields.len() - before)
        }
        "HDEL" => {
            let fields = of_kind!(model, key, Hash, BTreeMap::new());
            int(args[2..].iter().filter(|field| fields.remove(*field).is_some()).count())
        }
        "HGETALL" => {
            let fields = of_kind!(model, key, Hash, BTreeMap::new());
            bulks(fields.iter().flat_map(|(field, value)| [field.clone(), value.clone()]))
        }
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
            None => Reply::Error("ERR no such key".to_owned()),
            Some(value) => {
                model.insert(arg(2), value);
                Reply::Simple("OK".to_owned())
            }
        },
        "PEXPIREAT" => int(usize::from(model.remove(&key).is_some())),
        "DBSIZE" => int(model.len()),
        other => panic!("{other}"),
    }
}

fn run_on_list(elements: &mut VecDeque<String>, args: &[String]) -> Reply {
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
            popped.map_or(Reply::Null, bulk)
        }
        "LREM" => {
            let before = elements.len();
            elements.retain(|element| *element != args[3]);
            int(before - elements.len())
        }
        "LINSERT" => {
            if elements.is_empty() {
                return Reply::Int(0);
            }
            let Some(place) = elements.iter().position(|element| *element == args[3]) else {
                return Reply::Int(-1);
            };
            elements.insert(place + usize::from(args[2] == "AFTER"), args[4].clone());
            int(elements.len())
        }
        "LRANGE" => bulks(elements.iter()),
        other => panic!("{other}"),
    }
}

fn run_on_sorted_set(members: &mut BTreeMap<String, i64>, args: &[String]) -> Reply {
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

/// A request on few keys and few elements, so that they meet.
pub(crate) fn request(rng: &mut Rng) -> Vec<String> {
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
    ];
    let shape = SHAPES[rng.below(SHAPES.len() as u64) as usize];
    let words = shape.split(' ').map(|word| match word {
        "k" => format!("key{}", rng.below(5)),
        "e" => format!("e{}", rng.below(6)),
        "v" => format!("v{}", rng.below(100)),
        "n" => (rng.below(9) as i64 - 4).to_string(),
        other => other.to_owned(),
    });
    words.collect()
}

/// Every keyspace has the rows of the model's values, and no others.
fn check_rows(db: &Db, model: &Model) {
    let count = |name: &str| {
        let keyspace = db.open_keyspace(name).unwrap().unwrap();
        keyspace.count(..).unwrap() as usize
    };
    let sum = |of: fn(&Value) -> usize| model.values().map(of).sum::<usize>();
    let expected = [
        ("default", sum(|v| usize::from(matches!(v, Value::String(_))))),
        ("redis.keys", sum(|v| usize::from(!matches!(v, Value::String(_))))),
        ("redis.hashes", sum(|v| if let Value::Hash(all) = v { all.len() } else { 0 })),
        ("redis.sets", sum(|v| if let Value::Set(all) = v { all.len() } else { 0 })),
        ("redis.lists", sum(|v| if let Value::List(all) = v { all.len() } else { 0 })),
        ("redis.members", sum(|v| if let Value::Sorted(all) = v { all.len() } else { 0 })),
        ("redis.scores", sum(|v| if let Value::Sorted(all) = v { all.len() } else { 0 })),
        ("redis.deadlines", 0),
    ];
    for (name, rows) in expected {
        assert_eq!(count(name), rows, "rows of {name}");
    }
}

#[test]
fn replies_and_rows_are_those_of_the_model() {
    for seed in 1..=12_u64 {
        let dir = tempfile::tempdir().unwrap();
        let (db, server) = serve(dir.path(), Config::default());
        let mut client = Client::new(server.addresses()[0]);
        let (mut rng, mut model) =
            (Rng(0x9e37_79b9_7f4a_7c15_u64.wrapping_mul(seed)), Model::new());
        for step in 0..1500 {
            if rng.below(10) == 0 {
                // Several as one: each sees what those before it wrote.
                let requests: Vec<_> = (0..rng.below(6) + 1).map(|_| request(&mut rng)).collect();
                client.say("MULTI");
                requests.iter().for_each(|args| {
                    client.call(args);
                });
                let expected = requests.iter().map(|args| run(&mut model, args)).collect();
                let replies = client.say("EXEC");
                assert_eq!(
                    replies,
                    Reply::Array(expected),
                    "seed {seed}, step {step}: {requests:?}"
                );
            } else if rng.below(4) == 0 {
                // Several that arrive together, and are written together.
                let requests: Vec<_> = (0..rng.below(20) + 1).map(|_| request(&mut rng)).collect();
                let expected: Vec<_> = requests.iter().map(|args| run(&mut model, args)).collect();
                let replies = client.call_all(&requests);
                assert_eq!(replies, expected, "seed {seed}, step {step}: {requests:?}");
            } else {
                let args = request(&mut rng);
                let expected = run(&mut model, &args);
                assert_eq!(client.call(&args), expected, "seed {seed}, step {step}: {args:?}");
            }
            if step % 300 == 299 {
                check_rows(&db, &model);
            }
        }
        server.stop();
        db.close().unwrap();
    }
}
