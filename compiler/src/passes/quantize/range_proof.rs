//! Proves how large the accumulators of a layer can become, whatever the input.

use chococ_plans::network::{LayerWeights, Quantizer};
use chococ_plans::op::Linear;
use chococ_plans::weights::accumulator_ranges;

use crate::error::Error;

/// The largest accumulator that is accepted, either way: no plaintext modulus is wider.
pub const LARGEST_ACCUMULATOR: i64 = 1 << 40;

/// Bounds every output channel of a layer: (low, high), in units of the accumulator.
///
/// A code q lies in [low, high] of the quantizer, so w q lies between w low and w high, and an output within the sums of
/// the smaller and of the larger ends, plus the bias. The sums are taken over the real weights, hence exact, not
/// estimated. Windows at the border see fewer taps; a tap on the padding counts as 0, and 0 is among the codes, so they
/// are inside the same bounds. The windows that see all taps attain them.
///
/// # Errors
/// [`Error::RangeTooWide`] names the channel if a bound is beyond [`LARGEST_ACCUMULATOR`].
pub fn prove_ranges(
    node: &str,
    operator: &Linear,
    weights: &LayerWeights,
    quantizer: &Quantizer,
) -> Result<Vec<(i64, i64)>, Error> {
    let ranges = accumulator_ranges(weights, quantizer.low, quantizer.high);
    let beyond = |&(low, high): &(i64, i64)| low < -LARGEST_ACCUMULATOR || high > LARGEST_ACCUMULATOR;
    match ranges.iter().position(beyond) {
        None => Ok(ranges),
        Some(channel) => {
            let (low, high) = ranges[channel];
            Err(Error::RangeTooWide { node: node.into(), kind: operator.kind().into(), channel, low, high })
        }
    }
}

#[cfg(test)]
mod tests {
    use chococ_plans::eval;
    use chococ_plans::op::{Conv, Dense};
    use proptest::collection::vec;
    use proptest::prelude::*;

    use super::*;

    /// Tries every combination of extreme codes.
    fn naive_range(row: &[i32], bias: i64, quantizer: &Quantizer) -> (i64, i64) {
        let sums: Vec<i64> = (0..1u32 << row.len())
            .map(|choice| {
                let code = |tap: usize| if choice >> tap & 1 == 1 { quantizer.high } else { quantizer.low };
                bias + row.iter().enumerate().map(|(tap, &weight)| i64::from(weight * code(tap))).sum::<i64>()
            })
            .collect();
        (*sums.iter().min().unwrap(), *sums.iter().max().unwrap())
    }

    fn quantizers() -> impl Strategy<Value = Quantizer> {
        (2u32..=8, any::<bool>()).prop_map(|(bits, signed)| match signed {
            true => Quantizer { scale: 1.0, low: -(1 << (bits - 1)), high: (1 << (bits - 1)) - 1 },
            false => Quantizer { scale: 1.0, low: 0, high: (1 << bits) - 1 },
        })
    }

    /// 3 input channels of 5 x 4, 2 output channels, kernel 3 x 3, padded by 1.
    fn conv() -> Linear {
        Linear::Conv(Conv {
            input: [3, 5, 4],
            output: [2, 5, 4],
            kernel: [3, 3],
            strides: [1, 1],
            pads_before: [1, 1],
            dilations: [1, 1],
            groups: 1,
        })
    }

    proptest! {
        #[test]
        fn the_bounds_are_those_of_the_best_extreme_codes(
            row in vec(-127i32..=127, 1..10), bias in -1000i64..1000, quantizer in quantizers(),
        ) {
            let weights = LayerWeights { weights: row.clone(), bias: vec![bias] };
            let proved = accumulator_ranges(&weights, quantizer.low, quantizer.high);
            prop_assert_eq!(proved, [naive_range(&row, bias, &quantizer)]);
        }

        #[test]
        fn no_input_of_a_padded_convolution_leaves_its_ranges(
            weights in vec(-7i32..=7, 2 * 27), bias in vec(-50i64..50, 2), quantizer in quantizers(),
            draws in vec(any::<u32>(), 60), extreme in any::<bool>(),
        ) {
            let span = (quantizer.high - quantizer.low + 1) as u32;
            let code = |draw: u32| match extreme {
                true => if draw & 1 == 0 { quantizer.low } else { quantizer.high },
                false => quantizer.low + (draw % span) as i32,
            };
            let codes: Vec<i32> = draws.into_iter().map(code).collect();
            let weights = LayerWeights { weights, bias };
            let ranges = prove_ranges("conv", &conv(), &weights, &quantizer).unwrap();
            let sums = eval::linear_integers(&conv(), &weights, &codes);
            for (channel, sums) in sums.chunks_exact(20).enumerate() {
                let (low, high) = ranges[channel];
                prop_assert!(sums.iter().all(|sum| (low..=high).contains(sum)));
            }
        }

        #[test]
        fn extremal_codes_attain_both_ends(
            weights in vec(-127i32..=127, 40), bias in vec(-5000i64..5000, 1), quantizer in quantizers(),
        ) {
            let dense = Linear::Dense(Dense { inputs: 40, outputs: 1 });
            let weights = LayerWeights { weights, bias };
            let ranges = prove_ranges("fc", &dense, &weights, &quantizer).unwrap();
            let towards = |up: bool| -> Vec<i32> {
                weights.weights.iter().map(|&w| if (w > 0) == up { quantizer.high } else { quantizer.low }).collect()
            };
            let attained = |up| eval::linear_integers(&dense, &weights, &towards(up))[0];
            prop_assert_eq!(ranges, vec![(attained(false), attained(true))]);
        }
    }

    #[test]
    fn a_bias_beyond_the_limit_is_refused() {
        let dense = Linear::Dense(Dense { inputs: 1, outputs: 2 });
        let quantizer = Quantizer { scale: 1.0, low: 0, high: 15 };
        for bias in [LARGEST_ACCUMULATOR + 1, i64::MAX, i64::MIN] {
            let weights = LayerWeights { weights: vec![1, 1], bias: vec![0, bias] };
            let error = prove_ranges("fc", &dense, &weights, &quantizer).unwrap_err();
            assert!(matches!(error, Error::RangeTooWide { channel: 1, .. }), "{error}");
        }
    }
}
