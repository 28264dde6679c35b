//! Decides, tensor by tensor, between the full range and one that clips.
//!
//! Neither is a safe default: clipping by least squared error saves depthwise networks and ruins others. So each of the
//! four combinations for a layer is tried: layers before it are quantised already, layers after it still in float, and
//! the one whose network outputs come nearest to those of the float network wins.

use std::borrow::Cow;

use chococ_plans::eval;
use chococ_plans::network::Quantizer;
use chococ_plans::op::Linear;
use rayon::prelude::*;

use super::reference::{Reference, channel_means, mean_rows};
use super::report::Candidate;
use super::walk::{Live, Walk};
use super::weights::WeightCodes;

/// How many calibration inputs a decision looks at, at most.
pub const DECISION_INPUTS: usize = 128;

/// Spreads the inputs of a decision evenly over all, since data are often sorted by class.
pub(super) fn decision_inputs(count: usize) -> Vec<usize> {
    let used = count.min(DECISION_INPUTS);
    (0..used).map(|index| index * count / used).collect()
}

/// A linear layer in its surroundings.
pub(super) struct Site<'a> {
    pub(super) walk: &'a Walk<'a>,
    /// Which of its nodes it is.
    pub(super) index: usize,
    pub(super) operator: &'a Linear,
    pub(super) reference: &'a Reference,
    /// The values before the layer, one list a calibration input, all layers before it being quantised.
    pub(super) values: &'a [Live<'static>],
}

impl Site<'_> {
    /// What the layer reads, one a calibration input.
    pub(super) fn inputs(&self) -> Vec<&[f32]> {
        let read = self.walk.reads[self.index][0];
        self.values.iter().map(|live| live[read].as_deref().expect("a value is kept until its last reader")).collect()
    }
}

/// Full range first, then the one that clips.
pub(super) struct Options {
    pub(super) quantizers: [Quantizer; 2],
    pub(super) weights: [WeightCodes; 2],
}

/// Tries all combinations that differ; the best comes first, and clips no more than it gains from.
pub(super) fn decide(site: &Site, options: &Options) -> Vec<Candidate> {
    let mut candidates = Vec::new();
    for (clipped_weights, weights) in [false, true].into_iter().zip(&options.weights) {
        for (clipped_activations, quantizer) in [false, true].into_iter().zip(&options.quantizers) {
            let repeats_full = clipped_weights && options.weights[0] == options.weights[1]
                || clipped_activations && options.quantizers[0] == options.quantizers[1];
            if !repeats_full {
                let output_error = output_error(site, quantizer, &weights.floats());
                candidates.push(Candidate { clipped_activations, clipped_weights, output_error });
            }
        }
    }
    // A stable sort, so that of equals the one tried first wins: the one that clips less.
    candidates.sort_by(|a, b| a.output_error.total_cmp(&b.output_error));
    candidates
}

/// Mean squared error of the network's outputs with this layer alone quantised, its bias corrected.
///
/// The layer is computed in floats on the numbers that the codes stand for: near enough to the exact integers to choose by.
fn output_error(site: &Site, quantizer: &Quantizer, weights: &[f32]) -> f64 {
    let inputs = site.inputs();
    let chosen = decision_inputs(inputs.len());
    let channels = site.operator.output_channels();
    let no_bias = vec![0.0; channels];
    let outputs: Vec<Vec<f32>> = chosen
        .par_iter()
        .map(|&image| {
            let codes = eval::quantize(quantizer, inputs[image]);
            let x: Vec<f32> = codes.into_iter().map(|code| code as f32 * quantizer.scale).collect();
            eval::linear_floats(site.operator, weights, &no_bias, &x)
        })
        .collect();

    let cells = outputs[0].len() / channels;
    let means: Vec<Vec<f64>> =
        outputs.par_iter().map(|y| channel_means(y.iter().map(|&y| f64::from(y)), cells)).collect();
    let targets = site.reference.means(site.index, &chosen);
    let corrections: Vec<f32> =
        mean_rows(means.iter()).iter().zip(targets).map(|(mean, to)| (to - mean) as f32).collect();

    let errors: Vec<f64> = outputs
        .into_par_iter()
        .zip(&chosen)
        .map(|(mut y, &image)| {
            for (channel, correction) in y.chunks_exact_mut(cells).zip(&corrections) {
                channel.iter_mut().for_each(|value| *value += correction);
            }
            let borrowed = site.values[image].iter().map(|value| value.as_deref().map(Cow::Borrowed));
            let mut live: Live<'_> = borrowed.collect();
            live[site.index + 1] = Some(Cow::Owned(y));
            let output = site.walk.finish(site.index + 1, live, |_, _| ());
            mean_squared_difference(&output, &site.reference.outputs[image])
        })
        .collect();
    errors.iter().sum::<f64>() / errors.len() as f64
}

/// Mean of (a - b)^2, added up in order.
pub(super) fn mean_squared_difference(a: &[f32], b: &[f32]) -> f64 {
    a.iter().zip(b).map(|(a, b)| (f64::from(*a) - f64::from(*b)).powi(2)).sum::<f64>() / a.len() as f64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn decisions_look_at_inputs_from_all_over() {
        assert_eq!(decision_inputs(3), [0, 1, 2]);
        let spread = decision_inputs(500);
        assert_eq!(spread.len(), DECISION_INPUTS);
        assert!(spread.is_sorted_by(|a, b| a < b));
        assert!(spread[DECISION_INPUTS - 1] >= 490 && spread[DECISION_INPUTS - 1] < 500);
    }

    #[test]
    fn differences_are_squared_and_averaged() {
        assert_eq!(mean_squared_difference(&[1.0, 2.0], &[1.0, 4.0]), 2.0);
    }
}
