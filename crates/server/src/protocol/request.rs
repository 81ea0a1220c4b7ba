//! Requests out of a stream of bytes, however it is cut.
//!
//! Owns: the grammar of arrays of byte strings and its limits. Never does: allocate for a length
//! that was declared and has not arrived; read a socket.

use super::inline;
use super::number::parse_i64;
use std::ops::Range;

/// The longest line: of an inline request, and of a length.
const LINE_BYTES_MAX: usize = 64 << 10;
/// Limits of a client that has not authenticated.
const STRANGER_ARGS_MAX: i64 = 10;
const STRANGER_ARG_BYTES_MAX: i64 = 16 << 10;

/// The limits of a request.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Limits {
    /// Arguments, the command among them.
    pub(crate) args_max: i64,
    /// Bytes of one argument.
    pub(crate) arg_bytes_max: i64,
    /// Whether the client must authenticate, and has not.
    pub(crate) is_stranger: bool,
}

/// A fault of a request: nothing after it can be understood, so the connection ends.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct ProtocolError(pub(crate) String);

fn wrong<T>(what: impl Into<String>) -> Result<T, ProtocolError> {
    Err(ProtocolError(what.into()))
}

/// The progress of a request.
#[derive(Debug, PartialEq, Eq)]
enum Parsed {
    /// More bytes are needed.
    More,
    /// It is complete, in this number of bytes.
    Whole(usize),
}

/// Requests that are complete.
#[derive(Debug, Default)]
pub(crate) struct Arrived {
    /// The places of all arguments, from the first request's first byte.
    ranges: Vec<Range<usize>>,
    /// For each request, the number of arguments and of bytes up to its end.
    ends: Vec<(usize, usize)>,
    /// The words of the last request, if it is an inline one that has any.
    words: Vec<Vec<u8>>,
    /// Whether more bytes are needed for another one.
    pub(crate) is_all: bool,
    /// The fault of the one after them.
    pub(crate) wrong: Option<ProtocolError>,
}

impl Arrived {
    /// Returns the arguments of all requests, whose bytes are `bytes`.
    pub(crate) fn args<'a>(&'a self, bytes: &'a [u8]) -> Vec<&'a [u8]> {
        let ranges = self.ranges.iter().map(|range| &bytes[range.clone()]);
        ranges.chain(self.words.iter().map(Vec::as_slice)).collect()
    }

    /// Returns each request's part of these arguments, and the number of bytes up to its end.
    pub(crate) fn requests<'a, 'b: 'a>(
        &'a self,
        args: &'a [&'b [u8]],
    ) -> impl Iterator<Item = (&'a [&'b [u8]], usize)> {
        let mut begin = 0;
        self.ends.iter().enumerate().map(move |(place, (end, bytes))| {
            let is_last = place + 1 == self.ends.len();
            let end = if is_last { args.len() } else { *end };
            let own = &args[begin..end];
            begin = end;
            (own, *bytes)
        })
    }
}

/// Parses one request at a time. It is given the same bytes again, with more behind them, until the
/// request is complete; it does not read any of them twice.
#[derive(Debug, Default)]
pub(crate) struct RequestParser {
    /// The places of the arguments, from the request's first byte.
    ranges: Vec<Range<usize>>,
    /// Words of an inline request: because of quotes they differ from the bytes sent.
    words: Vec<Vec<u8>>,
    is_inline: bool,
    /// The number of arguments still to come; `None` before the request has declared it.
    left: Option<i64>,
    /// The length of the current argument.
    arg_bytes: Option<usize>,
    /// The number of bytes that have been parsed.
    at: usize,
    /// The number of bytes after `at` that have no end of a line.
    searched: usize,
}

impl RequestParser {
    /// Goes on with a request whose bytes so far are `bytes`.
    ///
    /// # Errors
    /// Its fault, in the words of Redis.
    fn advance(&mut self, bytes: &[u8], limits: Limits) -> Result<Parsed, ProtocolError> {
        if self.left.is_none() {
            match bytes.first() {
                None => return Ok(Parsed::More),
                Some(b'*') => {
                    let Some(line) = self.line(bytes, "too big mbulk count string")? else {
                        return Ok(Parsed::More);
                    };
                    self.left = Some(count(&bytes[line], limits)?);
                }
                Some(_) => return self.inline(bytes),
            }
        }
        while self.left.is_some_and(|left| left > 0) {
            if !self.arg(bytes, limits)? {
                return Ok(Parsed::More);
            }
        }
        Ok(Parsed::Whole(self.at))
    }

