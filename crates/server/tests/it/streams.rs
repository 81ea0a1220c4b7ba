//! Streams: deliveries to consumers of groups, and clients that wait.

use crate::client::{Client, ModelReply, bulk, bulks, ok, serve};
use std::thread;
use std::time::Duration;
use windrow_server::Config;

fn entry(id: &str, fields: &[&str]) -> ModelReply {
    ModelReply::Array(vec![bulk(id), bulks(fields)])
}

fn of_stream(key: &str, entries: Vec<ModelReply>) -> ModelReply {
    ModelReply::Array(vec![ModelReply::Array(vec![bulk(key), ModelReply::Array(entries)])])
}

/// Waits until this number of clients waits.
fn until_waiting(client: &mut Client, count: u64) {
    loop {
        let ModelReply::Bulk(info) = client.say("INFO clients") else { panic!("no text") };
        let info = String::from_utf8(info).unwrap();
        if info.contains(&format!("blocked_clients:{count}\r\n")) {
            return;
        }
        thread::sleep(Duration::from_millis(2));
    }
}

#[test]
fn an_entry_goes_to_one_consumer_until_it_is_acknowledged_or_claimed() {
    let dir = tempfile::tempdir().unwrap();
    let (db, server) = serve(dir.path(), Config::default());
    let mut client = Client::new(server.addresses()[0]);
    for id in 1..=4 {
        assert_eq!(client.say(&format!("XADD s {id} f v{id}")), bulk(format!("{id}-0")));
    }
    assert_eq!(client.say("XGROUP CREATE s g 0"), ok());
    let first = client.say("XREADGROUP GROUP g alice COUNT 2 STREAMS s >");
    assert_eq!(first, of_stream("s", vec![entry("1-0", &["f", "v1"]), entry("2-0", &["f", "v2"])]));
    let rest = client.say("XREADGROUP GROUP g bob STREAMS s >");
    assert_eq!(rest, of_stream("s", vec![entry("3-0", &["f", "v3"]), entry("4-0", &["f", "v4"])]));
    assert_eq!(client.say("XREADGROUP GROUP g carol STREAMS s >"), ModelReply::Null);
    assert_eq!(client.say("XACK s g 1 3 9"), ModelReply::Int(2));
    assert_eq!(client.say("XCLAIM s g carol 0 2 4 JUSTID"), bulks(["2-0", "4-0"]));
    let own = client.say("XREADGROUP GROUP g carol STREAMS s 0");
    assert_eq!(own, of_stream("s", vec![entry("2-0", &["f", "v2"]), entry("4-0", &["f", "v4"])]));
    assert_eq!(client.say("XDEL s 2"), ModelReply::Int(1));
    let again = client.say("XAUTOCLAIM s g alice 0 0");
    let ModelReply::Array(parts) = again else { panic!("{again:?}") };
    assert_eq!(parts[1..], [ModelReply::Array(vec![entry("4-0", &["f", "v4"])]), bulks(["2-0"])]);
    // A stream that is named twice gives no entry twice.
    client.say("XADD s 5 f v5");
    let twice = client.say("XREADGROUP GROUP g bob STREAMS s s > >");
    assert_eq!(twice, of_stream("s", vec![entry("5-0", &["f", "v5"])]));
    // All of it is deleted with the key, and a dump restores it.
    let ModelReply::Bulk(dump) = client.say("DUMP s") else { panic!("no dump") };
    assert_eq!(client.say("DEL s"), ModelReply::Int(1));
    let rows = db.open_keyspace("redis.streams").unwrap().unwrap();
    assert_eq!(rows.count(..).unwrap(), 0);
    assert_eq!(client.call(&[&b"RESTORE"[..], b"t", b"0", &dump]), ok());
    assert_eq!(client.say("XLEN t"), ModelReply::Int(4));
    assert_eq!(client.say("XACK t g 4 5"), ModelReply::Int(2));
    let summary = ModelReply::Array(vec![
        ModelReply::Int(0),
        ModelReply::Null,
        ModelReply::Null,
        ModelReply::Null,
    ]);
    assert_eq!(client.say("XPENDING t g"), summary);
}

