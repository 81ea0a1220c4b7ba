//! The formats of `load`, `scan` and `export`: TSV, CSV, JSON lines.
//!
//! TSV is that of `sort` and `cut`: key, tab, value, line feed, no escapes; the first tab splits,
//! so a value may hold tabs. CSV quotes and carries any bytes. JSON lines hold strings, so UTF-8
//! only (see `jsonl.rs`). A byte order mark before the first line is no part of it. With hex, keys
//! and values are hexadecimal in each of them, and may be any bytes.
//!
//! Owns: reading and writing pairs in each. Never does: open a file or a database.

use crate::bytes;
use crate::failure::{Failure, Kind as FailureKind, Result};
use crate::input::{Line, Lines, Source};
use crate::json_path::JsonFields;
use crate::jsonl;
use crate::layout::{Columns, CsvLayout, Format, Layout};
use crate::quotes::Quotes;
use crate::{stop, store};
use std::borrow::Cow;
use std::io::{self, IsTerminal, Write};
use windrow::{KEY_BYTES_MAX, VALUE_BYTES_MAX};

/// The number of skipped lines that are named one by one.
const SKIPPED_SAID_MAX: u64 = 10;

/// The byte order mark of UTF-8.
const BOM: &[u8] = b"\xef\xbb\xbf";

/// The number of a line, its key and its value.
pub(crate) type NumberedPair = (u64, Vec<u8>, Vec<u8>);

/// The result of a read.
pub(crate) enum Event<'a> {
    /// A key and its value, and the number from 1 of the line they begin on.
    Pair { line: u64, key: &'a [u8], value: &'a [u8] },
    /// A line that is no pair was left out.
    Skipped,
    /// There is nothing to read for a moment.
    Idle,
    /// The input is at its end.
    End,
}

/// Reads pairs.
pub(crate) struct PairReader {
    kind: FormatRows,
    name: String,
    decoded: Decoded,
    skips: bool,
    skipped: u64,
}

enum FormatRows {
    Tsv(TsvLines),
    Jsonl(Lines, Option<JsonFields>),
    Csv(Box<CsvRows>),
}

/// The lines of a TSV, and their ends.
struct TsvLines {
    lines: Lines,
    /// Whether the CR before the line feed is no part of the value.
    crlf: bool,
    /// The number of lines with such a CR, whether or not it was kept.
    with_cr: u64,
}

/// Rows of a CSV.
struct CsvRows {
    reader: csv::Reader<Quotes<Source>>,
    record: csv::ByteRecord,
    layout: CsvLayout,
    /// The columns; known once the header was read, if there is one.
    columns: Option<Columns>,
}

/// Decodes hexadecimal, where it is asked for, into buffers that stay.
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

    /// Decodes as [`Decoded::pair`] does, for bytes that do not outlive the call.
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

/// Returns the pair, if a database can hold it. It is checked here, where the line is known.
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

impl PairReader {
    /// Makes a reader of `source`.
    pub(crate) fn new(source: Source, layout: &Layout) -> PairReader {
        let (name, hex) = (source.name().to_owned(), layout.hex);
        let kind = match layout.format {
            Format::Tsv => FormatRows::Tsv(TsvLines {
                lines: Lines::new(source),
                crlf: layout.crlf,
                with_cr: 0,
            }),
            Format::Jsonl => FormatRows::Jsonl(Lines::new(source), layout.json.clone()),
            Format::Csv => {
                let reader = csv::ReaderBuilder::new()
                    .has_headers(false)
                    .flexible(true)
                    .delimiter(layout.csv.delimiter)
                    .buffer_capacity(1 << 20)
                    .from_reader(Quotes::new(source, layout.csv.delimiter));
                let (record, layout) = (csv::ByteRecord::new(), layout.csv.clone());
                FormatRows::Csv(Box::new(CsvRows { reader, record, layout, columns: None }))
            }
        };
        let decoded = Decoded { hex, key: Vec::new(), value: Vec::new() };
        PairReader { kind, name, decoded, skips: false, skipped: 0 }
    }

