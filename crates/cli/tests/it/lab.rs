//! `lab`: simulations of trees so small that they take no time.

use crate::common::Shell;
use serde_json::Value;

#[test]
fn a_search_compares_the_preset_with_the_best_static_policy() {
    let sh = Shell::new();
    let small = "lab --search -w uniform --unit-keys 2 --memtables 3";
    let text = sh.ok(small);
    assert_eq!(text.lines().filter(|line| line.starts_with("| uniform")).count(), 1, "{text}");
    assert!(text.contains("of 1 more than 10 % above the best"), "{text}");
    let rows: Value = serde_json::from_str(&sh.ok(&format!("{small} --json"))).unwrap();
    for row in rows.as_array().unwrap() {
        let figure = |of: &str, name: &str| row[of][name].as_f64().unwrap();
        let (preset, best) = (|name| figure("preset", name), |name| figure("best", name));
        assert!(best("probes_mean") <= preset("probes_mean") * 1.01, "{row}");
        assert!(best("space_mean") <= preset("space_mean") * 1.01, "{row}");
        let ratio = preset("write_amplification") / best("write_amplification");
        assert!((row["ratio"].as_f64().unwrap() - ratio).abs() < 1e-9, "{row}");
        assert!(row["simulated"].as_u64().unwrap() > 20, "{row}");
    }
}

#[test]
fn a_load_is_measured_from_the_empty_tree_on() {
    let sh = Shell::new();
    let small = "lab -p windrow --keys 1024 --unit-keys 16 --rounds 1 --json";
    let write = |words: &str| {
        let rows: Value = serde_json::from_str(&sh.ok(&format!("{small} {words}"))).unwrap();
        rows[0]["figures"]["write_amplification"].as_f64().unwrap()
    };
    // Every key is written once: a flush writes each update, and little is
    // merged yet.
    let load = write("--load");
    assert!((1.0..write("")).contains(&load), "{load}");
}
