//! Sessions without sockets: any bytes, and any commands against the model.
//!
//! Owns: a server for each check. Never does: open a socket.

use super::model::{Bytes, Choices, Model, request, run};
use super::reply::{self, encoded};
use crate::commands::table::Table;
use crate::config::Config;
use crate::protocol::{Dialect, Limits, Reply, RequestParser};
use crate::server_parts::ServerParts;
use crate::session::dispatch::{Session, SessionServer};
use crate::session::execute::CommandGroup;
use std::collections::HashMap;
use std::net::{Ipv4Addr, SocketAddr};
use std::sync::{Arc, OnceLock};
use windrow::Db;

/// Commands that affect more than the database, or that only wait.
const AWAY: [&str; 4] = ["shutdown", "debug", "windrow.checkpoint", "windrow.compact"];

/// A server and its database.
type Served = OnceLock<(tempfile::TempDir, Arc<SessionServer>)>;

/// Each check has one server for all its inputs: a database for each would cost more than the
/// check.
static OF_COMMANDS: Served = OnceLock::new();
static OF_SESSIONS: Served = OnceLock::new();

fn server(served: &'static Served) -> Arc<SessionServer> {
    let (_, server) = served.get_or_init(|| {
        let dir = tempfile::tempdir().expect("a directory");
        let db = Db::open(dir.path()).expect("a database");
        let renamed: HashMap<_, _> =
            AWAY.map(|name| (name.to_owned(), String::new())).into_iter().collect();
        let config = Config { reply_bytes_max: 1 << 20, ..Config::default() };
        let shared = ServerParts::new(db, config, Vec::new(), Table::names()).expect("keyspaces");
        (dir, Arc::new(SessionServer { shared, table: Table::new(&renamed).expect("commands") }))
    });
    Arc::clone(server)
}

/// A client whose requests arrive all at once.
struct TestClient {
    session: Session,
    parser: RequestParser,
}

impl TestClient {
    fn new(server: &Arc<SessionServer>) -> TestClient {
        let address = SocketAddr::from((Ipv4Addr::LOCALHOST, 0));
        let peer = server.shared.clients.add(address, address);
        let (session, _) = Session::new(Arc::clone(server), peer);
        TestClient { session, parser: RequestParser::default() }
    }

    /// Runs complete requests, up to one that waits; returns their replies and their number.
    fn say(&mut self, input: &[u8]) -> (Vec<u8>, usize) {
        let server = Arc::clone(&self.session.server);
        let mut group = CommandGroup::new(&server.shared, &server.table);
        let mut out = Reply::new(Dialect::Resp2);
        let (mut done, mut count) = (0, 0);
        let limits = Limits { args_max: 1 << 20, arg_bytes_max: 1 << 20, is_stranger: false };
        'all: loop {
            let arrived = self.parser.advance_all(&input[done..], limits, 4);
            let args = arrived.args(&input[done..]);
            group.look_ahead(arrived.requests(&args).map(|(args, _)| args));
            let begin = done;
            for (args, end) in arrived.requests(&args) {
                if !args.is_empty() {
                    self.session.run(args, &mut out, &mut group);
                    count += 1;
                }
                done = begin + end;
                if self.session.client.is_leaving || self.session.client.blocked.is_some() {
                    break 'all;
                }
            }
            if arrived.is_all || arrived.wrong.is_some() {
                break;
            }
        }
        self.parser.reset();
        self.session.write(&mut group, &mut out);
        (out.bytes().to_vec(), count)
    }
}

impl Drop for TestClient {
    fn drop(&mut self) {
        let id = self.session.client.peer.id;
        self.session.server.shared.clients.remove(id);
    }
}

/// Runs any bytes as requests: replies are well-formed for any of them.
///
/// # Panics
/// If they are not.
pub fn check_commands(input: &[u8]) {
    let server = server(&OF_COMMANDS);
    let mut client = TestClient::new(&server);
    let (replies, _) = client.say(input);
    // RESP3 has kinds of replies that this reader does not know.
    if input.windows(5).any(|word| word.eq_ignore_ascii_case(b"hello")) {
        return;
    }
    let mut replies = &replies[..];
    while !replies.is_empty() {
        let _ = reply::ModelReply::read(&mut replies).expect("a whole reply");
    }
}

/// Runs a session that the bytes choose, against the model: every reply is the model's.
///
/// # Panics
/// If one is not.
pub fn check_session(input: &[u8]) {
    let (server, mut model) = (server(&OF_SESSIONS), Model::new());
    let mut client = TestClient::new(&server);
    client.say(b"FLUSHALL\r\n");
    let mut choices = Bytes(input);
    while !choices.is_over() {
        let count = match choices.below(4) {
            0 => choices.below(8) + 1,
            _ => 1,
        };
        let requests: Vec<_> = (0..count).map(|_| request(&mut choices)).collect();
        let bytes: Vec<u8> = requests.iter().flat_map(|args| encoded(args)).collect();
        let (replies, said) = client.say(&bytes);
        assert_eq!(said, requests.len(), "{requests:?}");
        let mut replies = &replies[..];
        for args in &requests {
            let expected = run(&mut model, args);
            assert_eq!(
                reply::ModelReply::read(&mut replies).expect("a reply"),
                expected,
                "{args:?}"
            );
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::model::Rng;
    use super::*;

    #[test]
    fn sessions_that_chance_chooses_are_the_models() {
        for seed in 1..=40_u64 {
            let mut rng = Rng(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15));
            let input: Vec<u8> = (0..2000).map(|_| rng.below(256) as u8).collect();
            check_session(&input);
        }
    }

    #[test]
    fn words_that_chance_puts_together_are_answered() {
        const WORDS: &[&str] = &[
            "k",
            "l",
            "m",
            "0",
            "1",
            "-1",
            "(1",
            "5-1",
            "*",
            ">",
            "$",
            "-",
            "+",
            "a",
            "inf",
            "GROUP",
            "g",
            "c",
            "STREAMS",
            "COUNT",
            "MAXLEN",
            "~",
            "LIMIT",
            "CREATE",
            "MKSTREAM",
            "BLOCK",
            "WITHSCORES",
            "LEFT",
            "EX",
            "BYSCORE",
            "FULL",
            "JUSTID",
            "FORCE",
            "",
            "NX",
            "GET",
            "STORE",
            "BY",
            "nosort",
        ];
        let names: Vec<_> = Table::names().collect();
        let mut rng = Rng(7);
        for _ in 0..300 {
            let mut input = Vec::new();
            for _ in 0..20 {
                let name = names[rng.below(names.len() as u64) as usize];
                let args = (0..rng.below(8)).map(|_| WORDS[rng.below(WORDS.len() as u64) as usize]);
                let args: Vec<&str> = std::iter::once(name).chain(args).collect();
                if !args.iter().any(|arg| arg.eq_ignore_ascii_case("hello")) {
                    input.extend(encoded(&args));
                }
            }
            check_commands(&input);
        }
    }
}