    /// Sets whether lines that are no pair are skipped, with a warning.
    #[must_use]
    pub(crate) fn skipping(mut self, skips: bool) -> PairReader {
        self.skips = skips;
        self
    }

    /// Returns the number of lines that were skipped.
    pub(crate) fn skipped(&self) -> u64 {
        self.skipped
    }

    /// Returns the bytes of the input up to the end of the last pair returned.
    pub(crate) fn position(&self) -> u64 {
        match &self.kind {
            FormatRows::Tsv(TsvLines { lines, .. }) | FormatRows::Jsonl(lines, _) => {
                lines.position()
            }
            FormatRows::Csv(rows) => rows.reader.position().byte(),
        }
    }

    /// Returns whether all values of a TSV ended in a CR that was kept: most likely a file of
    /// Windows. (Its last line may have no end.)
    pub(crate) fn looks_like_crlf(&self) -> bool {
        let FormatRows::Tsv(TsvLines { lines, crlf: false, with_cr }) = &self.kind else {
            return false;
        };
        *with_cr > 0 && with_cr + 1 >= lines.number()
    }

    /// Returns the next pair. [`Event::Idle`] only with `tell_idle`, and never for CSV, whose
    /// parser buffers its input.
    ///
    /// # Errors
    /// `Failed`, naming source and line, where it cannot be read or is not a pair; `Interrupted`
    /// after Ctrl-C.
    pub(crate) fn next(&mut self, tell_idle: bool) -> Result<Event<'_>> {
        let PairReader { kind, name, decoded, skips, skipped } = self;
        let event = match kind {
            FormatRows::Tsv(lines) => next_tsv(lines, tell_idle, name, decoded),
            FormatRows::Jsonl(lines, fields) => {
                next_json(lines, fields.as_ref(), tell_idle, name, decoded)
            }
            FormatRows::Csv(rows) => next_csv(rows, name, decoded),
        };
        match event {
            Err(failure) if *skips && failure.is_bad_line() => {
                *skipped += 1;
                if *skipped <= SKIPPED_SAID_MAX {
                    store::warn(format_args!("left out: {}", failure.message()));
                }
                Ok(Event::Skipped)
            }
            event => event,
        }
    }
}

fn bad_line(number: u64, name: &str, why: &str) -> Failure {
    Failure::failed(format!("line {number} of {name}: {why}")).of_kind(FailureKind::BadLine)
}

/// Makes the failure for a line that does not have its format.
fn ill_formed(number: u64, name: &str, why: &str) -> Failure {
    bad_line(number, name, why)
        .hint("correct the line and load again, or say with --format and --hex how it is written")
}

/// Returns the first line without the byte order mark that editors put before it.
fn unmarked(number: u64, line: &[u8]) -> &[u8] {
    line.strip_prefix(BOM).filter(|_| number == 1).unwrap_or(line)
}

fn next_tsv<'a>(
    tsv: &'a mut TsvLines,
    tell_idle: bool,
    name: &str,
    decoded: &'a mut Decoded,
) -> Result<Event<'a>> {
    let number = tsv.lines.number() + 1;
    let mut line = match tsv.lines.next(tell_idle)? {
        Line::Idle => return Ok(Event::Idle),
        Line::End => return Ok(Event::End),
        Line::Text(line) => unmarked(number, line),
    };
    if let [bare @ .., b'\r'] = line {
        tsv.with_cr += 1;
        line = if tsv.crlf { bare } else { line };
    }
    let Some(tab) = memchr::memchr(b'\t', line) else {
        let failure = bad_line(number, name, "no tab between key and value");
        return Err(failure.hint("TSV is key, tab, value; for other files see --format"));
    };
    decoded
        .pair(number, &line[..tab], &line[tab + 1..])
        .map_err(|why| ill_formed(number, name, &why))
}

