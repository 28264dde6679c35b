//! Weight codes: symmetric, with one scale an output channel.

use chococ_plans::op::Linear;
use rayon::prelude::*;

use super::SMALLEST_MAGNITUDE;

/// Scales that are tried for a clipped range, as percentages of the scale of the full range.
const CLIPPED_PERCENT: std::ops::Range<u32> = 40..100;

/// Integer weights of one layer, in rows: one row of taps an output channel.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct WeightCodes {
    pub(super) codes: Vec<i32>,
    /// What one unit of a row's codes stands for; 0 for a row of zeros.
    pub(super) row_scales: Vec<f32>,
}

impl WeightCodes {
    /// Codes whose range, -(2^(bits - 1) - 1) to 2^(bits - 1) - 1, ends at the largest weight of each row.
    pub(super) fn full_range(weights: &[f32], rows: usize, bits: u32) -> WeightCodes {
        WeightCodes::by_row(weights, rows, |row| full_scale(row, bits), bits)
    }

    /// Codes of least squared error, row by row; large weights may be clipped.
    pub(super) fn least_squares(weights: &[f32], rows: usize, bits: u32) -> WeightCodes {
        WeightCodes::by_row(weights, rows, |row| least_squares_scale(row, bits), bits)
    }

    fn by_row(weights: &[f32], rows: usize, scale: impl Fn(&[f32]) -> f32 + Sync + Send, bits: u32) -> WeightCodes {
        let taps = weights.len() / rows;
        let row_scales: Vec<f32> = weights.par_chunks_exact(taps).map(scale).collect();
        let rows = weights.chunks_exact(taps).zip(&row_scales);
        let codes = rows.flat_map(|(row, &scale)| row.iter().map(move |&weight| code(weight, scale, bits))).collect();
        WeightCodes { codes, row_scales }
    }

    /// The real numbers that the codes stand for.
    pub(super) fn floats(&self) -> Vec<f32> {
        let taps = self.codes.len() / self.row_scales.len();
        let rows = self.codes.chunks_exact(taps).zip(&self.row_scales);
        rows.flat_map(|(row, &scale)| row.iter().map(move |&code| code as f32 * scale)).collect()
    }

    /// Mean squared difference to the weights they were made from.
    pub(super) fn mean_squared_error(&self, weights: &[f32]) -> f64 {
        let squares = self.floats().iter().zip(weights).map(|(a, b)| f64::from(a - b).powi(2)).sum::<f64>();
        squares / weights.len() as f64
    }
}

fn largest_code(bits: u32) -> i32 {
    (1 << (bits - 1)) - 1
}

fn code(weight: f32, scale: f32, bits: u32) -> i32 {
    if scale == 0.0 {
        return 0;
    }
    let largest = largest_code(bits) as f32;
    (weight / scale).round_ties_even().clamp(-largest, largest) as i32
}

fn full_scale(row: &[f32], bits: u32) -> f32 {
    let scale = row.iter().fold(0.0f32, |largest, weight| largest.max(weight.abs())) / largest_code(bits) as f32;
    if scale < SMALLEST_MAGNITUDE { 0.0 } else { scale }
}

fn least_squares_scale(row: &[f32], bits: u32) -> f32 {
    let full = full_scale(row, bits);
    let error =
        |scale: f32| row.iter().map(|&w| f64::from(code(w, scale, bits) as f32 * scale - w).powi(2)).sum::<f64>();
    let candidates = CLIPPED_PERCENT.map(|percent| full * percent as f32 / 100.0).map(|scale| (error(scale), scale));
    candidates.fold((error(full), full), |best, next| if next.0 < best.0 { next } else { best }).1
}

/// The weights with those of silent input channels set to zero.
///
/// What a channel that never fired would contribute was never seen, and its weights may be huge (a folded batch norm
/// divides by the variance, here of nothing), so that they would take the whole range from the others.
pub(super) fn without_silent(operator: &Linear, weights: &[f32], silent: &[bool]) -> Vec<f32> {
    let shape = operator.weight_shape();
    let (channels, taps): (usize, usize) = (shape[1], shape[2..].iter().product());
    let rows_per_group = match operator {
        Linear::Conv(conv) => conv.output[0] / conv.groups,
        Linear::Dense(dense) => dense.outputs,
    };
    let mut kept = weights.to_vec();
    for (kernel_index, kernel) in kept.chunks_exact_mut(taps).enumerate() {
        let (row, channel) = (kernel_index / channels, kernel_index % channels);
        if silent[row / rows_per_group * channels + channel] {
            kernel.fill(0.0);
        }
    }
    kept
}

#[cfg(test)]
mod tests {
    use chococ_plans::op::{Conv, Dense};

    use super::*;

    #[test]
    fn each_row_has_its_own_scale_and_symmetric_codes() {
        let weights = [0.7, -0.7, 0.05, 70.0, 10.0, -14.0];
        let codes = WeightCodes::full_range(&weights, 2, 4);
        // 0.05 / 0.1 is just above a half in f32 or just below it; 0 and 1 are both right, so it is left out.
        assert_eq!([codes.codes[0], codes.codes[1]], [7, -7]);
        assert_eq!(codes.codes[3..], [7, 1, -1]);
        assert_eq!(codes.row_scales, [0.7 / 7.0, 10.0]);
    }

    #[test]
    fn rows_of_zeros_have_zero_codes_at_every_width() {
        for bits in 2..=8 {
            for codes in [
                WeightCodes::full_range(&[0.0, -0.0, 1e-30, 1.0, -1.0, 0.2], 2, bits),
                WeightCodes::least_squares(&[0.0, -0.0, 1e-30, 1.0, -1.0, 0.2], 2, bits),
            ] {
                assert_eq!(codes.codes[..3], [0, 0, 0]);
                assert_eq!(codes.row_scales[0], 0.0);
                assert!(codes.row_scales[1] > 0.0);
                assert!(codes.codes.iter().all(|code| code.abs() < 1 << (bits - 1)));
            }
        }
    }

    #[test]
    fn least_squares_clips_an_outlier_and_errs_less() {
        let mut row: Vec<f32> = (0..2000).map(|i| (i as f32 * 0.7).sin()).collect();
        row.push(2.5);
        let full = WeightCodes::full_range(&row, 1, 4);
        let clipped = WeightCodes::least_squares(&row, 1, 4);
        assert!(clipped.row_scales[0] < 0.8 * full.row_scales[0]);
        assert!(clipped.mean_squared_error(&row) < full.mean_squared_error(&row));
    }

    #[test]
    fn weights_of_silent_channels_vanish_in_their_group_only() {
        let conv = Linear::Conv(Conv {
            input: [4, 1, 2],
            output: [2, 1, 1],
            kernel: [1, 2],
            strides: [1, 1],
            pads_before: [0, 0],
            dilations: [1, 1],
            groups: 2,
        });
        let kept = without_silent(&conv, &[1.0; 8], &[false, true, true, false]);
        assert_eq!(kept, [1.0, 1.0, 0.0, 0.0, 0.0, 0.0, 1.0, 1.0]);
        let dense = Linear::Dense(Dense { inputs: 2, outputs: 2 });
        assert_eq!(without_silent(&dense, &[1.0; 4], &[true, false]), [0.0, 1.0, 0.0, 1.0]);
    }
}
