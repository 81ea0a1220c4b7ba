//! Axes: the place of a value, and the values that get a tick.
//!
//! Owns: linear axes from zero, logarithmic ones, the choice between them, and the axis of nines, on
//! which 90, 99 and 99.9 % are at equal distances. Never does: draw.

use super::spread::Spread;

/// A linear axis from 0 to a round number.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Linear {
    step: f64,
    steps: u32,
}

impl Linear {
    /// Makes an axis that holds `max`, with about `ticks` steps of 1, 2 or 5
    /// times a power of ten.
    pub(crate) fn to(max: f64, ticks: f64) -> Linear {
        let max = if max > 0.0 && max.is_finite() { max } else { 1.0 };
        let rough = max / ticks;
        let power = 10f64.powf(rough.log10().floor());
        let step = [1.0, 2.0, 5.0, 10.0].into_iter().find(|m| m * power >= rough * 0.999);
        let step = step.unwrap_or(10.0) * power;
        Linear { step, steps: (max / step - 1e-9).ceil().max(1.0) as u32 }
    }

    pub(crate) fn end(self) -> f64 {
        self.step * f64::from(self.steps)
    }

    /// Returns the place of a value, 0 to 1.
    pub(crate) fn place(self, value: f64) -> f64 {
        (value / self.end()).clamp(0.0, 1.0)
    }

    pub(crate) fn ticks(self) -> Vec<f64> {
        (0..=self.steps).map(|i| f64::from(i) * self.step).collect()
    }
}

/// A logarithmic axis.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Log {
    from: f64,
    to: f64,
}

impl Log {
    /// Makes an axis that holds all values above 0. Its ends are at least a
    /// third of a decade apart, and are 1, 2 or 5 times a power of ten.
    pub(crate) fn over(values: impl IntoIterator<Item = f64>) -> Log {
        let held = values.into_iter().filter(|v| *v > 0.0 && v.is_finite());
        let (mut min, mut max) =
            held.fold((f64::INFINITY, 0f64), |(min, max), v| (min.min(v), max.max(v)));
        if max == 0.0 {
            (min, max) = (1.0, 10.0);
        }
        let round = |v: f64, up: bool| {
            let power = 10f64.powf(v.log10().floor());
            let fits = |m: &f64| if up { m * power >= v * 0.999 } else { m * power <= v * 1.001 };
            let steps = [1.0, 2.0, 5.0, 10.0];
            let found =
                if up { steps.into_iter().find(fits) } else { steps.into_iter().rfind(fits) };
            found.unwrap_or(1.0) * power
        };
        let (from, mut to) = (round(min, false), round(max, true));
        if to / from < 1.9 {
            to = round(from * 2.0, true);
        }
        Log { from, to }
    }

    pub(crate) fn place(self, value: f64) -> f64 {
        if value <= self.from {
            return 0.0;
        }
        ((value / self.from).log10() / (self.to / self.from).log10()).min(1.0)
    }

    /// Returns 1, 2 and 5 in each decade where there is room for `most` ticks,
    /// else decades alone, else every n-th decade.
    pub(crate) fn ticks(self, most: usize) -> Vec<f64> {
        let inside = |v: &f64| self.from * 0.999 <= *v && *v <= self.to * 1.001;
        let first = self.from.log10().floor() as i32;
        let last = self.to.log10().ceil() as i32;
        let of = |digits: &[f64], every: usize| -> Vec<f64> {
            let powers = (first..=last).step_by(every).map(|p| 10f64.powi(p));
            powers.flat_map(|p| digits.iter().map(move |d| d * p)).filter(inside).collect()
        };
        let fine = of(&[1.0, 2.0, 5.0], 1);
        if fine.len() <= most {
            return fine;
        }
        let decades = of(&[1.0], 1);
        let every = decades.len().div_ceil(most.max(1));
        if every <= 1 { decades } else { of(&[1.0], every) }
    }
}

/// The greatest ratio of two values on a linear axis: beyond it the smaller one would have less than
/// a fiftieth of the height, four units of a picture, and look like zero.
const LINEAR_RATIO_MAX: f64 = 50.0;

/// Returns whether the medians above 0 are too far apart for a linear axis.
pub(crate) fn is_wide<'a>(spreads: impl IntoIterator<Item = &'a Spread>) -> bool {
    let positive = spreads.into_iter().map(|spread| spread.median).filter(|v| *v > 0.0);
    let (min, max) = positive.fold((f64::INFINITY, 0f64), |(min, max), v| (min.min(v), max.max(v)));
    max > min * LINEAR_RATIO_MAX
}

