//! A loss of power under the server, on a simulated device: the promises of `--sync`.

use crate::client::{Client, ok};
use std::path::Path;
use std::sync::Arc;
use std::thread;
use std::time::Duration;
use windrow::{Db, Options};
use windrow_env::Env;
use windrow_env::testing::CrashFs;
use windrow_server::{Config, Durability, Server};

const DIR: &str = "/db";

fn open(fs: &CrashFs) -> Db {
    let mut options = Options::default();
    options.components.env = Some(Env { fs: Arc::new(fs.clone()), ..Env::os(2) });
    Db::open_with(Path::new(DIR), options).unwrap()
}

fn serve(fs: &CrashFs, durability: Durability) -> (Db, Server, Client) {
    let db = open(fs);
    let config = Config { port: 0, durability, ..Config::default() };
    let server = Server::start(db.clone(), config).unwrap();
    let client = Client::new(server.addresses()[0]);
    (db, server, client)
}

/// Loses power while the server runs, and opens the database from the files that are left.
fn lose_power(fs: &CrashFs, seed: u64, running: (Db, Server, Client)) -> Db {
    fs.crash(seed);
    // Its files are gone while it runs: it ends, and none of its writes reaches the device.
    drop(running);
    open(fs)
}

#[test]
fn with_always_all_that_was_acknowledged_is_there() {
    for seed in 1..=20 {
        let fs = CrashFs::new(seed);
        let mut running = serve(&fs, Durability::Always);
        let requests: Vec<_> = (0..seed * 7)
            .map(|n| vec!["SET".to_owned(), format!("key{n}"), n.to_string()])
            .collect();
        for part in requests.chunks(5) {
            assert!(running.2.call_all(part).iter().all(|reply| *reply == ok()));
        }
        assert_eq!(running.2.say("HSET h a 1").to_owned(), crate::client::ModelReply::Int(1));
        let db = lose_power(&fs, seed, running);
        for args in &requests {
            assert_eq!(
                db.get(&args[1]).unwrap().as_deref(),
                Some(args[2].as_bytes()),
                "seed {seed}"
            );
        }
        let heads = db.open_keyspace("redis.keys").unwrap().unwrap();
        assert!(heads.contains_key("h").unwrap(), "seed {seed}");
    }
}

#[test]
fn with_everysec_what_is_older_than_a_sync_is_there() {
    let fs = CrashFs::new(1);
    let mut running = serve(&fs, Durability::EverySecond);
    // A sync that is under way may have begun before the write; the next one has not.
    for key in ["first", "second"] {
        let before = fs.syncs();
        assert_eq!(running.2.say(&format!("SET {key} x")), ok());
        while fs.syncs() == before {
            thread::sleep(Duration::from_millis(10));
        }
    }
    assert_eq!(running.2.say("SET third x"), ok());
    let db = lose_power(&fs, 7, running);
    assert!(db.contains_key("first").unwrap());
}