fn next_json<'a>(
    lines: &'a mut Lines,
    fields: Option<&JsonFields>,
    tell_idle: bool,
    name: &str,
    decoded: &'a mut Decoded,
) -> Result<Event<'a>> {
    let number = lines.number() + 1;
    let line = match lines.next(tell_idle)? {
        Line::Idle => return Ok(Event::Idle),
        Line::End => return Ok(Event::End),
        Line::Text(line) => unmarked(number, line),
    };
    let pair = fields.map_or_else(|| jsonl::pair(line), |fields| fields.pair(line));
    let both = match pair.map_err(|why| ill_formed(number, name, &why))? {
        (Cow::Borrowed(key), Cow::Borrowed(value)) => {
            decoded.pair(number, key.as_bytes(), value.as_bytes())
        }
        (key, value) => decoded.copied(number, key.as_bytes(), value.as_bytes()),
    };
    both.map_err(|why| ill_formed(number, name, &why))
}

impl CsvRows {
    /// Reads the next row; `false` at the end.
    fn read(&mut self, name: &str) -> Result<bool> {
        let read = self.reader.read_byte_record(&mut self.record).map_err(|error| {
            if stop::requested() {
                Failure::Interrupted
            } else {
                Failure::failed(format!("{name}: {error}"))
                    .hint("correct the file, or say with --delimiter what is between its columns")
            }
        })?;
        // Only the row that reaches the end can end within quotes.
        if read && self.reader.get_ref().ended_open() {
            let number = self.record.position().map_or(0, csv::Position::line);
            let why = "the row that begins here has a `\"` that is never closed";
            let hint = "close it, or double each `\"` that is part of a field; nothing from this row on was taken";
            return Err(bad_line(number, name, why).hint(hint).of_kind(FailureKind::Plain));
        }
        Ok(read)
    }

    /// Returns the columns of key and value; reads the header, if there is one.
    fn columns(&mut self, name: &str) -> Result<Columns> {
        if let Some(columns) = self.columns {
            return Ok(columns);
        }
        let header = self.layout.header && self.read(name)?;
        let columns = self.layout.columns(header.then_some(&self.record)).map_err(|why| {
            let hint = "say which with --key and --value, by name or number";
            bad_line(1, name, &why).hint(hint).of_kind(FailureKind::Plain)
        })?;
        self.columns = Some(columns);
        Ok(columns)
    }
}

fn next_csv<'a>(rows: &'a mut CsvRows, name: &str, decoded: &'a mut Decoded) -> Result<Event<'a>> {
    let columns = rows.columns(name)?;
    if !rows.read(name)? {
        return Ok(Event::End);
    }
    let record = &rows.record;
    let number = record.position().map_or(0, csv::Position::line);
    let (Some(key), Some(value)) = (record.get(columns.key), record.get(columns.value)) else {
        let most = columns.key.max(columns.value) + 1;
        let why = format!("{} columns where there must be {most}", record.len());
        let hint = "add what is missing, or choose columns with --key and --value";
        return Err(bad_line(number, name, &why).hint(hint));
    };
    if columns.only && record.len() > 2 {
        let why = format!("{} columns where key and value are two", record.len());
        let hint = "say which two with --key and --value";
        return Err(bad_line(number, name, &why).hint(hint));
    }
    decoded.pair(number, key, value).map_err(|why| ill_formed(number, name, &why))
}

/// Writes pairs.
pub(crate) struct PairWriter<W: Write> {
    out: W,
    layout: Layout,
    hex: bool,
    keys_only: bool,
    /// Whether values are counters, which are written in decimal.
    numbers: bool,
    whose: Reader,
    /// Whether nothing is written yet.
    first: bool,
    line: Vec<u8>,
}

/// Returns a line with the fields that the user named.
fn json_line(fields: &JsonFields, key: &[u8], value: Option<&[u8]>, hex: bool) -> Result<String> {
    let text = |field: &[u8]| {
        if hex {
            let mut digits = Vec::new();
            bytes::encode_hex(field, &mut digits);
            return Ok(String::from_utf8_lossy(&digits).into_owned());
        }
        String::from_utf8(field.to_vec()).map_err(|_| {
            cannot_hold("JSON", key, "key or value is not UTF-8")
                .hint("ask for it with --hex or --format csv")
        })
    };
    let value = value.map(text).transpose()?;
    fields.line(&text(key)?, value.as_deref()).map_err(|why| {
        cannot_hold("JSON", key, &why).hint("choose other fields with --key and --value")
    })
}