/// An axis of values, linear unless they are too far apart.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum ValueAxis {
    Linear(Linear),
    Log(Log),
}

impl ValueAxis {
    /// Makes an axis that holds the values and their ranges, with about `ticks` steps if it is
    /// linear.
    pub(crate) fn over(spreads: &[Spread], ticks: f64) -> ValueAxis {
        if is_wide(spreads) {
            return ValueAxis::Log(Log::over(
                spreads.iter().flat_map(|s| [s.min, s.median, s.max]),
            ));
        }
        let max = spreads.iter().map(|spread| spread.max).fold(0.0, f64::max);
        ValueAxis::Linear(Linear::to(max, ticks))
    }

    /// Returns the place of a value, 0 to 1.
    pub(crate) fn place(self, value: f64) -> f64 {
        match self {
            ValueAxis::Linear(axis) => axis.place(value),
            ValueAxis::Log(axis) => axis.place(value),
        }
    }

    pub(crate) fn ticks(self) -> Vec<f64> {
        match self {
            ValueAxis::Linear(axis) => axis.ticks(),
            ValueAxis::Log(axis) => axis.ticks(8),
        }
    }

    pub(crate) fn is_log(self) -> bool {
        matches!(self, ValueAxis::Log(_))
    }
}

/// Returns the place of a percentile on the axis of nines: 0 for 0, 1 for 90, 2
/// for 99, 3 for 99.9; `None` for 100, which would be at infinity.
pub(crate) fn nines(percentile: f64) -> Option<f64> {
    (percentile < 100.0).then(|| -(1.0 - percentile.max(0.0) / 100.0).log10())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn linear_axes_end_at_round_numbers() {
        for (max, end, ticks) in [
            (633.0, 800.0, 5),
            (1.0, 1.0, 6),
            (0.000_07, 0.000_08, 5),
            (9.9e9, 1e10, 6),
            (0.0, 1.0, 6),
            (f64::NAN, 1.0, 6),
        ] {
            let axis = Linear::to(max, 5.0);
            assert!((axis.end() / end - 1.0).abs() < 1e-9, "{max}: {}", axis.end());
            assert_eq!(axis.ticks().len(), ticks, "{max}: {:?}", axis.ticks());
        }
        assert_eq!(Linear::to(100.0, 5.0).place(25.0), 0.25);
    }

    #[test]
    fn logarithmic_axes_hold_their_values() {
        let axis = Log::over([0.0, 3.0, 4000.0]);
        assert_eq!((axis.place(2.0), axis.place(5000.0)), (0.0, 1.0));
        assert!((axis.place(100.0) - 0.5).abs() < 1e-9);
        assert_eq!(axis.ticks(5), [10.0, 100.0, 1000.0]);
        assert_eq!(axis.ticks(20).len(), 11);
        assert_eq!(Log::over([1e-3, 1e9]).ticks(5).len(), 5);
        assert_eq!(Log::over([]).ticks(5), [1.0, 2.0, 5.0, 10.0]);
        assert!(Log::over([7.0]).ticks(5).len() >= 2, "{:?}", Log::over([7.0]));
        assert!(Log::over([1.0]).ticks(5).len() >= 2);
    }

    #[test]
    fn values_that_would_look_like_zero_get_a_logarithmic_axis() {
        let spread = |median| Spread { median, min: median / 2.0, max: median * 2.0 };
        let axis = |values: &[f64]| {
            ValueAxis::over(&values.iter().map(|v| spread(*v)).collect::<Vec<_>>(), 5.0)
        };
        assert_eq!(axis(&[1.0, 50.0, 0.0]), ValueAxis::Linear(Linear::to(100.0, 5.0)));
        let log = axis(&[1.0, 51.0, 0.0]);
        assert!(log.is_log() && log.place(0.5) == 0.0 && log.place(102.0) <= 1.0, "{log:?}");
        assert!(!axis(&[]).is_log() && !axis(&[0.0, 7.0]).is_log());
    }

    #[test]
    fn nines_are_equally_far_apart() {
        let places: Vec<f64> = [0.0, 90.0, 99.0, 99.9].into_iter().filter_map(nines).collect();
        assert!(places.iter().zip(0..).all(|(at, n)| (at - f64::from(n)).abs() < 1e-9));
        assert_eq!(nines(100.0), None);
    }
}
