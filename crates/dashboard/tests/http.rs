//! The dashboard as browsers and Prometheus meet it.

#![cfg(feature = "http")]
#![allow(clippy::disallowed_methods, reason = "tests play the browser")]

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::sync::Arc;
use std::time::Duration;
use windrow::{Db, Options};
use windrow_dashboard::{Dashboard, Events, Settings};

fn shown(dir: &std::path::Path, password: Option<&str>) -> (Db, Dashboard) {
    let events = Arc::new(Events::default());
    let mut options = Options::default();
    options.components.listener = Some(events.clone());
    let db = Db::open_with(dir, options).unwrap();
    let settings = Settings {
        address: "127.0.0.1:0".parse().unwrap(),
        password: password.map(str::to_owned),
        source: Some(Arc::new(|metrics| {
            metrics.single("windrow_test", windrow_dashboard::Kind::Gauge, "A test.", 7.0);
        })),
    };
    let dashboard = Dashboard::start(db.clone(), events, settings).unwrap();
    (db, dashboard)
}

fn asked(address: SocketAddr, path: &str, headers: &str) -> BufReader<TcpStream> {
    let mut stream = TcpStream::connect(address).unwrap();
    stream.set_read_timeout(Some(Duration::from_secs(20))).unwrap();
    write!(stream, "GET {path} HTTP/1.1\r\nConnection: close\r\n{headers}\r\n").unwrap();
    BufReader::new(stream)
}

/// Returns the whole answer.
fn get(address: SocketAddr, path: &str, headers: &str) -> String {
    let mut text = String::new();
    asked(address, path, headers).read_to_string(&mut text).unwrap();
    text
}

#[test]
fn each_part_is_there_and_forbids_foreign_ones() {
    let dir = tempfile::tempdir().unwrap();
    let (db, dashboard) = shown(dir.path(), None);
    db.put("a", "1").unwrap();
    let host = format!("Host: {}\r\n", dashboard.address());
    for (path, part) in [
        ("/", "<title>Windrow</title>"),
        ("/style.css", "--paper"),
        ("/script.js", "W.start"),
        ("/state.json", "\"keyspaces\""),
        ("/metrics", "windrow_write_operations_total 1\n"),
        ("/metrics", "windrow_test 7\n"),
    ] {
        let answer = get(dashboard.address(), path, &host);
        assert!(answer.starts_with("HTTP/1.1 200") && answer.contains(part), "{path}: {answer}");
        let lower = answer.to_lowercase();
        assert!(lower.contains("content-security-policy: default-src 'none'"), "{path}: {answer}");
        assert!(lower.contains("x-content-type-options: nosniff"), "{path}");
    }
    assert!(get(dashboard.address(), "/nothing", &host).starts_with("HTTP/1.1 404"));
}

#[test]
fn the_stream_tells_the_tree_and_what_happens() {
    let dir = tempfile::tempdir().unwrap();
    let (db, dashboard) = shown(dir.path(), None);
    let mut stream =
        asked(dashboard.address(), "/events", &format!("Host: {}\r\n", dashboard.address()));
    let mut until = |part: &str| {
        let mut line = String::new();
        while !line.contains(part) {
            line.clear();
            assert!(stream.read_line(&mut line).unwrap() > 0, "the stream ended before {part}");
        }
        line
    };
    until("event: tree");
    until("event: tick");
    db.put("apple", "red").unwrap();
    db.flush().unwrap();
    assert!(until("smallest_hex").contains("6170706c65"), "a table was written");
    until("flush");
}

/// Returns the data of the next event with this name.
fn told(stream: &mut impl BufRead, name: &str) -> String {
    let mut line = String::new();
    while line.trim_end() != format!("event: {name}") {
        line.clear();
        assert!(stream.read_line(&mut line).unwrap() > 0, "the stream ended before {name}");
    }
    line.clear();
    stream.read_line(&mut line).unwrap();
    line
}