#[test]
fn all_who_wait_for_a_stream_read_what_comes_and_a_group_gives_it_to_one() {
    let dir = tempfile::tempdir().unwrap();
    let (_db, server) = serve(dir.path(), Config::default());
    let address = server.addresses()[0];
    let mut client = Client::new(address);
    client.say("XGROUP CREATE s g $ MKSTREAM");
    // One waits for something that never comes; behind it are others that are served.
    let mut waiting: Vec<Client> = (0..4).map(|_| Client::new(address)).collect();
    let requests = [
        "XREAD BLOCK 0 STREAMS s 99",
        "XREAD BLOCK 0 STREAMS s $",
        "XREADGROUP GROUP g a BLOCK 0 STREAMS s >",
        "XREAD BLOCK 0 STREAMS s $",
    ];
    for (count, (one, request)) in waiting.iter_mut().zip(requests).enumerate() {
        one.send(&request.split(' ').collect::<Vec<_>>());
        until_waiting(&mut client, count as u64 + 1);
    }
    assert_eq!(client.say("XADD s 7 f v"), bulk("7-0"));
    let served = of_stream("s", vec![entry("7-0", &["f", "v"])]);
    for one in &mut waiting[1..] {
        assert_eq!(one.read().unwrap(), served);
    }
    until_waiting(&mut client, 1);
}

#[test]
fn a_key_that_gets_another_kind_of_value_serves_those_who_wait_for_that() {
    let dir = tempfile::tempdir().unwrap();
    let (_db, server) = serve(dir.path(), Config::default());
    let address = server.addresses()[0];
    let mut client = Client::new(address);
    let (mut of_list, mut stream_client) = (Client::new(address), Client::new(address));
    of_list.send(&["BLPOP", "q", "0"]);
    until_waiting(&mut client, 1);
    stream_client.send(&["XREAD", "BLOCK", "0", "STREAMS", "q", "0"]);
    until_waiting(&mut client, 2);
    client.say("XADD q 1 f v");
    assert_eq!(stream_client.read().unwrap(), of_stream("q", vec![entry("1-0", &["f", "v"])]));
    client.say("DEL q");
    client.say("RPUSH q x");
    assert_eq!(of_list.read().unwrap(), bulks(["q", "x"]));
}

#[test]
fn a_consumer_that_waits_is_told_that_its_group_is_gone() {
    let dir = tempfile::tempdir().unwrap();
    let (_db, server) = serve(dir.path(), Config::default());
    let address = server.addresses()[0];
    let mut client = Client::new(address);
    for (ends, error) in [
        ("XGROUP DESTROY s g", "NOGROUP"),
        ("DEL s", "UNBLOCKED"),
        ("PEXPIRE s 20", "UNBLOCKED"),
        ("SET s x", "UNBLOCKED"),
        ("FLUSHALL", "UNBLOCKED"),
        ("RENAME other s", "NOGROUP"),
    ] {
        client.say("DEL s");
        client.say("XADD other 1 f v");
        client.say("XGROUP CREATE s g $ MKSTREAM");
        let mut consumer = Client::new(address);
        consumer.send(&"XREADGROUP GROUP g a BLOCK 0 STREAMS s >".split(' ').collect::<Vec<_>>());
        until_waiting(&mut client, 1);
        client.say(ends);
        assert!(consumer.read().unwrap().error().starts_with(error), "{ends}");
        until_waiting(&mut client, 0);
    }
}

/// As if all were on one thread: a push is answered after the clients that it serves.
#[test]
fn a_push_is_answered_after_those_it_serves_also_in_a_chain() {
    let dir = tempfile::tempdir().unwrap();
    let (_db, server) = serve(dir.path(), Config::default());
    let address = server.addresses()[0];
    let mut client = Client::new(address);
    for round in 0..200 {
        let mut movers: Vec<Client> = (0..3).map(|_| Client::new(address)).collect();
        for (step, mover) in movers.iter_mut().enumerate() {
            let request = format!("BLMOVE l{step} l{} LEFT RIGHT 0", step + 1);
            mover.send(&request.split(' ').collect::<Vec<_>>());
        }
        until_waiting(&mut client, 3);
        assert_eq!(client.say("RPUSH l0 x"), ModelReply::Int(1));
        assert_eq!(client.say("LRANGE l3 0 -1"), bulks(["x"]), "round {round}");
        client.say("DEL l3");
        for mover in &mut movers {
            assert_eq!(mover.read().unwrap(), bulk("x"));
        }
    }
}
