//! L2SM's comparison with LevelDB: load, then skewed and random writes.
//!
//! Huang, Jia, Shen, Shao, Chen: "Less is More: De-amplifying I/Os for
//! Key-value Stores with a Log-assisted LSM-tree", sections IV.B and IV.C.

use super::draws::Draws;
use super::experiment::{
    Branch, Case, Claim, Contender, Experiment, Gets, Goal, Phase, Place, Scale, Work,
};
use super::records::Sizes;

const BASELINE: &str = "leveled";
const PAPER: &str = "sst_log(paper)";
const CLOSED: &str = "sst_log(closed)";
const CASE: &str = "256 B to 1 KB";
const LATEST: &str = "skewed latest";
const ZIPF: &str = "scrambled zipf";
const RANDOM: &str = "random";

pub(super) fn experiment(scale: Scale) -> Experiment {
    Experiment {
        name: "l2sm",
        title: "L2SM: a log of tables beside each level's run",
        notes: vec![
            "Device MiB are the process's reads and writes, the write-ahead log included.".into(),
            "Write amplification is tables written over bytes put: the log is not in it.".into(),
            "Throughput is sustained: the time counts until no merge is due.".into(),
            "Skewed latest: zipf .99 over recency of loading; R:W as reads to writes.".into(),
        ],
        cases: vec![case(scale)],
        rounds: 1,
        shown: &[
            "kops_per_s",
            "put_us_p999",
            "device_mib",
            "device_read_mib",
            "device_written_mib",
            "wal_mib",
            "write_amplification",
            "compactions",
            "moves",
            "get_us_mean",
            "wasted_blocks_per_get",
            "log_files",
            "disk_mib",
        ],
        goals: goals(),
    }
}

fn case(scale: Scale) -> Case {
    let count = scale.of(5_000, 200_000, 2_000_000);
    let sized = |full: &str, reduced: &str| scale.of(full, reduced, full).to_owned();
    let mut contenders = vec![
        Contender::new(BASELINE, "leveled"),
        Contender::new(PAPER, "leveled pick=sst_log(paper)"),
        Contender::new(CLOSED, "leveled pick=sst_log(closed,omega=0.1)"),
    ];
    if scale == Scale::Full {
        // The paper's own baseline picks as LevelDB does.
        let policy = "leveled pick=leveled(file=round_robin,grow=1)";
        contenders.push(Contender::new("round robin", policy));
    }
    let mut branches = Vec::new();
    for (name, draws) in
        [(LATEST, Draws::Latest(0.99)), (ZIPF, Draws::Zipf(0.99)), (RANDOM, Draws::Uniform)]
    {
        let phase = |name, share| {
            let gets = Gets { draws, share, absent: 0.0 };
            Phase { name, work: Work::Mixed { puts: draws, ops: count, gets } }
        };
        let mut phases = vec![phase("R:W 0:1", 0.0)];
        if scale == Scale::Full {
            phases.extend([phase("R:W 1:1", 0.5), phase("R:W 9:1", 0.9)]);
        }
        branches.push(Branch { name: name.to_owned(), phases });
    }
    let load = Work::Mixed { puts: Draws::Shuffled, ops: count, gets: Gets::NONE };
    Case {
        name: CASE.to_owned(),
        sizes: Sizes { count, key_bytes: 16, value_bytes: (256, 1024) },
        regions: 1,
        settings: vec![
            ("memory_bytes", "64MiB".into()),
            // LevelDB's defaults and the paper's table of 5 MB, over 25. With
            // fewer records larger, or syncing small tables is all that shows.
            ("memtable_bytes", sized("160KiB", "640KiB")),
            ("file_bytes", sized("200KiB", "800KiB")),
            ("level_base_bytes", sized("400KiB", "1600KiB")),
            ("cache_bytes", sized("320KiB", "1280KiB")),
            ("partition_bytes", "1GiB".into()),
        ],
        contenders,
        load: vec![Phase { name: "load", work: load }],
        branches,
    }
}

fn goals() -> Vec<Goal> {
    let mut goals = Vec::new();
    for ours in [PAPER, CLOSED] {
        let mut goal = |branch: &str, figure, claim| {
            goals.push(Goal { at: Place::new(CASE, branch, "R:W 0:1"), figure, ours, claim });
        };
        goal(LATEST, "kops_per_s", Claim::more(BASELINE, 0.674));
        goal(LATEST, "device_mib", Claim::less(BASELINE, 0.402));
        goal(LATEST, "write_amplification", Claim::less(BASELINE, 0.278));
        goal(LATEST, "compactions", Claim::less(BASELINE, 0.454));
        goal(ZIPF, "kops_per_s", Claim::more(BASELINE, 0.463));
        goal(RANDOM, "kops_per_s", Claim::more(BASELINE, 0.296));
        goal(RANDOM, "device_mib", Claim::less(BASELINE, 0.201));
    }
    goals
}
