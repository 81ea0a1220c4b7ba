//! Operations and answers as text: the format of corpus files. A failing random case
//! prints it too, so that it can be pasted into the corpus.
//!
//! Owns: the grammar (crates/testkit/corpus/README.md). Never does: run an operation.

use crate::op::{Answer, Change, DEFAULT, Direction, Op, Pair, Span, Step, Write};
use std::fmt::Write as _;
use windrow_base::ErrorKind;

type Parsed<T> = Result<T, String>;

/// Longest run of plain bytes that is printed in full.
const PLAIN_BYTES_MAX: usize = 48;

/// Longest part whose repetition is printed as such.
const PERIOD_MAX: usize = 24;

/// Prints a byte string as a token: bare, `""`, `i:5` for a counter (eight bytes),
/// `ab*70000` for a long repetition, `\x00` for a byte that no word has.
pub fn token(bytes: &[u8]) -> String {
    if bytes.is_empty() {
        return "\"\"".to_owned();
    }
    let plain = |b: &u8| b.is_ascii_alphanumeric() || b"_/-".contains(b);
    if bytes.len() > PLAIN_BYTES_MAX {
        let period =
            |n: &usize| bytes.len().is_multiple_of(*n) && bytes[*n..] == bytes[..bytes.len() - n];
        if let Some(n) = (1..=PERIOD_MAX).find(period) {
            let mut out = String::new();
            bytes[..n].iter().for_each(|b| push_escaped(&mut out, *b, plain(b)));
            let _ = write!(out, "*{}", bytes.len() / n);
            return out;
        }
    } else if !bytes.iter().all(plain)
        && let Ok(counter) = bytes.try_into()
    {
        return format!("i:{}", i64::from_le_bytes(counter));
    }
    let mut out = String::new();
    for b in bytes {
        push_escaped(&mut out, *b, plain(b));
    }
    out
}

fn push_escaped(out: &mut String, byte: u8, plain: bool) {
    if plain {
        out.push(char::from(byte));
    } else {
        let _ = write!(out, "\\x{byte:02x}");
    }
}

fn parse_token(text: &str) -> Parsed<Vec<u8>> {
    if text == "\"\"" {
        return Ok(Vec::new());
    }
    if let Some(number) = text.strip_prefix("i:") {
        let number: i64 = number.parse().map_err(|_| format!("`{text}` is not a counter"))?;
        return Ok(number.to_le_bytes().to_vec());
    }
    let (body, repeat) = match text.split_once('*') {
        Some((body, n)) => (body, n.parse().map_err(|_| format!("`{text}`: bad repeat"))?),
        None => (text, 1),
    };
    let bytes = unescape(body)?;
    Ok(match bytes.as_slice() {
        [byte] => vec![*byte; repeat],
        _ => bytes.repeat(repeat),
    })
}

fn unescape(text: &str) -> Parsed<Vec<u8>> {
    let mut out = Vec::new();
    let mut rest = text.as_bytes();
    while let [first, tail @ ..] = rest {
        rest = tail;
        if *first != b'\\' {
            out.push(*first);
            continue;
        }
        let [b'x', high, low, tail @ ..] = rest else {
            return Err(format!("`{text}`: an escape is \\x and two digits"));
        };
        let digits = [*high, *low];
        let digits = std::str::from_utf8(&digits).map_err(|e| e.to_string())?;
        out.push(u8::from_str_radix(digits, 16).map_err(|e| format!("`{text}`: {e}"))?);
        rest = tail;
    }
    Ok(out)
}

fn span_text(span: &Span) -> String {
    let bound = |b: &Option<Vec<u8>>| b.as_deref().map(token).unwrap_or_default();
    format!("{}{}..{}", place(&span.keyspace, &span.at), bound(&span.from), bound(&span.to))
}

fn place(keyspace: &str, at: &Option<String>) -> String {
    let mut out = String::new();
    if keyspace != DEFAULT {
        let _ = write!(out, "@{keyspace} ");
    }
    if let Some(at) = at {
        let _ = write!(out, "at:{at} ");
    }
    out
}

