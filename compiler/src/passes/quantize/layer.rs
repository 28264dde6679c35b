//! Quantises one linear layer.

use chococ_plans::eval;
use chococ_plans::network::{LayerWeights, LinearLayer, Quantizer, ValueId};
use chococ_plans::op::Linear;
use chococ_plans::weights::weight_energy;
use rayon::prelude::*;

use super::Bits;
use super::bias::{IntegerBias, integer_bias};
use super::decide::{Options, Site, decide};
use super::range_proof::prove_ranges;
use super::ranges::Observed;
use super::reference::{channel_means, mean_rows};
use super::report::LayerReport;
use super::weights::{WeightCodes, without_silent};
use crate::error::Error;

/// Fewer inputs say nothing about silence: a channel that fires on one input in a hundred is likely to miss them all.
const SILENCE_NEEDS_INPUTS: usize = 100;

/// A float layer and how to quantise it.
pub(super) struct FloatLayer<'a> {
    pub(super) name: &'a str,
    pub(super) weights: &'a [f32],
    pub(super) bias: &'a [f32],
    pub(super) bits: Bits,
    /// Whether what it reads is known to be non-negative on every input, not just on those seen.
    pub(super) never_negative: bool,
    /// Whether the calibration inputs are made up.
    pub(super) generated: bool,
}

/// Chooses ranges, codes and bias of a layer, and proves the ranges of its accumulators.
pub(super) fn quantize_layer(
    site: &Site,
    layer: &FloatLayer,
) -> Result<(LinearLayer, LayerWeights, LayerReport), Error> {
    let inputs = site.inputs();
    let observed = Observed::of(site.operator, &inputs);
    let signed = !(layer.never_negative && observed.never_negative());
    let silent = silent_channels(layer, inputs.len(), &observed);
    let kept = without_silent(site.operator, layer.weights, &silent);
    let rows = site.operator.output_channels();
    let full = observed.full_range(layer.bits.activation, signed);
    let options = Options {
        quantizers: [full, observed.least_squares(&full)],
        weights: [
            WeightCodes::full_range(&kept, rows, layer.bits.weight),
            WeightCodes::least_squares(&kept, rows, layer.bits.weight),
        ],
    };
    let candidates = decide(site, &options);
    let best = candidates[0];
    let quantizer = options.quantizers[usize::from(best.clipped_activations)];
    let chosen = &options.weights[usize::from(best.clipped_weights)];

    let IntegerBias { bias, output_scales } = corrected_bias(site, &quantizer, chosen);
    if !output_scales.iter().all(|scale| scale.is_finite()) {
        return Err(Error::NotFinite { node: layer.name.into(), kind: site.operator.kind().into() });
    }
    let largest_bias_correction = largest_correction(layer.bias, &bias, &output_scales);
    let weights = LayerWeights { weights: chosen.codes.clone(), bias };
    let output_ranges = prove_ranges(layer.name, site.operator, &weights, &quantizer)?;
    let linear = LinearLayer {
        name: layer.name.into(),
        operator: site.operator.clone(),
        input: ValueId(site.walk.reads[site.index][0]),
        output: ValueId(site.index + 1),
        quantizer,
        weight_bits: layer.bits.weight,
        output_scales,
        output_ranges,
        weight_energy: weight_energy(&weights),
    };
    let report = LayerReport {
        name: layer.name.into(),
        signed_activations: signed,
        clipped_activations: best.clipped_activations,
        clipped_weights: best.clipped_weights,
        candidates,
        activation_errors: options.quantizers.map(|quantizer| observed.mean_squared_error(&quantizer)).into(),
        weight_errors: options.weights.each_ref().map(|codes| codes.mean_squared_error(&kept)).into(),
        silent_channels: silent.iter().filter(|silent| **silent).count(),
        constant_channels: chosen.row_scales.iter().filter(|scale| **scale == 0.0).count(),
        largest_bias_correction,
        width: linear.width(),
    };
    Ok((linear, weights, report))
}

/// Channels whose silence is believed: made-up inputs and small samples prove nothing.
fn silent_channels(layer: &FloatLayer, inputs: usize, observed: &Observed) -> Vec<bool> {
    match layer.generated || inputs < SILENCE_NEEDS_INPUTS {
        true => vec![false; observed.silent.len()],
        false => observed.silent.clone(),
    }
}

fn corrected_bias(site: &Site, quantizer: &Quantizer, weights: &WeightCodes) -> IntegerBias {
    let inputs = site.inputs();
    let all: Vec<usize> = (0..inputs.len()).collect();
    let targets = site.reference.means(site.index, &all);
    let means = accumulator_means(site.operator, &inputs, quantizer, weights);
    integer_bias(&targets, &means, quantizer.scale, &weights.row_scales)
}

/// Mean accumulator of each output channel, without bias, over all inputs.
fn accumulator_means(operator: &Linear, inputs: &[&[f32]], quantizer: &Quantizer, weights: &WeightCodes) -> Vec<f64> {
    let channels = weights.row_scales.len();
    let unbiased = LayerWeights { weights: weights.codes.clone(), bias: vec![0; channels] };
    let means: Vec<Vec<f64>> = inputs
        .par_iter()
        .map(|x| {
            let sums = eval::linear_integers(operator, &unbiased, &eval::quantize(quantizer, x));
            channel_means(sums.iter().map(|&sum| sum as f64), sums.len() / channels)
        })
        .collect();
    mean_rows(means.iter())
}

fn largest_correction(float_bias: &[f32], bias: &[i64], output_scales: &[f32]) -> f64 {
    let channels = float_bias.iter().zip(bias).zip(output_scales);
    channels
        .map(|((&float, &bias), &scale)| (bias as f64 - f64::from(float) / f64::from(scale)).abs())
        .fold(0.0, f64::max)
}
