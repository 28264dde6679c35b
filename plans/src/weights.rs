//! The weights of a plan: a safetensors file beside it.
//!
//! For each linear layer `L`: `L.weight` (I8) and `L.bias` (I64), the integers that the server computes with, and
//! `L.float_weight` and `L.float_bias` (F32), what they were rounded from, for the float reference alone.

use std::collections::BTreeMap;

use safetensors::tensor::TensorView;
use safetensors::{Dtype, SafeTensors};

use crate::network::{LayerWeights, LinearLayer};
use crate::plan::Plan;

/// Real weights of one linear layer, batch norm folded in.
#[derive(Clone, Debug, PartialEq)]
pub struct FloatWeights {
    /// In the order of [`Linear::weight_shape`](crate::op::Linear::weight_shape).
    pub weights: Vec<f32>,
    /// One an output channel.
    pub bias: Vec<f32>,
}

/// All weights of a plan, by the name of the layer.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Weights {
    /// What the server computes with.
    pub integers: BTreeMap<String, LayerWeights>,
    /// What it was rounded from.
    pub floats: BTreeMap<String, FloatWeights>,
}

/// What is wrong with a weights file.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum WeightsError {
    /// Not a safetensors file, or a damaged one.
    #[error("the weights are no safetensors file: {0}\n  try: compile the plan again")]
    Format(String),
    /// A tensor of the plan is not there.
    #[error("the weights lack the tensor `{0}`\n  try: compile the plan again")]
    Missing(String),
    /// A tensor has another shape or type than the plan says.
    #[error("tensor `{name}` should be {expected}, found {found}\n  try: compile the plan again")]
    Shape {
        /// The tensor.
        name: String,
        /// What the plan says.
        expected: String,
        /// What the file says.
        found: String,
    },
    /// A weight needs more bits than the plan says.
    #[error("layer `{layer}`: weight {found} does not fit {bits} bits\n  try: compile the plan again")]
    Weight {
        /// The layer.
        layer: String,
        /// The weight.
        found: i32,
        /// What the plan says.
        bits: u32,
    },
    /// The weights are larger or smaller than the plan's noise estimate takes them to be.
    #[error(
        "layer `{layer}`: the largest sum of squared weights is {found}, the plan says {stated}\n  \
         try: compile the plan again"
    )]
    Energy {
        /// The layer.
        layer: String,
        /// What the weights have.
        found: u64,
        /// What the plan says.
        stated: u64,
    },
    /// The range that the plan states is not the one of these weights.
    #[error(
        "layer `{layer}`, output channel {channel}: the weights can reach {proved:?}, the plan says {stated:?}\n  \
         try: compile the plan again"
    )]
    Range {
        /// The layer.
        layer: String,
        /// Its output channel.
        channel: usize,
        /// What the weights can reach.
        proved: (i64, i64),
        /// What the plan says.
        stated: (i64, i64),
    },
}

/// Bounds of the accumulator of every output channel, for any codes within [low, high].
///
/// Each weight meets the end of the interval that suits its sign; padding contributes zeros, which lie inside.
pub fn accumulator_ranges(weights: &LayerWeights, low: i32, high: i32) -> Vec<(i64, i64)> {
    let per_channel = weights.weights.len() / weights.bias.len().max(1);
    let rows = weights.weights.chunks(per_channel.max(1));
    rows.zip(&weights.bias)
        .map(|(row, &bias)| {
            let reach = |if_positive: i32, if_negative: i32| -> i64 {
                row.iter().map(|&w| i64::from(w) * i64::from(if w > 0 { if_positive } else { if_negative })).sum()
            };
            // Only the bias, rounded from a float, may be at the end of its type.
            (bias.saturating_add(reach(low, high)), bias.saturating_add(reach(high, low)))
        })
        .collect()
}

/// The largest sum of squares of an output channel's weights.
pub fn weight_energy(weights: &LayerWeights) -> u64 {
    let per_channel = weights.weights.len() / weights.bias.len().max(1);
    let rows = weights.weights.chunks(per_channel.max(1));
    rows.map(|row| row.iter().map(|&w| i64::from(w).unsigned_abs().pow(2)).sum()).max().unwrap_or(0)
}