fn write_text(write: &Write) -> String {
    let ks = place(&write.keyspace, &None);
    match &write.change {
        Change::Put { key, value } => format!("put {ks}{} {}", token(key), token(value)),
        Change::PutTtl { key, value, ttl_ms } => {
            format!("put_ttl {ks}{} {} {ttl_ms}", token(key), token(value))
        }
        Change::Delete { key } => format!("delete {ks}{}", token(key)),
        Change::SingleDelete { key } => format!("single_delete {ks}{}", token(key)),
        Change::Merge { key, operand } => {
            format!("merge {ks}{} {}", token(key), token(operand))
        }
        Change::MergeTtl { key, operand, ttl_ms } => {
            format!("merge_ttl {ks}{} {} {ttl_ms}", token(key), token(operand))
        }
        Change::DeleteRange { from, to } => {
            format!("delete_range {ks}{}..{}", token(from), token(to))
        }
    }
}

fn step_text(step: &Step) -> String {
    match step {
        Step::First => "first".to_owned(),
        Step::Last => "last".to_owned(),
        Step::Next => "next".to_owned(),
        Step::Prev => "prev".to_owned(),
        Step::Seek(key) => format!("seek:{}", token(key)),
        Step::SeekBefore(key) => format!("seek_before:{}", token(key)),
    }
}

fn ingest_text(keyspace: &str, pairs: &[Pair]) -> String {
    let mut out = format!("ingest {}", place(keyspace, &None)).trim_end().to_owned();
    out.push('\n');
    for (key, value) in pairs {
        let _ = writeln!(out, "  {} {}", token(key), token(value));
    }
    out + "end"
}

/// Prints an operation as the lines that [`parse`] reads (a batch takes several).
pub fn op_text(op: &Op) -> String {
    let synced = |sync: &bool| if *sync { " sync" } else { "" };
    match op {
        Op::Write { write, sync } => format!("{}{}", write_text(write), synced(sync)),
        Op::Batch { writes, sync } => {
            let mut out = format!("batch{}\n", synced(sync));
            for write in writes {
                let _ = writeln!(out, "  {}", write_text(write));
            }
            out + "end"
        }
        Op::Ingest { keyspace, pairs } => ingest_text(keyspace, pairs),
        Op::Get { keyspace, at, key } => format!("get {}{}", place(keyspace, at), token(key)),
        Op::MultiGet { keyspace, keys } => {
            let keys: Vec<_> = keys.iter().map(|k| token(k)).collect();
            format!("multi_get {}{}", place(keyspace, &None), keys.join(" "))
        }
        Op::Scan { span, direction } => {
            let verb = match direction {
                Direction::Forward => "scan",
                Direction::Backward => "rscan",
                Direction::Zigzag => "zigzag",
            };
            format!("{verb} {}", span_text(span))
        }
        Op::Prefix { keyspace, at, prefix, direction } => {
            let verb = match direction {
                Direction::Forward => "prefix",
                Direction::Backward => "rprefix",
                Direction::Zigzag => "zprefix",
            };
            format!("{verb} {}{}", place(keyspace, at), token(prefix))
        }
        Op::OpenCursor { cursor, span } => format!("open {cursor} {}", span_text(span)),
        Op::Walk { cursor, steps } => {
            let steps: Vec<_> = steps.iter().map(step_text).collect();
            format!("walk {cursor} {}", steps.join(" "))
        }
        Op::Refresh { cursor } => format!("refresh {cursor}"),
        Op::CloseCursor { cursor } => format!("close {cursor}"),
        Op::Snapshot { name } => format!("snapshot {name}"),
        Op::Release { name } => format!("release {name}"),
        Op::Flush { keyspace: None } => "flush".to_owned(),
        Op::Flush { keyspace: Some(name) } => format!("flush @{name}"),
        Op::CompactRange { span } => format!("compact_range {}", span_text(span)),
        Op::CreateKeyspace { name, operator, comparator } => {
            let merged = operator.as_ref().map(|name| format!(" operator:{name}"));
            let ordered = comparator.as_ref().map(|id| format!(" comparator:{id}"));
            format!("keyspace {name}{}{}", merged.unwrap_or_default(), ordered.unwrap_or_default())
        }
        Op::Configure { name, ttl_ms, compression } => {
            let ttl = ttl_ms.map(|ms| format!(" ttl:{ms}")).unwrap_or_default();
            let codecs = compression.as_ref().map(|list| format!(" compression:{list}"));
            format!("configure {name}{ttl}{}", codecs.unwrap_or_default())
        }
        Op::DropKeyspace { name } => format!("drop {name}"),
        Op::Policy { policy } => format!("policy {policy}"),
        Op::Clock { forward_ms } => format!("clock +{forward_ms}"),
        plain => PLAIN
            .iter()
            .find(|(_, op)| op == plain)
            .map(|(name, _)| (*name).to_owned())
            .unwrap_or_else(|| format!("{plain:?}")),
    }
}

