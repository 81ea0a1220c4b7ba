//! `windrow serve` as a process: clients talk to it, and it is stopped and killed.

#![allow(clippy::disallowed_methods, reason = "tests play clients and the shell")]

use crate::common::{Shell, stderr};
use rustix::process::{Pid, Signal, kill_process};
use std::collections::HashSet;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::process::{Child, ChildStderr, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

/// Starts a server at a free port; returns it with its address and its later messages.
fn serving(sh: &Shell, flags: &str) -> (Child, String, BufReader<ChildStderr>) {
    started(sh.spawn(&format!("serve db --port 0 {flags}")))
}

fn started(mut child: Child) -> (Child, String, BufReader<ChildStderr>) {
    let mut said = BufReader::new(child.stderr.take().unwrap());
    let mut line = String::new();
    said.read_line(&mut line).unwrap();
    let address = line.trim().rsplit("address=").next().unwrap().to_owned();
    assert!(line.contains("serving") && address.starts_with("127.0.0.1:"), "{line}");
    (child, address, said)
}

fn client(address: &str) -> BufReader<TcpStream> {
    let stream = TcpStream::connect(address).unwrap();
    stream.set_read_timeout(Some(Duration::from_secs(20))).unwrap();
    stream.set_nodelay(true).unwrap();
    BufReader::new(stream)
}

fn say(client: &mut BufReader<TcpStream>, request: &str) -> String {
    client.get_mut().write_all(format!("{request}\n").as_bytes()).unwrap();
    let mut reply = String::new();
    client.read_line(&mut reply).unwrap();
    reply.trim_end().to_owned()
}

#[test]
fn what_clients_set_other_commands_read_and_sigterm_closes() {
    let sh = Shell::new();
    let (mut child, address, mut said) = serving(&sh, "");
    let mut client = client(&address);
    assert_eq!(say(&mut client, "SET apple red"), "+OK");
    assert_eq!(sh.ok("get db apple"), "red\n", "while it serves");
    assert!(sh.fails("put db pear green", 1).contains("busy"));
    kill_process(Pid::from_child(&child), Signal::TERM).unwrap();
    assert_eq!(child.wait().unwrap().code(), Some(0));
    let mut rest = String::new();
    said.read_to_string(&mut rest).unwrap();
    assert!(rest.contains("the database is closed"), "{rest}");
    assert_eq!(sh.ok("get db apple"), "red\n");
}

#[test]
fn a_client_ends_the_server_and_mistakes_are_told() {
    let sh = Shell::new();
    let (mut child, address, _said) =
        serving(&sh, "--requirepass secret --rename-command FLUSHALL gone");
    let mut one = client(&address);
    assert!(say(&mut one, "GET a").starts_with("-NOAUTH"));
    assert_eq!(say(&mut one, "AUTH secret"), "+OK");
    assert!(say(&mut one, "FLUSHALL").starts_with("-ERR unknown command"));
    assert_eq!(say(&mut one, "gone"), "+OK");
    let port = address.rsplit(':').next().unwrap();
    let text = sh.fails(&format!("serve other --port {port}"), 1);
    assert!(text.contains("cannot listen") && text.contains("--port"), "{text}");
    writeln!(one.get_mut(), "SHUTDOWN").unwrap();
    assert_eq!(child.wait().unwrap().code(), Some(0));
    assert!(sh.fails("serve db --bind 0.0.0.0", 2).contains("--requirepass"));
    assert!(sh.fails("serve db --rename-command NOTHING x", 1).contains("NOTHING"));
    assert!(sh.fails("serve db --daemonize yes", 2).contains("daemonize"));
}

#[test]
fn the_dashboard_has_the_servers_metrics_and_the_log_is_json() {
    let sh = Shell::new();
    let flags = "--dashboard 127.0.0.1:0 --dir . --log-format json --logfile log.json";
    let mut child = sh.spawn(&format!("serve db --port 0 {flags}"));
    // The log has both addresses.
    let found = |key: &str| loop {
        let text = std::fs::read_to_string(sh.path("log.json")).unwrap_or_default();
        let line = text.lines().find(|line| line.contains(key) && line.ends_with('}'));
        if let Some(line) = line {
            let value: serde_json::Value = serde_json::from_str(line).unwrap();
            return value[key].as_str().unwrap().to_owned();
        }
        std::thread::sleep(Duration::from_millis(5));
    };
    let (address, page) = (found("address"), found("page"));
    assert_eq!(say(&mut client(&address), "SET apple red"), "+OK");
    let host = page.strip_prefix("http://").unwrap().trim_end_matches('/').to_owned();
    let mut stream = TcpStream::connect(&host).unwrap();
    write!(stream, "GET /metrics HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\n\r\n").unwrap();
    let mut text = String::new();
    stream.read_to_string(&mut text).unwrap();
    for line in [
        "windrow_server_connections_total 1",
        "windrow_write_operations_total 1",
        "command=\"set\"} 1",
    ] {
        assert!(text.contains(line), "{line}: {text}");
    }
    kill_process(Pid::from_child(&child), Signal::TERM).unwrap();
    assert_eq!(child.wait().unwrap().code(), Some(0));
    assert!(
        std::fs::read_to_string(sh.path("log.json")).unwrap().contains("the database is closed")
    );
    assert!(sh.fails("serve db --dashboard 0.0.0.0:0", 1).contains("password"));
}

#[test]
fn connections_leave_the_engine_its_descriptors() {
    let sh = Shell::new();
    let program = sh.command(["serve"]).get_program().to_owned();
    // The limit cannot be raised: the hard limit is as low.
    let script = "ulimit -n 256 && exec \"$0\" serve db --port 0 --option memory_bytes=16MiB";
    let mut shell = std::process::Command::new("sh");
    shell.args(["-c", script]).arg(program).current_dir(sh.path("")).stderr(Stdio::piped());
    let (mut child, address, _said) = started(shell.spawn().unwrap());
    let mut first = client(&address);
    let mut others: Vec<_> = (0..300).map(|_| client(&address)).collect();
    let value = "x".repeat(50_000);
    // Enough for many tables.
    for key in 0..400 {
        assert_eq!(say(&mut first, &format!("SET key{key} {value}")), "+OK");
    }
    let mut refused = 0;
    for other in &mut others {
        let mut reply = String::new();
        // A client that was refused may be closed before it asks.
        let asked = writeln!(other.get_mut(), "STRLEN key300").is_ok();
        if !asked || other.read_line(&mut reply).is_err() || reply != ":50000\r\n" {
            refused += 1;
            assert!(reply.is_empty() || reply.contains("max number of clients"), "{reply}");
        }
    }
    assert!(refused > 200, "{refused} of 300 were refused");
    kill_process(Pid::from_child(&child), Signal::TERM).unwrap();
    assert_eq!(child.wait().unwrap().code(), Some(0));
    assert_eq!(sh.ok("count db"), "400\n");
}

/// Kills a server under fifty clients that send sixteen writes at once; all acknowledged writes
/// survive.
fn kill_under_clients(round: usize) {
    let sh = Shell::new();
    let (mut child, address, said) = serving(&sh, "--sync always");
    let is_killed = AtomicBool::new(false);
    let acknowledged: Vec<String> = std::thread::scope(|scope| {
        let clients: Vec<_> = (0..50)
            .map(|number| {
                let (address, is_killed) = (&address, &is_killed);
                scope.spawn(move || pipeline(&mut client(address), number, is_killed))
            })
            .collect();
        std::thread::sleep(Duration::from_millis(150 + 37 * (round as u64 % 13)));
        is_killed.store(true, Ordering::SeqCst);
        kill_process(Pid::from_child(&child), Signal::KILL).unwrap();
        clients.into_iter().flat_map(|client| client.join().unwrap()).collect()
    });
    child.wait().unwrap();
    drop(said);
    let output = sh.run("scan db --keys-only");
    // A kill between two writers leaves a slot of the log empty. Whole batches behind it were promised to
    // nobody: they are left out and reported, in these words and with this code, and in no other case.
    let left_out = stderr(&output).contains("never synced, left out");
    assert_eq!(output.status.code(), Some(if left_out { 3 } else { 0 }), "{}", stderr(&output));
    let text = String::from_utf8(output.stdout).unwrap();
    let there: HashSet<&str> = text.lines().collect();
    assert!(!acknowledged.is_empty(), "round {round}");
    let lost = acknowledged.iter().filter(|key| !there.contains(key.as_str())).count();
    assert_eq!(lost, 0, "of {} acknowledged writes, round {round}", acknowledged.len());
}

/// Writes until the server is gone; returns the keys that it acknowledged.
fn pipeline(
    client: &mut BufReader<TcpStream>,
    number: usize,
    is_killed: &AtomicBool,
) -> Vec<String> {
    let mut acknowledged = Vec::new();
    for part in 0.. {
        let keys: Vec<String> = (0..16).map(|n| format!("c{number}-{part}-{n}")).collect();
        let requests: String = keys.iter().map(|key| format!("SET {key} {key}\r\n")).collect();
        if client.get_mut().write_all(requests.as_bytes()).is_err() {
            break;
        }
        for key in keys {
            let mut reply = String::new();
            match client.read_line(&mut reply) {
                Ok(_) if reply == "+OK\r\n" => acknowledged.push(key),
                ended => {
                    assert!(is_killed.load(Ordering::SeqCst), "{ended:?}: {reply}");
                    return acknowledged;
                }
            }
        }
    }
    acknowledged
}

#[test]
fn a_kill_under_fifty_clients_loses_nothing_that_was_acknowledged() {
    (0..3).for_each(kill_under_clients);
}

/// The campaign: `cargo test --release -p windrow-cli --test it -- --ignored fifty_kills`.
#[test]
#[ignore = "it takes a minute"]
fn fifty_kills_under_fifty_clients_lose_nothing_that_was_acknowledged() {
    (0..50).for_each(kill_under_clients);
}
