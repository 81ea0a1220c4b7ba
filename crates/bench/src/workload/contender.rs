//! The contenders of a workload that its file names.
//!
//! Owns: an engine's variant and settings under a name of their own, and whether Windrow takes
//! them. Never does: open a store.

use super::store::{Setting, StoreSettings, settings};
use serde::Deserialize;

/// An engine with the settings of a workload file, by its name in tables.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Contender {
    pub(crate) name: String,
    #[serde(default = "windrow")]
    pub(crate) engine: String,
    /// Windrow's preset or policy, as its setting `preset` takes it.
    #[serde(default)]
    policy: String,
    /// Any other engine's adapter's variant.
    #[serde(default)]
    variant: String,
    /// Settings that override those of the workload.
    #[serde(default, deserialize_with = "settings")]
    pub(crate) settings: Vec<Setting>,
}

fn windrow() -> String {
    "windrow".to_owned()
}

impl Contender {
    /// Returns the contender that the command line names, as ENGINE or ENGINE:VARIANT.
    pub(crate) fn named(name: &str) -> Contender {
        let (engine, variant) = name.split_once(':').unwrap_or((name, ""));
        let (policy, variant) = if engine == "windrow" { (variant, "") } else { ("", variant) };
        Contender {
            name: name.to_owned(),
            engine: engine.to_owned(),
            policy: policy.to_owned(),
            variant: variant.to_owned(),
            settings: Vec::new(),
        }
    }

    /// Returns the variant that the engine takes.
    pub(crate) fn variant(&self) -> &str {
        if self.policy.is_empty() { &self.variant } else { &self.policy }
    }

    /// Checks that the settings of a workload and its own go together.
    pub(super) fn check(&self, store: &StoreSettings) -> Result<(), String> {
        let wrong = |what: String| Err(format!("contender `{}`: {what}", self.name));
        let is_windrow = self.engine == "windrow";
        if is_windrow && !self.variant.is_empty() || !is_windrow && !self.policy.is_empty() {
            return wrong("Windrow has a `policy`, other engines a `variant`".to_owned());
        }
        if !is_windrow {
            return Ok(());
        }
        let memory_bytes = store.memory_mib << 20;
        let mut all =
            windrow::settings::Settings { memory_bytes, ..windrow::settings::Settings::default() };
        let preset = ("preset".to_owned(), self.policy.clone());
        let preset = Some(&preset).filter(|(_, policy)| !policy.is_empty());
        let settings = store.settings.iter().chain(&self.settings).chain(preset);
        let mut of_windrow = settings.filter(|(name, _)| !name.contains('.'));
        let set = of_windrow.try_for_each(|(name, value)| all.set(name, value));
        let checked = set.map_err(|error| error.message().to_owned());
        match checked.and_then(|()| all.validate().map_err(|problems| problems.join("; "))) {
            Ok(()) => Ok(()),
            Err(problem) => wrong(problem),
        }
    }
}