#[test]
fn a_keyspace_that_is_dropped_leaves_the_stream() {
    let dir = tempfile::tempdir().unwrap();
    let (db, dashboard) = shown(dir.path(), None);
    let fruit = db.keyspace("fruit").unwrap();
    fruit.put("apple", "red").unwrap();
    db.flush().unwrap();
    let host = format!("Host: {}\r\n", dashboard.address());
    let mut stream = asked(dashboard.address(), "/events", &host);
    assert!(told(&mut stream, "tree").contains("\"fruit\""));
    db.drop_keyspace("fruit").unwrap();
    while told(&mut stream, "tree").contains("\"fruit\"") {}
    assert!(told(&mut stream, "tick").contains("\"write_error\":null"));
}

#[test]
fn strangers_see_nothing() {
    let dir = tempfile::tempdir().unwrap();
    let (_db, dashboard) = shown(dir.path(), Some("secret"));
    let address = dashboard.address();
    for (headers, status) in [
        ("", "401"),
        ("Authorization: Basic YTp3cm9uZw==\r\n", "401"),
        ("Authorization: Basic YTpzZWNyZXQ=\r\n", "200"),
    ] {
        let answer = get(address, "/metrics", &format!("Host: x\r\n{headers}"));
        assert!(answer.starts_with(&format!("HTTP/1.1 {status}")), "{headers}: {answer}");
    }
    drop(dashboard);
    let dir = tempfile::tempdir().unwrap();
    let (_db, dashboard) = shown(dir.path(), None);
    for (host, status) in [
        ("evil.example", "403"),
        ("localhost:1", "200"),
        ("127.0.0.1", "200"),
        ("[::1]", "200"),
        ("127.0.0.1.evil.example:1", "403"),
        ("", "403"),
        ("[::1]:1", "200"),
    ] {
        let answer = get(dashboard.address(), "/", &format!("Host: {host}\r\n"));
        assert!(answer.starts_with(&format!("HTTP/1.1 {status}")), "{host}: {answer}");
    }
}

#[test]
fn an_address_for_all_needs_a_password() {
    let dir = tempfile::tempdir().unwrap();
    let db = Db::open(dir.path()).unwrap();
    let settings = Settings { address: "0.0.0.0:0".parse().unwrap(), ..Settings::default() };
    let error = Dashboard::start(db, Arc::new(Events::default()), settings).unwrap_err();
    assert!(error.to_string().contains("password"));
}

#[test]
fn a_database_that_closes_is_shown_as_it_was() {
    let dir = tempfile::tempdir().unwrap();
    let (db, dashboard) = shown(dir.path(), None);
    db.put("a", "1").unwrap();
    db.close().unwrap();
    let host = format!("Host: {}\r\n", dashboard.address());
    for path in ["/state.json", "/metrics"] {
        assert!(get(dashboard.address(), path, &host).starts_with("HTTP/1.1 200"), "{path}");
    }
}

#[test]
fn a_place_is_free_again_when_one_of_many_silent_connections_goes() {
    let dir = tempfile::tempdir().unwrap();
    let (_db, dashboard) = shown(dir.path(), None);
    let address = dashboard.address();
    let mut silent: Vec<TcpStream> =
        (0..128).map(|_| TcpStream::connect(address).unwrap()).collect();
    let mut waiting = TcpStream::connect(address).unwrap();
    write!(waiting, "GET /metrics HTTP/1.1\r\nHost: {address}\r\nConnection: close\r\n\r\n")
        .unwrap();
    waiting.set_read_timeout(Some(Duration::from_millis(200))).unwrap();
    let mut byte = [0];
    assert!(waiting.read(&mut byte).is_err(), "there are as many as may be");
    silent.truncate(100);
    waiting.set_read_timeout(Some(Duration::from_secs(20))).unwrap();
    assert_eq!(waiting.read(&mut byte).unwrap(), 1);
}
