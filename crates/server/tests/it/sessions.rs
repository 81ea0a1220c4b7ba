//! Promises to clients beyond the tests of Redis' own suite
//! (`tests/redis/run.sh`).

use crate::client::{Client, ModelReply, bulk, bulks, ok, serve};
use std::thread;
use std::time::Duration;
use windrow::{Db, Options};
use windrow_server::{Config, Durability, Server};

#[test]
fn strings_are_plain_pairs_and_values_outlive_the_server() {
    let dir = tempfile::tempdir().unwrap();
    let (db, server) = serve(dir.path(), Config::default());
    db.put("from the library", "hello").unwrap();
    let mut client = Client::new(server.addresses()[0]);
    assert_eq!(client.call(&["GET", "from the library"]), bulk("hello"));
    assert_eq!(client.say("SET apple red"), ok());
    assert_eq!(db.get("apple").unwrap().as_deref(), Some(&b"red"[..]));
    assert_eq!(client.say("SET brief x PX 3600000"), ok());
    assert_eq!(client.say("HSET h a 1 b 2"), ModelReply::Int(2));
    assert_eq!(client.say("RPUSH l a b c"), ModelReply::Int(3));
    assert_eq!(client.say("SADD s a b"), ModelReply::Int(2));
    assert_eq!(client.say("ZADD z 2 b 1 a"), ModelReply::Int(2));
    server.stop();
    db.close().unwrap();

    let (db, server) = serve(dir.path(), Config::default());
    let mut client = Client::new(server.addresses()[0]);
    assert_eq!(
        client.say("KEYS *").clone(),
        bulks(["apple", "brief", "from the library", "h", "l", "s", "z"])
    );
    assert!(matches!(client.say("PTTL brief"), ModelReply::Int(1..=3_600_000)));
    assert_eq!(client.say("HGETALL h"), bulks(["a", "1", "b", "2"]));
    assert_eq!(client.say("LRANGE l 0 -1"), bulks(["a", "b", "c"]));
    assert_eq!(client.say("SMEMBERS s"), bulks(["a", "b"]));
    assert_eq!(client.say("ZRANGE z 0 -1 WITHSCORES"), bulks(["a", "1", "b", "2"]));
    drop(server);
    db.close().unwrap();
}

#[test]
fn a_transaction_is_one_write_and_a_command_that_fails_in_it_writes_nothing() {
    let dir = tempfile::tempdir().unwrap();
    let (_db, server) = serve(dir.path(), Config::default());
    let mut client = Client::new(server.addresses()[0]);
    client.say("SET text abc");
    for request in
        ["MULTI", "SET a 1", "INCR a", "INCR text", "RPUSH l x", "BLPOP l 0", "BLPOP l 0"]
    {
        client.send(&request.split(' ').collect::<Vec<_>>());
    }
    let replies: Vec<ModelReply> = (0..7).map(|_| client.read().unwrap()).collect();
    assert!(replies[1..].iter().all(|reply| *reply == ModelReply::Simple("QUEUED".to_owned())));
    let ModelReply::Array(replies) = client.say("EXEC") else { panic!("no array") };
    assert_eq!(replies[..2], [ok(), ModelReply::Int(2)]);
    assert!(replies[2].error().contains("not an integer"));
    // No command waits within a transaction.
    assert_eq!(replies[3..], [ModelReply::Int(1), bulks(["l", "x"]), ModelReply::Null]);
    assert_eq!(client.say("EXISTS l a text"), ModelReply::Int(2));
}

#[test]
fn a_watched_key_that_another_client_writes_stops_the_transaction() {
    let dir = tempfile::tempdir().unwrap();
    let (_db, server) = serve(dir.path(), Config::default());
    let (mut one, mut two) =
        (Client::new(server.addresses()[0]), Client::new(server.addresses()[0]));
    for write in ["SET k 2", "DEL k", "HSET k f v", "RENAME other k", "FLUSHALL", "EXPIRE k 100"] {
        one.say("FLUSHALL");
        two.say("SET k 1");
        two.say("SET other 1");
        one.say("WATCH k");
        if write.starts_with("HSET") {
            two.say("DEL k");
        }
        assert!(!matches!(two.say(write), ModelReply::Error(_)), "{write}");
        one.say("MULTI");
        one.say("SET k mine");
        assert_eq!(one.say("EXEC"), ModelReply::Null, "{write}");
    }
    one.say("WATCH k");
    two.say("SET another 1");
    one.say("MULTI");
    one.say("SET k mine");
    assert_eq!(one.say("EXEC"), ModelReply::Array(vec![ok()]));
}