impl Weights {
    /// Writes a safetensors file; the same weights always give the same bytes.
    pub fn to_bytes(&self) -> Vec<u8> {
        let mut tensors: Vec<(String, Dtype, Vec<u8>, usize)> = Vec::new();
        for (name, layer) in &self.integers {
            let codes = layer.weights.iter().map(|&w| w as i8 as u8).collect();
            let bias = layer.bias.iter().flat_map(|b| b.to_le_bytes()).collect();
            tensors.push((format!("{name}.weight"), Dtype::I8, codes, layer.weights.len()));
            tensors.push((format!("{name}.bias"), Dtype::I64, bias, layer.bias.len()));
        }
        for (name, layer) in &self.floats {
            for (part, values) in [("float_weight", &layer.weights), ("float_bias", &layer.bias)] {
                let bytes = values.iter().flat_map(|v| v.to_le_bytes()).collect();
                tensors.push((format!("{name}.{part}"), Dtype::F32, bytes, values.len()));
            }
        }
        let views = tensors.iter().map(|(name, dtype, bytes, len)| {
            let view = TensorView::new(*dtype, vec![*len], bytes).expect("lengths and bytes come from one vector");
            (name.as_str(), view)
        });
        safetensors::serialize(views, None).expect("plain tensors always serialise")
    }

    /// Reads the integers that the server needs, and proves the plan's ranges from them.
    ///
    /// # Errors
    /// [`WeightsError`], naming the tensor or layer.
    pub fn from_bytes(bytes: &[u8], plan: &Plan) -> Result<Weights, WeightsError> {
        let file = SafeTensors::deserialize(bytes).map_err(|error| WeightsError::Format(error.to_string()))?;
        let mut weights = Weights::default();
        for layer in plan.server_stages().map(|stage| &stage.layer) {
            let len = layer.operator.weight_shape().iter().product();
            let channels = layer.operator.output_channels();
            let read = |part: &str, dtype, len| tensor(&file, format!("{}.{part}", layer.name), dtype, len);
            let integers = LayerWeights {
                weights: read("weight", Dtype::I8, len)?.iter().map(|&w| i32::from(w as i8)).collect(),
                bias: words(&read("bias", Dtype::I64, channels)?).map(i64::from_le_bytes).collect(),
            };
            prove(layer, &integers)?;
            let floats = FloatWeights {
                weights: words(&read("float_weight", Dtype::F32, len)?).map(f32::from_le_bytes).collect(),
                bias: words(&read("float_bias", Dtype::F32, channels)?).map(f32::from_le_bytes).collect(),
            };
            weights.integers.insert(layer.name.clone(), integers);
            weights.floats.insert(layer.name.clone(), floats);
        }
        Ok(weights)
    }
}

/// Checks that weights fit their bits, and that the layer's ranges are those of its weights.
fn prove(layer: &LinearLayer, weights: &LayerWeights) -> Result<(), WeightsError> {
    let largest = (1 << (layer.weight_bits - 1)) - 1;
    if let Some(&found) = weights.weights.iter().find(|w| w.abs() > largest) {
        return Err(WeightsError::Weight { layer: layer.name.clone(), found, bits: layer.weight_bits });
    }
    let ranges = accumulator_ranges(weights, layer.quantizer.low, layer.quantizer.high);
    if let Some(channel) = ranges.iter().zip(&layer.output_ranges).position(|(proved, stated)| proved != stated) {
        let (layer, stated) = (layer.name.clone(), layer.output_ranges[channel]);
        return Err(WeightsError::Range { layer, channel, proved: ranges[channel], stated });
    }
    let (found, stated) = (weight_energy(weights), layer.weight_energy);
    match found == stated {
        true => Ok(()),
        false => Err(WeightsError::Energy { layer: layer.name.clone(), found, stated }),
    }
}

fn tensor(file: &SafeTensors<'_>, name: String, dtype: Dtype, len: usize) -> Result<Vec<u8>, WeightsError> {
    let Ok(tensor) = file.tensor(&name) else { return Err(WeightsError::Missing(name)) };
    if tensor.dtype() != dtype || tensor.shape() != [len] {
        let expected = format!("{dtype:?} {:?}", [len]);
        let found = format!("{:?} {:?}", tensor.dtype(), tensor.shape());
        return Err(WeightsError::Shape { name, expected, found });
    }
    Ok(tensor.data().to_vec())
}

fn words<const BYTES: usize>(bytes: &[u8]) -> impl Iterator<Item = [u8; BYTES]> + '_ {
    bytes.as_chunks::<BYTES>().0.iter().copied()
}
