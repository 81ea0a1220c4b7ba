//! Serves a database to mirrors, or keeps a mirror:
//!
//! ```text
//! cargo run -- serve DB 0.0.0.0:7070
//! cargo run -- follow HOST:7070 MIRROR-DB
//! ```
//!
//! `README.md` says what it does and what was tried. The connection is neither encrypted nor
//! authenticated: have it go through a tunnel (`ssh -L 7070:localhost:7070 host`).

use std::net::TcpListener;
use std::path::{Path, PathBuf};
use windrow_mirror::source::Source;
use windrow_mirror::{Failure, mirror, source};

fn main() -> Result<(), Failure> {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let args: Vec<&str> = args.iter().map(String::as_str).collect();
    match args[..] {
        ["serve", db, address] => {
            let listener = TcpListener::bind(address)?;
            println!("serving {db} at {}", listener.local_addr()?);
            let room = PathBuf::from(format!("{db}.copies"));
            source::serve(&Source::Elsewhere(db.into()), &listener, &room)
        }
        ["follow", address, db] => mirror::follow(address, Path::new(db)),
        _ => Err("serve DB ADDRESS | follow ADDRESS MIRROR-DB".into()),
    }
}
