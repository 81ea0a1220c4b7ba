//! The graph of a crate's files, and the reasons why one needs another.
//!
//! Owns: the edges, and the groups in which every file needs every other. Never does:
//! look into sources.

use std::collections::{BTreeMap, BTreeSet};

/// The names of another file that a file uses, each with its first line.
pub(super) type Reasons = BTreeMap<String, usize>;

/// The names that each file uses of each other file.
#[derive(Default)]
pub(super) struct Graph {
    edges: BTreeMap<(String, String), Reasons>,
}

impl Graph {
    /// Adds that `from` names something of `to` at a line.
    pub(super) fn add(&mut self, from: &str, to: &str, name: String, line: usize) {
        if from != to {
            let reasons = self.edges.entry((from.to_owned(), to.to_owned())).or_default();
            let first = reasons.entry(name).or_insert(line);
            *first = line.min(*first);
        }
    }

    /// Returns the groups of two or more files that need each other, sorted.
    pub(super) fn circles(&self) -> Vec<Vec<String>> {
        let files: BTreeSet<&str> = self.edges.keys().map(|(from, _)| from.as_str()).collect();
        let reached: BTreeMap<&str, BTreeSet<&str>> =
            files.iter().map(|file| (*file, self.reached_from(file))).collect();
        let mut circles = Vec::new();
        for file in &files {
            let in_circle = |other: &&&str| {
                reached[*file].contains(**other) && reached[**other].contains(*file)
            };
            let circle: Vec<String> =
                files.iter().filter(in_circle).map(|file| (*file).to_owned()).collect();
            // Each circle once: from its first file.
            if circle.first().is_some_and(|first| first == file) {
                circles.push(circle);
            }
        }
        circles
    }

    fn reached_from<'a>(&'a self, file: &'a str) -> BTreeSet<&'a str> {
        let mut reached = BTreeSet::new();
        let mut open = vec![file];
        while let Some(file) = open.pop() {
            let next = self.edges.keys().filter(|(from, _)| from == file);
            open.extend(next.map(|(_, to)| to.as_str()).filter(|to| reached.insert(*to)));
        }
        reached
    }

    /// Returns the edges between files of a group, sorted.
    pub(super) fn within(&self, group: &[String]) -> Vec<(&str, &str, &Reasons)> {
        let inside = |file: &String| group.contains(file);
        let edges = self.edges.iter().filter(|((from, to), _)| inside(from) && inside(to));
        edges.map(|((from, to), reasons)| (from.as_str(), to.as_str(), reasons)).collect()
    }
}