    /// Parses one argument; returns whether it is complete.
    fn arg(&mut self, bytes: &[u8], limits: Limits) -> Result<bool, ProtocolError> {
        let arg_bytes = match self.arg_bytes {
            Some(arg_bytes) => arg_bytes,
            None => {
                match bytes.get(self.at) {
                    None => return Ok(false),
                    Some(b'$') => {}
                    Some(other) => {
                        let other = char::from(*other);
                        return wrong(format!("expected '$', got '{}'", other.escape_default()));
                    }
                }
                let Some(line) = self.line(bytes, "too big bulk count string")? else {
                    return Ok(false);
                };
                *self.arg_bytes.insert(length(&bytes[line], limits)?)
            }
        };
        let end = self.at + arg_bytes;
        if bytes.len() < end + 2 {
            return Ok(false);
        }
        self.ranges.push(self.at..end);
        self.at = end + 2;
        self.arg_bytes = None;
        self.left = self.left.map(|left| left - 1);
        Ok(true)
    }

    /// Returns the rest of the line that begins with a mark at `at`, without its end; moves behind
    /// it.
    fn line(
        &mut self,
        bytes: &[u8],
        too_long: &str,
    ) -> Result<Option<Range<usize>>, ProtocolError> {
        let from = self.at + self.searched;
        match memchr::memchr(b'\r', &bytes[from..]) {
            Some(found) if from + found + 1 < bytes.len() => {
                let line = self.at + 1..from + found;
                self.at = from + found + 2;
                self.searched = 0;
                Ok(Some(line))
            }
            Some(_) => Ok(None),
            None if bytes.len() - self.at > LINE_BYTES_MAX => wrong(too_long),
            None => {
                self.searched = bytes.len() - self.at;
                Ok(None)
            }
        }
    }

    fn inline(&mut self, bytes: &[u8]) -> Result<Parsed, ProtocolError> {
        let Some(found) = memchr::memchr(b'\n', &bytes[self.searched..]) else {
            self.searched = bytes.len();
            if bytes.len() > LINE_BYTES_MAX {
                return wrong("too big inline request");
            }
            return Ok(Parsed::More);
        };
        let end = self.searched + found;
        if end > LINE_BYTES_MAX {
            return wrong("too big inline request");
        }
        let line = bytes[..end].strip_suffix(b"\r").unwrap_or(&bytes[..end]);
        let Some(words) = inline::words(line) else {
            return wrong("unbalanced quotes in request");
        };
        (self.words, self.is_inline, self.left) = (words, true, Some(0));
        Ok(Parsed::Whole(end + 1))
    }

    /// Parses requests, at most `most`, from `bytes`, and forgets them. One that is incomplete is
    /// gone on with when the bytes from its begin are given again, with more behind them; after
    /// [`RequestParser::reset`] any others.
    pub(crate) fn advance_all(&mut self, bytes: &[u8], limits: Limits, most: usize) -> Arrived {
        // Most arguments have more bytes, with their lengths.
        let mut arrived = Arrived {
            ranges: Vec::with_capacity((bytes.len() / 14 + 1).min(4 * most)),
            ends: Vec::with_capacity((bytes.len() / 24 + 1).min(most)),
            ..Arrived::default()
        };
        let mut begin = 0;
        while arrived.ends.len() < most && arrived.words.is_empty() {
            match self.advance(&bytes[begin..], limits) {
                Ok(Parsed::More) => {
                    arrived.is_all = true;
                    break;
                }
                Ok(Parsed::Whole(len)) => {
                    let ranges = self.ranges.drain(..);
                    arrived.ranges.extend(ranges.map(|arg| begin + arg.start..begin + arg.end));
                    arrived.words = std::mem::take(&mut self.words);
                    begin += len;
                    arrived.ends.push((arrived.ranges.len(), begin));
                    self.reset();
                }
                Err(wrong) => {
                    arrived.wrong = Some(wrong);
                    break;
                }
            }
        }
        arrived
    }

    /// Returns whether a part of a request has been read.
    pub(crate) fn is_begun(&self) -> bool {
        self.left.is_some() || self.searched > 0
    }

    /// Returns the known bytes of the request, up to the current argument.
    pub(crate) fn bytes_expected(&self) -> usize {
        self.at + self.arg_bytes.map_or(0, |bytes| bytes + 2)
    }

    /// Forgets a complete request.
    pub(crate) fn reset(&mut self) {
        self.ranges.clear();
        // Room for a million arguments is not kept for the next request.
        self.ranges.shrink_to(64);
        self.words = Vec::new();
        (self.is_inline, self.left, self.arg_bytes) = (false, None, None);
        (self.at, self.searched) = (0, 0);
    }
}

