//! The formats of `load`, `scan` and `export`: TSV, CSV, JSON lines.
//!
//! TSV here is what `sort` and `cut` take it for: key, tab, value, line feed,
//! no escapes; the first tab splits, so a value may hold tabs. CSV quotes and
//! carries any bytes. JSON lines hold strings, so UTF-8 only. With hex, keys
//! and values are hexadecimal in each of them, and anything goes.

use crate::bytes;
use crate::failure::{Failure, Result};
use crate::input::{Line, Lines, Source};
use crate::stop;
use serde::Deserialize;
use std::borrow::Cow;
use std::io::{self, Write};
use windrow::{KEY_BYTES_MAX, VALUE_BYTES_MAX};

/// The byte order mark of UTF-8.
const BOM: &[u8] = b"\xef\xbb\xbf";

/// A format of pairs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum Format {
    /// key TAB value, one pair a line, no escapes
    Tsv,
    /// two columns, quoted where needed
    Csv,
    /// {"key":"...","value":"..."}, one pair a line
    Jsonl,
}

/// What reading met.
pub(crate) enum Event<'a> {
    /// A key and its value, and the number from 1 of the line they begin on.
    Pair { line: u64, key: &'a [u8], value: &'a [u8] },
    /// Nothing to read for a moment.
    Idle,
    /// The end.
    End,
}

/// Reads pairs.
pub(crate) struct PairReader {
    kind: Kind,
    name: String,
    decoded: Decoded,
}

enum Kind {
    Tsv(Lines),
    Jsonl(Lines),
    Csv(Box<csv::Reader<Source>>, csv::ByteRecord),
}

/// Takes hexadecimal off, where it is asked for, into buffers that stay.
struct Decoded {
    hex: bool,
    key: Vec<u8>,
    value: Vec<u8>,
}

impl Decoded {
    fn pair<'a>(
        &'a mut self,
        line: u64,
        key: &'a [u8],
        value: &'a [u8],
    ) -> Result<Event<'a>, String> {
        if self.hex { self.copied(line, key, value) } else { storable(line, key, value) }
    }

    /// As [`Decoded::pair`], for bytes that do not outlive the call.
    fn copied(&mut self, line: u64, key: &[u8], value: &[u8]) -> Result<Event<'_>, String> {
        self.take_field(key, true)?;
        self.take_field(value, false)?;
        storable(line, &self.key, &self.value)
    }

    fn take_field(&mut self, field: &[u8], is_key: bool) -> Result<(), String> {
        let (out, what) = if is_key { (&mut self.key, "key") } else { (&mut self.value, "value") };
        if self.hex {
            return bytes::decode_hex(field, out)
                .map_err(|why| format!("the {what} is not hexadecimal: {why}"));
        }
        out.clear();
        out.extend_from_slice(field);
        Ok(())
    }
}

/// The pair, if a database can hold it: told here, where the line is known.
fn storable<'a>(line: u64, key: &'a [u8], value: &'a [u8]) -> Result<Event<'a>, String> {
    for (what, bytes, limit) in
        [("key", key.len(), KEY_BYTES_MAX), ("value", value.len(), VALUE_BYTES_MAX)]
    {
        if bytes > limit {
            return Err(format!("a {what} of {bytes} bytes is longer than the limit of {limit}"));
        }
    }
    Ok(Event::Pair { line, key, value })
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct JsonPair<'a> {
    #[serde(borrow)]
    key: Cow<'a, str>,
    #[serde(borrow)]
    value: Cow<'a, str>,
}

impl PairReader {
    /// A reader of `source`. `header`: the first line of a CSV names its columns.
    pub(crate) fn new(source: Source, format: Format, header: bool, hex: bool) -> PairReader {
        let name = source.name().to_owned();
        let kind = match format {
            Format::Tsv => Kind::Tsv(Lines::new(source)),
            Format::Jsonl => Kind::Jsonl(Lines::new(source)),
            Format::Csv => {
                let reader = csv::ReaderBuilder::new()
                    .has_headers(header)
                    .flexible(true)
                    .buffer_capacity(1 << 20)
                    .from_reader(source);
                Kind::Csv(Box::new(reader), csv::ByteRecord::new())
            }
        };
        PairReader { kind, name, decoded: Decoded { hex, key: Vec::new(), value: Vec::new() } }
    }

