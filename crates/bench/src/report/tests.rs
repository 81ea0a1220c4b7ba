//! Tests of the whole report on made-up runs.
//!
//! Owns no state. Never does: run a benchmark.

use super::results::{Results, read};
use super::sample::{Sample, text};
use super::svg::{Face, width};
use super::*;
use crate::args::ReportArgs;
use crate::record::{End, Head, Line, PhaseLine};
use pictures::Picture;
use roxmltree::{Document, Node, ParsingOptions};

/// The extremes that pictures have to show: (contenders, rounds, scale).
const SHAPES: [(usize, u32, f64); 6] =
    [(1, 2, 1.0), (2, 1, 1.0), (4, 5, 1.0), (9, 3, 1.0), (4, 3, 1e-5), (9, 2, 1e5)];

fn read_lines(lines: &[Line]) -> Results {
    read(&[("run.jsonl".to_owned(), text(lines))]).unwrap()
}

fn results_of((contenders, rounds, scale): (usize, u32, f64)) -> Results {
    read_lines(&Sample { contenders, rounds, scale }.lines())
}

fn pictures_of(run: &Results) -> Vec<Picture> {
    let of_workloads = run.workloads.iter().flat_map(|w| pictures::of(run, w));
    pictures::overview(run).into_iter().chain(of_workloads).collect()
}

/// Returns the pictures of a run with those of papers' rows.
fn all_pictures_of(run: &Results) -> Vec<Picture> {
    pictures_of(run).into_iter().chain(paper::tests::pictures_of(run)).collect()
}

fn page_of(run: &Results) -> String {
    let of_workloads: Vec<Vec<Picture>> =
        run.workloads.iter().map(|w| pictures::of(run, w)).collect();
    page::page(run, pictures::overview(run).as_ref(), &of_workloads)
}

fn head_of(lines: &mut [Line]) -> &mut Head {
    match &mut lines[0] {
        Line::Run(head) => head,
        line => panic!("{line:?}"),
    }
}

fn phases_of(lines: &mut [Line]) -> impl Iterator<Item = &mut PhaseLine> {
    lines.iter_mut().filter_map(|line| match line {
        Line::Phase(phase) => Some(&mut **phase),
        _ => None,
    })
}

/// Returns a number in an element's attribute.
fn number_in(node: Node<'_, '_>, name: &str) -> f64 {
    node.attribute(name).and_then(|text| text.parse().ok()).unwrap_or(f64::NAN)
}

/// Returns left, top, right and bottom of a text.
fn box_of(node: Node<'_, '_>) -> [f64; 4] {
    let face = match node.attribute("class") {
        Some("title") => Face::Title,
        Some("label") => Face::Label,
        _ => Face::Small,
    };
    let wide = width(node.text().unwrap_or_default(), face);
    let (x, y) = (number_in(node, "x"), number_in(node, "y"));
    let left = match node.attribute("text-anchor") {
        Some("middle") => x - wide / 2.0,
        Some("end") => x - wide,
        _ => x,
    };
    [left, y - face.size() * 0.75, left + wide, y + face.size() * 0.2]
}

#[test]
fn no_text_leaves_its_picture_or_lies_on_another() {
    for shape in SHAPES {
        let run = results_of(shape);
        for picture in all_pictures_of(&run) {
            let name = format!("{} of {shape:?}", picture.name);
            let document = Document::parse(&picture.svg).unwrap();
            let root = document.root_element();
            let (wide, high) = (number_in(root, "width"), number_in(root, "height"));
            let texts: Vec<(&str, [f64; 4])> = document
                .descendants()
                .filter(|node| node.has_tag_name("text"))
                .map(|node| (node.text().unwrap_or_default(), box_of(node)))
                .collect();
            assert!(texts.len() > 4, "{name} says nothing");
            for (n, (text, [left, top, right, bottom])) in texts.iter().enumerate() {
                // Widths are guesses on the wide side: a unit more does not
                // count.
                let is_inside = -1.0 <= *left && *right <= wide + 1.0 && 0.0 <= *top;
                assert!(is_inside && *bottom <= high, "{name}: `{text}` is outside");
                for (other, [l, t, r, b]) in &texts[..n] {
                    let apart = right <= l || r <= left || bottom <= t || b <= top;
                    assert!(apart, "{name}: `{text}` lies on `{other}`");
                }
            }
        }
    }
}

