//! What a plan means, in the clear: the arithmetic that every back end must agree with, bit for bit.
//!
//! A stage reads real numbers, [`quantize`]s them, computes [`linear_integers`] exactly, and [`dequantize`]s; the
//! [`client`] computes everything else in `f32`. [`linear_floats`] is the same layer before quantisation, for
//! calibration and for comparison. Nothing here checks shapes beyond asserting them: a checked plan has them right.

mod client;
mod linear;
mod ordered;

pub use client::{Operand, client, is_never_negative};
pub use linear::{linear_floats, linear_integers};

use multiversion::multiversion;

use crate::network::{LinearLayer, Quantizer};
use crate::packing::modulo::Lift;

/// Turns real numbers into codes: x / scale, rounded half to even, clamped to [low, high].
///
/// Infinities clamp to the bounds. A NaN becomes 0, the one code that every quantiser has (low <= 0 <= high).
pub fn quantize(quantizer: &Quantizer, x: &[f32]) -> Vec<i32> {
    let Quantizer { low, high, .. } = *quantizer;
    let quantize = if -LARGEST <= low && high <= LARGEST { quantize_small } else { quantize_any };
    let mut codes = vec![0; x.len()];
    quantize(*quantizer, x, &mut codes);
    codes
}

/// Codes of this size fit [`quantize_small`].
const LARGEST: i32 = 1 << 22;

/// Quantises to codes of size up to 2^22, without the conversion of floats to integers, which saturates number by
/// number.
///
/// Between 2^23 and 2^24 floats are the integers, so that adding 3 * 2^22 to a number of size up to 2^22 rounds it, half
/// to even, and the lowest bits then count from there. Bounds are integers: clamping before is clamping after.
#[multiversion(targets("x86_64+avx512f+avx512dq+avx512vl", "x86_64+avx2"))]
fn quantize_small(quantizer: Quantizer, x: &[f32], codes: &mut [i32]) {
    const SHIFT: f32 = 3.0 * (1 << 22) as f32;
    let (low, high) = (quantizer.low as f32, quantizer.high as f32);
    for (code, value) in codes.iter_mut().zip(x) {
        let value = value / quantizer.scale;
        let value = if value.is_nan() { 0.0 } else { value };
        let value = if value < low { low } else { value };
        let value = if value > high { high } else { value };
        *code = (value + SHIFT).to_bits() as i32 - SHIFT.to_bits() as i32;
    }
}

/// Quantises to any codes.
fn quantize_any(quantizer: Quantizer, x: &[f32], codes: &mut [i32]) {
    let Quantizer { scale, low, high } = quantizer;
    for (code, value) in codes.iter_mut().zip(x) {
        // `as` saturates, so the clamp sees what is out of range on its proper side, and gives 0 for a NaN.
        *code = ((value / scale).round_ties_even() as i32).max(low).min(high);
    }
}

/// Turns accumulators into real numbers: accumulator * scale of its output channel.
///
/// `accumulators` has the layer's output shape, channels first, so each channel is one run of equal length. The
/// integer is rounded to the nearest `f32` before the product, which changes it only from 2^24 on.
///
/// # Panics
/// If the length is not a multiple of the number of output channels.
pub fn dequantize(layer: &LinearLayer, accumulators: &[i64]) -> Vec<f32> {
    let channels = layer.output_scales.len();
    assert!(
        channels > 0 && accumulators.len().is_multiple_of(channels),
        "{} accumulators do not fill {channels} output channels",
        accumulators.len()
    );
    let mut real = vec![0.0; accumulators.len()];
    if accumulators.is_empty() {
        return real;
    }
    let length = accumulators.len() / channels;
    let channels = accumulators.chunks_exact(length).zip(real.chunks_exact_mut(length)).zip(&layer.output_scales);
    for ((accumulators, real), &scale) in channels {
        scale_into(scale, accumulators, real);
    }
    real
}

#[multiversion(targets("x86_64+avx512f+avx512dq+avx512vl", "x86_64+avx2"))]
fn scale_into(scale: f32, accumulators: &[i64], real: &mut [f32]) {
    for (real, &accumulator) in real.iter_mut().zip(accumulators) {
        *real = accumulator as f32 * scale;
    }
}

