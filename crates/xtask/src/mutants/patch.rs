//! A patch: a head, and the changes of files, as a unified difference.
//!
//! It is applied exactly. The old lines of a hunk must be present, at the line that it names or at
//! one place elsewhere, since the lines above may grow.
//!
//! Owns: reading, finding the place, and writing. Never does: read or write a file.

use std::collections::BTreeMap;
use std::fmt::Write;

/// Lines around a change that a patch shows.
const CONTEXT: usize = 3;

/// A change of one file: lines of it are replaced.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Change {
    /// The first line that is removed, or before which lines are inserted; from 0.
    pub(super) at: usize,
    /// The number of removed lines.
    pub(super) removed: usize,
    /// The inserted lines.
    pub(super) added: Vec<String>,
}

/// Lines that must be present, and their changes.
#[derive(Debug)]
struct Hunk {
    /// The line at which it begins, from 0.
    at: usize,
    /// The old lines: context, and removed lines.
    before: Vec<String>,
    /// Counted from the hunk's first line.
    changes: Vec<Change>,
}

/// A patch.
#[derive(Debug)]
pub(super) struct Patch {
    /// The text before the first file's name.
    pub(super) head: String,
    /// By file, in the order of the patch.
    hunks: Vec<(String, Hunk)>,
}

impl Patch {
    /// Reads a patch.
    ///
    /// # Errors
    /// The line that is not valid in a patch.
    pub(super) fn parse(text: &str) -> Result<Patch, String> {
        let mut patch = Patch { head: String::new(), hunks: Vec::new() };
        let mut file = None;
        let mut lines = (1..).zip(text.lines());
        while let Some((number, line)) = lines.next() {
            if let Some(path) = line.strip_prefix("+++ b/") {
                file = Some(path.to_owned());
            } else if line.starts_with("@@ ") {
                let wrong = || format!("line {number}: not the head of a hunk: {line}");
                let (at, before, after) = ranges(line).ok_or_else(wrong)?;
                let file = file.clone().ok_or_else(|| format!("line {number}: of which file?"))?;
                let hunk = hunk(at, (before, after), lines.by_ref().map(|(_, line)| line));
                patch.hunks.push((file, hunk.map_err(|e| format!("line {number}: {e}"))?));
            } else if file.is_none() && !line.starts_with("--- ") {
                patch.head.extend([line, "\n"]);
            }
        }
        if patch.hunks.is_empty() { Err("it changes nothing".to_owned()) } else { Ok(patch) }
    }

    /// Returns the files that it changes.
    pub(super) fn files(&self) -> impl Iterator<Item = &str> {
        self.hunks.iter().map(|(file, _)| &**file)
    }

    /// Returns the lines that it adds.
    pub(super) fn added(&self) -> impl Iterator<Item = &str> {
        let changes = self.hunks.iter().flat_map(|(_, hunk)| &hunk.changes);
        changes.flat_map(|change| &change.added).map(String::as_str)
    }

    /// Returns the changes of each file, whose lines `text` gives. At each end of a hunk `less`
    /// lines of context may differ.
    ///
    /// # Errors
    /// The hunk that has no place, or more than one.
    pub(super) fn changes<'a>(
        &self,
        text: impl Fn(&str) -> Option<&'a str>,
        less: usize,
    ) -> Result<BTreeMap<String, Vec<Change>>, String> {
        let mut changes: BTreeMap<String, Vec<Change>> = BTreeMap::new();
        for (file, hunk) in &self.hunks {
            let lines: Vec<&str> =
                text(file).ok_or_else(|| format!("{file} is not there"))?.lines().collect();
            let place = |why| format!("{file}, hunk of line {}: {why}", hunk.at + 1);
            let at = hunk.find(&lines, less).map_err(place)?;
            let moved = hunk.changes.iter().cloned();
            let moved =
                moved.map(|change| Change { at: (at + change.at as isize) as usize, ..change });
            changes.entry(file.clone()).or_default().extend(moved);
        }
        Ok(changes)
    }
}

/// Parses `@@ -begin,lines +begin,lines @@`: the first line, from 0, and lines before and after.
fn ranges(line: &str) -> Option<(usize, usize, usize)> {
    let mut words = line.split(' ').skip(1);
    let range = |word: &str, sign| {
        let word = word.strip_prefix(sign)?;
        let (at, lines) = word.split_once(',').unwrap_or((word, "1"));
        Some((at.parse::<usize>().ok()?, lines.parse::<usize>().ok()?))
    };
    let (at, before) = range(words.next()?, '-')?;
    let (_, after) = range(words.next()?, '+')?;
    Some((at.saturating_sub(1), before, after))
}