    /// Bytes of the input up to the end of the last pair handed out.
    pub(crate) fn position(&self) -> u64 {
        match &self.kind {
            Kind::Tsv(lines) | Kind::Jsonl(lines) => lines.position(),
            Kind::Csv(reader, _) => reader.position().byte(),
        }
    }

    /// The next pair. [`Event::Idle`] only with `tell_idle`, and never for
    /// CSV, whose parser holds back what it has.
    ///
    /// # Errors
    /// `Failed`, naming source and line, where it cannot be read or is not a
    /// pair; `Interrupted` after Ctrl-C.
    pub(crate) fn next(&mut self, tell_idle: bool) -> Result<Event<'_>> {
        let PairReader { kind, name, decoded } = self;
        match kind {
            Kind::Tsv(lines) => next_tsv(lines, tell_idle, name, decoded),
            Kind::Jsonl(lines) => next_json(lines, tell_idle, name, decoded),
            Kind::Csv(reader, record) => next_csv(reader, record, name, decoded),
        }
    }
}

fn bad_line(number: u64, name: &str, why: &str) -> Failure {
    Failure::failed(format!("line {number} of {name}: {why}"))
}

fn next_tsv<'a>(
    lines: &'a mut Lines,
    tell_idle: bool,
    name: &str,
    decoded: &'a mut Decoded,
) -> Result<Event<'a>> {
    let number = lines.number() + 1;
    let line = match lines.next(tell_idle)? {
        Line::Idle => return Ok(Event::Idle),
        Line::End => return Ok(Event::End),
        Line::Text(line) => line,
    };
    let Some(tab) = memchr::memchr(b'\t', line) else {
        let failure = bad_line(number, name, "no tab between key and value");
        return Err(failure.hint("TSV is key, tab, value; for other files see --format"));
    };
    decoded.pair(number, &line[..tab], &line[tab + 1..]).map_err(|why| bad_line(number, name, &why))
}

fn next_json<'a>(
    lines: &'a mut Lines,
    tell_idle: bool,
    name: &str,
    decoded: &'a mut Decoded,
) -> Result<Event<'a>> {
    let number = lines.number() + 1;
    let line = match lines.next(tell_idle)? {
        Line::Idle => return Ok(Event::Idle),
        Line::End => return Ok(Event::End),
        Line::Text(line) => line,
    };
    let pair: JsonPair<'a> = serde_json::from_slice(line).map_err(|error| {
        bad_line(number, name, &format!("not an object with the strings key and value: {error}"))
    })?;
    let both = match (pair.key, pair.value) {
        (Cow::Borrowed(key), Cow::Borrowed(value)) => {
            decoded.pair(number, key.as_bytes(), value.as_bytes())
        }
        (key, value) => decoded.copied(number, key.as_bytes(), value.as_bytes()),
    };
    both.map_err(|why| bad_line(number, name, &why))
}

fn next_csv<'a>(
    reader: &mut csv::Reader<Source>,
    record: &'a mut csv::ByteRecord,
    name: &str,
    decoded: &'a mut Decoded,
) -> Result<Event<'a>> {
    let read = reader.read_byte_record(record).map_err(|error| {
        if stop::requested() {
            Failure::Interrupted
        } else {
            Failure::failed(format!("{name}: {error}"))
        }
    })?;
    if !read {
        return Ok(Event::End);
    }
    let number = record.position().map_or(0, csv::Position::line);
    let record: &'a csv::ByteRecord = record;
    if record.len() != 2 {
        let why = format!("{} columns where key and value are two", record.len());
        return Err(bad_line(number, name, &why).hint("cut the two columns out first"));
    }
    decoded.pair(number, &record[0], &record[1]).map_err(|why| bad_line(number, name, &why))
}

