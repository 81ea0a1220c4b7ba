//! The parts that a user brings to a database as code: environment, listener, comparators, merge
//! operators, compaction filters.
//!
//! Owns: their registry and the look-up by the name that the manifest stores. Never does: call any
//! of them.

use crate::events::EventListener;
use crate::operators::{self, CompactionFilter, MergeOperator};
use crate::options::Settings;
use std::fmt;
use std::sync::Arc;
use windrow_base::comparator::BYTEWISE_ID;
use windrow_base::{Comparator, Error, KeyOrder, Result};
use windrow_env::{Env, OsFs};

/// The parts of a database that it cannot store: code, not data.
///
/// [`windrow::Comparator`](windrow_base::Comparator), [`MergeOperator`], [`CompactionFilter`] and
/// [`EventListener`] each have an example of their own.
///
/// ```
/// # let dir = tempfile::tempdir().unwrap();
/// use std::sync::Arc;
/// use windrow::{Components, Db, Event, Options};
/// let listener = |event: &Event| eprintln!("{event}");
/// let components = Components { listener: Some(Arc::new(listener)), ..Components::default() };
/// let db = Db::open_with(dir.path(), Options { components, ..Options::default() })?;
/// db.put("a", "1")?;
/// db.flush()?; // the listener prints what is written to which table
/// # Ok::<(), windrow::Error>(())
/// ```
#[derive(Clone, Default)]
pub struct Components {
    /// Files, clock, threads; `None`: the operating system's, by the settings
    /// `background_threads` and `map_logs`, made at open.
    pub env: Option<Env>,
    /// Told of every [`Event`](crate::events::Event), on the thread where it happens.
    pub listener: Option<Arc<dyn EventListener>>,
    /// Orders of user keys other than the bytewise one, found by their id. A keyspace whose order
    /// is not among them is left out of a read-only open and of followers
    /// ([`Db::keyspaces_left_out`](struct.Db.html#method.keyspaces_left_out); for the default
    /// keyspace every call then fails), and keeps a database from being opened for writing.
    pub comparators: Vec<Arc<dyn Comparator>>,
    /// Merge operators other than the built-in ones, found by their name. If a keyspace's is not
    /// among them, its operands stay as they are, and reads and writes that need it fail.
    pub merge_operators: Vec<Arc<dyn MergeOperator>>,
    /// Compaction filters, each with the name of its keyspace.
    pub compaction_filters: Vec<(String, Arc<dyn CompactionFilter>)>,
}

impl Components {
    /// Returns the given environment, or the operating system's.
    #[doc(hidden)]
    pub fn env_or_os(&self, settings: &Settings) -> Env {
        let os = || {
            let fs = Arc::new(OsFs::new().with_mapped_logs(settings.map_logs));
            Env { fs, ..Env::os(settings.background_threads as usize) }
        };
        self.env.clone().unwrap_or_else(os)
    }

    /// Returns the order with this id, built in or registered.
    ///
    /// # Errors
    /// `InvalidArgument` naming the id if there is none.
    pub fn key_order(&self, id: &str) -> Result<KeyOrder> {
        if id == BYTEWISE_ID {
            return Ok(KeyOrder::Bytewise);
        }
        match self.comparators.iter().find(|c| c.id() == id) {
            Some(comparator) => Ok(KeyOrder::Custom(Arc::clone(comparator))),
            None => Err(Error::invalid(format!(
                "comparator `{id}` is not registered in Components::comparators"
            ))),
        }
    }

    /// Returns the merge operator of this name, built in or registered.
    ///
    /// # Errors
    /// `InvalidArgument` naming it if there is none.
    pub fn merge_operator(&self, name: &str) -> Result<Arc<dyn MergeOperator>> {
        let registered = self.merge_operators.iter().find(|o| o.name() == name).cloned();
        registered.or_else(|| operators::built_in(name)).ok_or_else(|| {
            Error::invalid(format!(
                "merge operator `{name}` is neither built in ({}) nor registered in \
                 Components::merge_operators",
                operators::BUILT_IN_NAMES.join(", ")
            ))
        })
    }

