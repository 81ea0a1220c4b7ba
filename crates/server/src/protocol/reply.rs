//! Replies, written one after the other into one buffer.
//!
//! Owns: the form of each kind of reply in RESP2 and RESP3. Never does: send.

use super::number::{print_f64, push_i64};

/// The version of the protocol that a client speaks.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Dialect {
    /// The dialect of every client until it asks for the other.
    #[default]
    Resp2,
    /// The dialect with maps, sets, numbers, truth values and messages out of turn.
    Resp3,
}

/// Replies that have not been sent.
#[derive(Debug, Default)]
pub(crate) struct Reply {
    bytes: Vec<u8>,
    pub(crate) dialect: Dialect,
}

impl Reply {
    /// Makes an empty buffer in a client's dialect.
    pub(crate) fn new(dialect: Dialect) -> Reply {
        Reply { bytes: Vec::new(), dialect }
    }

    /// Returns all that has been written.
    pub(crate) fn bytes(&self) -> &[u8] {
        &self.bytes
    }

    pub(crate) fn len(&self) -> usize {
        self.bytes.len()
    }

    /// Removes the bytes after the first `len`.
    pub(crate) fn truncate(&mut self, len: usize) {
        self.bytes.truncate(len);
    }

    /// Returns the number of bytes that there is room for.
    pub(crate) fn capacity(&self) -> usize {
        self.bytes.capacity()
    }

    /// Forgets the sent bytes. Room for a large reply is not kept for ever: each reply that needs
    /// less than a quarter of the room halves it.
    pub(crate) fn clear(&mut self) {
        let (used, room) = (self.bytes.len(), self.bytes.capacity());
        self.bytes.clear();
        if used < room / 4 || room > 64 << 10 {
            self.bytes.shrink_to((room / 2).clamp(1 << 10, 64 << 10));
        }
    }

    fn head(&mut self, mark: u8, number: i64) {
        self.bytes.push(mark);
        push_i64(&mut self.bytes, number);
        self.bytes.extend_from_slice(b"\r\n");
    }

    fn line(&mut self, mark: u8, text: &[u8]) {
        self.bytes.push(mark);
        // An end of line within it would begin another reply.
        self.bytes.extend(text.iter().map(|byte| match byte {
            b'\r' | b'\n' => b' ',
            other => *other,
        }));
        self.bytes.extend_from_slice(b"\r\n");
    }

    /// Writes `+OK` and its like.
    pub(crate) fn simple(&mut self, text: &str) {
        self.line(b'+', text.as_bytes());
    }

    pub(crate) fn ok(&mut self) {
        self.bytes.extend_from_slice(b"+OK\r\n");
    }

    /// Writes an error: its first word names its kind.
    pub(crate) fn error(&mut self, text: &str) {
        self.line(b'-', text.as_bytes());
    }

    pub(crate) fn int(&mut self, number: i64) {
        self.head(b':', number);
    }

    /// Writes a count.
    pub(crate) fn count(&mut self, number: usize) {
        self.int(i64::try_from(number).unwrap_or(i64::MAX));
    }

    /// Writes 1 or 0.
    pub(crate) fn one_if(&mut self, is_true: bool) {
        self.int(i64::from(is_true));
    }

    /// Writes a byte string.
    pub(crate) fn bulk(&mut self, bytes: &[u8]) {
        self.head(b'$', i64::try_from(bytes.len()).unwrap_or(i64::MAX));
        self.bytes.extend_from_slice(bytes);
        self.bytes.extend_from_slice(b"\r\n");
    }

    /// Writes a null in the place of a byte string.
    pub(crate) fn null(&mut self) {
        match self.dialect {
            Dialect::Resp2 => self.bytes.extend_from_slice(b"$-1\r\n"),
            Dialect::Resp3 => self.bytes.extend_from_slice(b"_\r\n"),
        }
    }

