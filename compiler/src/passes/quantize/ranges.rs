//! Ranges of the activations that a linear layer reads: what was seen, and the codes that would hold it.

use chococ_plans::eval;
use chococ_plans::network::Quantizer;
use chococ_plans::op::{Arithmetic, ClientOp, Function, Linear};
use rayon::prelude::*;

use super::SMALLEST_MAGNITUDE;
use crate::graph::Op;

/// Cells of the histogram that stands in for the numbers themselves; even the finest clipped scale of 8 bits
/// (0.15 of the full range) spans ten of them.
const BINS: usize = 16384;

/// Scales that are tried for a clipped range, as percentages of the scale of the full range.
const CLIPPED_PERCENT: std::ops::Range<u32> = 15..100;

/// What a layer was seen to read over all calibration inputs.
pub(super) struct Observed {
    low: f32,
    high: f32,
    /// Numbers in each of [`BINS`] equal parts of [low, high], without zeros: no scale makes an error there.
    counts: Vec<u64>,
    /// All numbers, zeros included.
    total: u64,
    /// Whether an input channel was zero everywhere.
    pub(super) silent: Vec<bool>,
}

impl Observed {
    /// Looks at the inputs of `operator`. Counts, minima and maxima do not depend on the order of the threads.
    pub(super) fn of(operator: &Linear, inputs: &[&[f32]]) -> Observed {
        let channels = operator.input_shape()[0];
        let (low, high, silent) = inputs.par_iter().map(|x| extremes(x, channels)).reduce(
            || (f32::INFINITY, f32::NEG_INFINITY, vec![true; channels]),
            |a, b| (a.0.min(b.0), a.1.max(b.1), a.2.iter().zip(&b.2).map(|(a, b)| *a && *b).collect()),
        );
        let mut observed = Observed { low, high, counts: Vec::new(), total: 0, silent };
        observed.counts = inputs.par_iter().fold(|| vec![0; BINS], |counts, x| observed.count(counts, x)).reduce(
            || vec![0; BINS],
            |mut a, b| {
                a.iter_mut().zip(&b).for_each(|(a, b)| *a += b);
                a
            },
        );
        observed.total = inputs.iter().map(|x| x.len() as u64).sum();
        observed
    }

    /// Whether no number below zero was seen.
    pub(super) fn never_negative(&self) -> bool {
        self.low >= 0.0
    }

    /// The codes whose range holds everything that was seen.
    ///
    /// Unsigned codes are 0 to 2^bits - 1, signed ones -2^(bits - 1) to 2^(bits - 1) - 1. If nothing but zeros was seen,
    /// any scale will do, and it is 1.
    pub(super) fn full_range(&self, bits: u32, signed: bool) -> Quantizer {
        let (low, high) = if signed { (-(1 << (bits - 1)), (1 << (bits - 1)) - 1) } else { (0, (1 << bits) - 1) };
        let below = if signed { self.low / low as f32 } else { 0.0 };
        let scale = below.max(self.high / high as f32);
        Quantizer { scale: if scale < SMALLEST_MAGNITUDE { 1.0 } else { scale }, low, high }
    }

    /// The codes of least squared error on what was seen; their range may be narrower, so that large numbers are clipped.
    pub(super) fn least_squares(&self, full: &Quantizer) -> Quantizer {
        let candidates: Vec<(f64, Quantizer)> = CLIPPED_PERCENT
            .into_par_iter()
            .map(|percent| Quantizer { scale: full.scale * percent as f32 / 100.0, ..*full })
            .map(|quantizer| (self.mean_squared_error(&quantizer), quantizer))
            .collect();
        let full = (self.mean_squared_error(full), *full);
        candidates.into_iter().fold(full, |best, next| if next.0 < best.0 { next } else { best }).1
    }

    /// Mean squared difference between a number and what its code stands for, from the histogram.
    pub(super) fn mean_squared_error(&self, quantizer: &Quantizer) -> f64 {
        let scale = f64::from(quantizer.scale);
        let squared = |(bin, &count): (usize, &u64)| {
            let x = f64::from(self.low) + self.span() * (bin as f64 + 0.5) / BINS as f64;
            let code = (x / scale).round_ties_even().clamp(f64::from(quantizer.low), f64::from(quantizer.high));
            count as f64 * (code * scale - x).powi(2)
        };
        self.counts.iter().enumerate().filter(|(_, count)| **count > 0).map(squared).sum::<f64>() / self.total as f64
    }

    /// In f64, where the difference of two f32 cannot overflow.
    fn span(&self) -> f64 {
        f64::from(self.high) - f64::from(self.low)
    }

    fn count(&self, mut counts: Vec<u64>, x: &[f32]) -> Vec<u64> {
        let per_unit = if self.span() > 0.0 { BINS as f64 / self.span() } else { 0.0 };
        for value in x.iter().filter(|value| **value != 0.0) {
            let bin = ((f64::from(*value) - f64::from(self.low)) * per_unit) as usize;
            counts[bin.min(BINS - 1)] += 1;
        }
        counts
    }
}

fn extremes(x: &[f32], channels: usize) -> (f32, f32, Vec<bool>) {
    let silent = x.chunks_exact(x.len() / channels).map(|cells| cells.iter().all(|value| *value == 0.0)).collect();
    let low = x.iter().copied().fold(f32::INFINITY, f32::min);
    let high = x.iter().copied().fold(f32::NEG_INFINITY, f32::max);
    (low, high, silent)
}

