//! The check whether a CSV ends within quotes. The parser takes the text from an open quote to the
//! end for a field. The quote should most likely have been closed lines before, and the field would
//! have the rest of the file.
//!
//! Owns: following quotes as the parser does. Never does: parse anything else.

use memchr::{memchr, memchr3};
use std::io::{self, Read};

const BOM: &[u8] = b"\xef\xbb\xbf";

#[derive(Clone, Copy, PartialEq, Eq)]
enum At {
    /// Before the first byte of a field: only here a quote opens it.
    Start,
    Plain,
    Quoted,
    /// Behind a quote within quotes, which is one of two or closes the field.
    Quote,
}

/// Follows the quotes of the bytes that are read through it.
pub(crate) struct Quotes<R> {
    inner: R,
    delimiter: u8,
    at: At,
    is_begun: bool,
    is_ended: bool,
}

impl<R> Quotes<R> {
    pub(crate) fn new(inner: R, delimiter: u8) -> Quotes<R> {
        Quotes { inner, delimiter, at: At::Start, is_begun: false, is_ended: false }
    }

    /// Returns whether the end was reached within quotes.
    pub(crate) fn ended_open(&self) -> bool {
        self.is_ended && self.at == At::Quoted
    }

    fn follow(&mut self, mut bytes: &[u8]) {
        if !self.is_begun && !bytes.is_empty() {
            self.is_begun = true;
            bytes = bytes.strip_prefix(BOM).unwrap_or(bytes);
        }
        while let Some(&first) = bytes.first() {
            let ends_field = [self.delimiter, b'\n', b'\r'].contains(&first);
            let (passed, at) = match self.at {
                At::Start | At::Quote if ends_field => (0, At::Start),
                At::Start | At::Quote if first == b'"' => (0, At::Quoted),
                At::Start | At::Quote => (0, At::Plain),
                At::Quoted => match memchr(b'"', bytes) {
                    Some(quote) => (quote, At::Quote),
                    None => return,
                },
                At::Plain => match memchr3(self.delimiter, b'\n', b'\r', bytes) {
                    Some(end) => (end, At::Start),
                    None => return,
                },
            };
            (self.at, bytes) = (at, &bytes[passed + 1..]);
        }
    }
}

impl<R: Read> Read for Quotes<R> {
    fn read(&mut self, buf: &mut [u8]) -> io::Result<usize> {
        let read = self.inner.read(buf)?;
        self.is_ended |= read == 0 && !buf.is_empty();
        self.follow(&buf[..read]);
        Ok(read)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns this number of bytes at once.
    struct Pieces<'a>(&'a [u8], usize);

    impl Read for Pieces<'_> {
        fn read(&mut self, buf: &mut [u8]) -> io::Result<usize> {
            let most = self.1.min(buf.len());
            self.0.read(&mut buf[..most])
        }
    }

    #[test]
    fn a_quote_is_open_until_it_is_closed_wherever_reads_end() {
        for (text, is_open) in [
            ("", false),
            ("a,b\nc,d", false),
            ("a,\"b\nc,d\n", true),
            ("a,\"b\"\nc,d\n", false),
            ("\"a\"\"\",b\n", false),
            ("\"a\"\"\"\"", true),
            ("a,b\"c\nd,e\n", false),
            ("a,\"b\"c\"\nd,e\n", false),
            ("\u{feff}\"a,b\n", true),
            ("a,\"", true),
            ("a,\"\"", false),
        ] {
            for piece in [1, 2, 3, 100] {
                let whole = if text.starts_with('\u{feff}') { piece.max(3) } else { piece };
                let mut quotes = Quotes::new(Pieces(text.as_bytes(), whole), b',');
                io::copy(&mut quotes, &mut io::sink()).unwrap();
                assert_eq!(quotes.ended_open(), is_open, "{text:?} by {piece}");
            }
        }
    }
}