    /// Writes a null in the place of an array.
    pub(crate) fn null_array(&mut self) {
        match self.dialect {
            Dialect::Resp2 => self.bytes.extend_from_slice(b"*-1\r\n"),
            Dialect::Resp3 => self.bytes.extend_from_slice(b"_\r\n"),
        }
    }

    /// Writes a byte string, or a null.
    pub(crate) fn bulk_or_null(&mut self, bytes: Option<&[u8]>) {
        match bytes {
            Some(bytes) => self.bulk(bytes),
            None => self.null(),
        }
    }

    /// Writes the head of an array; its elements follow.
    pub(crate) fn array(&mut self, len: usize) {
        self.head(b'*', i64::try_from(len).unwrap_or(i64::MAX));
    }

    /// Writes the head of a map of `pairs` keys and values; in RESP2 of an array of both.
    pub(crate) fn map(&mut self, pairs: usize) {
        match self.dialect {
            Dialect::Resp2 => self.array(2 * pairs),
            Dialect::Resp3 => self.head(b'%', i64::try_from(pairs).unwrap_or(i64::MAX)),
        }
    }

    /// Writes the head of a set, in RESP2 of an array.
    pub(crate) fn set(&mut self, len: usize) {
        match self.dialect {
            Dialect::Resp2 => self.array(len),
            Dialect::Resp3 => self.head(b'~', i64::try_from(len).unwrap_or(i64::MAX)),
        }
    }

    /// Writes the head of a message out of turn, in RESP2 of an array.
    pub(crate) fn push(&mut self, len: usize) {
        match self.dialect {
            Dialect::Resp2 => self.array(len),
            Dialect::Resp3 => self.head(b'>', i64::try_from(len).unwrap_or(i64::MAX)),
        }
    }

    /// Writes a floating-point number, in RESP2 as a byte string.
    pub(crate) fn double(&mut self, number: f64) {
        let text = print_f64(number);
        match self.dialect {
            Dialect::Resp2 => self.bulk(text.as_bytes()),
            Dialect::Resp3 => self.line(b',', text.as_bytes()),
        }
    }

    /// Writes text for people, in RESP2 as a byte string.
    pub(crate) fn verbatim(&mut self, text: &str) {
        match self.dialect {
            Dialect::Resp2 => self.bulk(text.as_bytes()),
            Dialect::Resp3 => {
                self.head(b'=', i64::try_from(text.len() + 4).unwrap_or(i64::MAX));
                self.bytes.extend_from_slice(b"txt:");
                self.bytes.extend_from_slice(text.as_bytes());
                self.bytes.extend_from_slice(b"\r\n");
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn written(dialect: Dialect, write: impl Fn(&mut Reply)) -> String {
        let mut reply = Reply::new(dialect);
        write(&mut reply);
        String::from_utf8(reply.bytes().to_vec()).unwrap()
    }

    #[test]
    fn each_kind_of_reply_in_both_dialects() {
        let all = |reply: &mut Reply| {
            reply.null();
            reply.map(1);
            reply.bulk(b"a");
            reply.double(1.5);
            reply.set(1);
            reply.int(-3);
            reply.push(1);
            reply.verbatim("hi");
            reply.null_array();
        };
        assert_eq!(
            written(Dialect::Resp2, all),
            "$-1\r\n*2\r\n$1\r\na\r\n$3\r\n1.5\r\n*1\r\n:-3\r\n*1\r\n$2\r\nhi\r\n*-1\r\n"
        );
        assert_eq!(
            written(Dialect::Resp3, all),
            "_\r\n%1\r\n$1\r\na\r\n,1.5\r\n~1\r\n:-3\r\n>1\r\n=6\r\ntxt:hi\r\n_\r\n"
        );
    }

    #[test]
    fn an_error_is_one_line_whatever_is_in_it() {
        let error = |reply: &mut Reply| reply.error("ERR unknown command 'a\r\n+OK'");
        assert_eq!(written(Dialect::Resp2, error), "-ERR unknown command 'a  +OK'\r\n");
    }
}