/// Whether no output of `op` can be negative, given of each of its inputs whether that can.
///
/// What was seen on calibration inputs is not enough for unsigned codes: a batch norm may be negative on the next input.
pub(super) fn never_negative(op: &Op, inputs_never_negative: &[bool]) -> bool {
    let all = inputs_never_negative.iter().all(|never| *never);
    let Op::Client(op) = op else { return false };
    match op {
        ClientOp::Relu | ClientOp::Softmax { .. } => true,
        ClientOp::LogSoftmax { .. } => false,
        ClientOp::Constant { values } => values.iter().all(|number| *number >= 0.0),
        ClientOp::Clip { low, high } => *high >= 0.0 && (*low >= 0.0 || all),
        ClientOp::Affine { scale, shift } => all && scale.iter().chain(shift).all(|number| *number >= 0.0),
        ClientOp::Function(Function::Ceil | Function::Floor | Function::Round) => all,
        ClientOp::Function(function) => eval::is_never_negative(*function),
        // Divided by -0, which counts as not negative, a number is -infinity.
        ClientOp::Combine(Arithmetic::Sub | Arithmetic::Div) => false,
        // Where the one number is a NaN, the other wins, whatever it is.
        ClientOp::Combine(Arithmetic::Add | Arithmetic::Mul | Arithmetic::Max | Arithmetic::Min) => all,
        ClientOp::Pad { value, .. } => all && *value >= 0.0,
        ClientOp::PRelu { .. }
        | ClientOp::MaxPool(_)
        | ClientOp::AveragePool { .. }
        | ClientOp::GlobalAveragePool
        | ClientOp::Concat { .. }
        | ClientOp::Slice { .. }
        | ClientOp::Transpose { .. }
        | ClientOp::Reduce { .. }
        | ClientOp::Reshape => all,
    }
}

#[cfg(test)]
mod tests {
    use chococ_plans::op::Dense;

    use super::*;

    fn observe(values: &[f32]) -> Observed {
        let operator = Linear::Dense(Dense { inputs: values.len(), outputs: 1 });
        Observed::of(&operator, &[values])
    }

    #[test]
    fn the_full_range_ends_where_the_codes_end() {
        assert_eq!(observe(&[0.0, 1.0, 3.0]).full_range(4, false), Quantizer { scale: 3.0 / 15.0, low: 0, high: 15 });
        assert_eq!(observe(&[-4.0, 1.0]).full_range(4, true), Quantizer { scale: 0.5, low: -8, high: 7 });
        assert_eq!(observe(&[-1.0, 7.0]).full_range(4, true), Quantizer { scale: 1.0, low: -8, high: 7 });
        assert_eq!(observe(&[0.0, 0.0]).full_range(4, false), Quantizer { scale: 1.0, low: 0, high: 15 });
    }

    #[test]
    fn an_outlier_is_clipped_and_an_even_spread_is_not() {
        let even: Vec<f32> = (0..=1000).map(|i| i as f32 / 1000.0).collect();
        let observed = observe(&even);
        let full = observed.full_range(4, false);
        assert!(observed.least_squares(&full).scale > 0.9 * full.scale);

        let outlier: Vec<f32> = even.iter().copied().chain([3.0]).collect();
        let observed = observe(&outlier);
        let full = observed.full_range(4, false);
        let clipped = observed.least_squares(&full);
        assert!(clipped.scale < 0.8 * full.scale, "{clipped:?}");
        assert!(observed.mean_squared_error(&clipped) < observed.mean_squared_error(&full));
    }

    #[test]
    fn the_histogram_agrees_with_the_numbers() {
        let values: Vec<f32> = (0..5000).map(|i| (i as f32 * 0.37).sin().powi(3)).collect();
        let observed = observe(&values);
        let quantizer = observed.full_range(4, true);
        let exact = eval::quantize(&quantizer, &values)
            .iter()
            .zip(&values)
            .map(|(code, value)| f64::from(*code as f32 * quantizer.scale - value).powi(2))
            .sum::<f64>()
            / values.len() as f64;
        let estimate = observed.mean_squared_error(&quantizer);
        assert!((estimate / exact - 1.0).abs() < 0.01, "{estimate} {exact}");
    }

    #[test]
    fn silent_channels_are_zero_on_every_input() {
        let operator = Linear::Dense(Dense { inputs: 3, outputs: 1 });
        let observed = Observed::of(&operator, &[&[0.0, -0.0, 0.0], &[1.0, 0.0, 0.0]]);
        assert_eq!(observed.silent, [false, true, true]);
    }

    #[test]
    fn only_a_proof_makes_a_tensor_non_negative() {
        let affine = |shift| Op::Client(ClientOp::Affine { scale: vec![2.0], shift: vec![shift] });
        assert!(never_negative(&Op::Client(ClientOp::Relu), &[false]));
        assert!(never_negative(&affine(0.5), &[true]));
        assert!(!never_negative(&affine(-0.5), &[true]));
        assert!(!never_negative(&affine(0.5), &[false]));
        let clip = |low, high| Op::Client(ClientOp::Clip { low, high });
        assert!(never_negative(&clip(0.0, 6.0), &[false]));
        assert!(never_negative(&clip(-1.0, 6.0), &[true]));
        assert!(!never_negative(&clip(-1.0, 6.0), &[false]));
        assert!(!never_negative(&clip(-2.0, -1.0), &[true]));
    }
}