#[test]
fn nothing_is_drawn_outside_its_picture_or_without_a_place() {
    for shape in SHAPES {
        let run = results_of(shape);
        for picture in all_pictures_of(&run) {
            let name = format!("{} of {shape:?}", picture.name);
            assert!(!picture.svg.contains("NaN") && !picture.svg.contains("inf"), "{name}");
            let document = Document::parse(&picture.svg).unwrap();
            let root = document.root_element();
            let (wide, high) = (number_in(root, "width"), number_in(root, "height"));
            let inside = |x: f64, y: f64| {
                assert!(-0.1 <= x && x <= wide + 0.1, "{name}: x {x}");
                assert!(-0.1 <= y && y <= high + 0.1, "{name}: y {y}");
            };
            for node in document.descendants().filter(Node::is_element) {
                let at = |name| number_in(node, name);
                match node.tag_name().name() {
                    "rect" => {
                        inside(at("x"), at("y"));
                        inside(at("x") + at("width"), at("y") + at("height"));
                        assert!(at("width") >= 0.0, "{name}");
                    }
                    "line" => {
                        inside(at("x1"), at("y1"));
                        inside(at("x2"), at("y2"));
                    }
                    "circle" => inside(at("cx"), at("cy")),
                    "polyline" | "polygon" => {
                        for point in node.attribute("points").unwrap().split(' ') {
                            let (x, y) = point.split_once(',').unwrap();
                            inside(x.parse().unwrap(), y.parse().unwrap());
                        }
                    }
                    _ => {}
                }
            }
        }
    }
}

#[test]
fn files_and_pages_are_whole_and_need_nothing_else() {
    for shape in SHAPES {
        let run = results_of(shape);
        let mut names = Vec::new();
        for picture in pictures_of(&run) {
            let file = pictures::file(&run, &picture);
            let document = Document::parse(&file).unwrap();
            assert!(document.descendants().any(|n| n.has_tag_name("style")), "{}", picture.name);
            names.push(picture.name);
        }
        let count = names.len();
        names.sort_unstable();
        names.dedup();
        assert_eq!(names.len(), count, "two pictures in one file");
        let page = page_of(&run);
        let options = ParsingOptions { allow_dtd: true, ..ParsingOptions::default() };
        let document = Document::parse_with_options(&page, options).unwrap();
        for node in document.descendants().filter(Node::is_element) {
            assert!(!["script", "link", "img"].contains(&node.tag_name().name()));
            let href = node.attribute("href").unwrap_or("#");
            let target = href.strip_prefix('#').unwrap();
            let is_there = |n: Node<'_, '_>| n.attribute("id") == Some(target);
            assert!(target.is_empty() || document.descendants().any(is_there), "{href}");
        }
    }
}

#[test]
fn a_contender_has_one_colour_in_all_pictures_and_any_company() {
    let fill = |run: &Results, name: &str| {
        let at = run.contenders.iter().position(|c| c.name == name).unwrap();
        let styles = pictures::styles(run);
        let rule = format!(".f{at} {{ fill: ");
        let (_, rest) = styles.split_once(&rule).unwrap();
        rest[..7].to_owned()
    };
    let (four, mut lines) =
        (results_of(SHAPES[2]), Sample { contenders: 9, rounds: 1, scale: 1.0 }.lines());
    head_of(&mut lines).contenders.reverse();
    let nine = read_lines(&lines);
    for name in ["leveldb", "fjall"] {
        assert_eq!(fill(&four, name), fill(&nine, name), "{name}");
    }
    assert_ne!(fill(&nine, "rocksdb"), fill(&nine, "rocksdb:pipelined"));
}