/// Operations without operands.
const PLAIN: [(&str, Op); 9] = [
    ("dump", Op::Dump),
    ("compact", Op::Compact),
    ("wait", Op::Wait),
    ("sync", Op::Sync),
    ("reopen", Op::Reopen),
    ("kill", Op::Kill),
    ("checkpoint", Op::Checkpoint),
    ("verify", Op::Verify),
    ("keyspaces", Op::Keyspaces),
];

/// Prints operations as a script.
pub fn script_text(ops: &[Op]) -> String {
    ops.iter().map(|op| op_text(op) + "\n").collect()
}

/// The words of one line, and how many of them were read.
struct Words<'a> {
    words: Vec<&'a str>,
    next: usize,
}

impl<'a> Words<'a> {
    fn new(line: &'a str) -> Words<'a> {
        Words { words: line.split_whitespace().collect(), next: 0 }
    }

    fn word(&mut self) -> Parsed<&'a str> {
        let word = self.words.get(self.next).ok_or("an operand is missing")?;
        self.next += 1;
        Ok(word)
    }

    fn key(&mut self) -> Parsed<Vec<u8>> {
        parse_token(self.word()?)
    }

    fn number(&mut self) -> Parsed<u64> {
        let word = self.word()?;
        word.parse().map_err(|_| format!("`{word}` is not a number"))
    }

    /// Returns the rest of the next word, if it starts with `prefix`.
    fn tagged(&mut self, prefix: &str) -> Option<&'a str> {
        let tail = self.words.get(self.next)?.strip_prefix(prefix)?;
        self.next += 1;
        Some(tail)
    }

    fn flag(&mut self, name: &str) -> bool {
        let there = self.words.get(self.next) == Some(&name);
        self.next += usize::from(there);
        there
    }

    fn keyspace(&mut self) -> String {
        self.tagged("@").unwrap_or(DEFAULT).to_owned()
    }

    fn at(&mut self) -> Option<String> {
        self.tagged("at:").map(str::to_owned)
    }

    fn span(&mut self) -> Parsed<Span> {
        let (keyspace, at) = (self.keyspace(), self.at());
        let word = self.word()?;
        let (from, to) = word.split_once("..").ok_or(format!("`{word}` is not a range a..b"))?;
        let bound = |text: &str| (!text.is_empty()).then(|| parse_token(text)).transpose();
        Ok(Span { keyspace, at, from: bound(from)?, to: bound(to)? })
    }

    fn rest(&mut self) -> &[&'a str] {
        let from = self.next;
        self.next = self.words.len();
        &self.words[from..]
    }

    fn end<T>(self, value: T) -> Parsed<T> {
        match self.words.get(self.next) {
            None => Ok(value),
            Some(word) => Err(format!("`{word}` is one word too many")),
        }
    }
}

