//! The comparison of contenders, and whether the rounds allow a verdict.
//!
//! Ratios are taken per round, because a machine that is slow for a minute is
//! slow for the neighbours in that round too. They are turned so that more than
//! 1 is good for the subject, for either direction of the measure.
//!
//! Owns: the subject, its rivals, verdicts. Never does: format.

use super::measure::{self, Better, Measure};
use super::results::{PhasePlace, Results};
use super::spread::Spread;

/// A spread of ratios wider than this share of their median leaves the size
/// of the difference open.
const WIDE: f64 = 0.25;

/// The engine that is compared with the others.
const OURS: &str = "windrow";

/// The verdict of all rounds' ratios.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Verdict {
    /// The subject is better in every round.
    Ahead,
    /// It is worse in every round.
    Behind,
    /// Rounds disagree, or there is one round only.
    Undecided,
}

/// How many times as good as a rival the subject is.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Ratio {
    pub(crate) spread: Spread,
    pub(crate) verdict: Verdict,
    /// Whether rounds differ too much to tell the size of the difference.
    pub(crate) is_wide: bool,
}

impl Ratio {
    fn of(ratios: Vec<f64>) -> Option<Ratio> {
        let rounds = ratios.len();
        let spread = Spread::of(ratios)?;
        let verdict = if rounds < 2 {
            Verdict::Undecided
        } else if spread.min > 1.0 {
            Verdict::Ahead
        } else if spread.max < 1.0 {
            Verdict::Behind
        } else {
            Verdict::Undecided
        };
        Some(Ratio { spread, verdict, is_wide: spread.width() > WIDE })
    }

    /// Returns the sign: `▲` better, `▼` worse, `~` undecided; `▲~` better, but
    /// the size of the difference is open.
    pub(crate) fn sign(self) -> &'static str {
        match (self.verdict, self.is_wide) {
            (Verdict::Ahead, false) => "▲",
            (Verdict::Ahead, true) => "▲~",
            (Verdict::Behind, false) => "▼",
            (Verdict::Behind, true) => "▼~",
            (Verdict::Undecided, _) => "~",
        }
    }
}

/// The signs in words.
pub(crate) const SIGNS: &str = "▲ better in every round, ▼ worse in every round, ~ rounds disagree \
                                or there is one only; ▲~ ▼~ the direction is clear, the size is \
                                not: ratios of rounds differ by more than a quarter";

/// Returns the contender that others are compared with: the first of our
/// engine, or the first of all.
pub(crate) fn subject(run: &Results) -> usize {
    run.contenders.iter().position(|c| c.engine == OURS).unwrap_or(0)
}

/// Returns the contenders that the subject is compared with: those of other
/// engines, or all others where there is only one engine.
pub(crate) fn rivals(run: &Results) -> Vec<usize> {
    let subject = subject(run);
    let others = (0..run.contenders.len()).filter(|&i| i != subject);
    let engine = run.contenders.get(subject).map(|c| &c.engine);
    let peers: Vec<usize> =
        others.clone().filter(|&i| Some(&run.contenders[i].engine) != engine).collect();
    if peers.is_empty() { others.collect() } else { peers }
}

/// One measure at one place, of all contenders.
#[derive(Clone, Debug)]
pub(crate) struct ComparedRow<'a> {
    pub(crate) place: PhasePlace<'a>,
    pub(crate) measure: Measure,
    /// The spreads by contender; `None` where it was not measured.
    pub(crate) values: Vec<Option<Spread>>,
    /// The ratio of the subject to each contender; `None` for itself.
    pub(crate) ratios: Vec<Option<Ratio>>,
    /// The rival whose median is best.
    pub(crate) best: Option<usize>,
}

impl ComparedRow<'_> {
    /// Returns the ratio of the subject to its best rival.
    pub(crate) fn ratio(&self) -> Option<Ratio> {
        self.ratios[self.best?]
    }
}

/// Returns the chief measures of every place of a run.
pub(crate) fn rows(run: &Results) -> Vec<ComparedRow<'_>> {
    run.places().into_iter().flat_map(|place| rows_at(run, place)).collect()
}

/// Returns the chief measures of one place.
pub(crate) fn rows_at<'a>(run: &'a Results, place: PhasePlace<'a>) -> Vec<ComparedRow<'a>> {
    measure::chiefs(run, place).into_iter().map(|m| row(run, place, m)).collect()
}

