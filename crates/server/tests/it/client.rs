//! A client that sends what a test says, and reads one reply at a time.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::path::Path;
use std::time::Duration;
use windrow::Db;
use windrow_server::{Config, Server};

/// A reply.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Reply {
    Simple(String),
    Error(String),
    Int(i64),
    Bulk(Vec<u8>),
    Null,
    Array(Vec<Reply>),
}

/// A byte string.
pub(crate) fn bulk(text: impl AsRef<[u8]>) -> Reply {
    Reply::Bulk(text.as_ref().to_vec())
}

/// An array of byte strings.
pub(crate) fn bulks<T: AsRef<[u8]>>(texts: impl IntoIterator<Item = T>) -> Reply {
    Reply::Array(texts.into_iter().map(bulk).collect())
}

pub(crate) fn ok() -> Reply {
    Reply::Simple("OK".to_owned())
}

impl Reply {
    /// The text of an error; of anything else none.
    pub(crate) fn error(&self) -> &str {
        match self {
            Reply::Error(text) => text,
            other => panic!("no error: {other:?}"),
        }
    }
}

/// A request as bytes.
pub(crate) fn encoded(args: &[impl AsRef<[u8]>]) -> Vec<u8> {
    let mut request = format!("*{}\r\n", args.len()).into_bytes();
    for arg in args {
        request.extend_from_slice(format!("${}\r\n", arg.as_ref().len()).as_bytes());
        request.extend_from_slice(arg.as_ref());
        request.extend_from_slice(b"\r\n");
    }
    request
}

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

    /// Requests that arrive together, and their replies.
    pub(crate) fn call_all<A: AsRef<[u8]>>(&mut self, requests: &[Vec<A>]) -> Vec<Reply> {
        let bytes: Vec<u8> = requests.iter().flat_map(|args| encoded(args)).collect();
        self.send_raw(&bytes).unwrap();
        requests.iter().map(|_| self.read().unwrap()).collect()
    }

    /// A request of words without blanks, and its reply.
    pub(crate) fn say(&mut self, request: &str) -> Reply {
        self.call(&request.split_whitespace().collect::<Vec<_>>())
    }

    pub(crate) fn call(&mut self, args: &[impl AsRef<[u8]>]) -> Reply {
        self.send(args);
        self.read().unwrap()
    }

    /// The next reply; `None` where the server has ended the connection.
    pub(crate) fn try_read(&mut self) -> Option<Reply> {
        self.read().ok()
    }

    pub(crate) fn read(&mut self) -> std::io::Result<Reply> {
        let mut line = String::new();
        if self.0.read_line(&mut line)? == 0 {
            return Err(std::io::ErrorKind::UnexpectedEof.into());
        }
        let text = line[1..].trim_end().to_owned();
        let number = || text.parse::<i64>().unwrap();
        Ok(match line.as_bytes()[0] {
            b'+' => Reply::Simple(text),
            b'-' => Reply::Error(text),
            b':' => Reply::Int(number()),
            b'$' | b'*' if number() < 0 => Reply::Null,
            b'$' => {
                let mut bytes = vec![0; number() as usize + 2];
                self.0.read_exact(&mut bytes)?;
                bytes.truncate(bytes.len() - 2);
                Reply::Bulk(bytes)
            }
            b'*' => Reply::Array((0..number()).map(|_| self.read()).collect::<Result<_, _>>()?),
            other => panic!("no reply begins with {:?}", char::from(other)),
        })
    }
}

/// A server at a free port, with its database in `dir`.
pub(crate) fn serve(dir: &Path, config: Config) -> (Db, Server) {
    let db = Db::open(dir).unwrap();
    let server = Server::start(db.clone(), Config { port: 0, ..config }).unwrap();
    (db, server)
}
