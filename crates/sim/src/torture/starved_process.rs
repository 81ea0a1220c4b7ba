//! A process that is short of memory: it takes the steps of a case under an address-space limit,
//! and may abort at an allocation that was chosen for it.
//!
//! Owns: the limit, the measures, and the note of each acknowledged step, which survives the
//! process. Never does: judge another process's database except by reading it.

use super::starve_cases::{Case, Scale, case};
use clap::Args;
use rustix::process::{Resource, Rlimit, setrlimit};
use std::fs::File;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use windrow::{Db, Options};
use windrow_env::testing::CountingHeap;

/// The program's global allocator.
const HEAP: CountingHeap = CountingHeap;

/// The arguments of a starved process.
#[derive(Args, Clone, Debug)]
pub struct Task {
    /// The case's name.
    #[arg(long)]
    pub case: String,
    /// The database.
    #[arg(long)]
    pub dir: PathBuf,
    /// Where the number of acknowledged steps is kept.
    #[arg(long)]
    pub notes: PathBuf,
    /// `memory_bytes` of the database.
    #[arg(long)]
    pub budget: u64,
    /// How much of the case is done, in thousandths.
    #[arg(long)]
    pub permille: u64,
    /// Address space, in bytes.
    #[arg(long)]
    pub limit: u64,
    /// Abort at this allocation after the start; 0: at none.
    #[arg(long, default_value_t = 0)]
    pub abort_at: u64,
    /// Open and judge instead of going on.
    #[arg(long)]
    pub judge: bool,
}

/// The acknowledged steps, in a file.
pub struct Notes(File);

impl Notes {
    /// Opens the notes at a path, made if there are none.
    ///
    /// # Errors
    /// The system's error.
    pub fn open(path: &Path) -> Result<Notes, String> {
        let mut options = File::options();
        let file = options.read(true).write(true).create(true).truncate(false).open(path);
        file.map(Notes).map_err(|e| format!("{}: {e}", path.display()))
    }

    /// Returns the number of acknowledged steps.
    pub fn steps(&self) -> u64 {
        let mut bytes = [0; 8];
        self.0.read_exact_at(&mut bytes, 0).map_or(0, |()| u64::from_le_bytes(bytes))
    }

    fn note(&self, steps: u64) -> Result<(), String> {
        self.0.write_all_at(&steps.to_le_bytes(), 0).map_err(|e| e.to_string())
    }
}

/// Takes the steps, or judges. Prints its measures in one line.
pub fn run(task: &Task) -> ExitCode {
    match work(task) {
        Ok(figures) => {
            println!("{figures}");
            ExitCode::SUCCESS
        }
        Err(why) => {
            eprintln!("{why}");
            ExitCode::FAILURE
        }
    }
}

fn work(task: &Task) -> Result<String, String> {
    let limit = Some(task.limit);
    setrlimit(Resource::As, Rlimit { current: limit, maximum: limit })
        .map_err(|e| e.to_string())?;
    let case = case(&task.case).ok_or("no such case")?;
    let notes = Notes::open(&task.notes)?;
    let scale = Scale { budget: task.budget, permille: task.permille };
    let before = HEAP.count();
    if task.abort_at > 0 {
        HEAP.abort_at(task.abort_at);
    }
    let most = task.budget + task.budget / 10;
    let mut watch = Watch { most, besides: (case.besides)(&scale), used: 0, live: 0 };
    let db = open(task).map_err(|e| format!("open: {e}"))?;
    watch.look(&db)?;
    if task.judge {
        (case.judge)(&db, &scale, notes.steps())?;
        watch.look(&db)?;
    } else {
        steps(case, &db, &scale, &notes, &mut watch)?;
    }
    db.close().map_err(|e| format!("close: {e}"))?;
    Ok(format!(
        "{} allocations; at most: MemoryStats {}, live {}, resident {}",
        HEAP.count() - before,
        watch.used,
        watch.live,
        resident()
    ))
}

fn open(task: &Task) -> windrow::Result<Db> {
    let mut options = Options::default();
    options.settings.memory_bytes = task.budget;
    Db::open_with(&task.dir, options)
}

fn steps(
    case: &Case,
    db: &Db,
    scale: &Scale,
    notes: &Notes,
    watch: &mut Watch,
) -> Result<(), String> {
    let mut held = Vec::new();
    for step in notes.steps()..(case.steps)(scale) {
        (case.step)(db, scale, step, &mut held).map_err(|e| format!("step {step}: {e}"))?;
        notes.note(step + 1)?;
        watch.look(db)?;
    }
    db.flush().map_err(|e| format!("flush: {e}"))?;
    watch.look(db)
}

/// The most memory that was used, by two counts.
struct Watch {
    /// The budget and a tenth.
    most: u64,
    /// The memory that the case itself may use.
    besides: u64,
    used: u64,
    live: u64,
}

impl Watch {
    /// Checks both counts.
    ///
    /// # Errors
    /// If one of them is over its limit.
    fn look(&mut self, db: &Db) -> Result<(), String> {
        let memory = db.stats().memory;
        self.used = self.used.max(memory.used_bytes());
        self.live = self.live.max(HEAP.peak_bytes() as u64);
        if self.used > self.most {
            return Err(format!("MemoryStats is over {}: {memory:?}", self.most));
        }
        if self.live > self.most + self.besides {
            let (live, most) = (self.live, self.most);
            return Err(format!("{live} bytes were live, over {most}: {memory:?}"));
        }
        Ok(())
    }
}

/// Returns the most memory that this process has used, as the system counts it.
fn resident() -> String {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
    line.unwrap_or("unknown").trim().to_owned()
}
