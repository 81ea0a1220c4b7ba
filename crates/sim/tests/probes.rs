//! Runs every probe: promises that one small scenario can test.

use windrow_sim::probes::PROBES;

#[test]
fn every_probe_finds_its_promise_kept() {
    for (name, probe) in PROBES {
        probe().unwrap_or_else(|why| panic!("{name}: {why}"));
    }
}