#[test]
fn names_from_outside_cannot_break_the_page() {
    let mut lines = Sample { contenders: 4, rounds: 2, scale: 1.0 }.lines();
    let evil = "<script>alert(\"1\")</script> & | `x` ]]>";
    head_of(&mut lines).contenders[0].tuning = evil.to_owned();
    head_of(&mut lines).workloads[0].about = evil.to_owned();
    head_of(&mut lines).workloads[1].phases[1] = evil.to_owned();
    head_of(&mut lines).command.push(evil.to_owned());
    for phase in phases_of(&mut lines).filter(|p| p.workload == "ycsb-a" && p.phase == "run") {
        phase.phase = evil.to_owned();
    }
    let run = read_lines(&lines);
    let page = page_of(&run);
    assert!(!page.contains("<script") && page.contains("&lt;script"));
    let options = ParsingOptions { allow_dtd: true, ..ParsingOptions::default() };
    Document::parse_with_options(&page, options).unwrap();
    for picture in pictures_of(&run) {
        Document::parse(&pictures::file(&run, &picture)).unwrap();
    }
    let markdown = markdown::markdown(&run);
    let bars = |line: &str| line.replace("\\|", "").matches('|').count();
    let rows: Vec<&str> = markdown.lines().filter(|line| line.starts_with('|')).collect();
    assert!(rows.len() > 12 && rows.iter().all(|row| bars(row) == 8), "{markdown}");
}

#[test]
fn the_cases_of_a_file_are_the_columns_of_a_table() {
    let mut lines = Sample { contenders: 1, rounds: 3, scale: 1.0 }.lines();
    let renamed = |name: &str| match name {
        "ycsb-a" => "both: one".to_owned(),
        "large-values" => "both: two".to_owned(),
        other => other.to_owned(),
    };
    for workload in &mut head_of(&mut lines).workloads {
        workload.name = renamed(&workload.name);
        let shown = ["kops_per_s", "disk_mib"].map(str::to_owned).to_vec();
        workload.shown_in.insert("run".to_owned(), shown);
    }
    phases_of(&mut lines).for_each(|phase| phase.workload = renamed(&phase.workload));
    let run = read_lines(&lines);
    let markdown = markdown::markdown(&run);
    let (_, table) = markdown.split_once("### both: windrow in all cases, medians\n").unwrap();
    let median = |case: &str, phase: &str, figure: &str| {
        let of = |p: &PhaseLine| p.workload == format!("both: {case}") && p.phase == phase;
        let values = run.phases.iter().filter(|p| of(p)).map(|p| p.figures[figure]).collect();
        number(Spread::of(values).unwrap().median)
    };
    let (one, two) = (median("one", "run", "disk_mib"), median("two", "run", "disk_mib"));
    let load = median("one", "load", "kops_per_s");
    assert!(table.contains("\n| phase | measure | one | two |\n|---|---|---:|---:|\n"), "{table}");
    assert!(table.contains(&format!("\n| load | throughput, kops/s | {load} | - |\n")), "{table}");
    assert!(table.contains(&format!("\n|  | size on disk, MiB | {one} | {two} |\n")), "{table}");
    // The phase shows what it names, the other one the usual costs.
    let costs = |what: &str| table.lines().filter(|row| row.contains(what)).count();
    assert_eq!((costs("| write amplification"), costs("| size on disk")), (1, 1), "{table}");
    // One case is no column.
    assert_eq!(markdown.matches("in all cases").count(), 1);
}

#[test]
fn tables_fit_the_terminal_and_name_every_contender() {
    for shape in SHAPES {
        let run = results_of(shape);
        let tables = table::tables(&run);
        let is_prose = |line: &str| line.starts_with("Ratios:") || line.starts_with("Note:");
        for line in tables.lines().filter(|line| !is_prose(line)) {
            assert!(line.chars().count() <= 120, "{shape:?}: {line}");
        }
        for place in run.places() {
            assert!(tables.contains(place.phase), "{shape:?}: {}", place.phase);
        }
        for contender in &run.contenders {
            assert!(tables.contains(&contender.name), "{shape:?}: {}", contender.name);
        }
    }
}

