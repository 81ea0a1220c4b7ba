//! The colours of contenders: one hue for each engine, the same in every
//! picture and every report; variants of an engine differ in shade and dash.
//!
//! The hues are Okabe and Ito's, which people who are colour-blind tell apart
//! ("Color Universal Design", 2008). Pictures also have a name at each curve
//! and bar.
//!
//! In the papers' experiments most contenders are of one engine. There each has a colour of its own,
//! by its role: blue is the default preset, red the paper's design, orange its baseline; peers are
//! grey.
//!
//! Owns: the styles of contenders, as CSS. Never does: draw.

use crate::record::ContenderLine;
use std::fmt::Write as _;

type Rgb = [u8; 3];

/// The engines that keep their colour in every set of contenders.
const ENGINES: [(&str, Rgb); 4] =
    [("windrow", BLUE), ("rocksdb", RED), ("leveldb", GREEN), ("fjall", PINK)];

/// The colours of other engines, in the order in which they come.
const OTHERS: [Rgb; 4] = [ORANGE, BROWN, [0x6f, 0x6f, 0x6f], VIOLET];

const BLUE: Rgb = [0x00, 0x72, 0xb2];
const RED: Rgb = [0xd5, 0x5e, 0x00];
const ORANGE: Rgb = [0xe6, 0x9f, 0x00];
const SAND: Rgb = [0xf3, 0xcf, 0x80];
const SALMON: Rgb = [0xf0, 0x9a, 0x6a];
const BROWN: Rgb = [0x8b, 0x5a, 0x2b];
const GREEN: Rgb = [0x00, 0x9e, 0x73];
const MINT: Rgb = [0x7c, 0xcf, 0xb3];
const OLIVE: Rgb = [0xa8, 0x9b, 0x00];
const VIOLET: Rgb = [0x7b, 0x4f, 0xc9];
const PINK: Rgb = [0xcc, 0x79, 0xa7];

/// The contenders of the papers' experiments. Two that have one role, each in a set-up of its own,
/// are nearly of one colour: `paper 12x1` and `paper large`.
const IN_PAPERS: [(&str, Rgb); 37] = [
    ("windrow", BLUE),
    ("windrow (same bits)", [0x6c, 0xb8, 0xe6]),
    // Autumn.
    ("c=1", ORANGE),
    ("c=0.9", [0xe0, 0x86, 0x1a]),
    ("c=0.8", RED),
    ("c=0.8 (level 1 fixed)", SALMON),
    ("c=0.7", [0xb5, 0x40, 0x2a]),
    ("c=0.6", [0xa0, 0x2c, 0x4a]),
    ("c=0.5", [0x9a, 0x35, 0x6c]),
    ("c=0.4", [0x8a, 0x2b, 0x8f]),
    // L2SM.
    ("round robin", ORANGE),
    ("few open", [0xc9, 0xb0, 0x60]),
    ("paper", RED),
    ("paper 50 %", SALMON),
    ("paper 2.4x2", BROWN),
    ("paper 12x1", GREEN),
    ("paper large", [0x0b, 0x8f, 0x6b]),
    ("paper 12x1 by S", MINT),
    ("paper 12, .2", OLIVE),
    ("closed 12x1", VIOLET),
    ("closed large", [0x72, 0x45, 0xbe]),
    ("l2sm", PINK),
    // vLSM; `leveled` is in L2SM, too.
    ("leveled", [0xf2, 0xb7, 0x33]),
    ("leveled-io", BROWN),
    ("leveled 8 MiB", SAND),
    ("no tiering", GREEN),
    ("no tiering 8 MiB", MINT),
    ("vlsm", RED),
    // Mnemosyne.
    ("uniform", ORANGE),
    ("monkey", GREEN),
    ("mnemosyne", RED),
    ("one in 8", BROWN),
    ("one in 64", PINK),
    // Peers.
    ("rocksdb", [0x4d, 0x52, 0x57]),
    ("rocksdb-io", [0x70, 0x76, 0x7c]),
    ("leveldb", [0x9a, 0xa1, 0xa8]),
    ("leveldb few open", [0xc3, 0xc8, 0xcd]),
];

/// The colours of series that are no contenders, and of contenders of other files.
const SERIES: [Rgb; 6] = [GREEN, VIOLET, OLIVE, BROWN, PINK, SALMON];

/// Shares of white (above 0) or black (below) that are mixed in for the
/// variants of an engine, on white and on black paper.
const ON_LIGHT: [f64; 5] = [0.0, 0.45, -0.45, 0.65, -0.25];
const ON_DARK: [f64; 5] = [0.15, 0.6, -0.15, 0.8, 0.4];

/// Dashes of a variant's lines, CSS `stroke-dasharray`.
const DASHES: [&str; 5] = ["none", "7 3", "2 3", "9 3 2 3", "4 4"];

