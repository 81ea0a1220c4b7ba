//! The files that the pages name, in each page's directory before its first command.
//!
//! Owns: their names and contents. Never does: make a database; the pages' commands do.

/// Each by name, with its content.
pub(super) const FILES: &[(&str, &str)] =
    &[("words.tsv", WORDS), ("users.csv", USERS_CSV), ("users.jsonl", USERS_JSONL)];

/// In order, as `load --sorted` asks for.
const WORDS: &str = "\
apple\tred or green
application\tof paint
banana\tyellow
cherry\tred
pear\tgreen
";

const USERS_CSV: &str = "\
id;name;mail
1;Ada;ada@example.org
2;Grace;grace@example.org
";

const USERS_JSONL: &str = "\
{\"user\": {\"id\": \"1\", \"name\": \"Ada\"}, \"mail\": \"ada@example.org\"}
{\"user\": {\"id\": \"2\", \"name\": \"Grace\"}, \"mail\": \"grace@example.org\"}
";
