//! Attacks by clients: promises N1 to N11 of docs/reliability.

use crate::client::{Client, ModelReply, encoded, ok, serve};
use std::net::{IpAddr, Ipv4Addr};
use std::thread;
use std::time::Duration;
use windrow::Db;
use windrow_server::{Config, Server, StartError};

/// Returns a number of `INFO clients`.
fn info(client: &mut Client, name: &str) -> u64 {
    let ModelReply::Bulk(info) = client.say("INFO clients") else { panic!("no text") };
    let info = String::from_utf8(info).unwrap();
    let line = info.lines().find(|line| line.starts_with(name)).unwrap();
    line.split_once(':').unwrap().1.parse().unwrap()
}

#[test]
fn a_declared_length_takes_no_memory() {
    let dir = tempfile::tempdir().unwrap();
    let (_db, server) =
        serve(dir.path(), Config { buffer_bytes_max: 4 << 20, ..Config::default() });
    let mut clients: Vec<Client> = (0..50).map(|_| Client::new(server.addresses()[0])).collect();
    for client in &mut clients {
        client.send_raw(b"*1000000\r\n$536870912\r\nabc").unwrap();
    }
    // Half a gigabyte was announced fifty times, and other clients are still served.
    let mut client = Client::new(server.addresses()[0]);
    assert_eq!(client.call(&["SET", "a", &"x".repeat(1 << 20)]), ok());
}

#[test]
fn a_request_that_never_ends_is_ended() {
    let dir = tempfile::tempdir().unwrap();
    let request_time_max = Duration::from_millis(300);
    let (_db, server) = serve(dir.path(), Config { request_time_max, ..Config::default() });
    let mut idle = Client::new(server.addresses()[0]);
    let mut slow = Client::new(server.addresses()[0]);
    slow.send_raw(b"*2\r\n$3\r\nGE").unwrap();
    assert_eq!(slow.try_read(), None, "the connection ends");
    assert_eq!(
        idle.say("PING"),
        ModelReply::Simple("PONG".to_owned()),
        "one that asks nothing stays"
    );
}

#[test]
fn all_buffers_together_are_bounded() {
    let dir = tempfile::tempdir().unwrap();
    let (_db, server) =
        serve(dir.path(), Config { buffer_bytes_max: 4 << 20, ..Config::default() });
    let part = vec![b'x'; 1 << 20];
    let mut clients: Vec<Client> = (0..8).map(|_| Client::new(server.addresses()[0])).collect();
    for client in &mut clients {
        client.send_raw(b"*3\r\n$3\r\nSET\r\n$1\r\na\r\n$8388608\r\n").unwrap();
    }
    let mut other = Client::new(server.addresses()[0]);
    // Each sends seven of the eight megabytes that it has announced; a client that is refused is
    // closed.
    for _ in 0..7 {
        clients.retain_mut(|client| client.send_raw(&part).is_ok());
        let bytes = info(&mut other, "client_buffer_bytes");
        assert!(bytes < 12 << 20, "{bytes} bytes of buffers");
    }
    // None of them fits: sooner or later only `other` is left.
    for _ in 0..1000 {
        if info(&mut other, "connected_clients") == 1 {
            break;
        }
        thread::sleep(Duration::from_millis(20));
    }
    assert_eq!(info(&mut other, "connected_clients"), 1);
    assert_eq!(other.say("SET small value"), ok(), "who needs little is served");
}

#[test]
fn what_clients_have_the_server_keep_counts_too() {
    let dir = tempfile::tempdir().unwrap();
    let (_db, server) =
        serve(dir.path(), Config { buffer_bytes_max: 2 << 20, ..Config::default() });
    let mut other = Client::new(server.addresses()[0]);
    let name = "n".repeat(60_000);
    for command in ["WATCH", "SUBSCRIBE", "PSUBSCRIBE", "MULTI"] {
        let mut client = Client::new(server.addresses()[0]);
        if command == "MULTI" {
            client.say("MULTI");
        }
        let is_refused = (0..100).any(|n| {
            let long =
                format!("{n}{}", if command == "PSUBSCRIBE" { &name[..4000] } else { &name });
            let word = if command == "MULTI" { "GET" } else { command };
            let mut requests = vec![vec![word.to_owned(), long]];
            if command == "PSUBSCRIBE" {
                requests = (0..16)
                    .map(|m| vec![word.to_owned(), format!("{m}{}", requests[0][1])])
                    .collect();
            }
            let sent = |args: &Vec<String>| client.send_raw(&encoded(args)).is_err();
            if requests.iter().any(sent) {
                return true;
            }
            requests.iter().any(|_| match client.try_read() {
                Some(ModelReply::Error(text)) => text.contains("buffer-bytes-max"),
                Some(_) => false,
                None => true,
            })
        });
        assert!(is_refused, "{command}: six megabytes are kept where two may be");
        drop(client);
        assert_eq!(other.say("SET small value"), ok());
    }
}

