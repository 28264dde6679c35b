//! What a plan computes, stage by stage, before anything is said of encryption.

use serde::{Deserialize, Serialize};

use crate::op::{ClientOp, Linear};

/// Names a tensor that the client holds in the clear. Value 0 is the network's input.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct ValueId(pub usize);

/// One operator of a client stage.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ClientStep {
    /// The ONNX node it came from.
    pub name: String,
    /// What it computes.
    pub op: ClientOp,
    /// What it reads, in the operator's order.
    pub inputs: Vec<ValueId>,
    /// What it defines.
    pub output: ValueId,
    /// Shape of the output, without a batch axis.
    pub shape: Vec<usize>,
}

/// How the client turns real numbers into the integers that it encrypts: clamp(round_half_even(x / scale), low, high).
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Quantizer {
    /// The real number that one unit stands for.
    pub scale: f32,
    /// Smallest code; at most 0.
    pub low: i32,
    /// Largest code; above `low` and at least 0.
    pub high: i32,
}

/// A linear layer on integers: what one server stage computes, exactly, modulo nothing.
///
/// accumulator = weights * codes + bias, an integer; the client reads it as accumulator * scale of its output channel.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct LinearLayer {
    /// The ONNX node it came from; also the prefix of its tensors in the weights file.
    pub name: String,
    /// Its shapes.
    pub operator: Linear,
    /// The value it reads.
    pub input: ValueId,
    /// The value it defines.
    pub output: ValueId,
    /// How the value is quantised before it is encrypted.
    pub quantizer: Quantizer,
    /// Bits of a weight code, sign included.
    pub weight_bits: u32,
    /// The real number that one unit of the accumulator stands for, an output channel each.
    pub output_scales: Vec<f32>,
    /// Bounds of the accumulator, proved from the real weights, an output channel each.
    pub output_ranges: Vec<(i64, i64)>,
    /// The largest sum of squared weights of an output channel: what noise grows by in a product of polynomials.
    pub weight_energy: u64,
}

impl LinearLayer {
    /// How many different values the widest output channel can take: the plaintext modulus must be at least this.
    pub fn width(&self) -> u64 {
        self.output_ranges.iter().map(|&(low, high)| (high - low) as u64 + 1).max().unwrap_or(1)
    }
}

/// Integer weights of one linear layer, as the server holds them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LayerWeights {
    /// Codes, in the order of [`Linear::weight_shape`].
    pub weights: Vec<i32>,
    /// Bias at the accumulator's scale, one an output channel.
    pub bias: Vec<i64>,
}
