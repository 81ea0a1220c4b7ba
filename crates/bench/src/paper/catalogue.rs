//! The papers that come with the program, and their experiments.
//!
//! Owns: the list of their files. Never does: parse one.

/// A paper's files: its index, and name and text of each experiment.
struct Files {
    key: &'static str,
    index: &'static str,
    experiments: &'static [(&'static str, &'static str)],
}

macro_rules! files {
    ($key:literal: $($experiment:literal),* $(,)?) => {
        Files {
            key: $key,
            index: include_str!(concat!("../../papers/", $key, "/paper.toml")),
            experiments: &[$((
                concat!($key, "/", $experiment),
                include_str!(concat!("../../papers/", $key, "/", $experiment, ".toml")),
            )),*],
        }
    };
}

const PAPERS: &[Files] = &[
    files!("autumn": "micro", "ratios", "ycsb", "growth"),
    files!("l2sm": "growing", "large", "overall", "reads", "requests", "sizes"),
    files!("vlsm": "keys", "levels", "rate", "regions", "shapes", "sizes", "ycsb"),
    files!("mnemosyne": "bits", "merlin", "scale", "shift", "static"),
];

/// Returns the name and the text of each paper's index.
pub(crate) fn indexes() -> impl Iterator<Item = (&'static str, &'static str)> {
    PAPERS.iter().map(|files| (files.key, files.index))
}

/// Returns the names, as `PAPER/EXPERIMENT`, and the texts of a paper's
/// experiments.
pub(crate) fn experiments(key: &str) -> Vec<(String, &'static str)> {
    let files = PAPERS.iter().filter(|files| files.key == key);
    let named = files.flat_map(|files| files.experiments);
    named.map(|(name, text)| ((*name).to_owned(), *text)).collect()
}

/// Returns the text of an experiment by its name, `PAPER/EXPERIMENT`.
pub(crate) fn experiment(name: &str) -> Option<&'static str> {
    let mut all = PAPERS.iter().flat_map(|files| files.experiments);
    all.find(|(known, _)| *known == name).map(|(_, text)| *text)
}

#[cfg(test)]
#[allow(clippy::disallowed_methods, reason = "the source folder")]
mod tests {
    use super::*;

    #[test]
    fn every_file_of_the_folder_is_in_the_program() {
        for files in PAPERS {
            let folder = format!("{}/papers/{}", env!("CARGO_MANIFEST_DIR"), files.key);
            let entries = std::fs::read_dir(folder).unwrap();
            let names = entries.map(|entry| entry.unwrap().file_name().into_string().unwrap());
            for name in names.filter(|name| name != "paper.toml") {
                let known = format!("{}/{}", files.key, name.trim_end_matches(".toml"));
                assert!(experiment(&known).is_some(), "{known}");
            }
        }
    }
}
