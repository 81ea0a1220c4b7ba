//! Settings of one keyspace, in place of the database's one for all.
//!
//! Owns: which settings a keyspace can have, their text form (stored with the keyspace), and the
//! check of their values. Never does: apply them.

use super::settings::codec_problems;
use std::fmt::Write as _;
use std::time::Duration;
use windrow_base::{Error, Result};
use windrow_plan::Policy;

/// Settings of one keyspace, stored with it. `None` means the database's setting.
///
/// Given when the keyspace is made or opened
/// ([`KeyspaceOptions::settings`](crate::options::KeyspaceOptions::settings)), or by
/// [`Keyspace::configure`](struct.Keyspace.html#method.configure).
///
/// ```
/// # let dir = tempfile::tempdir().unwrap();
/// # let db = windrow::Db::open(dir.path()).unwrap();
/// use std::time::Duration;
/// use windrow::{KeyspaceOptions, Ttl};
/// use windrow::settings::KeyspaceSettings;
/// let hour = KeyspaceSettings {
///     ttl: Some(Duration::from_secs(3600)),
///     compression: Some("none".into()),
///     ..KeyspaceSettings::default()
/// };
/// let sessions = KeyspaceOptions { settings: hour.clone(), ..KeyspaceOptions::default() };
/// db.keyspace_with("sessions", sessions)?;
/// // From here on whoever opens it has them.
/// let sessions = db.keyspace("sessions")?;
/// assert_eq!(sessions.settings(), hour);
/// sessions.put("ada", "...")?;
/// assert!(matches!(sessions.ttl("ada")?, Ttl::Left(_)));
/// # Ok::<(), windrow::Error>(())
/// ```
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct KeyspaceSettings {
    /// Its policy, as [`Keyspace::set_policy`](struct.Keyspace.html#method.set_policy) takes it.
    /// `None`: the `preset` of the database's settings.
    pub policy: Option<String>,
    /// Its codecs by level, as [`Settings::compression`](crate::options::Settings::compression).
    /// Tables that exist keep theirs until they are merged.
    pub compression: Option<String>,
    /// How long a value is kept if its put does not say
    /// ([`Keyspace::put_with_ttl`](struct.Keyspace.html#method.put_with_ttl); `Duration::MAX` is
    /// for ever). Whole milliseconds, one at the least. It does not apply to merge operands, nor to
    /// entries that were written before.
    pub ttl: Option<Duration>,
}

impl KeyspaceSettings {
    /// Whether the keyspace has no settings of its own.
    #[doc(hidden)]
    pub fn is_empty(&self) -> bool {
        *self == KeyspaceSettings::default()
    }

    /// Returns these settings, replaced by those of `given`.
    #[doc(hidden)]
    pub fn with(&self, given: &KeyspaceSettings) -> KeyspaceSettings {
        KeyspaceSettings {
            policy: given.policy.clone().or_else(|| self.policy.clone()),
            compression: given.compression.clone().or_else(|| self.compression.clone()),
            ttl: given.ttl.or(self.ttl),
        }
    }

    /// The TTL in ms; 0 if there is none.
    #[doc(hidden)]
    pub fn ttl_ms(&self) -> u64 {
        self.ttl.map_or(0, |ttl| u64::try_from(ttl.as_millis()).unwrap_or(u64::MAX))
    }

    /// Everything wrong with them, one sentence each.
    #[doc(hidden)]
    pub fn problems(&self) -> Vec<String> {
        let mut problems = Vec::new();
        if let Some(error) = self.policy.as_deref().and_then(|text| Policy::parse(text).err()) {
            problems.push(format!("policy: {}", error.message()));
        }
        if let Some(list) = &self.compression {
            codec_problems(list, &mut problems);
        }
        if self.ttl.is_some() && self.ttl_ms() == 0 {
            problems.push("ttl is less than a millisecond: what is put would be gone".to_owned());
        }
        problems
    }

    /// # Errors
    /// `InvalidArgument` that lists everything wrong with them.
    #[doc(hidden)]
    pub fn validate(&self) -> Result<()> {
        let problems = self.problems();
        if problems.is_empty() { Ok(()) } else { Err(Error::invalid(problems.join("; "))) }
    }

    /// The keyspace's own settings as `name = value` lines.
    #[doc(hidden)]
    pub fn to_text(&self) -> String {
        let mut out = String::new();
        let ttl_ms = self.ttl.map(|_| self.ttl_ms().to_string());
        let rows = [
            ("policy", self.policy.as_ref()),
            ("compression", self.compression.as_ref()),
            ("ttl_ms", ttl_ms.as_ref()),
        ];
        for (name, value) in rows {
            if let Some(value) = value {
                let _ = writeln!(out, "{name} = {value}");
            }
        }
        out
    }

    /// Reads the text that [`KeyspaceSettings::to_text`] of this or another build wrote. Ignores
    /// settings that this build does not accept.
    #[doc(hidden)]
    pub fn from_text_known(text: &str) -> KeyspaceSettings {
        let mut all = KeyspaceSettings::default();
        for (name, value) in text.lines().filter_map(|line| line.split_once('=')) {
            let (mut one, value) = (KeyspaceSettings::default(), value.trim());
            match name.trim() {
                "policy" => one.policy = Some(value.to_owned()),
                "compression" => one.compression = Some(value.to_owned()),
                "ttl_ms" => one.ttl = value.parse().ok().map(Duration::from_millis),
                _ => {}
            }
            if one.problems().is_empty() {
                all = all.with(&one);
            }
        }
        all
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_gives_the_same_settings_back() {
        let all = KeyspaceSettings {
            policy: Some("leveled filters=monkey(bits=8)".into()),
            compression: Some("none, lz4".into()),
            ttl: Some(Duration::from_millis(1500)),
        };
        assert_eq!(KeyspaceSettings::from_text_known(&all.to_text()), all);
        let none = KeyspaceSettings::default();
        assert_eq!((none.to_text().as_str(), none.is_empty()), ("", true));
        let ever = KeyspaceSettings { ttl: Some(Duration::MAX), ..none };
        assert_eq!(KeyspaceSettings::from_text_known(&ever.to_text()).ttl_ms(), u64::MAX);
    }

    #[test]
    fn what_another_build_wrote_is_taken_as_far_as_it_is_known() {
        let text = "policy = of tomorrow\ncompression = lz4\nttl_ms = 0\nnew = 7\nno line\n";
        let known = KeyspaceSettings::from_text_known(text);
        assert_eq!(known.to_text(), "compression = lz4\n");
    }

    #[test]
    fn all_problems_come_at_once() {
        let wrong = KeyspaceSettings {
            policy: Some("level".into()),
            compression: Some("snappy".into()),
            ttl: Some(Duration::from_micros(1)),
        };
        let message = wrong.validate().unwrap_err().to_string();
        for part in ["policy", "snappy", "ttl"] {
            assert!(message.contains(part), "{message}");
        }
    }
}