/// Writes pairs.
pub(crate) struct PairWriter<W: Write> {
    out: W,
    format: Format,
    hex: bool,
    keys_only: bool,
    /// Refuse what TSV cannot give back.
    strict: bool,
    line: Vec<u8>,
}

impl<W: Write> PairWriter<W> {
    /// A writer in `format`. `strict`: a pair that would not be read back as
    /// it was is an error, not a line.
    pub(crate) fn new(out: W, format: Format, hex: bool, strict: bool) -> PairWriter<W> {
        PairWriter { out, format, hex, keys_only: false, strict, line: Vec::new() }
    }

    /// Leaves the values out.
    #[must_use]
    pub(crate) fn keys_only(mut self, keys_only: bool) -> PairWriter<W> {
        self.keys_only = keys_only;
        self
    }

    /// Writes a pair.
    ///
    /// # Errors
    /// `Failed` where the format cannot hold the pair; `ClosedPipe`.
    pub(crate) fn pair(&mut self, key: &[u8], value: &[u8]) -> Result<()> {
        self.line.clear();
        match self.format {
            Format::Tsv => self.tsv(key, value)?,
            Format::Csv => self.csv(key, value),
            Format::Jsonl => self.json(key, value)?,
        }
        self.line.push(b'\n');
        Ok(self.out.write_all(&self.line)?)
    }

    /// Hands the last bytes to the system.
    ///
    /// # Errors
    /// `ClosedPipe`, `Failed`.
    pub(crate) fn flush(&mut self) -> Result<()> {
        Ok(self.out.flush()?)
    }

    fn field(&mut self, field: &[u8]) {
        if self.hex {
            bytes::encode_hex(field, &mut self.line);
        } else {
            self.line.extend_from_slice(field);
        }
    }

    fn tsv(&mut self, key: &[u8], value: &[u8]) -> Result<()> {
        if self.strict && !self.hex {
            let key_bad = memchr::memchr2(b'\t', b'\n', key).is_some();
            if key_bad || memchr::memchr(b'\n', value).is_some() {
                let what = if key_bad {
                    "the key holds a tab or line feed"
                } else {
                    "the value holds a line feed"
                };
                return Err(
                    cannot_hold("TSV", key, what).hint("export it with --hex or --format csv")
                );
            }
        }
        self.field(key);
        if !self.keys_only {
            self.line.push(b'\t');
            self.field(value);
        }
        Ok(())
    }

    fn csv(&mut self, key: &[u8], value: &[u8]) {
        self.csv_field(key);
        if !self.keys_only {
            self.line.push(b',');
            self.csv_field(value);
        }
    }

    /// One field, in quotes where it needs them; an empty one too, since a
    /// line with nothing on it would be taken for no record at all, and one that
    /// begins with a byte order mark, which readers take off a file's begin.
    fn csv_field(&mut self, field: &[u8]) {
        let special = |byte: &u8| matches!(byte, b',' | b'"' | b'\n' | b'\r');
        let quoted = field.is_empty() || field.starts_with(BOM) || field.iter().any(special);
        if self.hex || !quoted {
            return self.field(field);
        }
        self.line.push(b'"');
        for &byte in field {
            if byte == b'"' {
                self.line.push(b'"');
            }
            self.line.push(byte);
        }
        self.line.push(b'"');
    }

    fn json(&mut self, key: &[u8], value: &[u8]) -> Result<()> {
        self.line.extend_from_slice(b"{\"key\":");
        self.json_string(key, key)?;
        if !self.keys_only {
            self.line.extend_from_slice(b",\"value\":");
            self.json_string(key, value)?;
        }
        self.line.push(b'}');
        Ok(())
    }

