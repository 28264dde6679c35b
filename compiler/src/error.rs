//! The crate's one error type.

use chococ_plans::check::PlanError;

use crate::no_parameters::NoParameters;
use crate::onnx::Report;

/// What stops a compilation.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The bytes do not parse as an ONNX model.
    #[error(
        "this is not an ONNX model: {reason}\n  try: check that the file is complete, and is the `.onnx` file itself"
    )]
    NotOnnx {
        /// What the parser found.
        reason: String,
    },
    /// The model parses, but parts of it cannot be compiled.
    #[error("{0}")]
    CannotCompile(Report),
    /// A layer for which no packing and no secure parameters work.
    #[error("{0}")]
    NoParameters(NoParameters),
    /// Galois keys that take more bytes than they may, whatever is chosen.
    #[error(
        "Galois keys take {least} bytes with every packing that was tried, and may take {most}\n  \
         try: `--max-key-bytes {least}`, or `--packing auto`"
    )]
    GaloisKeys {
        /// The fewest bytes found.
        least: usize,
        /// What was asked for.
        most: usize,
    },
    /// The network as a whole asks for more than a plan can hold.
    #[error(transparent)]
    Plan(#[from] PlanError),
    /// A width of codes that quantisation does not serve.
    #[error("{what} codes of {bits} bits are not supported; 2 to 8 are\n  try: `--{what}-bits 4`")]
    Bits {
        /// "activation" or "weight".
        what: &'static str,
        /// What was asked for.
        bits: u32,
    },
    /// Nothing to measure ranges on.
    #[error("there are no calibration inputs\n  try: `--calibrate` with a file of some hundred inputs, or without it")]
    NoCalibrationInputs,
    /// A calibration input is not one of this network's.
    #[error(
        "calibration input {index} has {found} numbers; the network reads {} (shape {shape:?})\n  \
         try: inputs of the network's own shape",
        shape.iter().product::<usize>()
    )]
    CalibrationShape {
        /// Which input, from 0.
        index: usize,
        /// How many numbers it has.
        found: usize,
        /// The network's input shape, without a batch axis.
        shape: Vec<usize>,
    },
    /// A calibration input holds an infinity, or what is no number.
    #[error(
        "calibration input {index} holds {value} at position {position}; every number must be finite\n  \
         try: leave this input out"
    )]
    CalibrationNotFinite {
        /// Which input, from 0.
        index: usize,
        /// Where in the flattened input, from 0.
        position: usize,
        /// What was found.
        value: f32,
    },
    /// A layer whose weights or outputs are infinite or no numbers.
    #[error(
        "node `{node}` ({kind}): its weights, or its outputs on the calibration inputs, are not all finite in `f32`\n  \
         try: look for divisions by zero or overflow in training, and scale calibration inputs as in training"
    )]
    NotFinite {
        /// The ONNX node.
        node: String,
        /// ONNX's name of its operator.
        kind: String,
    },
    /// A layer whose integer outputs could be too large for any plaintext modulus.
    #[error(
        "node `{node}` ({kind}): accumulators of output channel {channel} lie in {low} to {high}, and must stay within \
         2^40\n  try: fewer bits, or look whether the bias of this channel is far larger than its weights"
    )]
    RangeTooWide {
        /// The ONNX node.
        node: String,
        /// ONNX's name of its operator.
        kind: String,
        /// Which output channel, from 0.
        channel: usize,
        /// The smallest accumulator possible.
        low: i64,
        /// The largest accumulator possible.
        high: i64,
    },
    /// Two layers with one name, by which their weights are told apart.
    #[error("two linear layers are named `{node}`\n  try: give each node of the model its own name")]
    DuplicateName {
        /// The name.
        node: String,
    },
}