/// Returns the table of a run of two rounds with these throughputs of one
/// phase.
fn judged(ours: [f64; 2], theirs: [f64; 2]) -> String {
    let mut lines = Sample { contenders: 2, rounds: 2, scale: 1.0 }.lines();
    lines.retain(|line| match line {
        Line::Phase(phase) => phase.workload == "large-values",
        _ => true,
    });
    for phase in phases_of(&mut lines) {
        let of = if phase.contender == "windrow" { ours } else { theirs };
        phase.figures.insert("kops_per_s".to_owned(), of[phase.round as usize - 1]);
    }
    table::tables(&read_lines(&lines))
}

#[test]
fn tables_say_who_is_better_and_when_nobody_knows() {
    for (ours, theirs, ratio, tally) in [
        ([20.0, 22.0], [10.0, 10.0], "2.10× (2.00–2.20) ▲", "ahead in 1 of 1"),
        ([10.0, 10.0], [20.0, 21.0], "0.488× (0.476–0.500) ▼", "behind in 1,"),
        ([10.0, 11.0], [10.5, 10.5], "1.00× (0.952–1.05) ~", "undecided in 1."),
        ([20.0, 40.0], [10.0, 10.0], "3.00× (2.00–4.00) ▲~", "ahead in 1 of 1"),
    ] {
        let table = judged(ours, theirs);
        assert!(table.contains(ratio) && table.contains(tally), "{ratio}: {table}");
    }
}

#[test]
fn the_open_loop_is_judged_by_its_tail() {
    let run = results_of(SHAPES[2]);
    let rows = compare::rows(&run);
    let titles = |workload: &str| -> Vec<String> {
        let of = rows.iter().filter(|row| row.place.workload.name == workload);
        of.map(|row| format!("{}: {}", row.place.phase, row.measure.heading())).collect()
    };
    assert_eq!(titles("ycsb-a"), ["load: throughput, kops/s", "run: throughput, kops/s"]);
    assert_eq!(
        titles("ycsb-a-open")[..2],
        ["at 20 k/s: get p99, µs".to_owned(), "at 20 k/s: put p99, µs".to_owned()]
    );
    // Half the latency is twice as good.
    let row = rows.iter().find(|row| row.measure.title == "get p99").unwrap();
    assert!(row.ratio().unwrap().spread.median > 1.0 && row.best == Some(3), "{row:?}");
}

#[test]
fn peers_are_of_other_engines_where_there_are_any() {
    let run = results_of(SHAPES[3]);
    let rivals = compare::rivals(&run);
    let names: Vec<&str> = rivals.iter().map(|&i| run.contenders[i].engine.as_str()).collect();
    assert!(names.len() == 5 && !names.contains(&"windrow"), "{names:?}");
    let mut lines = Sample { contenders: 9, rounds: 2, scale: 1.0 }.lines();
    head_of(&mut lines).contenders.iter_mut().for_each(|c| c.engine = "windrow".to_owned());
    assert_eq!(compare::rivals(&read_lines(&lines)).len(), 8);
}

#[test]
fn reads_through_the_page_cache_beat_nobody() {
    let mut lines = Sample { contenders: 4, rounds: 3, scale: 1.0 }.lines();
    let run = read_lines(&lines);
    let row = compare::rows(&run).into_iter().find(|row| row.best.is_some()).unwrap();
    let (workload, phase) = (row.place.workload.name.clone(), row.place.phase.to_owned());
    let best = run.contenders[row.best.unwrap()].name.clone();
    let there =
        |p: &&mut PhaseLine| p.workload == workload && p.phase == phase && p.contender == best;
    phases_of(&mut lines).filter(there).for_each(|p| p.buffered = true);
    let run = read_lines(&lines);
    let rows = compare::rows(&run);
    let row = rows.iter().find(|r| r.place.workload.name == workload && r.place.phase == phase);
    let now = row.unwrap().best.map(|i| run.contenders[i].name.clone());
    assert!(now.is_some() && now.as_ref() != Some(&best), "{best}, now {now:?}");
    assert!(run.notes.iter().any(|note| note.contains("page cache") && note.contains(&best)));
}

