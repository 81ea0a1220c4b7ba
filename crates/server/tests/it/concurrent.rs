//! Many clients on few keys at once: values stay whole in any interleaving.

use crate::client::{Client, ModelReply, serve};
use std::collections::{BTreeMap, BTreeSet};
use std::net::SocketAddr;
use std::thread;
use windrow::Db;
use windrow_server::Config;
use windrow_server::testing::model::{Choices, Rng, request};

/// Returns the rows of a keyspace.
fn rows(db: &Db, name: &str) -> Vec<(Vec<u8>, Vec<u8>)> {
    let keyspace = db.open_keyspace(name).unwrap().unwrap();
    keyspace
        .iter()
        .map(|row| row.map(|(key, value)| (key.to_vec(), value.to_vec())).unwrap())
        .collect()
}

fn number(bytes: &[u8]) -> u64 {
    u64::from_le_bytes(bytes.try_into().unwrap())
}

/// Checks that every head has its number of rows in their places, and that every row has a head
/// (docs/server.md).
fn check(db: &Db) {
    let strings: BTreeSet<Vec<u8>> = rows(db, "default").into_iter().map(|(key, _)| key).collect();
    let heads = rows(db, "redis.keys");
    let all = ["redis.hashes", "redis.sets", "redis.lists", "redis.members", "redis.scores"];
    let all = all.map(|name| rows(db, name));
    let [hashes, sets, lists, members, scores] = &all;
    let streams = rows(db, "redis.streams");
    let (mut counted, mut counted_streams) = ([0; 5], 0);
    let mut deadlines = BTreeSet::new();
    for (key, head) in &heads {
        let (a, b, deadline) = (number(&head[9..17]), number(&head[17..]), number(&head[1..9]));
        let prefix = [&(key.len() as u32).to_be_bytes()[..], key].concat();
        let of = |rows: &[(Vec<u8>, Vec<u8>)]| -> Vec<(Vec<u8>, Vec<u8>)> {
            let own = rows.iter().filter(|(row, _)| row.starts_with(&prefix));
            own.map(|(row, value)| (row[prefix.len()..].to_vec(), value.clone())).collect()
        };
        if deadline > 0 && head[0] != b's' {
            deadlines.insert([&deadline.to_be_bytes()[..], key].concat());
        }
        assert_eq!(strings.contains(key), head[0] == b's', "two values of {key:?}");
        let place = match head[0] {
            b's' => continue,
            b'x' => {
                let own = of(&streams);
                counted_streams += own.len();
                check_stream(&own, a);
                continue;
            }
            b'H' => 0,
            b'S' => 1,
            b'l' => 2,
            b'z' => 3,
            other => panic!("a head of kind {other}"),
        };
        let own = of([hashes, sets, lists, members][place]);
        counted[place] += own.len();
        if place == 2 {
            let places = own.iter().map(|(row, _)| u64::from_be_bytes(row[..].try_into().unwrap()));
            assert!(places.eq(a..b), "a list with holes");
            continue;
        }
        assert!(a > 0 && own.len() as u64 == a, "{} rows of {a}", own.len());
        if place == 3 {
            let mut by_member: Vec<Vec<u8>> =
                own.iter().map(|(member, score)| [&score[..], member].concat()).collect();
            by_member.sort();
            let by_score: Vec<Vec<u8>> = of(scores).into_iter().map(|(row, _)| row).collect();
            counted[4] += by_score.len();
            assert_eq!(by_member, by_score, "members and scores");
        }
    }
    assert_eq!(counted_streams, streams.len(), "rows without a stream");
    assert_eq!(counted, all.each_ref().map(Vec::len), "rows without a head");
    let noted: BTreeSet<_> = rows(db, "redis.deadlines").into_iter().map(|(key, _)| key).collect();
    assert_eq!(noted, deadlines, "deadlines of heads");
}