    fn json_string(&mut self, key: &[u8], field: &[u8]) -> Result<()> {
        if self.hex {
            self.line.push(b'"');
            bytes::encode_hex(field, &mut self.line);
            self.line.push(b'"');
            return Ok(());
        }
        let text = std::str::from_utf8(field).map_err(|_| {
            cannot_hold("JSON", key, "key or value is not UTF-8")
                .hint("ask for it with --hex or --format csv")
        })?;
        Ok(serde_json::to_writer(&mut self.line, text).map_err(io::Error::from)?)
    }
}

fn cannot_hold(format: &str, key: &[u8], why: &str) -> Failure {
    Failure::failed(format!(
        "{format} cannot hold the pair of key `{}`: {why}",
        bytes::shown(key, 60)
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn written(format: Format, hex: bool, pairs: &[(&[u8], &[u8])]) -> Result<Vec<u8>> {
        let mut out = Vec::new();
        let mut writer = PairWriter::new(&mut out, format, hex, true);
        for (key, value) in pairs {
            writer.pair(key, value)?;
        }
        Ok(out)
    }

    fn read(text: &[u8], format: Format, hex: bool) -> Result<Vec<(Vec<u8>, Vec<u8>)>> {
        let mut file = tempfile::NamedTempFile::new().unwrap();
        file.write_all(text).unwrap();
        let mut reader =
            PairReader::new(Source::open(Some(file.path())).unwrap(), format, false, hex);
        let mut pairs = Vec::new();
        while let Event::Pair { key, value, .. } = reader.next(false)? {
            pairs.push((key.to_vec(), value.to_vec()));
        }
        assert_eq!(reader.position(), text.len() as u64);
        Ok(pairs)
    }

    /// What each format can hold comes back as it was, from one corpus.
    #[test]
    fn every_format_gives_back_what_it_takes() {
        let all: Vec<(&[u8], &[u8])> = vec![
            (b"", b""),
            (b"", b"value of the empty key"),
            (b"a", b""),
            (b"comma,", b"\"quoted\""),
            (b"cr", b"\r"),
            (b"uni", "grüße ☃".as_bytes()),
            (b"value", b"with\ttab"),
            (b"key\twith tab", b"x"),
            (b"lf", b"two\nlines"),
            (b"\xff\x00", b"\x80\n\t,\""),
            (b"\xef\xbb\xbfmarked", b"\xef\xbb\xbf"),
        ];
        for (hex, format) in [false, true]
            .into_iter()
            .flat_map(|hex| [Format::Tsv, Format::Csv, Format::Jsonl].map(|f| (hex, f)))
        {
            for pair in &all {
                let Ok(text) = written(format, hex, &[*pair]) else {
                    assert!(!hex && format != Format::Csv, "{format:?} refused {pair:?}");
                    continue;
                };
                let back = read(&text, format, hex).unwrap();
                assert_eq!(
                    back,
                    [(pair.0.to_vec(), pair.1.to_vec())],
                    "{format:?} hex {hex} {text:?}"
                );
            }
        }
        assert!(written(Format::Tsv, false, &[(b"key\tx", b"")]).is_err());
        assert!(written(Format::Tsv, false, &[(b"k", b"\n")]).is_err());
        assert!(written(Format::Jsonl, false, &[(b"\xff", b"")]).is_err());
    }

    #[test]
    fn bad_lines_are_named() {
        let message = |text: &[u8], format, hex| match read(text, format, hex) {
            Err(Failure::Failed { message, .. }) => message,
            other => panic!("{other:?}"),
        };
        assert!(message(b"a\tb\nno tab\n", Format::Tsv, false).contains("line 2 of"));
        assert!(message(b"61\t62\n6\t62\n", Format::Tsv, true).contains("line 2 of"));
        assert!(message(b"a,b\n\"x\ny\",2\na,b,c\n", Format::Csv, false).contains("line 4 of"));
        assert!(
            message(b"{\"key\":\"a\",\"value\":\"b\"}\n{\"key\":\"a\"}\n", Format::Jsonl, false)
                .contains("line 2 of")
        );
        assert!(
            message(b"{\"key\":\"a\",\"value\":1}\n", Format::Jsonl, false).contains("line 1 of")
        );
    }
}
