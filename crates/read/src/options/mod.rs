//! The options of a database, a keyspace and a write.
//!
//! Owns: `Options` and its two halves, `Settings` (plain data, one table of rows, a text form)
//! and `Components` (code that the user brings). Never does: act on any of them, or touch a file.

mod components;
mod keyspace_options;
mod keyspace_settings;
mod settings;
mod similar_name;
mod text;
mod write_sync;

pub use components::Components;
pub use keyspace_options::KeyspaceOptions;
pub use keyspace_settings::KeyspaceSettings;
pub use settings::MEMTABLES_MIN;
pub use settings::{SettingRange, SettingRow, Settings, Unit};
pub use write_sync::WriteSync;

use windrow_base::{Error, Result};

/// How a database is opened.
///
/// ```
/// # let dir = tempfile::tempdir().unwrap();
/// use windrow::{Db, Options};
/// let mut options = Options { error_if_exists: true, ..Options::default() };
/// options.settings.memory_bytes = 64 << 20;
/// options.settings.set("preset", "leveled")?; // or as text, from a file or a command line
/// let db = Db::open_with(dir.path(), options)?;
/// db.put("a", "1")?;
/// db.close()?;
///
/// let reading = Options { read_only: true, ..Options::default() };
/// let db = Db::open_with(dir.path(), reading)?;
/// assert!(db.contains_key("a")? && db.put("b", "1").is_err());
/// # Ok::<(), windrow::Error>(())
/// ```
#[derive(Clone, Debug)]
pub struct Options {
    /// Make the database if the directory has none (default: yes).
    pub create_if_missing: bool,
    /// Refuse to open a database that exists (default: no).
    pub error_if_exists: bool,
    /// Open for reading only: nothing in the directory is written or made (default: no).
    pub read_only: bool,
    /// Order and merge operator of the default keyspace, when the database is made, and its own
    /// settings.
    pub default_keyspace: KeyspaceOptions,
    /// Sizes, limits, policies: plain data.
    pub settings: Settings,
    /// Environment, comparators, operators, filters, listener: behaviour.
    pub components: Components,
}

impl Default for Options {
    fn default() -> Options {
        Options {
            create_if_missing: true,
            error_if_exists: false,
            read_only: false,
            default_keyspace: KeyspaceOptions::default(),
            settings: Settings::default(),
            components: Components::default(),
        }
    }
}

impl Options {
    /// Checks settings, components, and that they do not contradict each other.
    ///
    /// # Errors
    /// `InvalidArgument` that lists every problem, not only the first.
    pub fn validate(&self) -> Result<()> {
        let mut problems = self.settings.validate().err().unwrap_or_default();
        problems.extend(self.components.problems());
        problems.extend(self.default_keyspace.settings.problems());
        if self.read_only && self.error_if_exists {
            problems.push(
                "read_only and error_if_exists exclude each other: a read-only open needs a \
                 database that exists"
                    .to_owned(),
            );
        }
        if problems.is_empty() { Ok(()) } else { Err(Error::invalid(problems.join("; "))) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn defaults_are_valid() {
        Options::default().validate().unwrap();
    }

    #[test]
    fn all_problems_come_at_once() {
        let mut options = Options { read_only: true, error_if_exists: true, ..Options::default() };
        options.settings.memory_bytes = 1;
        options.settings.background_threads = 0;
        let message = options.validate().unwrap_err().to_string();
        for part in ["memory_bytes", "background_threads", "error_if_exists"] {
            assert!(message.contains(part), "{message}");
        }
    }
}
