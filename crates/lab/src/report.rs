//! Figures as a table that people read and pages quote.
//!
//! Owns: the columns, and the form of a Markdown table. Never does: compute a figure.

use crate::figures::Figures;

/// Prints figures by name as Markdown, sizes in units of 8 MB.
pub fn table(rows: &[(String, Figures)]) -> String {
    let head = [
        "policy",
        "write amp.",
        "flush / L1 / L2 ...",
        "runs",
        "probes, mean / max",
        "chain p50 / p99 / max",
        "largest job p99",
        "work per flush, p99/mean",
        "space, mean / max",
        "levels",
    ];
    let line = |(name, f): &(String, Figures)| {
        vec![
            name.clone(),
            fixed(f.write_amplification, 2),
            by_level(&f.write_by_level),
            fixed(f.runs, 1),
            format!("{} / {}", fixed(f.probes_mean, 1), f.probes_max),
            chain(f),
            fixed(f.job_p99, 0),
            format!("{}, {}", fixed(f.work_mean, 0), fixed(f.work_p99_over_mean, 1)),
            format!("{} / {}", fixed(f.space_mean, 2), fixed(f.space_max, 2)),
            f.levels.to_string(),
        ]
    };
    let lines: Vec<Vec<String>> = rows.iter().map(line).collect();
    markdown(&head, &lines)
}

/// Prints a Markdown table whose columns line up.
pub(crate) fn markdown(head: &[&str], lines: &[Vec<String>]) -> String {
    let width = |column: usize| {
        let cells = lines.iter().map(|line| line[column].chars().count());
        cells.chain([head[column].chars().count()]).max().unwrap_or(0)
    };
    let widths: Vec<usize> = (0..head.len()).map(width).collect();
    let row = |cells: &mut dyn Iterator<Item = &str>| {
        let padded: Vec<String> =
            cells.zip(&widths).map(|(cell, &width)| format!("{cell:width$}")).collect();
        format!("| {} |\n", padded.join(" | "))
    };
    let rule: Vec<String> = widths.iter().map(|&width| "-".repeat(width)).collect();
    let mut text = row(&mut head.iter().copied());
    text += &row(&mut rule.iter().map(String::as_str));
    for line in lines {
        text += &row(&mut line.iter().map(String::as_str));
    }
    text
}

/// Prints a number with this number of decimals.
pub(crate) fn fixed(value: f64, decimals: usize) -> String {
    format!("{value:.decimals$}")
}

/// Write amplification by level.
pub(crate) fn by_level(levels: &[f64]) -> String {
    levels.iter().map(|&w| fixed(w, 1)).collect::<Vec<_>>().join(" / ")
}

/// Chain p50, p99 and longest.
pub(crate) fn chain(figures: &Figures) -> String {
    [figures.chain_p50, figures.chain_p99, figures.chain_max].map(|c| fixed(c, 0)).join(" / ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_line_up() {
        let lines = vec![vec!["a".into(), "long cell".into()], vec!["b c".into(), "x".into()]];
        let expected = "\
| head | h         |
| ---- | --------- |
| a    | long cell |
| b c  | x         |
";
        assert_eq!(markdown(&["head", "h"], &lines), expected);
    }
}