#[test]
fn wrong_answers_and_broken_runs_are_told_first() {
    let mut lines = Sample { contenders: 4, rounds: 2, scale: 1.0 }.lines();
    lines.pop();
    let broken = read_lines(&lines);
    assert_eq!(broken.seconds, None);
    assert!(table::tables(&broken).contains("Note: run.jsonl breaks off"), "{:?}", broken.notes);
    let disagreements = vec!["ycsb-a run: fjall's contents differ".to_owned()];
    lines.push(Line::End(End { seconds: 1.0, disagreements }));
    let wrong = read_lines(&lines);
    let page = page_of(&wrong);
    let at = |text: &str| page.find(text).unwrap();
    assert!(at("fjall's contents differ") < at("Who is better at what"));
    assert!(table::tables(&wrong).contains("ANSWERS DIFFER: ycsb-a run: fjall's"));
    assert!(markdown::markdown(&wrong).contains("**Answers differ:**"));
    for phase in phases_of(&mut lines).filter(|p| p.contender == "leveldb") {
        phase.figures.insert("served_share".to_owned(), 0.7);
    }
    let notes = read_lines(&lines).notes.join("\n");
    assert!(notes.contains("ycsb-a-open at 80 %: leveldb could not serve the rate"), "{notes}");
}

#[test]
fn the_run_just_made_reads_as_its_file_does() {
    let lines = Sample { contenders: 4, rounds: 3, scale: 1.0 }.lines();
    let mut run = Run { head: head_of(&mut lines.clone()).clone(), phases: Vec::new(), end: None };
    for line in lines.clone() {
        match line {
            Line::Phase(phase) => run.phases.push(*phase),
            Line::End(end) => run.end = Some(end),
            Line::Run(_) => {}
        }
    }
    assert_eq!(table(&run), table::tables(&read_lines(&lines)));
}

#[test]
fn parts_join_in_any_cut() {
    let lines = Sample { contenders: 4, rounds: 4, scale: 1.0 }.lines();
    let whole = read_lines(&lines);
    let (head, end) = (lines[0].clone(), lines[lines.len() - 1].clone());
    let part = |keep: &dyn Fn(&PhaseLine) -> bool| {
        let kept = lines.iter().filter(|line| matches!(line, Line::Phase(p) if keep(p)));
        let part: Vec<Line> = [&head].into_iter().chain(kept).chain([&end]).cloned().collect();
        text(&part)
    };
    let is_first = |phase: &PhaseLine| phase.round <= 2;
    let cuts: [[String; 2]; 3] = [
        [part(&|p| p.workload == "db_bench"), part(&|p| p.workload != "db_bench")],
        [part(&is_first), part(&|p| !is_first(p))],
        [part(&|p| p.contender == "fjall"), part(&|p| p.contender != "fjall")],
    ];
    for [a, b] in cuts {
        let joined = read(&[("a".to_owned(), a.clone()), ("b".to_owned(), b.clone())]).unwrap();
        assert_eq!(table::tables(&joined), table::tables(&whole));
        assert_eq!(read(&[("ab".to_owned(), a + &b)]).unwrap().phases, joined.phases);
    }
    // The rounds of a file that is read twice count twice.
    let twice = [("a".to_owned(), text(&lines)), ("b".to_owned(), text(&lines))];
    let joined = read(&twice).unwrap();
    assert_eq!(joined.rounds(&joined.workloads[0]), 8);
}

#[test]
fn files_that_do_not_fit_together_are_refused() {
    let lines = Sample { contenders: 2, rounds: 1, scale: 1.0 }.lines();
    let refused = |change: &dyn Fn(&mut Head)| {
        let mut other = lines.clone();
        change(head_of(&mut other));
        let files = [("a".to_owned(), text(&lines)), ("b".to_owned(), text(&other))];
        read(&files).map(|_| ()).unwrap_err()
    };
    let error = refused(&|head| head.contenders[1].version = "9.9".to_owned());
    assert!(error.starts_with("b: `rocksdb` is 9.9 here"), "{error}");
    let error = refused(&|head| head.workloads[0].records = 7);
    assert!(error.starts_with("b: workload `db_bench` has other records"), "{error}");
    let error = refused(&|head| head.scale = "full".to_owned());
    assert!(error.starts_with("b: scale `full`"), "{error}");
}