/// Returns the classes `f0`, `s0`, `f1` ... (fill and stroke of a contender by
/// its place).
pub(crate) fn styles(contenders: &[ContenderLine]) -> String {
    let mut engines: Vec<&str> = Vec::new();
    let (mut light, mut dark) = (String::new(), String::new());
    for (i, contender) in contenders.iter().enumerate() {
        let earlier = &contenders[..i];
        let variant = earlier.iter().filter(|c| c.engine == contender.engine).count();
        let hue = hue(&contender.engine, &mut engines);
        let dash = DASHES[variant % DASHES.len()];
        let on_light = mixed(hue, ON_LIGHT[variant % ON_LIGHT.len()]);
        let on_dark = mixed(hue, ON_DARK[variant % ON_DARK.len()]);
        let _ = writeln!(light, ".f{i} {{ fill: {on_light}; background: {on_light}; }}");
        let _ = writeln!(light, ".s{i} {{ stroke: {on_light}; stroke-dasharray: {dash}; }}");
        let _ = writeln!(dark, ".f{i} {{ fill: {on_dark}; background: {on_dark}; }}");
        let _ = writeln!(dark, ".s{i} {{ stroke: {on_dark}; }}");
    }
    format!("{light}@media (prefers-color-scheme: dark) {{\n{dark}}}\n")
}

/// Returns the same classes for the series of a paper's picture, by their names.
pub(crate) fn in_papers<'a>(names: impl IntoIterator<Item = &'a str>) -> String {
    let (mut light, mut dark) = (String::new(), String::new());
    let mut others = SERIES.into_iter().cycle();
    for (i, name) in names.into_iter().enumerate() {
        let known = IN_PAPERS.iter().find(|(known, _)| *known == name).map(|(_, hue)| *hue);
        let hue = known.or_else(|| others.next()).unwrap_or(BLUE);
        // Greys and dark hues would vanish on black.
        let share = if hue.iter().all(|c| *c < 0xb3) { 0.35 } else { 0.12 };
        for (css, hue) in [(&mut light, mixed(hue, 0.0)), (&mut dark, mixed(hue, share))] {
            let _ = writeln!(css, ".f{i} {{ fill: {hue}; }}\n.s{i} {{ stroke: {hue}; }}");
        }
    }
    format!("{light}@media (prefers-color-scheme: dark) {{\n{dark}}}\n")
}

fn hue<'a>(engine: &'a str, seen: &mut Vec<&'a str>) -> Rgb {
    if let Some((_, hue)) = ENGINES.iter().find(|(name, _)| *name == engine) {
        return *hue;
    }
    let place = seen.iter().position(|name| *name == engine).unwrap_or_else(|| {
        seen.push(engine);
        seen.len() - 1
    });
    OTHERS[place % OTHERS.len()]
}

fn mixed(color: Rgb, share: f64) -> String {
    let toward = if share < 0.0 { 0.0 } else { 255.0 };
    let mix = |c: u8| (f64::from(c) + (toward - f64::from(c)) * share.abs()).round() as u8;
    let [r, g, b] = color.map(mix);
    format!("#{r:02x}{g:02x}{b:02x}")
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    #[test]
    fn every_contender_of_a_paper_has_a_colour_of_its_own() {
        for paper in crate::paper::all() {
            let workloads = paper.workloads(crate::workload::Scale::Full).unwrap();
            let names = workloads.iter().flat_map(|w| w.contenders.iter().map(|c| c.name.as_str()));
            let names: Vec<&str> = names.collect::<BTreeSet<_>>().into_iter().collect();
            for name in &names {
                assert!(IN_PAPERS.iter().any(|(known, _)| known == name), "{}: {name}", paper.key);
            }
            for scheme in in_papers(names.iter().copied()).split("@media") {
                let fills = scheme.lines().filter_map(|line| line.split_once("{ fill: "));
                let colours: BTreeSet<&str> = fills.map(|(_, colour)| colour).collect();
                assert_eq!(colours.len(), names.len(), "{}: {scheme}", paper.key);
            }
        }
        let fill = |names: &[&str], i: usize| {
            let styles = in_papers(names.iter().copied());
            styles.split_once(&format!(".f{i} {{ fill: ")).unwrap().1[..7].to_owned()
        };
        assert_eq!(fill(&["rocksdb", "windrow"], 1), fill(&["windrow"], 0));
        assert_ne!(fill(&["T = 3", "T = 5"], 0), fill(&["T = 3", "T = 5"], 1));
    }

    #[test]
    fn contenders_differ_and_engines_keep_their_hue() {
        let contender = |name: &str, engine: &str| ContenderLine {
            name: name.to_owned(),
            engine: engine.to_owned(),
            version: String::new(),
            tuning: String::new(),
            direct_io: true,
        };
        let names = [
            ("a", "windrow"),
            ("b", "windrow"),
            ("c", "windrow"),
            ("d", "windrow"),
            ("e", "windrow"),
            ("f", "rocksdb"),
            ("g", "rocksdb"),
            ("h", "leveldb"),
            ("i", "fjall"),
            ("j", "lmdb"),
            ("k", "sled"),
            ("l", "lmdb"),
        ];
        let all: Vec<ContenderLine> = names.iter().map(|(n, e)| contender(n, e)).collect();
        let styles = styles(&all);
        for scheme in styles.split("@media") {
            let fills: Vec<&str> = scheme.lines().filter(|l| l.starts_with(".f")).collect();
            let colours: BTreeSet<&str> =
                fills.iter().filter_map(|l| l.split_once("fill: ")?.1.split(';').next()).collect();
            assert_eq!((fills.len(), colours.len()), (12, 12), "{scheme}");
        }
        let alone = super::styles(&all[5..6]);
        assert!(alone.contains(".f0 { fill: #d55e00"), "{alone}");
        assert!(styles.contains(".f5 { fill: #d55e00"), "{styles}");
    }
}