fn parse_write(verb: &str, words: &mut Words<'_>) -> Parsed<Option<Write>> {
    let known = ["put", "put_ttl", "delete", "single_delete", "merge", "merge_ttl", "delete_range"]
        .contains(&verb);
    if !known {
        return Ok(None);
    }
    let keyspace = words.keyspace();
    let change = match verb {
        "put" => Change::Put { key: words.key()?, value: words.key()? },
        "put_ttl" => {
            Change::PutTtl { key: words.key()?, value: words.key()?, ttl_ms: words.number()? }
        }
        "delete" => Change::Delete { key: words.key()? },
        "single_delete" => Change::SingleDelete { key: words.key()? },
        "merge" => Change::Merge { key: words.key()?, operand: words.key()? },
        "merge_ttl" => {
            Change::MergeTtl { key: words.key()?, operand: words.key()?, ttl_ms: words.number()? }
        }
        _ => {
            let span = words.span()?;
            let bound = |b: Option<Vec<u8>>| b.ok_or("delete_range needs both bounds");
            Change::DeleteRange { from: bound(span.from)?, to: bound(span.to)? }
        }
    };
    Ok(Some(Write { keyspace, change }))
}

fn parse_step(word: &str) -> Parsed<Step> {
    Ok(match word {
        "first" => Step::First,
        "last" => Step::Last,
        "next" => Step::Next,
        "prev" => Step::Prev,
        _ => match word.split_once(':') {
            Some(("seek", key)) => Step::Seek(parse_token(key)?),
            Some(("seek_before", key)) => Step::SeekBefore(parse_token(key)?),
            _ => return Err(format!("`{word}` is not a step")),
        },
    })
}

fn parse_read(verb: &str, words: &mut Words<'_>) -> Parsed<Option<Op>> {
    let direction = match verb.as_bytes()[0] {
        b'r' => Direction::Backward,
        b'z' => Direction::Zigzag,
        _ => Direction::Forward,
    };
    Ok(Some(match verb {
        "get" => Op::Get { keyspace: words.keyspace(), at: words.at(), key: words.key()? },
        "multi_get" => {
            let keyspace = words.keyspace();
            let keys = words.rest().iter().map(|w| parse_token(w)).collect::<Parsed<_>>()?;
            Op::MultiGet { keyspace, keys }
        }
        "scan" | "rscan" | "zigzag" => Op::Scan { span: words.span()?, direction },
        "prefix" | "rprefix" | "zprefix" => {
            let (keyspace, at) = (words.keyspace(), words.at());
            Op::Prefix { keyspace, at, prefix: words.key()?, direction }
        }
        "open" => Op::OpenCursor { cursor: words.word()?.to_owned(), span: words.span()? },
        "walk" => {
            let cursor = words.word()?.to_owned();
            let steps = words.rest().iter().map(|w| parse_step(w)).collect::<Parsed<_>>()?;
            Op::Walk { cursor, steps }
        }
        "refresh" => Op::Refresh { cursor: words.word()?.to_owned() },
        "close" => Op::CloseCursor { cursor: words.word()?.to_owned() },
        _ => return Ok(None),
    }))
}

fn parse_line(line: &str) -> Parsed<Op> {
    let mut words = Words::new(line);
    let verb = words.word()?;
    if let Some(write) = parse_write(verb, &mut words)? {
        let sync = words.flag("sync");
        return words.end(Op::Write { write, sync });
    }
    if let Some(op) = parse_read(verb, &mut words)? {
        return words.end(op);
    }
    if let Some((_, op)) = PLAIN.iter().find(|(name, _)| *name == verb) {
        return words.end(op.clone());
    }
    let op = match verb {
        "snapshot" => Op::Snapshot { name: words.word()?.to_owned() },
        "release" => Op::Release { name: words.word()?.to_owned() },
        "flush" => Op::Flush { keyspace: words.tagged("@").map(str::to_owned) },
        "compact_range" => Op::CompactRange { span: words.span()? },
        "keyspace" => Op::CreateKeyspace {
            name: words.word()?.to_owned(),
            operator: words.tagged("operator:").map(str::to_owned),
            comparator: words.tagged("comparator:").map(str::to_owned),
        },
        "configure" => Op::Configure {
            name: words.word()?.to_owned(),
            ttl_ms: match words.tagged("ttl:") {
                Some(ms) => Some(ms.parse().map_err(|_| format!("`{ms}` is not a number"))?),
                None => None,
            },
            compression: words.tagged("compression:").map(str::to_owned),
        },
        "policy" => Op::Policy { policy: words.rest().join(" ") },
        "drop" => Op::DropKeyspace { name: words.word()?.to_owned() },
        "clock" => {
            let by = words.tagged("+").ok_or("clock moves by +MS")?;
            Op::Clock { forward_ms: by.parse().map_err(|_| format!("`{by}` is not a number"))? }
        }
        _ => return Err(format!("`{verb}` is not an operation")),
    };
    words.end(op)
}

