//! The moments of one or several trees in sequence, for the page.
//!
//! Owns: the short form of a moment, which lists the tables that came and went since the moment
//! before; each table is described once. Never does: draw.

use crate::trees::table;
use serde_json::{Map, Value, json};
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use windrow::inspect::dump::NamedTrees;
use windrow::inspect::{Part, Version};

/// The moments of one or several trees.
#[derive(Clone, Debug, Default)]
pub struct Film {
    /// The tables of each tree, by its name and their numbers.
    tables: Map<String, Value>,
    moments: Vec<Value>,
    /// The places of each tree's last moment.
    last: BTreeMap<String, BTreeSet<Place>>,
}

/// A level, 1 for its SST-log or 0 for its run, a table's number, and its epoch.
type Place = (u32, u8, u64, u64);

/// A tree at one moment.
#[derive(Clone, Copy, Debug)]
pub struct Shot<'a> {
    /// Its name: of a keyspace, or of a policy.
    pub name: &'a str,
    /// Its policy, if it is known.
    pub policy: &'a str,
    /// The step that led to it.
    pub text: &'a str,
    /// The tree.
    pub tree: &'a Version,
}

impl Film {
    /// Adds a moment.
    pub fn add(&mut self, text: &str, shots: &[Shot<'_>]) {
        let keyspaces: Vec<Value> = shots.iter().map(|shot| self.changes(shot)).collect();
        self.moments.push(json!({ "text": text, "keyspaces": keyspaces }));
    }

    fn changes(&mut self, shot: &Shot<'_>) -> Value {
        let Shot { name, policy, text, tree } = shot;
        let tables = self.tables.entry(*name).or_insert_with(|| json!({}));
        let mut places = BTreeSet::new();
        for (level, part, file) in tree.files() {
            let key = file.number.to_string();
            if tables.get(&key).is_none() {
                tables[key] = table(file, None);
            }
            places.insert((level, u8::from(part == Part::SstLog), file.number, file.epoch));
        }
        let last = self.last.entry((*name).to_owned()).or_default();
        let come: Vec<&Place> = places.difference(last).collect();
        let gone: Vec<&Place> = last.difference(&places).collect();
        let changes = json!({
            "name": name, "policy": policy, "text": text, "levels": tree.levels.len(), "come": come, "gone": gone,
        });
        *last = places;
        changes
    }

    /// Returns the trees that the manifest of the database in `dir` describes. Of more than
    /// `count_max` (2 at least) it keeps some at even distances, and the last one.
    ///
    /// # Errors
    /// Those of [`windrow::inspect::dump::trees`].
    pub fn of_manifest(dir: &Path, count_max: usize) -> windrow::Result<Film> {
        let mut all: Vec<(usize, NamedTrees)> = Vec::new();
        let (mut number, mut step, mut last) = (0_usize, 1, None);
        windrow::inspect::dump::trees(dir, &mut |trees| {
            // The tree before this one was not the last: it stays only if its number is due.
            if let Some((number, trees)) = last.replace((number, trees))
                && number.is_multiple_of(step)
            {
                all.push((number, trees));
            }
            number += 1;
            if all.len() >= count_max.max(2) {
                // Every second tree is dropped.
                step *= 2;
                all.retain(|(number, _)| number.is_multiple_of(step));
            }
            Ok(())
        })?;
        all.extend(last);
        let mut film = Film::default();
        for (number, trees) in &all {
            let shot = |(name, tree)| Shot { name, policy: "", text: "", tree };
            let shots: Vec<Shot<'_>> =
                trees.iter().map(|(name, tree)| (name.as_str(), &**tree)).map(shot).collect();
            film.add(&format!("after change {}", number + 1), &shots);
        }
        Ok(film)
    }

    /// Puts the film into a state for [`crate::page::of`].
    pub fn put_into(self, state: &mut Value) {
        state["tables"] = self.tables.into();
        state["moments"] = self.moments.into();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use windrow::Db;

    fn numbers(film: &Film) -> Vec<u64> {
        let text = |moment: &Value| moment["text"].as_str().unwrap().to_owned();
        let number = |text: String| text.rsplit(' ').next().unwrap().parse().unwrap();
        film.moments.iter().map(text).map(number).collect()
    }

    #[test]
    fn the_last_moment_is_the_tree_as_it_is_however_few_are_kept() {
        let dir = tempfile::tempdir().unwrap();
        let db = Db::open(dir.path()).unwrap();
        for n in 0..40 {
            db.put(format!("key{n}"), "x").unwrap();
            db.flush().unwrap();
        }
        let whole = Film::of_manifest(dir.path(), usize::MAX).unwrap();
        let all = numbers(&whole);
        assert!(all.len() > 40 && all.iter().copied().eq(1..=all.len() as u64), "{all:?}");
        for count_max in [0, 2, 3, 10, 39] {
            let film = Film::of_manifest(dir.path(), count_max).unwrap();
            let some = numbers(&film);
            assert!((2..=count_max.max(2)).contains(&some.len()), "{count_max}: {some:?}");
            assert_eq!(some.last(), all.last());
            // The changes, applied in order, add up to the tree of the open database.
            let expected: BTreeSet<Place> = windrow::inspect::trees(&db)[0]
                .1
                .files()
                .map(|(level, part, file)| {
                    (level, u8::from(part == Part::SstLog), file.number, file.epoch)
                })
                .collect();
            assert_eq!(film.last["default"], expected);
            let mut told = BTreeSet::new();
            for moment in &film.moments {
                let tree = moment["keyspaces"].as_array().unwrap().last().unwrap();
                let places = |of: &str| -> BTreeSet<Place> {
                    serde_json::from_value(tree[of].clone()).unwrap()
                };
                told.retain(|place| !places("gone").contains(place));
                told.extend(places("come"));
            }
            assert_eq!(told, expected);
        }
    }
}
