//! A client that sends a test's requests, and reads one reply at a time.

use std::io::{BufReader, Write};
use std::net::{SocketAddr, TcpStream};
use std::path::Path;
use std::time::Duration;
use windrow::Db;
pub(crate) use windrow_server::testing::reply::{ModelReply, bulk, bulks, encoded, ok};
use windrow_server::{Config, Server};

/// A connection.
pub(crate) struct Client(BufReader<TcpStream>);

impl Client {
    pub(crate) fn new(address: SocketAddr) -> Client {
        let stream = TcpStream::connect(address).unwrap();
        stream.set_read_timeout(Some(Duration::from_secs(20))).unwrap();
        stream.set_nodelay(true).unwrap();
        Client(BufReader::new(stream))
    }

    pub(crate) fn send_raw(&mut self, bytes: &[u8]) -> std::io::Result<()> {
        self.0.get_mut().write_all(bytes)
    }

    pub(crate) fn send(&mut self, args: &[impl AsRef<[u8]>]) {
        self.send_raw(&encoded(args)).unwrap();
    }

    /// Sends requests that arrive together; returns their replies.
    pub(crate) fn call_all<A: AsRef<[u8]>>(&mut self, requests: &[Vec<A>]) -> Vec<ModelReply> {
        let bytes: Vec<u8> = requests.iter().flat_map(|args| encoded(args)).collect();
        self.send_raw(&bytes).unwrap();
        requests.iter().map(|_| self.read().unwrap()).collect()
    }

    /// Sends a request of words without blanks; returns its reply.
    pub(crate) fn say(&mut self, request: &str) -> ModelReply {
        self.call(&request.split_whitespace().collect::<Vec<_>>())
    }

    pub(crate) fn call(&mut self, args: &[impl AsRef<[u8]>]) -> ModelReply {
        self.send(args);
        self.read().unwrap()
    }

    /// Reads the next reply; `None` if the server has ended the connection.
    pub(crate) fn try_read(&mut self) -> Option<ModelReply> {
        self.read().ok()
    }

    pub(crate) fn read(&mut self) -> std::io::Result<ModelReply> {
        ModelReply::read(&mut self.0)
    }
}

/// Starts a server at a free port, with its database in `dir`.
pub(crate) fn serve(dir: &Path, config: Config) -> (Db, Server) {
    let db = Db::open(dir).unwrap();
    let server = Server::start(db.clone(), Config { port: 0, ..config }).unwrap();
    (db, server)
}
