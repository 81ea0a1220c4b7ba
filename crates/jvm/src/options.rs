//! Options as Java passes them: an array of alternating names and values.
//!
//! Owns: the words that are not settings. Never does: know a setting's name; the engine does.

use crate::callbacks::{JavaComparator, JavaFilter, JavaListener, JavaMergeOperator};
use crate::failure::Outcome;
use crate::jvm::Env;
use crate::kept::Kept;
use crate::work::Work;
use jni_sys::{jint, jobjectArray};
use std::sync::Arc;
use std::time::Duration;
use windrow::settings::KeyspaceSettings;
use windrow::{Error, KeyspaceOptions, Options};

/// Bits of the flags of `Native.open`.
const CREATE_IF_MISSING: jint = 1;
const ERROR_IF_EXISTS: jint = 2;
const READ_ONLY: jint = 4;

/// The options of a database, as the arguments of `Native.open`.
pub(crate) struct Given {
    pub(crate) flags: jint,
    /// Settings.
    pub(crate) settings: jobjectArray,
    /// Options of the default keyspace.
    pub(crate) keyspace: jobjectArray,
    /// A component's kind and its name: `comparator`, `merge`, `filter` (of the keyspace of that name), `listener`.
    pub(crate) names: jobjectArray,
    pub(crate) components: jobjectArray,
}

impl Given {
    pub(crate) fn options(&self, env: Env, kept: &Arc<Kept>, work: &Arc<Work>) -> Outcome<Options> {
        let mut options = Options {
            create_if_missing: self.flags & CREATE_IF_MISSING != 0,
            error_if_exists: self.flags & ERROR_IF_EXISTS != 0,
            read_only: self.flags & READ_ONLY != 0,
            default_keyspace: keyspace_options(&env.strings(self.keyspace))?,
            ..Options::default()
        };
        for (name, value) in pairs(&env.strings(self.settings)) {
            options.settings.set(name, value)?;
        }
        let names = env.strings(self.names);
        let objects = env.objects(self.components);
        let components = &mut options.components;
        components.listener = Some(work.clone());
        for ((kind, name), object) in pairs(&names).zip(objects) {
            let (name, object, kept) = (name.to_owned(), env.global(object), kept.clone());
            match kind {
                "comparator" => {
                    let comparator = JavaComparator { name, object, kept };
                    components.comparators.push(Arc::new(comparator));
                }
                "merge" => {
                    let operator = JavaMergeOperator { name, object, kept };
                    components.merge_operators.push(Arc::new(operator));
                }
                "filter" => {
                    let filter = JavaFilter { name: name.clone(), object, kept };
                    components.compaction_filters.push((name, Arc::new(filter)));
                }
                _ => work.set_listener(JavaListener { object, kept }),
            }
        }
        Ok(options)
    }
}

fn pairs(words: &[String]) -> impl Iterator<Item = (&str, &str)> {
    words.chunks_exact(2).map(|pair| (pair[0].as_str(), pair[1].as_str()))
}

/// The options of a keyspace.
pub(crate) fn keyspace_options(words: &[String]) -> windrow::Result<KeyspaceOptions> {
    let mut options = KeyspaceOptions::default();
    let mut settings = KeyspaceSettings::default();
    for (name, value) in pairs(words) {
        let text = Some(value.to_owned());
        match name {
            "comparator" => options.comparator = text,
            "merge_operator" => options.merge_operator = text,
            "policy" => settings.policy = text,
            "compression" => settings.compression = text,
            "ttl_ms" => settings.ttl = Some(ttl(value.parse().unwrap_or(-1))?),
            _ => return Err(Error::invalid(format!("a keyspace has no option `{name}`"))),
        }
    }
    options.settings = settings;
    Ok(options)
}

/// A time to live in milliseconds.
pub(crate) fn ttl(ms: i64) -> windrow::Result<Duration> {
    let ms = u64::try_from(ms)
        .map_err(|_| Error::invalid("a time to live is not negative: leave it out for ever"))?;
    Ok(Duration::from_millis(ms))
}