/// Reads numbers modulo t as the accumulators of their channel's range, in place, and returns what [`dequantize`] makes
/// of those.
///
/// # Panics
/// As [`dequantize`].
pub fn dequantize_residues(layer: &LinearLayer, plaintext_modulus: u64, residues: &mut [i64]) -> Vec<f32> {
    let channels = layer.output_scales.len();
    assert!(
        channels > 0 && residues.len().is_multiple_of(channels),
        "{} residues do not fill {channels} output channels",
        residues.len()
    );
    let mut real = Vec::with_capacity(residues.len());
    let length = (residues.len() / channels).max(1);
    let scales = layer.output_ranges.iter().zip(&layer.output_scales);
    for (residues, (&(low, _), &scale)) in residues.chunks_exact_mut(length).zip(scales) {
        lift_and_scale(Lift::new(plaintext_modulus, low), scale, residues, &mut real);
    }
    real
}

#[multiversion(targets("x86_64+avx512f+avx512dq+avx512vl", "x86_64+avx2"))]
fn lift_and_scale(lift: Lift, scale: f32, residues: &mut [i64], real: &mut Vec<f32>) {
    let scaled = residues.iter_mut().map(|residue| {
        *residue = lift.apply(*residue);
        *residue as f32 * scale
    });
    real.extend(scaled);
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::network::ValueId;
    use crate::op::{Dense, Linear};

    fn quantizer(scale: f32, low: i32, high: i32) -> Quantizer {
        Quantizer { scale, low, high }
    }

    #[test]
    fn ties_round_to_even() {
        let ties = [0.5, 1.5, 2.5, 3.5, -0.5, -1.5, -2.5];
        assert_eq!(quantize(&quantizer(1.0, -8, 7), &ties), [0, 2, 2, 4, 0, -2, -2]);
    }

    #[test]
    fn half_a_step_away_from_a_tie_rounds_to_nearest() {
        let near = [0.5f32.next_up(), 0.5f32.next_down(), 1.5f32.next_down()];
        assert_eq!(quantize(&quantizer(1.0, 0, 15), &near), [1, 0, 1]);
    }

    #[test]
    fn codes_are_clamped_and_nan_is_zero() {
        let extremes = [f32::INFINITY, f32::NEG_INFINITY, 1e30, -1e30, f32::NAN, f32::MIN_POSITIVE];
        assert_eq!(quantize(&quantizer(0.25, -8, 7), &extremes), [7, -8, 7, -8, 0, 0]);
        assert_eq!(quantize(&quantizer(0.25, 0, 15), &extremes), [15, 0, 15, 0, 0, 0]);
    }

    proptest::proptest! {
        #[test]
        fn both_ways_of_quantising_agree(bits: u32, near in -200.0f32..200.0, low in -4_194_304..=0, high in 0..=4_194_304) {
            let half = near.round() + 0.5;
            let x = [f32::from_bits(bits), near, half, half.next_up(), half.next_down(), 0.4999999, -0.0, 4.2e6, -4.2e6];
            for quantizer in [quantizer(1.0, low, high), quantizer(0.037, low, high), quantizer(1.0, -8, 7)] {
                let (mut small, mut any) = ([0; 9], [1; 9]);
                quantize_small(quantizer, &x, &mut small);
                quantize_any(quantizer, &x, &mut any);
                proptest::prop_assert_eq!(small, any);
            }
        }
    }

    #[test]
    fn codes_of_their_own_values_come_back() {
        let quantizer = quantizer(0.037, -128, 127);
        let codes: Vec<i32> = (-128..=127).collect();
        let values: Vec<f32> = codes.iter().map(|&code| code as f32 * quantizer.scale).collect();
        assert_eq!(quantize(&quantizer, &values), codes);
    }

    #[test]
    fn each_channel_has_its_own_scale() {
        let layer = LinearLayer {
            name: "fc".into(),
            operator: Linear::Dense(Dense { inputs: 1, outputs: 2 }),
            input: ValueId(0),
            output: ValueId(1),
            quantizer: quantizer(1.0, 0, 15),
            weight_bits: 4,
            output_scales: vec![0.5, 0.125],
            output_ranges: vec![(-8, 8), (-8, 8)],
            weight_energy: 1,
        };
        assert_eq!(dequantize(&layer, &[3, -4]), [1.5, -0.5]);
        assert_eq!(dequantize(&layer, &[1, 2, 3, 4]), [0.5, 1.0, 0.375, 0.5]);
    }
}