/// An operation of a script, and its place in the file.
#[derive(Clone, Debug)]
pub struct Line {
    /// The operation.
    pub op: Op,
    /// Number of its first line, from 1.
    pub number: usize,
    /// Its text in the file, comments and blank lines before it included.
    pub source: String,
    /// The answer that the file expects, as [`answer_text`] prints it.
    pub expected: String,
}

/// Parses the first line of an operation that takes several lines, up to `end`.
fn begin_of_many(text: &str) -> Parsed<Option<Op>> {
    let mut words = Words::new(text);
    match words.word()? {
        "batch" => {
            let sync = words.flag("sync");
            words.end(Some(Op::Batch { writes: Vec::new(), sync }))
        }
        "ingest" => {
            let keyspace = words.keyspace();
            words.end(Some(Op::Ingest { keyspace, pairs: Vec::new() }))
        }
        _ => Ok(None),
    }
}

/// Adds a line to such an operation.
fn parse_within(op: &mut Op, text: &str) -> Parsed<()> {
    let mut words = Words::new(text);
    match op {
        Op::Batch { writes, .. } => {
            let verb = words.word()?;
            let write = parse_write(verb, &mut words)?;
            writes.push(write.ok_or_else(|| format!("`{verb}` in a batch"))?);
        }
        Op::Ingest { pairs, .. } => pairs.push((words.key()?, words.key()?)),
        _ => return Err("nothing goes on here".to_owned()),
    }
    words.end(())
}

/// Reads a script: operations, each followed by its answer (lines `= ...` and `! ...`).
///
/// # Errors
/// A sentence that names the line.
pub fn parse(script: &str) -> Parsed<Vec<Line>> {
    let mut lines: Vec<Line> = Vec::new();
    let mut open: Option<Line> = None;
    let mut preamble = String::new();
    for (i, raw) in script.lines().enumerate() {
        let text = raw.trim();
        let place = |e: String| format!("line {}: {e}", i + 1);
        if text.starts_with(['=', '!']) {
            let line = lines.last_mut().ok_or_else(|| place("nothing was asked yet".into()))?;
            line.expected += text;
            line.expected.push('\n');
        } else if text.is_empty() || text.starts_with('#') {
            preamble += &format!("{raw}\n");
        } else if let Some(mut line) = open.take() {
            line.source += &format!("{preamble}{raw}\n");
            preamble.clear();
            match text {
                "end" => lines.push(line),
                _ => {
                    parse_within(&mut line.op, text).map_err(place)?;
                    open = Some(line);
                }
            }
        } else {
            let source = format!("{}{raw}\n", std::mem::take(&mut preamble));
            let mut line = Line { op: Op::Wait, number: i + 1, source, expected: String::new() };
            match begin_of_many(text).map_err(place)? {
                Some(op) => {
                    line.op = op;
                    open = Some(line);
                }
                None => {
                    line.op = parse_line(text).map_err(place)?;
                    lines.push(line);
                }
            }
        }
    }
    if open.is_some() {
        return Err("a batch or an ingestion has no end".to_owned());
    }
    Ok(lines)
}

fn pair_text(out: &mut String, pair: &Pair) {
    let _ = writeln!(out, "= {} {}", token(&pair.0), token(&pair.1));
}