/// The reader of the output.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Reader {
    /// A program: pairs that the format cannot give back as they were are refused.
    Program,
    /// A person at a terminal: control characters are spelt out, so that they do not move its
    /// cursor or change its colours.
    Terminal,
}

impl Reader {
    /// Returns the reader of standard output.
    pub(crate) fn of_stdout() -> Reader {
        match io::stdout().is_terminal() {
            true => Reader::Terminal,
            false => Reader::Program,
        }
    }
}

impl<W: Write> PairWriter<W> {
    /// Makes a writer of that layout.
    pub(crate) fn new(out: W, layout: Layout, whose: Reader) -> PairWriter<W> {
        let hex = layout.hex;
        PairWriter {
            out,
            layout,
            hex,
            keys_only: false,
            numbers: false,
            whose,
            first: true,
            line: Vec::new(),
        }
    }

    /// Leaves the values out.
    #[must_use]
    pub(crate) fn keys_only(mut self, keys_only: bool) -> PairWriter<W> {
        self.keys_only = keys_only;
        self
    }

    /// Writes values as counters, in decimal.
    #[must_use]
    pub(crate) fn numbers(mut self, numbers: bool) -> PairWriter<W> {
        self.numbers = numbers;
        self
    }

    /// Writes a pair.
    ///
    /// # Errors
    /// `Failed` where the format cannot hold the pair, or the value is no counter; `ClosedPipe`.
    pub(crate) fn pair(&mut self, key: &[u8], value: &[u8]) -> Result<()> {
        if self.numbers && !self.keys_only {
            let number = bytes::counter(value).map_err(|failure| {
                failure.and(format_args!("of the key {}", bytes::shown(key, 200)))
            })?;
            return self.plain_pair(key, number.to_string().as_bytes());
        }
        self.plain_pair(key, value)
    }

    fn plain_pair(&mut self, key: &[u8], value: &[u8]) -> Result<()> {
        if self.first {
            self.header()?;
        }
        self.line.clear();
        match self.layout.format {
            Format::Tsv => self.tsv(key, value)?,
            Format::Csv => self.csv(key, value),
            Format::Jsonl => self.json(key, value)?,
        }
        self.first = false;
        self.line.push(b'\n');
        Ok(self.out.write_all(&self.line)?)
    }

    /// Writes the last bytes out.
    ///
    /// # Errors
    /// `ClosedPipe`, `Failed`.
    pub(crate) fn flush(&mut self) -> Result<()> {
        if self.first {
            self.header()?;
        }
        Ok(self.out.flush()?)
    }

    /// Writes the first line of a CSV that names its columns.
    fn header(&mut self) -> Result<()> {
        if !self.layout.csv.header {
            return Ok(());
        }
        let hex = std::mem::take(&mut self.hex);
        self.line.clear();
        let names = self.layout.csv.names().map(|name| name.as_bytes().to_vec());
        self.csv(&names[0], &names[1]);
        self.line.push(b'\n');
        self.hex = hex;
        Ok(self.out.write_all(&self.line)?)
    }

    fn field(&mut self, field: &[u8]) {
        if self.hex {
            bytes::encode_hex(field, &mut self.line);
        } else if self.whose == Reader::Terminal {
            self.line.extend_from_slice(bytes::printable(field).as_bytes());
        } else {
            self.line.extend_from_slice(field);
        }
    }

    fn tsv(&mut self, key: &[u8], value: &[u8]) -> Result<()> {
        if self.whose == Reader::Program && !self.hex {
            let hint = "ask for it with --hex, or --format csv or jsonl";
            if let Some(what) = self.unfit_for_tsv(key, value) {
                return Err(cannot_hold("TSV", key, what).hint(hint));
            }
        }
        self.field(key);
        if !self.keys_only {
            self.line.push(b'\t');
            self.field(value);
        }
        Ok(())
    }

