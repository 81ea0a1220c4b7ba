//! A paper's claims of its policy, as a test of our figures.
//!
//! Owns: the forms that a claim may have. Never does: judge
//! (`report/verdicts.rs` does).

use serde::{Deserialize, Deserializer};

/// A claim about a figure of one phase.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Goal {
    /// The paper's row with the claim, by its name in the paper: `Fig. 3b`.
    pub(crate) paper: Option<String>,
    /// The case; may be left out where there is only one.
    pub(crate) case: Option<String>,
    pub(crate) phase: String,
    pub(crate) figure: String,
    /// The contenders that the claim is about.
    #[serde(deserialize_with = "names")]
    pub(crate) ours: Vec<String>,
    /// The contender that they are compared with.
    pub(crate) than: Option<String>,
    /// By this share: 0.19 for "19 % less".
    less: Option<f64>,
    /// By this share.
    more: Option<f64>,
    times_less: Option<f64>,
    /// The figure itself.
    at_least: Option<f64>,
    /// The figure itself.
    at_most: Option<f64>,
}

/// The content of a claim.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Claim {
    /// The figure over that of the other contender is at most this.
    Less(f64),
    /// The figure over that of the other contender is at least this.
    More(f64),
    /// The figure by itself is at least this.
    AtLeast(f64),
    /// The figure by itself is at most this.
    AtMost(f64),
}

impl Goal {
    /// Returns the claim; `None` if there is none, or more than one.
    pub(crate) fn claim(&self) -> Option<Claim> {
        let of_ratio = [
            self.less.map(|share| Claim::Less(1.0 - share)),
            self.more.map(|share| Claim::More(1.0 + share)),
            self.times_less.map(|times| Claim::Less(1.0 / times)),
        ];
        let alone = [self.at_least.map(Claim::AtLeast), self.at_most.map(Claim::AtMost)];
        let (ratio, other) = if self.than.is_some() {
            (of_ratio.into_iter().flatten().collect::<Vec<_>>(), alone.iter().flatten().count())
        } else {
            (alone.into_iter().flatten().collect(), of_ratio.iter().flatten().count())
        };
        match (&ratio[..], other) {
            (&[claim], 0) => Some(claim),
            _ => None,
        }
    }
}

/// Reads a name, or several in brackets.
fn names<'de, D: Deserializer<'de>>(from: D) -> Result<Vec<String>, D::Error> {
    #[derive(Deserialize)]
    #[serde(untagged)]
    enum Names {
        One(String),
        Several(Vec<String>),
    }
    Ok(match Names::deserialize(from)? {
        Names::One(name) => vec![name],
        Names::Several(names) => names,
    })
}
