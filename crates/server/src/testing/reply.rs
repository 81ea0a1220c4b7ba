//! Replies as clients see them, and requests as they send them.
//!
//! Owns: a second reader of replies in RESP2. Never does: use the server's
//! writer.

use std::io::BufRead;

/// A reply.
#[derive(Clone, Debug, PartialEq)]
pub enum ModelReply {
    /// A word or a line.
    Simple(String),
    /// An error.
    Error(String),
    /// An integer.
    Int(i64),
    /// A byte string.
    Bulk(Vec<u8>),
    /// Nothing.
    Null,
    /// An array.
    Array(Vec<ModelReply>),
}

/// Makes a byte string.
pub fn bulk(text: impl AsRef<[u8]>) -> ModelReply {
    ModelReply::Bulk(text.as_ref().to_vec())
}

/// Makes an array of byte strings.
pub fn bulks<T: AsRef<[u8]>>(texts: impl IntoIterator<Item = T>) -> ModelReply {
    ModelReply::Array(texts.into_iter().map(bulk).collect())
}

/// Returns the reply of most commands that write.
pub fn ok() -> ModelReply {
    ModelReply::Simple("OK".to_owned())
}

impl ModelReply {
    /// Returns the text of an error.
    ///
    /// # Panics
    /// On any other reply.
    pub fn error(&self) -> &str {
        match self {
            ModelReply::Error(text) => text,
            other => panic!("no error: {other:?}"),
        }
    }
}

/// Returns a request as bytes.
pub fn encoded(args: &[impl AsRef<[u8]>]) -> Vec<u8> {
    let mut request = format!("*{}\r\n", args.len()).into_bytes();
    for arg in args {
        request.extend_from_slice(format!("${}\r\n", arg.as_ref().len()).as_bytes());
        request.extend_from_slice(arg.as_ref());
        request.extend_from_slice(b"\r\n");
    }
    request
}

impl ModelReply {
    /// Reads a reply in RESP2.
    ///
    /// # Errors
    /// The reader's, and `UnexpectedEof` where there is none.
    ///
    /// # Panics
    /// If the bytes are no reply.
    pub fn read(from: &mut impl BufRead) -> std::io::Result<ModelReply> {
        let mut line = Vec::new();
        if from.read_until(b'\n', &mut line)? == 0 {
            return Err(std::io::ErrorKind::UnexpectedEof.into());
        }
        let text = line.strip_suffix(b"\r\n").expect("a line ends in CR LF");
        let (mark, text) = (text[0], String::from_utf8_lossy(&text[1..]).into_owned());
        let number = || text.parse::<i64>().expect("a number");
        Ok(match mark {
            b'+' => ModelReply::Simple(text),
            b'-' => ModelReply::Error(text),
            b':' => ModelReply::Int(number()),
            b'$' | b'*' if number() < 0 => ModelReply::Null,
            b'$' => {
                let mut bytes = vec![0; number() as usize + 2];
                from.read_exact(&mut bytes)?;
                assert!(bytes.ends_with(b"\r\n"), "a byte string ends in CR LF");
                bytes.truncate(bytes.len() - 2);
                ModelReply::Bulk(bytes)
            }
            b'*' => ModelReply::Array(
                (0..number()).map(|_| ModelReply::read(from)).collect::<Result<_, _>>()?,
            ),
            other => panic!("no reply begins with {:?}", char::from(other)),
        })
    }
}
