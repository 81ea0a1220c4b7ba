//! The colours of contenders: one hue for each engine, the same in every
//! picture and every report; variants of an engine differ in shade and dash.
//!
//! The hues are Okabe and Ito's, which people who are colour-blind tell apart
//! ("Color Universal Design", 2008). Pictures also have a name at each curve
//! and bar.
//!
//! Owns: the styles of contenders, as CSS. Never does: draw.

use crate::record::ContenderLine;
use std::fmt::Write as _;

type Rgb = [u8; 3];

/// The engines that keep their colour in every set of contenders.
const ENGINES: [(&str, Rgb); 4] = [
    ("windrow", [0x00, 0x72, 0xb2]),
    ("rocksdb", [0xd5, 0x5e, 0x00]),
    ("leveldb", [0x00, 0x9e, 0x73]),
    ("fjall", [0xcc, 0x79, 0xa7]),
];

/// The colours of other engines, in the order in which they come.
const OTHERS: [Rgb; 4] =
    [[0xe6, 0x9f, 0x00], [0x8b, 0x5a, 0x2b], [0x6f, 0x6f, 0x6f], [0x7b, 0x4f, 0xc9]];

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