    /// Returns the reason why lines of TSV would not give back the pair, if there is one.
    fn unfit_for_tsv(&self, key: &[u8], value: &[u8]) -> Option<&'static str> {
        let tab = memchr::memchr(b'\t', key).filter(|_| !self.keys_only);
        if tab.is_some() || memchr::memchr(b'\n', key).is_some() {
            Some("the key holds a tab or line feed")
        } else if self.first && key.starts_with(BOM) {
            Some("the first key begins with a byte order mark")
        } else if !self.keys_only && memchr::memchr(b'\n', value).is_some() {
            Some("the value holds a line feed")
        } else {
            None
        }
    }

    fn csv(&mut self, key: &[u8], value: &[u8]) {
        self.csv_field(key);
        if !self.keys_only {
            self.line.push(self.layout.csv.delimiter);
            self.csv_field(value);
        }
    }

    /// Writes one field, in quotes where it needs them. An empty field has quotes, since an empty
    /// line would be no record at all; so has one that begins with a byte order mark, which readers
    /// remove at the beginning of a file.
    fn csv_field(&mut self, field: &[u8]) {
        let delimiter = self.layout.csv.delimiter;
        let special = |byte: &u8| matches!(byte, b'"' | b'\n' | b'\r') || *byte == delimiter;
        let quoted = field.is_empty() || field.starts_with(BOM) || field.iter().any(special);
        if self.hex || !quoted {
            return self.field(field);
        }
        let spelt = bytes::printable(field);
        let field = if self.whose == Reader::Terminal { spelt.as_bytes() } else { field };
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
        if let Some(fields) = &self.layout.json {
            let line = json_line(fields, key, (!self.keys_only).then_some(value), self.hex)?;
            let line = match self.whose {
                Reader::Terminal => bytes::printable(line.as_bytes()),
                Reader::Program => line,
            };
            self.line.extend_from_slice(line.as_bytes());
            return Ok(());
        }
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
        let begin = self.line.len();
        serde_json::to_writer(&mut self.line, text).map_err(io::Error::from)?;
        // JSON leaves some control characters as they are: DEL, and those of 128 to 159.
        if self.whose == Reader::Terminal && text.contains(char::is_control) {
            let written = String::from_utf8_lossy(&self.line[begin..]).into_owned();
            self.line.truncate(begin);
            for c in written.chars() {
                match c.is_control() {
                    true => write!(self.line, "\\u{:04x}", c as u32)?,
                    false => write!(self.line, "{c}")?,
                }
            }
        }
        Ok(())
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

    fn layout(format: Format, hex: bool) -> Layout {
        let csv = CsvLayout { header: false, delimiter: b',', key: None, value: None };
        Layout { format, hex, crlf: false, csv, json: None }
    }

    fn written(format: Format, hex: bool, pairs: &[(&[u8], &[u8])]) -> Result<Vec<u8>> {
        let mut out = Vec::new();
        let mut writer = PairWriter::new(&mut out, layout(format, hex), Reader::Program);
        for (key, value) in pairs {
            writer.pair(key, value)?;
        }
        Ok(out)
    }

    fn read(text: &[u8], format: Format, hex: bool) -> Result<Vec<(Vec<u8>, Vec<u8>)>> {
        let mut file = tempfile::NamedTempFile::new().unwrap();
        file.write_all(text).unwrap();
        let source = Source::open(Some(file.path())).unwrap();
        let mut reader = PairReader::new(source, &layout(format, hex));
        let mut pairs = Vec::new();
        while let Event::Pair { key, value, .. } = reader.next(false)? {
            pairs.push((key.to_vec(), value.to_vec()));
        }
        assert_eq!(reader.position(), text.len() as u64);
        Ok(pairs)
    }

    /// Every pair that a format can hold is read back as it was, from one corpus.
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
            message(b"{\"key\":\"a\",\"value\":1.5}\n", Format::Jsonl, false).contains("line 1 of")
        );
    }
}
