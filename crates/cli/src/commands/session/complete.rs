//! Completion of the word at the cursor: commands, flags, keyspaces, keys of
//! the database.
//!
//! Owns: the candidates of each place in a line. Never does: fail. Where
//! nothing is known, nothing is offered.

use super::table::{OWN_COMMANDS, commands};
use super::words;
use crate::session::Session;
use std::ffi::OsString;
use std::os::unix::ffi::OsStrExt;
use windrow::{Db, ReadOptions};

/// The most keys that are offered at once.
const KEYS_MAX: usize = 50;

/// Commands with keys for words, each with the number of such words from the
/// first on.
const WITH_KEYS: [(&str, usize); 6] = [
    ("get", usize::MAX),
    ("put", 1),
    ("ttl", 1),
    ("merge", 1),
    ("delete", usize::MAX),
    ("delete-range", 2),
];

/// Flags that a key follows.
const BEFORE_KEYS: [&str; 4] = ["--from", "--to", "--prefix", "-p"];

/// Returns the place where the word at the end of `line` begins, and its
/// completions.
pub(super) fn complete(session: &Session, line: &str) -> (usize, Vec<String>) {
    let start = line.rfind([' ', '\t']).map_or(0, |at| at + 1);
    let (before, begun) = line.split_at(start);
    let Ok(before) = words::split(before.as_bytes()) else { return (start, Vec::new()) };
    let Ok(mut word) = words::split(begun.as_bytes()) else { return (start, Vec::new()) };
    let word = word.pop().unwrap_or_default();
    let mut found = candidates(session, &before, &word);
    // A complete word is followed by a blank.
    if let [one] = found.as_mut_slice() {
        one.push(' ');
    }
    (start, found)
}

fn candidates(session: &Session, before: &[OsString], word: &OsString) -> Vec<String> {
    let Some(command) = before.first() else {
        let names = commands().map(|command| command.get_name().to_owned());
        return begun_by(word, OWN_COMMANDS.iter().map(|&name| name.to_owned()).chain(names));
    };
    let Some(command) = command.to_str() else { return Vec::new() };
    let last = before.last().and_then(|last| last.to_str());
    let is_keyspace = matches!(last, Some("-k" | "--keyspace"))
        || before.len() == 1 && command == "use"
        || before.len() == 2 && command == "keyspaces" && last == Some("drop");
    if is_keyspace {
        return begun_by(word, session.db().keyspaces().into_iter());
    }
    if command == "help" {
        return begun_by(word, commands().map(|command| command.get_name().to_owned()));
    }
    if word.as_bytes().starts_with(b"-") {
        return begun_by(word, flags(command).into_iter());
    }
    if command == "keyspaces" && before.len() == 1 {
        return begun_by(word, ["create", "drop"].map(str::to_owned).into_iter());
    }
    let given = words_given(command, &before[1..]);
    let takes_keys = WITH_KEYS.iter().any(|&(name, keys)| name == command && given < keys);
    if takes_keys || last.is_some_and(|last| BEFORE_KEYS.contains(&last)) {
        return keys(&session.db(), &keyspace_of(session, before), word);
    }
    Vec::new()
}

fn begun_by(word: &OsString, all: impl Iterator<Item = String>) -> Vec<String> {
    let begins = |name: &String| name.as_bytes().starts_with(word.as_bytes());
    let mut found: Vec<String> =
        all.filter(begins).map(|name| words::quote(name.as_bytes())).collect();
    found.sort();
    found
}

/// Returns the flags of a command.
fn flags(command: &str) -> Vec<String> {
    let Some(command) = commands().find(|known| known.get_name() == command) else {
        return Vec::new();
    };
    let of = command.get_arguments().filter(|argument| !argument.is_hide_set());
    of.filter_map(|argument| argument.get_long()).map(|long| format!("--{long}")).collect()
}

/// Counts the words that are neither flags nor their values.
fn words_given(command: &str, words: &[OsString]) -> usize {
    let known = commands().find(|known| known.get_name() == command);
    let takes_value = |flag: &str| {
        let is_it = |of: &&clap::Arg| {
            let long = of.get_long().is_some_and(|long| flag.strip_prefix("--") == Some(long));
            long || of.get_short().is_some_and(|short| flag == format!("-{short}"))
        };
        let found = known.as_ref().and_then(|known| known.get_arguments().find(is_it));
        found.is_some_and(|of| of.get_action().takes_values())
    };
    let (mut given, mut rest) = (0, words.iter());
    while let Some(word) = rest.next() {
        match word.to_str().filter(|word| word.starts_with('-')) {
            Some(flag) if takes_value(flag) => _ = rest.next(),
            Some(_) => {}
            None => given += 1,
        }
    }
    given
}

/// Returns the keyspace that a line names, or the session's.
fn keyspace_of(session: &Session, before: &[OsString]) -> String {
    let is_flag = |word: &OsString| word == "-k" || word == "--keyspace";
    let named = before.iter().position(is_flag).and_then(|at| before.get(at + 1)?.to_str());
    named.map_or_else(|| session.keyspace(), str::to_owned)
}

/// Returns the first keys that begin with `begun`.
fn keys(db: &Db, keyspace: &str, begun: &OsString) -> Vec<String> {
    let Ok(Some(keyspace)) = db.open_keyspace(keyspace) else { return Vec::new() };
    let lower = begun.as_bytes().to_vec();
    let options = ReadOptions {
        upper: crate::bytes::prefix_end(&lower),
        lower: Some(lower),
        fill_cache: false,
        ..ReadOptions::default()
    };
    let mut cursor = keyspace.cursor(options);
    let (mut found, mut more) = (Vec::new(), cursor.seek_first());
    while matches!(more, Ok(true)) && found.len() < KEYS_MAX {
        found.push(words::quote(cursor.key()));
        more = cursor.next();
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn commands_flags_keyspaces_and_keys_are_offered() {
        let dir = tempfile::tempdir().unwrap();
        let db = Db::open(dir.path()).unwrap();
        for key in ["apple", "apricot", "b c", "pear"] {
            db.put(key, "1").unwrap();
        }
        db.keyspace("users").unwrap().put("ada", "1815").unwrap();
        let session = Session::of(db, dir.path());
        let of = |line: &str| complete(&session, line).1.join(" ").trim_end().to_owned();
        assert_eq!(of("del"), "delete delete-range");
        assert_eq!(of("us"), "use");
        assert_eq!(of("use u"), "users");
        assert_eq!(of("get ap"), "apple apricot");
        assert_eq!(complete(&session, "get ap").0, 4);
        assert_eq!(of("get 'b"), "");
        assert_eq!(of("get b"), "'b c'");
        assert_eq!(of("get apple pe"), "pear");
        assert_eq!(of("put apple "), "");
        assert_eq!(complete(&session, "scan --rev").1, ["--reverse "], "a word that is whole ends");
        assert_eq!(of("delete apple p"), "pear");
        assert_eq!(of("get -k users "), "ada");
        assert_eq!(of("scan --from p"), "pear");
        assert_eq!(of("scan --rev"), "--reverse");
        assert_eq!(of("keyspaces drop "), "default users");
        assert_eq!(of("help cou"), "count");
        assert_eq!(of("nothing x"), "");
        session.set_keyspace("users");
        assert_eq!(of("get "), "ada");
    }
}