#[test]
fn replies_that_nobody_takes_stop_their_client_alone() {
    let dir = tempfile::tempdir().unwrap();
    let (_db, server) = serve(dir.path(), Config::default());
    let mut client = Client::new(server.addresses()[0]);
    client.call(&["SET", "a", &"x".repeat(1 << 20)]);
    let mut greedy = Client::new(server.addresses()[0]);
    for _ in 0..1000 {
        greedy.send(&["GET", "a"]);
    }
    // A gigabyte of replies: the server keeps the bytes that it has read and one reply.
    for _ in 0..50 {
        let bytes = info(&mut client, "client_buffer_bytes");
        assert!(bytes < 8 << 20, "{bytes}");
    }
    for _ in 0..1000 {
        assert!(
            matches!(greedy.read().unwrap(), ModelReply::Bulk(value) if value.len() == 1 << 20)
        );
    }
}

#[test]
fn a_reply_that_is_too_long_is_an_error() {
    let dir = tempfile::tempdir().unwrap();
    let (_db, server) = serve(dir.path(), Config { reply_bytes_max: 1 << 20, ..Config::default() });
    let mut client = Client::new(server.addresses()[0]);
    for key in 0..40 {
        client.call(&["HSET", "h", &key.to_string(), &"x".repeat(64 << 10)]);
        client.call(&["RPUSH", "l", &"x".repeat(64 << 10)]);
    }
    for request in ["HGETALL h", "HVALS h", "LRANGE l 0 -1", "HRANDFIELD h -40 WITHVALUES"] {
        assert!(client.say(request).error().contains("reply-max-bytes"), "{request}");
    }
    assert!(client.say("HRANDFIELD h -100000 WITHVALUES").error().contains("in parts"));
    assert_eq!(client.say("HLEN h"), ModelReply::Int(40));
}

#[test]
fn clients_beyond_the_limit_are_told() {
    let dir = tempfile::tempdir().unwrap();
    let (_db, server) = serve(dir.path(), Config { clients_max: 2, ..Config::default() });
    let mut two: Vec<Client> = (0..2).map(|_| Client::new(server.addresses()[0])).collect();
    two.iter_mut().for_each(|client| drop(client.say("PING")));
    let mut third = Client::new(server.addresses()[0]);
    assert!(third.read().unwrap().error().contains("max number of clients"));
    drop(two);
    for _ in 0..200 {
        let mut next = Client::new(server.addresses()[0]);
        next.send(&["PING"]);
        if next.try_read() == Some(ModelReply::Simple("PONG".to_owned())) {
            return;
        }
        thread::sleep(Duration::from_millis(10));
    }
    panic!("nobody is let in again");
}

#[test]
fn a_stranger_may_only_say_who_it_is() {
    let dir = tempfile::tempdir().unwrap();
    let config = Config {
        password: Some("secret".to_owned()),
        request_time_max: Duration::from_secs(3),
        ..Config::default()
    };
    let (_db, server) = serve(dir.path(), config);
    let mut client = Client::new(server.addresses()[0]);
    for request in ["GET a", "PING", "INFO", "MULTI", "SUBSCRIBE a", "NOTHING", "WINDROW.STATS"] {
        assert!(client.say(request).error().starts_with("NOAUTH"), "{request}");
    }
    assert!(client.say("AUTH wrong").error().starts_with("WRONGPASS"));
    assert!(client.say("HELLO 3").error().starts_with("NOAUTH"));
    assert_eq!(client.say("AUTH secret"), ok());
    assert_eq!(client.say("SET a 1"), ok());
    let mut stranger = Client::new(server.addresses()[0]);
    stranger.send_raw(b"*11\r\n").unwrap();
    assert!(stranger.read().unwrap().error().contains("unauthenticated"));
    let mut silent = Client::new(server.addresses()[0]);
    assert_eq!(silent.try_read(), None, "it has so long to say who it is");
}

#[test]
fn nobody_listens_to_the_world_without_a_password() {
    let dir = tempfile::tempdir().unwrap();
    let db = Db::open(dir.path()).unwrap();
    let bind = vec![IpAddr::V4(Ipv4Addr::UNSPECIFIED)];
    let refused = Server::start(db, Config { bind, port: 0, ..Config::default() });
    assert!(matches!(refused, Err(StartError::Config(why)) if why.contains("--requirepass")));
}

#[test]
fn any_bytes_get_replies_or_the_end() {
    let dir = tempfile::tempdir().unwrap();
    let (_db, server) = serve(dir.path(), Config::default());
    let mut state = 0x1234_5678_9abc_def1_u64;
    let mut random = move || {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        state
    };
    let words: [&[u8]; 12] = [
        b"*",
        b"$",
        b"3\r\n",
        b"-1\r\n",
        b"SET",
        b"GET",
        b"\r\n",
        b"EXPIRE",
        b"a",
        b"\0\xff",
        b"\"",
        b"99999999",
    ];
    for _ in 0..300 {
        let mut client = Client::new(server.addresses()[0]);
        let mut bytes = Vec::new();
        for _ in 0..random() % 40 {
            bytes.extend_from_slice(words[random() as usize % words.len()]);
        }
        // It may be disconnected before it has sent all.
        let _ = client.send_raw(&bytes);
    }
    let mut client = Client::new(server.addresses()[0]);
    assert_eq!(client.say("PING"), ModelReply::Simple("PONG".to_owned()));
}