#[test]
fn increments_of_many_clients_are_all_counted() {
    let dir = tempfile::tempdir().unwrap();
    let (_db, server) =
        serve(dir.path(), Config { durability: Durability::Always, ..Config::default() });
    let address = server.addresses()[0];
    thread::scope(|scope| {
        for _ in 0..8 {
            scope.spawn(move || {
                let mut client = Client::new(address);
                for round in 0..25 {
                    for _ in 0..8 {
                        client.send(&["INCR", "n"]);
                        client.send(&["HINCRBY", "h", "f", "1"]);
                        client.send(&["RPUSH", "l", &round.to_string()]);
                    }
                    (0..24).for_each(|_| {
                        assert!(matches!(client.read().unwrap(), ModelReply::Int(_)))
                    });
                }
            });
        }
    });
    let mut client = Client::new(address);
    assert_eq!(client.say("GET n"), bulk("1600"));
    assert_eq!(client.say("HGET h f"), bulk("1600"));
    assert_eq!(client.say("LLEN l"), ModelReply::Int(1600));
}

#[test]
fn each_element_goes_to_one_of_those_who_wait() {
    let dir = tempfile::tempdir().unwrap();
    let (_db, server) = serve(dir.path(), Config::default());
    let address = server.addresses()[0];
    let taken: Vec<Vec<u8>> = thread::scope(|scope| {
        let waiting: Vec<_> = (0..6)
            .map(|_| {
                scope.spawn(move || {
                    let mut client = Client::new(address);
                    let mut taken = Vec::new();
                    loop {
                        match client.say("BLPOP jobs 1") {
                            ModelReply::Array(pair) => match &pair[1] {
                                ModelReply::Bulk(job) => taken.push(job.clone()),
                                other => panic!("{other:?}"),
                            },
                            ModelReply::Null => return taken,
                            other => panic!("{other:?}"),
                        }
                    }
                })
            })
            .collect();
        let mut client = Client::new(address);
        for job in (0..300).step_by(3) {
            let jobs = [job, job + 1, job + 2].map(|job| job.to_string());
            client.call(&["RPUSH", "jobs", &jobs[0], &jobs[1], &jobs[2]]);
        }
        waiting.into_iter().flat_map(|taker| taker.join().unwrap()).collect()
    });
    let mut jobs: Vec<u32> =
        taken.iter().map(|job| str::from_utf8(job).unwrap().parse().unwrap()).collect();
    jobs.sort_unstable();
    assert_eq!(jobs, (0..300).collect::<Vec<_>>());
}

#[test]
fn a_write_that_is_refused_is_no_other_commands_business() {
    let dir = tempfile::tempdir().unwrap();
    let mut options = Options::default();
    options.settings.memory_bytes = 16 << 20;
    let db = Db::open_with(dir.path(), options).unwrap();
    let server = Server::start(db.clone(), Config { port: 0, ..Config::default() }).unwrap();
    let mut client = Client::new(server.addresses()[0]);
    let (large, long) = ("x".repeat(6 << 20), "k".repeat(70_000));
    let request = |args: &[&str]| args.iter().map(|arg| (*arg).to_owned()).collect::<Vec<_>>();
    let replies = client.call_all(&[
        request(&["SET", "a", "1"]),
        request(&["SET", "large", &large]),
        request(&["SET", "b", "2"]),
        request(&["SET", &long, "3"]),
        request(&["HSET", "h", &long, "3"]),
        request(&["GET", "a"]),
        request(&["INCR", "b"]),
    ]);
    assert_eq!((&replies[0], &replies[2]), (&ok(), &ok()));
    assert!(replies[1].error().contains("batch"), "{:?}", replies[1]);
    assert!(replies[3].error().contains("70000 bytes"), "{:?}", replies[3]);
    assert!(matches!(replies[4], ModelReply::Error(_)));
    assert_eq!(replies[5..], [bulk("1"), ModelReply::Int(3)]);
    assert_eq!(client.say("KEYS *"), bulks(["a", "b"]));
}

