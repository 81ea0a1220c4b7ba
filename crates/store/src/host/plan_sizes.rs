//! The sizes that policies read: the user's, and for those not set the ones that suit the policy.
//!
//! Owns: the choice between the two. Never does: decide which sizes suit (`windrow_plan::sizes`).

use windrow_plan::usage::Use;
use windrow_plan::{PlanSettings, Policy};
use windrow_read::budget::Shares;
use windrow_read::options::Settings;

/// Returns the sizes of a keyspace with this policy.
pub fn plan_settings(settings: &Settings, shares: &Shares, policy: &Policy) -> PlanSettings {
    let sizes = policy.sizes(shares.memtable_bytes);
    let (file, base) = (sizes.file_bytes, sizes.level_base_bytes);
    debug_assert!(file > 0 && base > 0, "a policy suits tables of {file} and levels of {base}");
    let or = |asked: u64, suited: u64| if asked == 0 { suited } else { asked };
    PlanSettings {
        memtable_bytes: shares.memtable_bytes,
        file_bytes: or(settings.file_bytes, sizes.file_bytes),
        level_base_bytes: or(settings.level_base_bytes, sizes.level_base_bytes),
        level0_slowdown: settings.level0_slowdown_files,
        level0_stop: settings.level0_stop_files,
        ..for_use(settings, PlanSettings::default(), policy.usage)
    }
}

/// Returns the sizes of a keyspace of this use.
pub(crate) fn for_use(settings: &Settings, sizes: PlanSettings, usage: Use) -> PlanSettings {
    PlanSettings {
        file_price_percent: usage.file_price_percent(),
        space_max_percent: match settings.space_max_percent {
            0 => usage.space_max_percent(),
            percent => percent,
        },
        ..sizes
    }
}
