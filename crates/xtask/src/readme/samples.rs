//! The files that the pages name, in each page's directory before its first command.
//!
//! Owns: their names and contents. Never does: make a database; the pages' commands do.

/// Each file by name, with its contents.
pub(super) const FILES: &[(&str, &str)] =
    &[("words.tsv", WORDS), ("users.csv", USERS_CSV), ("users.jsonl", USERS_JSONL)];

/// Sorted, as `load --sorted` requires.
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
