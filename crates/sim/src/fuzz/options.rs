//! Fuzz target: settings as text. Accepted settings must be equal to those read from their printed
//! text.
//!
//! Owns: that check. Never does: open a database.

use windrow::Options;
use windrow::settings::Settings;
use windrow_plan::Policy;

pub(super) fn run(input: &[u8]) -> bool {
    let Ok(text) = std::str::from_utf8(input) else { return false };
    _ = text.parse::<Policy>();
    let Ok(settings) = Settings::from_text(text) else { return false };
    let printed = settings.to_text();
    match Settings::from_text(&printed) {
        Ok(again) => assert_eq!(again, settings, "settings change by being printed:\n{printed}"),
        Err(error) => panic!("printed settings are not read: {error}\n{printed}"),
    }
    if let Ok(policy) = settings.preset.parse::<Policy>() {
        let again = policy.to_string().parse::<Policy>();
        assert_eq!(again.ok(), Some(policy), "a policy changes by being printed");
    }
    Options { settings, ..Options::default() }.validate().is_ok()
}