    /// Returns the filter of this keyspace, if it has one.
    pub fn compaction_filter(&self, keyspace: &str) -> Option<&Arc<dyn CompactionFilter>> {
        self.compaction_filters.iter().find(|(name, _)| name == keyspace).map(|(_, f)| f)
    }

    /// Everything wrong with the registry, one sentence each. If two components shared a name,
    /// their position would decide the meaning of stored data.
    #[doc(hidden)]
    pub fn problems(&self) -> Vec<String> {
        let mut problems = Vec::new();
        let ids = self.comparators.iter().map(|c| c.id());
        check_names("comparator", ids, &[BYTEWISE_ID], &mut problems);
        let names = self.merge_operators.iter().map(|o| o.name());
        check_names("merge operator", names, &operators::BUILT_IN_NAMES, &mut problems);
        let keyspaces = self.compaction_filters.iter().map(|(name, _)| name.as_str());
        check_names("compaction filter for keyspace", keyspaces, &[], &mut problems);
        problems
    }
}

fn check_names<'a>(
    what: &str,
    names: impl Iterator<Item = &'a str>,
    reserved: &[&str],
    problems: &mut Vec<String>,
) {
    let mut seen: Vec<&str> = Vec::new();
    for name in names {
        if name.is_empty() {
            problems.push(format!("a {what} has an empty name"));
        } else if reserved.contains(&name) {
            problems.push(format!("{what} `{name}` takes the name of a built-in one"));
        } else if seen.contains(&name) {
            problems.push(format!("{what} `{name}` is registered twice"));
        }
        seen.push(name);
    }
}

impl fmt::Debug for Components {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let comparators: Vec<_> = self.comparators.iter().map(|c| c.id()).collect();
        let merge_operators: Vec<_> = self.merge_operators.iter().map(|o| o.name()).collect();
        let filters: Vec<_> =
            self.compaction_filters.iter().map(|(k, c)| (k.as_str(), c.name())).collect();
        f.debug_struct("Components")
            .field("env", &if self.env.is_some() { "given" } else { "operating system" })
            .field("listener", &self.listener.is_some())
            .field("comparators", &comparators)
            .field("merge_operators", &merge_operators)
            .field("compaction_filters", &filters)
            .finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::cmp::Ordering;

    struct Named(&'static str);

    impl Comparator for Named {
        fn id(&self) -> &str {
            self.0
        }
        fn compare(&self, a: &[u8], b: &[u8]) -> Ordering {
            b.cmp(a)
        }
    }

    impl MergeOperator for Named {
        fn name(&self) -> &str {
            self.0
        }
        fn full_merge(&self, _: &[u8], _: Option<&[u8]>, _: &[&[u8]]) -> Option<Vec<u8>> {
            None
        }
    }

    #[test]
    fn look_up_by_stored_name() {
        let components = Components {
            comparators: vec![Arc::new(Named("reverse"))],
            merge_operators: vec![Arc::new(Named("union"))],
            ..Components::default()
        };
        assert!(components.key_order(BYTEWISE_ID).unwrap().is_bytewise());
        assert_eq!(components.key_order("reverse").unwrap().id(), "reverse");
        assert!(components.key_order("other").unwrap_err().message().contains("other"));
        for name in ["add", "append", "max", "union"] {
            assert_eq!(components.merge_operator(name).unwrap().name(), name);
        }
        assert!(components.merge_operator("other").is_err());
        assert!(components.problems().is_empty());
    }

    #[test]
    fn shared_and_reserved_names_are_problems() {
        let components = Components {
            comparators: vec![
                Arc::new(Named("a")),
                Arc::new(Named("a")),
                Arc::new(Named(BYTEWISE_ID)),
            ],
            merge_operators: vec![Arc::new(Named("add")), Arc::new(Named(""))],
            ..Components::default()
        };
        let problems = components.problems();
        assert_eq!(problems.len(), 4, "{problems:?}");
    }
}