/// Reads the lines of a hunk.
fn hunk<'a>(
    at: usize,
    (mut before, mut after): (usize, usize),
    mut lines: impl Iterator<Item = &'a str>,
) -> Result<Hunk, String> {
    let mut hunk = Hunk { at, before: Vec::new(), changes: Vec::new() };
    let mut open: Option<Change> = None;
    while before + after > 0 {
        let line = lines.next().ok_or("the hunk ends early")?;
        // Some editors remove the space of an empty line.
        let (sign, rest) = line.split_at_checked(1).unwrap_or((" ", ""));
        let here = hunk.before.len();
        let change = || Change { at: here, removed: 0, added: Vec::new() };
        let (goes, comes) = match sign {
            " " => (1, 1),
            "-" => (1, 0),
            "+" => (0, 1),
            _ => return Err(format!("not a line of a hunk: {line}")),
        };
        before = before.checked_sub(goes).ok_or("the hunk has more lines than it says")?;
        after = after.checked_sub(comes).ok_or("the hunk has more lines than it says")?;
        match sign {
            " " => hunk.changes.extend(open.take()),
            "-" => open.get_or_insert_with(change).removed += 1,
            _ => open.get_or_insert_with(change).added.push(rest.to_owned()),
        }
        if goes > 0 {
            hunk.before.push(rest.to_owned());
        }
    }
    hunk.changes.extend(open);
    Ok(hunk)
}

impl Hunk {
    /// Returns the place of its first line, or where that would be.
    fn find(&self, lines: &[&str], less: usize) -> Result<isize, &'static str> {
        let first = self.changes.first().map_or(0, |change| change.at);
        let last = self.changes.last().map_or(0, |change| change.at + change.removed);
        let begin = less.min(first);
        let end = self.before.len() - less.min(self.before.len() - last);
        let wanted = &self.before[begin..end];
        if wanted.is_empty() {
            return Err("no line is left to find it by");
        }
        let is_at =
            |at: &usize| lines[*at..].iter().zip(wanted).all(|(line, wanted)| line == wanted);
        let mut places = (0..(lines.len() + 1).saturating_sub(wanted.len())).filter(is_at);
        let named = self.at + begin;
        let place = match (places.next(), places.next()) {
            (None, _) => return Err("its lines are not there"),
            (Some(one), None) => one,
            _ if named + wanted.len() <= lines.len() && is_at(&named) => named,
            _ => return Err("its lines are at more than one place"),
        };
        Ok(place as isize - begin as isize)
    }
}

/// Applies the changes of several patches to one file.
///
/// # Errors
/// The line that two of them change.
pub(super) fn apply(text: &str, mut changes: Vec<Change>) -> Result<String, String> {
    // Lines inserted before a line precede its replacement. Two insertions at one line are in the
    // order of their patches.
    changes.sort_by_key(|change| (change.at, change.removed > 0));
    let lines: Vec<&str> = text.lines().collect();
    let (mut patched, mut at) = (String::new(), 0);
    for change in &changes {
        let kept = lines.get(at..change.at);
        let kept = kept.ok_or_else(|| format!("two patches change line {}", change.at + 1))?;
        let added = change.added.iter().map(String::as_str);
        kept.iter().copied().chain(added).for_each(|line| patched.extend([line, "\n"]));
        at = change.at + change.removed;
    }
    lines[at..].iter().for_each(|line| patched.extend([line, "\n"]));
    Ok(patched)
}