#[test]
fn a_command_gathers_no_more_than_a_part_of_the_memory() {
    let dir = tempfile::tempdir().unwrap();
    let mut options = Options::default();
    options.settings.memory_bytes = 16 << 20;
    let db = Db::open_with(dir.path(), options).unwrap();
    let server = Server::start(db.clone(), Config { port: 0, ..Config::default() }).unwrap();
    let mut client = Client::new(server.addresses()[0]);
    // Six megabytes in each, where a command may gather four.
    for n in 0..200 {
        let value = format!("{n:04}{}", "x".repeat(30_000));
        for args in
            [vec!["RPUSH", "l"], vec!["SADD", "s"], vec!["ZADD", "z", "1"], vec!["HSET", "h", "f"]]
        {
            let mut args: Vec<String> = args.into_iter().map(str::to_owned).collect();
            if args[0] == "HSET" {
                args[2] = format!("f{n}");
            }
            args.push(value.clone());
            assert!(matches!(client.call(&args), ModelReply::Int(_)));
        }
    }
    for request in [
        "LPOS l none",
        "LREM l 0 none",
        "LINSERT l BEFORE none x",
        "ZRANGE z 0 -1",
        "ZPOPMIN z 1000",
        "RENAME h g",
        "COPY s t",
        "SORT l ALPHA",
        "SORT s BY nosort",
        "SUNIONSTORE t s",
        "ZUNIONSTORE t 1 z",
        "HRANDFIELD h 1000 WITHVALUES",
        "HSCAN h 0 COUNT 1000",
        "LPOP l 1000",
    ] {
        assert!(client.say(request).error().contains("in parts"), "{request}");
    }
    assert_eq!(client.say("LLEN l"), ModelReply::Int(200));
    assert_eq!(client.say("ZCARD z"), ModelReply::Int(200));
    assert_eq!(client.say("EXISTS g t h l s z"), ModelReply::Int(4));
    assert!(matches!(client.say("ZRANGE z 0 9"), ModelReply::Array(ten) if ten.len() == 10));
    assert_eq!(client.say("DEL h l s z"), ModelReply::Int(4));
    assert_eq!(client.say("DBSIZE"), ModelReply::Int(0));
}

#[test]
fn a_message_comes_after_what_was_written_before_it() {
    let dir = tempfile::tempdir().unwrap();
    let (_db, server) = serve(dir.path(), Config::default());
    let (mut one, mut two) =
        (Client::new(server.addresses()[0]), Client::new(server.addresses()[0]));
    let mut three = Client::new(server.addresses()[0]);
    one.say("SUBSCRIBE news");
    for round in 0..100 {
        let round = round.to_string();
        let request = |args: &[&str]| args.iter().map(|arg| (*arg).to_owned()).collect::<Vec<_>>();
        two.call_all(&[request(&["SET", "n", &round]), request(&["PUBLISH", "news", &round])]);
        assert_eq!(one.read().unwrap(), bulks(["message", "news", &round]));
        assert_eq!(three.say("GET n"), bulk(&round));
    }
}

#[test]
fn rows_that_another_program_took_away_are_an_error_and_no_false_reply() {
    let dir = tempfile::tempdir().unwrap();
    let (db, server) = serve(dir.path(), Config::default());
    let mut client = Client::new(server.addresses()[0]);
    client.say("HSET h a 1 b 2");
    client.say("RPUSH l a b c");
    for name in ["redis.hashes", "redis.lists"] {
        let keyspace = db.open_keyspace(name).unwrap().unwrap();
        let (row, _) = keyspace.first().unwrap().unwrap();
        keyspace.delete(&row).unwrap();
    }
    for request in ["HGETALL h", "HKEYS h", "HVALS h", "LRANGE l 0 -1"] {
        let replies = client.call_all(&[request.split(' ').collect::<Vec<_>>(), vec!["PING"]]);
        assert!(replies[0].error().contains("elements and should have"), "{request}");
        assert_eq!(replies[1], ModelReply::Simple("PONG".to_owned()));
    }
    db.put("default keyspace", "1").unwrap();
    db.open_keyspace("redis.keys").unwrap().unwrap().put("h", "no head").unwrap();
    assert!(client.say("HGETALL h").error().contains("no head of a Redis value"));
    assert_eq!(client.say("DEL l"), ModelReply::Int(1));
}