/// Returns the row of a measure at a place.
pub(crate) fn row<'a>(
    run: &'a Results,
    place: PhasePlace<'a>,
    measure: Measure,
) -> ComparedRow<'a> {
    let subject = subject(run);
    let rounds: Vec<Vec<(u32, f64)>> =
        run.contenders.iter().map(|c| measure.values(run, place, &c.name)).collect();
    let ratio = |i: usize| {
        if i == subject { None } else { ratio(measure.better, &rounds[subject], &rounds[i]) }
    };
    let ratios: Vec<Option<Ratio>> = (0..rounds.len()).map(ratio).collect();
    let spread = |of: &Vec<(u32, f64)>| Spread::of(of.iter().map(|(_, v)| *v).collect());
    let values: Vec<Option<Spread>> = rounds.iter().map(spread).collect();
    let median = |i: usize| values[i].map(|s| s.median);
    let is_rival =
        |i: &usize| ratios[*i].is_some() && !run.is_buffered(place, &run.contenders[*i].name);
    let measured = rivals(run).into_iter().filter(is_rival);
    let best = measured.max_by(|&a, &b| {
        let order = median(a).partial_cmp(&median(b)).unwrap_or(std::cmp::Ordering::Equal);
        if measure.better == Better::More { order } else { order.reverse() }
    });
    ComparedRow { place, measure, values, ratios, best }
}

/// Returns how many times as good one contender is as another, round by round; `None` if they have no
/// round in common.
pub(crate) fn ratio(better: Better, ours: &[(u32, f64)], theirs: &[(u32, f64)]) -> Option<Ratio> {
    let of_round = |&(round, our): &(u32, f64)| {
        let (_, their) = theirs.iter().find(|(r, _)| *r == round)?;
        let ratio = if better == Better::More { our / their } else { their / our };
        // There is no ratio where one of them is zero.
        (ratio.is_finite() && ratio > 0.0).then_some(ratio)
    };
    Ratio::of(ours.iter().filter_map(of_round).collect())
}

/// Counts how often the subject is ahead of its best rival, behind, and
/// neither.
pub(crate) fn tally(rows: &[ComparedRow<'_>]) -> (usize, usize, usize) {
    let count = |verdict| {
        rows.iter().filter_map(ComparedRow::ratio).filter(|ratio| ratio.verdict == verdict).count()
    };
    (count(Verdict::Ahead), count(Verdict::Behind), count(Verdict::Undecided))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(ratios: &[f64]) -> (&'static str, f64) {
        Ratio::of(ratios.to_vec()).map_or(("", 0.0), |r| (r.sign(), r.spread.median))
    }

    #[test]
    fn verdicts_need_every_round() {
        assert_eq!(of(&[1.1, 1.2, 1.15]), ("▲", 1.15));
        assert_eq!(of(&[0.9, 0.8, 0.85]), ("▼", 0.85));
        assert_eq!(of(&[1.1, 0.99, 1.2]), ("~", 1.1));
        assert_eq!(of(&[2.0, 4.0, 3.0]), ("▲~", 3.0));
        assert_eq!(of(&[0.2, 0.5, 0.3]), ("▼~", 0.3));
        assert_eq!(of(&[2.0]), ("~", 2.0), "one round has no spread");
        assert_eq!(of(&[1.0, 1.0, 1.0]), ("~", 1.0));
        assert_eq!(of(&[]), ("", 0.0));
    }

    #[test]
    fn ratios_pair_rounds_and_turn_with_the_measure() {
        let ours = [(1, 10.0), (2, 30.0), (3, 20.0), (4, 0.0)];
        let theirs = [(3, 20.0), (1, 5.0), (2, 10.0), (4, 1.0), (5, 9.0)];
        let more = ratio(Better::More, &ours, &theirs).map(|r| r.spread);
        assert_eq!(more, Some(Spread { median: 2.0, min: 1.0, max: 3.0 }));
        let less = ratio(Better::Less, &ours, &theirs).map(|r| r.spread);
        assert_eq!(less, Some(Spread { median: 0.5, min: 1.0 / 3.0, max: 1.0 }));
        assert_eq!(ratio(Better::More, &ours, &[(7, 1.0)]), None);
    }
}