/// Writes the changes of one file as a part of a patch.
pub(super) fn write(file: &str, text: &str, changes: &[Change]) -> String {
    let lines: Vec<&str> = text.lines().collect();
    let mut out = format!("--- a/{file}\n+++ b/{file}\n");
    let mut grown = 0;
    let mut rest = changes;
    while !rest.is_empty() {
        let is_far = |pair: &[Change]| 2 * CONTEXT < pair[1].at - (pair[0].at + pair[0].removed);
        let count = rest.windows(2).position(is_far).map_or(rest.len(), |last| last + 1);
        let (these, others) = rest.split_at(count);
        rest = others;
        let begin = these[0].at.saturating_sub(CONTEXT);
        let end = these.last().map_or(begin, |last| last.at + last.removed + CONTEXT);
        let end = end.min(lines.len());
        let (before, mut after, mut at) = (end - begin, end - begin, begin);
        let mut body = String::new();
        for change in these {
            lines[at..change.at].iter().for_each(|line| body.extend([" ", line, "\n"]));
            at = change.at + change.removed;
            lines[change.at..at].iter().for_each(|line| body.extend(["-", line, "\n"]));
            change.added.iter().for_each(|line| body.extend(["+", line, "\n"]));
            after = after + change.added.len() - change.removed;
        }
        lines[at..end].iter().for_each(|line| body.extend([" ", line, "\n"]));
        let begin = begin + 1;
        let _ = writeln!(out, "@@ -{begin},{before} +{},{after} @@", begin + grown);
        out += &body;
        grown = grown + after - before;
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &str = "a\nb\nc\nd\ne\nf\ng\n";
    const PATCH: &str = "Breaks P1: it\n--- a/x.rs\n+++ b/x.rs\n\
                         @@ -2,3 +2,4 @@\n b\n+new\n-c\n+other\n d\n";

    fn changes(patch: &str, text: &str, less: usize) -> Result<Vec<Change>, String> {
        let changes =
            Patch::parse(patch)?.changes(|file| (file == "x.rs").then_some(text), less)?;
        Ok(changes.into_values().flatten().collect())
    }

    #[test]
    fn a_patch_is_applied_where_its_lines_are() {
        let patched = "a\nb\nnew\nother\nd\ne\nf\ng\n";
        assert_eq!(apply(TEXT, changes(PATCH, TEXT, 0).unwrap()).unwrap(), patched);
        let moved = format!("0\n0\n{TEXT}");
        let patched = format!("0\n0\n{patched}");
        assert_eq!(apply(&moved, changes(PATCH, &moved, 0).unwrap()).unwrap(), patched);
        assert_eq!(Patch::parse(PATCH).unwrap().head, "Breaks P1: it\n");
    }

    #[test]
    fn a_patch_that_has_no_place_is_refused() {
        let gone = TEXT.replace("d\n", "D\n");
        assert!(changes(PATCH, &gone, 0).unwrap_err().contains("not there"));
        assert!(changes(PATCH, &gone, 1).is_ok());
        assert!(changes(PATCH, &TEXT.replace("c\n", "C\n"), 3).unwrap_err().contains("not there"));
        assert!(changes(PATCH, &format!("{TEXT}{TEXT}"), 0).is_ok());
        assert!(changes(PATCH, &format!("0\n{TEXT}{TEXT}"), 0).unwrap_err().contains("more than"));
        assert!(changes(&PATCH.replace("x.rs", "y.rs"), TEXT, 0).unwrap_err().contains("y.rs"));
    }

    #[test]
    fn what_is_no_patch_is_refused() {
        for (text, part) in [
            ("Breaks P1: it\n", "nothing"),
            (&PATCH.replace("-2,3", "-2,x"), "head of a hunk"),
            (&PATCH.replace("-2,3", "-2,4"), "ends early"),
            (&PATCH.replace("-2,3", "-2,1"), "more lines"),
            (&PATCH.replace("+++ b/x.rs\n", ""), "which file"),
            (&PATCH.replace("-c", "*c"), "not a line"),
        ] {
            let error = Patch::parse(text).unwrap_err();
            assert!(error.contains(part), "{text}: {error}");
        }
    }

    #[test]
    fn two_patches_may_touch_and_not_overlap() {
        let change = |at, removed, line: &str| Change { at, removed, added: vec![line.to_owned()] };
        let both = |one, other| apply("a\nb\nc\n", vec![one, other]);
        assert_eq!(both(change(1, 1, "B"), change(1, 0, "0")).unwrap(), "a\n0\nB\nc\n");
        assert_eq!(both(change(1, 1, "B"), change(2, 1, "C")).unwrap(), "a\nB\nC\n");
        assert_eq!(both(change(1, 0, "1"), change(1, 0, "2")).unwrap(), "a\n1\n2\nb\nc\n");
        assert!(both(change(0, 2, "A"), change(1, 1, "B")).unwrap_err().contains("line 2"));
        assert!(both(change(0, 2, "A"), change(1, 0, "B")).is_err());
        assert!(both(change(1, 1, "A"), change(1, 1, "B")).is_err());
    }

    #[test]
    fn what_is_written_is_read_again() {
        let text: String = (0..40).map(|line| format!("{line}\n")).collect();
        let change = |at, removed, lines: &[&str]| {
            let added = lines.iter().map(|line| (*line).to_owned()).collect();
            Change { at, removed, added }
        };
        let some = [
            change(0, 0, &["x"]),
            change(5, 2, &["y", ""]),
            change(30, 1, &[]),
            change(37, 1, &["z"]),
        ];
        let written = write("x.rs", &text, &some);
        assert_eq!(written.matches("@@ -").count(), 2, "{written}");
        assert!(written.contains("@@ -28,13 +29,12 @@"), "{written}");
        assert_eq!(changes(&written, &text, 0).unwrap(), some);
    }
}
