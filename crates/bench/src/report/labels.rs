//! The labels of an axis of categories: `latest 40`, `latest 50`, `zipf 40` are two groups, and
//! only the members of one follow each other.
//!
//! Owns: which labels form a group. Never does: draw.

/// Neighbours on an axis that follow each other.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Group {
    /// The words that its labels have in common; empty if it has none.
    pub(super) name: String,
    /// Its labels without these words.
    pub(super) ticks: Vec<String>,
}

/// Returns the groups of the labels of categories. Without two groups of several members all labels
/// are one group: `before`, `after 25 %`, `after 50 %` follow each other.
pub(super) fn of_categories(labels: &[String]) -> Vec<Group> {
    let groups = split(labels);
    if groups.iter().filter(|group| group.ticks.len() > 1).count() > 1 {
        return groups;
    }
    vec![Group { name: String::new(), ticks: labels.to_vec() }]
}

/// Returns the groups of contenders on an axis: one does not follow another, but where they are
/// values of one parameter, as `c=1` and `c=0.8`.
pub(super) fn of_contenders(names: &[String]) -> Vec<Group> {
    split(names)
}

/// Returns the neighbours with the same words before a number; a group of one keeps its whole label.
fn split(labels: &[String]) -> Vec<Group> {
    let mut groups: Vec<(&str, Vec<usize>)> = Vec::new();
    for (i, label) in labels.iter().enumerate() {
        let words = words(label);
        match groups.last_mut() {
            Some((name, members)) if !words.is_empty() && *name == words => members.push(i),
            _ => groups.push((words, vec![i])),
        }
    }
    let group = |(words, members): (&str, Vec<usize>)| match members.as_slice() {
        [one] => Group { name: String::new(), ticks: vec![labels[*one].clone()] },
        all => Group {
            name: words.trim_end_matches([' ', '=']).to_owned(),
            ticks: all.iter().map(|&i| labels[i][words.len()..].to_owned()).collect(),
        },
    };
    groups.into_iter().map(group).collect()
}

/// Returns the words before a label's number, with the space or `=` between them; empty if it has no
/// number or begins with it.
fn words(label: &str) -> &str {
    let after = |(i, c): (usize, char)| {
        let begins_number = label[i + 1..].starts_with(|c: char| c.is_ascii_digit());
        (matches!(c, ' ' | '=') && begins_number).then_some(i + 1)
    };
    label.char_indices().find_map(after).map_or("", |end| &label[..end])
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(groups: &[Group]) -> Vec<String> {
        groups.iter().map(|group| format!("{}: {}", group.name, group.ticks.join(", "))).collect()
    }

    #[test]
    fn labels_with_the_same_words_are_a_group() {
        let labels = |text: &str| text.split(", ").map(str::to_owned).collect::<Vec<_>>();
        for (text, groups) in [
            ("load, latest 40, latest 50, zipf 40, zipf 50", "|: load|latest: 40, 50|zipf: 40, 50"),
            (
                "seq 50 B, seq 200 B, random 50 B, random 200 B",
                "|seq: 50 B, 200 B|random: 50 B, 200 B",
            ),
            (
                "before, at once, after 25 %, after 50 %",
                "|: before, at once, after 25 %, after 50 %",
            ),
            ("T = 3, T = 5", "|: T = 3, T = 5"),
            ("16, 64", "|: 16, 64"),
            ("A, B", "|: A, B"),
        ] {
            let found = of(&of_categories(&labels(text))).join("|");
            assert_eq!(format!("|{found}"), groups, "{text}");
        }
        let names = labels("rocksdb, c=1, c=0.8, windrow, windrow (same bits)");
        assert_eq!(
            of(&of_contenders(&names)),
            [": rocksdb", "c: 1, 0.8", ": windrow", ": windrow (same bits)"]
        );
    }
}
