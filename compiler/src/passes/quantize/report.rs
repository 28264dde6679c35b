//! What was decided, and what it cost.

use serde::Serialize;

use super::Bits;

/// Everything that quantisation decided about a network, with the figures it decided by.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct QuantizationReport {
    /// Bits of a code.
    pub bits: Bits,
    /// Calibration inputs that ranges and biases were measured on.
    pub calibration_inputs: usize,
    /// How many of them decided about clipping.
    pub decision_inputs: usize,
    /// The linear layers, in execution order.
    pub layers: Vec<LayerReport>,
    /// Mean squared error of the network's outputs over the calibration inputs.
    pub output_error: f64,
    /// The same relative to the mean square of the float outputs.
    pub relative_output_error: f64,
    /// Share of the calibration inputs on which the largest output is the one of the float network.
    pub agreement: f64,
    /// What a user should know, in sentences.
    pub notices: Vec<String>,
}

/// What was decided about one linear layer.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct LayerReport {
    /// The ONNX node it came from.
    pub name: String,
    /// Whether its input has signed codes: negative numbers were seen, or are not ruled out by what comes before.
    pub signed_activations: bool,
    /// Whether the range of its input clips what was seen.
    pub clipped_activations: bool,
    /// Whether the ranges of its weights clip.
    pub clipped_weights: bool,
    /// Every combination that was tried, best first; the first one was taken.
    pub candidates: Vec<Candidate>,
    /// Mean squared error of its input: (full range, least squares).
    pub activation_errors: (f64, f64),
    /// Mean squared error of its weights, but those of silent channels: (full range, least squares).
    pub weight_errors: (f64, f64),
    /// Input channels that were zero on every calibration input; their weights are zero.
    pub silent_channels: usize,
    /// Output channels without a weight.
    pub constant_channels: usize,
    /// The largest correction of a bias, in units of the accumulator.
    pub largest_bias_correction: f64,
    /// How many values the widest output channel can take: the plaintext modulus must be at least this.
    pub width: u64,
}

/// One combination of ranges for a layer.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Candidate {
    /// Whether the range of its input clips.
    pub clipped_activations: bool,
    /// Whether the ranges of its weights clip.
    pub clipped_weights: bool,
    /// Mean squared error of the network's outputs, with the layers after this one in float.
    pub output_error: f64,
}
