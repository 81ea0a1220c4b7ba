//! Tests of counters from many threads, and of both forms of the snapshot.
//!
//! Owns: the cases. Never does: open a database.

use super::*;

#[test]
#[allow(clippy::disallowed_methods, reason = "the counters' users are plain threads")]
fn threads_add_up() {
    let counters = Counters::default();
    std::thread::scope(|scope| {
        for thread in 0..2 * STRIPES as u64 {
            let counters = &counters;
            scope.spawn(move || {
                for _ in 0..1_000 {
                    counters.here().gets.add(1);
                    counters.here().hit_level(1);
                }
                counters.pauses.record(PauseReason::Debt, thread);
            });
        }
    });
    let stats = counters.snapshot();
    assert_eq!(stats.gets, 2_000 * STRIPES as u64);
    assert_eq!(stats.levels[1].get_hits, stats.gets);
    assert_eq!(stats.levels.len(), 2);
    let pause = stats.pause(PauseReason::Debt);
    let n = 2 * STRIPES as u64;
    assert_eq!((pause.count, pause.total_us, pause.max_us), (n, n * (n - 1) / 2, n - 1));
    assert_eq!(stats.pause(PauseReason::SyncWait).count, 0);
}

#[test]
fn deep_levels_count_as_the_last() {
    let counters = Counters::default();
    counters.merged(500, MergeInput { files: 3, bytes: 10 }, 20);
    counters.moved(15);
    let stats = counters.snapshot();
    let last = stats.levels.last().unwrap();
    assert_eq!(stats.levels.len(), LEVELS_COUNTED);
    assert_eq!((last.read_bytes, last.written_bytes, last.merges, last.moves), (10, 20, 1, 1));
    assert_eq!(last.read_files, 3);
}

#[test]
fn reasons_are_at_their_own_index() {
    for (index, reason) in PauseReason::ALL.into_iter().enumerate() {
        assert_eq!(reason as usize, index);
    }
}

fn filled() -> Stats {
    let counters = Counters::default();
    let here = counters.here();
    here.user_bytes.add(1_000);
    here.wal_bytes.add(1_100);
    here.manifest_bytes.add(100);
    here.gets_found.add(4);
    here.hit_level(0);
    here.cache_hits.add(3);
    here.cache_misses.add(1);
    here.filter_false_positives.add(1);
    here.filter_negatives.add(99);
    counters.merged(0, MergeInput::default(), 1_000);
    counters.merged(1, MergeInput { files: 4, bytes: 4_000 }, 3_800);
    counters.pauses.record(PauseReason::MemtablesFull, 2_500);
    let mut stats = counters.snapshot();
    let shape = |bytes| LevelShape { run_files: 2, log_files: 1, bytes };
    for name in ["default", "a \"quoted\\\n{name}"] {
        stats.push_keyspace(KeyspaceStats {
            name: name.to_owned(),
            policy: "leveled".to_owned(),
            memtables_bytes: 77,
            levels: vec![shape(0), shape(1 << 20), shape(5 << 20)],
            ..KeyspaceStats::default()
        });
    }
    stats.memory =
        MemoryStats { budget_bytes: 192 << 20, memtables_bytes: 3 << 20, ..MemoryStats::default() };
    stats
}

#[test]
fn derived_figures() {
    let stats = filled();
    assert_eq!(stats.write_amplification(), 6.0);
    assert_eq!(stats.cache_hit_ratio(), 0.75);
    assert_eq!(stats.filter_false_positive_ratio(), 0.01);
    assert_eq!(stats.tree_bytes(), 12 << 20);
    assert_eq!(stats.levels[2].shape.run_files, 4);
    assert_eq!(Stats::default().write_amplification(), 0.0);
}

#[test]
fn the_table_lines_up() {
    let text = filled().to_string();
    assert!(text.contains("amplification 6.00"), "{text}");
    assert!(text.contains("memory   3.00 MiB of 192 MiB"), "{text}");
    let level_rows: Vec<&str> =
        text.lines().skip_while(|line| !line.starts_with("level")).take(4).collect();
    assert!(level_rows.iter().all(|row| row.len() == level_rows[0].len()), "{text}");
    assert!(text.contains("memtables_full          1         2.5       2.5"), "{text}");
}

#[test]
fn json_is_json_and_whole() {
    let stats = filled();
    let value: serde_json::Value = serde_json::from_str(&stats.to_json()).unwrap();
    assert_eq!(value["user_bytes"], 1_000);
    assert_eq!(value["write_amplification"], 6.0);
    assert_eq!(value["levels"][1]["written_bytes"], 3_800);
    assert_eq!(value["levels"][2]["bytes"], 10 << 20);
    assert_eq!(value["pauses"][0]["reason"], "memtables_full");
    assert_eq!(value["keyspaces"][1]["name"], stats.keyspaces[1].name);
    assert_eq!(value["keyspaces"][1]["levels"][2]["bytes"], 5 << 20);
    assert_eq!(value["memory"]["budget_bytes"], 192 << 20);
    assert_eq!(value["levels"].as_array().unwrap().len(), stats.levels.len());
    serde_json::from_str::<serde_json::Value>(&Stats::default().to_json()).unwrap();
}