fn error_text(kind: ErrorKind) -> String {
    format!("! {}\n", kind.as_str())
}

/// Prints an answer as a script expects it: nothing for plain success.
pub fn answer_text(answer: &Answer) -> String {
    let value = |v: &Option<Vec<u8>>| match v {
        Some(v) => format!("= {}\n", token(v)),
        None => "= (none)\n".to_owned(),
    };
    let mut out = String::new();
    match answer {
        Answer::Done => {}
        Answer::Value(v) => out = value(v),
        Answer::Values(values) => {
            for v in values {
                out += &v.as_ref().map_or_else(|kind| error_text(*kind), value);
            }
        }
        Answer::Pairs(pairs, error) => {
            if pairs.is_empty() && error.is_none() {
                out += "= (empty)\n";
            }
            pairs.iter().for_each(|p| pair_text(&mut out, p));
            out += &error.map(error_text).unwrap_or_default();
        }
        Answer::Dump(spaces) => {
            for (name, pairs) in spaces {
                let _ = writeln!(out, "= @{name}");
                pairs.iter().for_each(|p| pair_text(&mut out, p));
            }
        }
        Answer::Steps(steps) => {
            for step in steps {
                match step {
                    Ok(Some(pair)) => pair_text(&mut out, pair),
                    Ok(None) => out += "= (none)\n",
                    Err(kind) => out += &error_text(*kind),
                }
            }
        }
        Answer::Names(names) => {
            let _ = writeln!(out, "= {}", names.join(" "));
        }
        Answer::Missing => out += "! missing\n",
        Answer::Error(kind) => out += &error_text(*kind),
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tokens_round_trip() {
        let mut cases: Vec<Vec<u8>> = vec![
            vec![],
            b"apple".to_vec(),
            b"a b".to_vec(),
            b"12345678".to_vec(),
            (-7i64).to_le_bytes().to_vec(),
            vec![b'x'; 70_000],
            b"v17-".repeat(500),
            vec![0; 49],
            b"at:x..@y*3\"".to_vec(),
        ];
        cases.extend((0..=255).map(|b| vec![b, b'a']));
        for case in cases {
            assert_eq!(parse_token(&token(&case)), Ok(case.clone()), "{}", token(&case));
        }
        assert!(parse_token("\\x0").is_err() && parse_token("i:x").is_err());
    }

    #[test]
    fn scripts_round_trip() {
        let script = "put a 1\nput_ttl @t a 1 500 sync\nbatch sync\n  delete a\n  \
                      merge @m k i:5\n  merge_ttl @m k i:5 7\n  delete_range a..c\nend\nget @t at:s a\nmulti_get a b\n\
                      scan at:s a..\nrscan @t ..b\nzigzag ..\nprefix a\nrprefix @t at:s a\n\
                      open c at:s a..b\nwalk c first seek:a seek_before:b next prev last\n\
                      refresh c\nclose c\nflush\nflush @t\ncompact_range a..b\n\
                      keyspace m operator:add comparator:x\ndrop m\nclock +500\nsnapshot s\n\
                      release s\ndump\ncompact\nwait\nsync\nreopen\nkill\ncheckpoint\nverify\n\
                      keyspaces\nsingle_delete a\n";
        let ops: Vec<Op> = parse(script).unwrap().into_iter().map(|l| l.op).collect();
        assert_eq!(script_text(&ops), script);
    }

    #[test]
    fn mistakes_name_their_line() {
        for (script, part) in [
            ("put a", "line 1: an operand"),
            ("wait\nfrob a", "line 2: `frob`"),
            ("= 1", "line 1: nothing"),
            ("batch\n put a 1", "no end"),
            ("batch\n get a\nend", "line 2: `get` in a batch"),
            ("get a b", "one word too many"),
            ("scan a", "not a range"),
        ] {
            let error = parse(script).unwrap_err();
            assert!(error.contains(part), "{script}: {error}");
        }
    }
}
