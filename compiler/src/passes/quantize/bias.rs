//! The bias of a layer, as an integer at the accumulator's scale.

use super::SMALLEST_MAGNITUDE;

/// Integer bias of a layer, and what its accumulators stand for; one an output channel.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct IntegerBias {
    pub(super) bias: Vec<i64>,
    pub(super) output_scales: Vec<f32>,
}

/// Rounds a bias to the accumulator's scale such that a channel whose accumulators have mean `accumulator_means` without
/// a bias has mean `targets` with it.
///
/// With the float layer's own means as targets this is bias correction: what rounding and clipping, here and in the layers
/// before, shift the mean by is taken back (Nagel et al., "Data-free quantization through weight equalization and bias
/// correction", ICCV 2019). With the float bias as target, and accumulator means of zero, it is plain rounding.
///
/// The scale of a channel is that of the input times that of its row of weights. A row of zeros has none; its
/// accumulator is the bias alone, so the scale is the size of the target and the bias 1 or -1: exact.
pub(super) fn integer_bias(
    targets: &[f64],
    accumulator_means: &[f64],
    input_scale: f32,
    row_scales: &[f32],
) -> IntegerBias {
    let channels = targets.iter().zip(accumulator_means).zip(row_scales);
    let (bias, output_scales) = channels
        .map(|((&target, &mean), &row_scale)| match row_scale {
            0.0 if target.abs() < f64::from(SMALLEST_MAGNITUDE) => (0, 1.0),
            0.0 => (target.signum() as i64, target.abs() as f32),
            _ => {
                let scale = input_scale * row_scale;
                // A conversion to i64 saturates; the range proof refuses what is that large.
                ((target / f64::from(scale) - mean).round_ties_even() as i64, scale)
            }
        })
        .unzip();
    IntegerBias { bias, output_scales }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_mean_of_a_channel_comes_out_as_asked() {
        let found = integer_bias(&[1.0, -3.0], &[4.0, 10.25], 0.5, &[0.25, 0.5]);
        assert_eq!(found.output_scales, [0.125, 0.25]);
        assert_eq!(found.bias, [4, -22]);
    }

    #[test]
    fn a_row_of_zeros_keeps_its_bias_exactly() {
        let found = integer_bias(&[0.3, -0.7, 0.0], &[0.0; 3], 0.5, &[0.0; 3]);
        assert_eq!(found.bias, [1, -1, 0]);
        assert_eq!(found.output_scales, [0.3, 0.7, 1.0]);
    }

    #[test]
    fn an_enormous_bias_saturates_for_the_range_proof_to_refuse() {
        let found = integer_bias(&[1e30, -1e30], &[0.0; 2], 1e-10, &[1e-10; 2]);
        assert_eq!(found.bias, [i64::MAX, i64::MIN]);
    }
}