/// Checks that a stream has its record, the number of entries in its head, and groups with right
/// counts of pending entries.
fn check_stream(own: &[(Vec<u8>, Vec<u8>)], count: u64) {
    let of = |mark: u8| own.iter().filter(move |(row, _)| row.first() == Some(&mark));
    assert_eq!(own.iter().filter(|(row, _)| row.is_empty()).count(), 1, "one record");
    assert_eq!(of(b'e').count() as u64 + 1, count, "entries, and the record");
    // After `g`, the length of the name and the name: the kind of the row.
    let part = |row: &[u8]| {
        let end = 5 + u32::from_be_bytes(row[1..5].try_into().unwrap()) as usize;
        (row[1..end].to_vec(), row.get(end).copied())
    };
    let mut pending: BTreeMap<Vec<u8>, [u64; 4]> = BTreeMap::new();
    for (row, value) in of(b'g') {
        let (group, kind) = part(row);
        let counts = pending.entry(group).or_default();
        match kind {
            None => counts[0] = number(&value[24..]),
            Some(b'c') => counts[1] += number(&value[8..]),
            Some(b'p') => counts[2] += 1,
            Some(b'q') => counts[3] += 1,
            other => panic!("a row of kind {other:?}"),
        }
    }
    for [group, consumers, by_id, by_consumer] in pending.into_values() {
        assert_eq!([consumers, by_id, by_consumer], [group; 3], "pending entries");
    }
}

fn other(rng: &mut Rng) -> Vec<String> {
    const OTHERS: &[&str] = &[
        "EXPIRE k 1000",
        "PERSIST k",
        "PEXPIRE k 3",
        "COPY k k REPLACE",
        "SORT k ALPHA STORE k",
        "FLUSHALL",
        "SUNIONSTORE k k k",
        "SMOVE k k e1",
        "LMOVE k k LEFT RIGHT",
        "BLPOP k k 0.001",
        "ZPOPMIN k",
        "SPOP k",
        "BLMOVE k k RIGHT LEFT 0.002",
        "ZUNIONSTORE k 2 k k",
        "BZPOPMAX k 0.001",
        "SET k v EX 1000",
        "RESTORE k 0 nothing REPLACE",
        "LTRIM k 0 3",
        "ZREMRANGEBYRANK k 0 1",
        "INCR k",
        "HINCRBY k e1 2",
        "XREADGROUP GROUP g0 c1 BLOCK 2 STREAMS k >",
        "XREAD BLOCK 2 STREAMS k $",
        "XAUTOCLAIM k g0 c1 0 0",
        "XGROUP DELCONSUMER k g0 c1",
    ];
    let shape = OTHERS[rng.below(OTHERS.len() as u64) as usize];
    let word = |word: &str| match word {
        "k" => format!("key{}", rng.below(5)),
        other => other.to_owned(),
    };
    shape.split(' ').map(word).collect()
}

fn disturb(address: SocketAddr, seed: u64) {
    let mut client = Client::new(address);
    let mut rng = Rng(0x9e37_79b9_7f4a_7c15_u64.wrapping_mul(seed));
    for _ in 0..250 {
        let any = |rng: &mut Rng| if rng.below(3) == 0 { other(rng) } else { request(rng) };
        let mut requests: Vec<_> = (0..rng.below(12) + 1).map(|_| any(&mut rng)).collect();
        if rng.below(4) == 0 {
            if rng.below(2) == 0 {
                requests.insert(0, vec!["WATCH".to_owned(), format!("key{}", rng.below(5))]);
            }
            requests.insert(usize::from(requests[0][0] == "WATCH"), vec!["MULTI".to_owned()]);
            requests.push(vec!["EXEC".to_owned()]);
        }
        for reply in client.call_all(&requests) {
            if let ModelReply::Error(text) = reply {
                let known = [
                    "WRONGTYPE",
                    "ERR value is not an integer",
                    "ERR hash value",
                    "ERR no such key",
                ];
                let of_streams = [
                    "NOGROUP",
                    "BUSYGROUP",
                    "UNBLOCKED",
                    "ERR The XGROUP",
                    "ERR The ID specified in XADD",
                ];
                let others = ["ERR DUMP payload", "ERR source and destination", "ERR increment"];
                let is_known = known
                    .iter()
                    .chain(&others)
                    .chain(&of_streams)
                    .any(|begin| text.starts_with(begin));
                assert!(is_known, "{text}");
            }
        }
    }
}

#[test]
fn values_are_whole_whatever_clients_do_at_once() {
    let dir = tempfile::tempdir().unwrap();
    let (db, server) = serve(dir.path(), Config::default());
    let address = server.addresses()[0];
    for round in 0..4 {
        thread::scope(|scope| {
            (1..=6).for_each(|seed| drop(scope.spawn(move || disturb(address, 6 * round + seed))));
        });
        // Expired values are deleted a moment later.
        thread::sleep(std::time::Duration::from_millis(400));
        check(&db);
    }
    server.stop();
    db.close().unwrap();
}