#[test]
fn a_scan_returns_all_that_is_there_all_the_time() {
    let dir = tempfile::tempdir().unwrap();
    let (_db, server) = serve(dir.path(), Config::default());
    let mut client = Client::new(server.addresses()[0]);
    for key in 0..500 {
        client.call(&["SET", &format!("keep{key:04}"), "x"]);
        client.call(&["HSET", "hash", &format!("f{key:04}"), "x"]);
    }
    for (command, width) in [("SCAN", 1), ("HSCAN hash", 2)] {
        let (mut number, mut seen, mut calls) = ("0".to_owned(), Vec::new(), 0);
        loop {
            let ModelReply::Array(reply) = client.say(&format!("{command} {number} COUNT 7"))
            else {
                panic!("no array")
            };
            let (ModelReply::Bulk(next), ModelReply::Array(found)) = (&reply[0], &reply[1]) else {
                panic!("{reply:?}")
            };
            seen.extend(found.iter().step_by(width).cloned());
            number = String::from_utf8(next.clone()).unwrap();
            calls += 1;
            // Other keys come and go meanwhile, and one changes its kind.
            client.call(&["SET", &format!("new{calls}"), "x"]);
            client.call(&["DEL", &format!("new{}", calls - 3)]);
            client.say("DEL keep0250");
            client.say("HSET keep0250 a b");
            if number == "0" {
                break;
            }
            assert!(calls < 1000, "it does not end");
        }
        let kept = |reply: &&ModelReply| matches!(reply, ModelReply::Bulk(key) if key[0] == b'k' || key[0] == b'f');
        let mut seen: Vec<_> = seen.iter().filter(kept).map(|reply| format!("{reply:?}")).collect();
        seen.sort_unstable();
        seen.dedup();
        assert_eq!(seen.len(), 500, "{command}");
    }
    assert!(client.say("SCAN 12345").error().contains("begin again at 0"));
}

#[test]
fn messages_reach_those_who_subscribed() {
    let dir = tempfile::tempdir().unwrap();
    let (_db, server) = serve(dir.path(), Config::default());
    let (mut one, mut two) =
        (Client::new(server.addresses()[0]), Client::new(server.addresses()[0]));
    one.say("SUBSCRIBE news");
    one.say("PSUBSCRIBE n*");
    assert!(one.say("GET a").error().contains("allowed in this context"));
    assert_eq!(two.say("PUBLISH news hello"), ModelReply::Int(2));
    assert_eq!(one.read().unwrap(), bulks(["message", "news", "hello"]));
    assert_eq!(one.read().unwrap(), bulks(["pmessage", "n*", "news", "hello"]));
    drop(one);
    for _ in 0..200 {
        if two.say("PUBLISH news hello") == ModelReply::Int(0) {
            return;
        }
        thread::sleep(Duration::from_millis(10));
    }
    panic!("a client that has gone is still subscribed");
}

#[test]
fn commands_of_windrow_itself() {
    let dir = tempfile::tempdir().unwrap();
    let (_db, server) = serve(dir.path(), Config::default());
    let mut client = Client::new(server.addresses()[0]);
    client.say("SET a 1");
    let copy = dir.path().join("copy");
    assert_eq!(client.call(&["WINDROW.CHECKPOINT", copy.to_str().unwrap()]), ok());
    assert_eq!(Db::open(&copy).unwrap().get("a").unwrap().as_deref(), Some(&b"1"[..]));
    assert_eq!(client.say("WINDROW.COMPACT"), ok());
    assert_eq!(client.say("WINDROW.RESUME"), ok(), "nothing had turned writing off");
    assert_eq!(client.say("WINDROW.POLICY leveled"), ok());
    assert!(
        matches!(client.say("WINDROW.POLICY"), ModelReply::Bulk(text) if text.starts_with(b"shape=leveling"))
    );
    assert!(client.say("WINDROW.POLICY nonsense").error().contains("nonsense"));
    assert!(matches!(client.say("WINDROW.STATS"), ModelReply::Bulk(text) if !text.is_empty()));
    assert!(
        matches!(client.say("WINDROW.TREE"), ModelReply::Bulk(text) if text.starts_with(b"default"))
    );
}