fn count(line: &[u8], limits: Limits) -> Result<i64, ProtocolError> {
    match parse_i64(line) {
        Some(count) if limits.is_stranger && count > STRANGER_ARGS_MAX => {
            wrong("unauthenticated multibulk length")
        }
        Some(count) if count <= limits.args_max => Ok(count),
        _ => wrong("invalid multibulk length"),
    }
}

fn length(line: &[u8], limits: Limits) -> Result<usize, ProtocolError> {
    match parse_i64(line) {
        Some(bytes) if limits.is_stranger && bytes > STRANGER_ARG_BYTES_MAX => {
            wrong("unauthenticated bulk length")
        }
        Some(bytes) if (0..=limits.arg_bytes_max).contains(&bytes) => {
            usize::try_from(bytes).or_else(|_| wrong("invalid bulk length"))
        }
        _ => wrong("invalid bulk length"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LIMITS: Limits =
        Limits { args_max: 1 << 20, arg_bytes_max: 512 << 20, is_stranger: false };

    /// Returns the requests of a stream that arrives in pieces of `piece` bytes.
    fn requests(stream: &[u8], piece: usize, limits: Limits) -> Result<Vec<Vec<Vec<u8>>>, String> {
        let (mut parser, mut begin, mut received) = (RequestParser::default(), 0, 0);
        let mut found = Vec::new();
        loop {
            let bytes = &stream[begin..received];
            // By ones, by twos and by many.
            let arrived = parser.advance_all(bytes, limits, [1, 2, 100][piece % 3]);
            let args = arrived.args(bytes);
            let mut end = 0;
            for (args, bytes) in arrived.requests(&args) {
                found.push(args.iter().map(|arg| arg.to_vec()).collect());
                end = bytes;
            }
            begin += end;
            if let Some(wrong) = arrived.wrong {
                return Err(wrong.0);
            }
            if arrived.is_all && received == stream.len() {
                return Ok(found);
            }
            if arrived.is_all {
                received = (received + piece).min(stream.len());
            }
        }
    }

    #[test]
    fn a_stream_means_the_same_however_it_is_cut() {
        let stream =
            b"*2\r\n$3\r\nGET\r\n$1\r\na\r\nping\r\n\r\n*0\r\n*-1\r\n*1\r\n$0\r\n\r\nset a 'b c'\n";
        let whole = requests(stream, stream.len(), LIMITS).unwrap();
        let text: Vec<Vec<String>> = whole
            .iter()
            .map(|args| args.iter().map(|arg| String::from_utf8(arg.clone()).unwrap()).collect())
            .collect();
        assert_eq!(
            text,
            [&["GET", "a"][..], &["ping"], &[], &[], &[], &[""], &["set", "a", "b c"]]
                .map(|args| args.iter().map(|arg| (*arg).to_owned()).collect::<Vec<_>>())
        );
        for piece in 1..stream.len() {
            assert_eq!(requests(stream, piece, LIMITS).unwrap(), whole, "pieces of {piece}");
        }
    }

    #[test]
    fn each_wrong_request_has_its_words() {
        let long = "a".repeat(LINE_BYTES_MAX + 1);
        for (stream, what) in [
            ("*3000000000\r\n", "invalid multibulk length"),
            ("*x\r\n", "invalid multibulk length"),
            ("*1\r\nfoo\r\n", "expected '$', got 'f'"),
            ("*1\r\n$-10\r\n", "invalid bulk length"),
            ("*1\r\n$2000000000\r\n", "invalid bulk length"),
            ("*1\r\n$blabla\r\n", "invalid bulk length"),
            ("set \"a\n", "unbalanced quotes in request"),
            (long.as_str(), "too big inline request"),
            (&format!("*{long}"), "too big mbulk count string"),
            (&format!("*1\r\n${long}"), "too big bulk count string"),
        ] {
            assert_eq!(requests(stream.as_bytes(), 4096, LIMITS), Err(what.to_owned()));
        }
    }

    #[test]
    fn a_stranger_may_send_little() {
        let stranger = Limits { is_stranger: true, ..LIMITS };
        assert!(requests(b"*2\r\n$4\r\nauth\r\n$1\r\nx\r\n", 3, stranger).is_ok());
        let many = requests(b"*11\r\n", 3, stranger);
        assert_eq!(many, Err("unauthenticated multibulk length".to_owned()));
        let long = requests(b"*1\r\n$16385\r\n", 3, stranger);
        assert_eq!(long, Err("unauthenticated bulk length".to_owned()));
    }
}