#[test]
fn bad_files_are_named_with_their_line() {
    let lines = Sample { contenders: 2, rounds: 1, scale: 1.0 }.lines();
    let good = text(&lines);
    let error = |text: &str| read(&[("x.jsonl".to_owned(), text.to_owned())]).unwrap_err();
    let phases = good.split_once('\n').unwrap().1;
    let first = good.lines().next().unwrap();
    for (text, problem) in [
        (String::new(), "x.jsonl: is empty"),
        ("hello\n".to_owned(), "x.jsonl, line 1: not JSON"),
        (format!("{first}\nhello\n{phases}"), "x.jsonl, line 2: not JSON"),
        (phases.to_owned(), "x.jsonl, line 1: a run begins with"),
        (format!("{first}\n"), "x.jsonl: no phase was measured yet"),
        (format!("{first}\n{{\"kind\":\"phase\"}}\n"), "x.jsonl, line 2: not a line of a run"),
        (good.replace("\"version\":1,", "\"version\":2,"), "x.jsonl, line 1: written in version 2"),
        (
            good.replacen("\"contender\":\"rocksdb\"", "\"contender\":\"sled\"", 1),
            "contender `sled` is not in the run's first line",
        ),
    ] {
        let error = error(&text);
        assert!(error.contains(problem), "{problem}: {error}");
    }
    // A killed run leaves half a last line.
    let torn = &good[..good.trim_end().rfind('\n').unwrap() - 20];
    let run = read(&[("x.jsonl".to_owned(), torn.to_owned())]).unwrap();
    assert!(run.notes[0].contains("in the middle of a line"), "{:?}", run.notes);
    assert_eq!(run.phases.len(), lines.len() - 3);
}

#[test]
#[allow(clippy::disallowed_methods, reason = "reads what the command wrote")]
fn the_command_writes_page_pictures_and_markdown() {
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("run.jsonl");
    std::fs::write(&file, text(&Sample { contenders: 4, rounds: 3, scale: 1.0 }.lines())).unwrap();
    let (out, markdown) = (dir.path().join("out"), dir.path().join("run.md"));
    let mut args = ReportArgs {
        runs: vec![file],
        out: out.clone(),
        markdown: Some(markdown.clone()),
        papers: None,
        headlines: None,
    };
    write(&args).unwrap();
    let run = results_of((4, 3, 1.0));
    for picture in pictures_of(&run) {
        let path = out.join(format!("{}.svg", picture.name));
        assert_eq!(std::fs::read_to_string(path).unwrap(), pictures::file(&run, &picture));
    }
    assert_eq!(std::fs::read_to_string(out.join("index.html")).unwrap(), page_of(&run));
    assert_eq!(std::fs::read_to_string(markdown).unwrap(), markdown::markdown(&run));
    args.runs = vec![dir.path().join("none.jsonl")];
    assert!(write(&args).unwrap_err().to_string().contains("none.jsonl"));
}

/// Not a check: writes samples to look at, into `windrow-report-samples` of the
/// directory for temporary files.
#[test]
#[ignore = "for the eye"]
#[allow(clippy::disallowed_methods, reason = "files to look at")]
fn samples_for_the_eye() {
    let dir = std::env::temp_dir().join("windrow-report-samples");
    std::fs::create_dir_all(&dir).unwrap();
    let names = ["one", "two", "four", "nine", "tiny", "huge"];
    for (name, (contenders, rounds, scale)) in names.into_iter().zip(SHAPES) {
        let mut lines = Sample { contenders, rounds, scale }.lines();
        if name == "nine" {
            let words = "ycsb-a run: fjall's contents differ from windrow's".to_owned();
            lines.pop();
            lines.push(Line::End(End { seconds: 9.0, disagreements: vec![words] }));
        }
        let file = dir.join(format!("{name}.jsonl"));
        std::fs::write(&file, text(&lines)).unwrap();
        let out = dir.join(format!("{name}-report"));
        let markdown = Some(dir.join(format!("{name}.md")));
        write(&ReportArgs { runs: vec![file], out, markdown, papers: None, headlines: None })
            .unwrap();
    }
}
