//! Quantises a network: real activations and weights become small integers, layer by layer.
//!
//! Assumes inputs that are like those to come.
//! Makes true: each linear layer is exact on integers ([`IntGraph`]), and the range of its accumulators is proved, not
//! measured. Activations have one scale a tensor, weights one an output channel.
//!
//! In execution order, each linear layer, reading what the quantised layers before it give:
//!
//! 1. `ranges`: which activations were seen, whether they can be negative, and two candidates for their codes;
//! 2. `weights`: two candidates for the weight codes, those of channels that never fired being zero;
//! 3. `decide`: of the combinations, the one whose network outputs come nearest to the float network's;
//! 4. `bias`: the bias as an integer, corrected so that each channel's mean is the float network's;
//! 5. `range_proof`: how large the accumulators can become.
//!
//! Nothing depends on time, threads or a seed, and sums in floats have an order of their own: the same model and inputs
//! give the same network, bit for bit, on every machine.

mod bias;
mod calibration;
mod decide;
mod layer;
mod range_proof;
mod ranges;
mod reference;
mod report;
#[cfg(test)]
mod tests;
mod walk;
mod weights;

use std::borrow::Cow;
use std::collections::BTreeMap;

use chococ_plans::eval;
use chococ_plans::network::{ClientStep, LayerWeights, LinearLayer, ValueId};
use chococ_plans::op::Linear;
use rayon::prelude::*;
use serde::Serialize;

pub use self::calibration::Calibration;
pub use self::decide::DECISION_INPUTS;
pub use self::range_proof::{LARGEST_ACCUMULATOR, prove_ranges};
pub use self::report::{Candidate, LayerReport, QuantizationReport};

use self::decide::{Site, decision_inputs, mean_squared_difference};
use self::layer::{FloatLayer, quantize_layer};
use self::reference::Reference;
use self::walk::{Live, Walk};
use crate::error::Error;
use crate::graph::{Graph, Op};
use crate::int_graph::{IntGraph, IntStep};

/// Scales and biases below this count as zero: the product of two such scales is still a normal `f32`.
const SMALLEST_MAGNITUDE: f32 = 1e-18;

/// Bits of the codes, 2 to 8 each.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct Bits {
    /// Bits of an activation code; its sign included, if it has one.
    pub activation: u32,
    /// Bits of a weight code, sign included.
    pub weight: u32,
}

impl Default for Bits {
    /// 4 and 4.
    fn default() -> Bits {
        Bits { activation: 4, weight: 4 }
    }
}

/// Quantises a network for inputs like those of `calibration`.
///
/// Each layer takes some passes over the calibration inputs, and four over the rest of the network for at most
/// [`DECISION_INPUTS`] of them, on all cores: seconds for LeNet-5. Its beginning is logged.
///
/// # Errors
/// Bits outside 2 to 8; no calibration inputs, or such of another shape or with numbers that are not finite; a layer that
/// overflows `f32` or whose accumulators may pass [`LARGEST_ACCUMULATOR`].
pub fn quantize(graph: &Graph, calibration: &Calibration, bits: Bits) -> Result<(IntGraph, QuantizationReport), Error> {
    for (what, bits) in [("activation", bits.activation), ("weight", bits.weight)] {
        if !(2..=8).contains(&bits) {
            return Err(Error::Bits { what, bits });
        }
    }
    let walk = Walk::of(graph);
    calibration.check(walk.shape(0))?;
    let reference = Reference::compute(&walk, calibration)?;
    let mut quantized = Quantized::start(&walk, calibration);
    let total = walk.nodes.iter().filter(|node| matches!(node.op, Op::Linear { .. })).count();
    for (index, node) in walk.nodes.iter().enumerate() {
        let never_negative = walk.reads[index].iter().map(|&value| quantized.never_negative[value]);
        let never_negative: Vec<bool> = never_negative.collect();
        match &node.op {
            Op::Input => unreachable!("the input is not among the operators"),
            Op::Client(op) => quantized.push_client(ClientStep {
                name: node.name.clone(),
                op: op.clone(),
                inputs: walk.reads[index].iter().map(|&value| ValueId(value)).collect(),
                output: ValueId(index + 1),
                shape: node.shape.clone(),
            }),
            Op::Linear { operator, weights, bias } => {
                tracing::info!(layer = node.name, finished = quantized.reports.len(), total, "quantising");
                let generated = calibration.generated;
                let never_negative = never_negative[0];
                let float = FloatLayer { name: &node.name, weights, bias, bits, never_negative, generated };
                quantized.push_linear(&reference, operator, &float)?;
            }
        }
        quantized.never_negative.push(ranges::never_negative(&node.op, &never_negative));
    }
    Ok(quantized.finish(&reference, calibration, bits))
}

/// The part of the network that is quantised already.
struct Quantized<'a> {
    walk: &'a Walk<'a>,
    graph: IntGraph,
    reports: Vec<LayerReport>,
    /// The values so far, one list a calibration input; those that nothing reads any more are not kept.
    values: Vec<Live<'static>>,
    /// By value: whether it is known to be non-negative.
    never_negative: Vec<bool>,
}

impl<'a> Quantized<'a> {
    fn start(walk: &'a Walk<'a>, calibration: &Calibration) -> Quantized<'a> {
        let graph = IntGraph {
            input_shape: walk.shape(0).to_vec(),
            output: ValueId(walk.output),
            steps: Vec::new(),
            weights: BTreeMap::new(),
            float_weights: BTreeMap::new(),
        };
        // Nothing proves an input non-negative; whoever chose the calibration inputs answers for it.
        let never_negative = calibration.inputs.iter().flatten().all(|x| *x >= 0.0);
        let values = calibration.inputs.iter().map(|input| walk.start(Cow::Owned(input.clone()))).collect();
        Quantized { walk, graph, reports: Vec::new(), values, never_negative: vec![never_negative] }
    }

    fn push_client(&mut self, step: ClientStep) {
        let index = self.graph.steps.len();
        let walk = self.walk;
        self.define(|live| walk.step(index, live));
        self.graph.steps.push(IntStep::Client(step));
    }

    fn push_linear(&mut self, reference: &Reference, operator: &Linear, float: &FloatLayer) -> Result<(), Error> {
        if self.graph.weights.contains_key(float.name) {
            return Err(Error::DuplicateName { node: float.name.into() });
        }
        let index = self.graph.steps.len();
        let site = Site { walk: self.walk, index, operator, reference, values: &self.values };
        let (layer, weights, report) = quantize_layer(&site, float)?;
        let read = self.walk.reads[index][0];
        self.define(|live| {
            run(&layer, &weights, live[read].as_deref().expect("a value is kept until its last reader"))
        });
        self.reports.push(report);
        self.graph.weights.insert(layer.name.clone(), weights);
        self.graph.float_weights.insert(layer.name.clone(), (float.weights.to_vec(), float.bias.to_vec()));
        self.graph.steps.push(IntStep::Linear(layer));
        Ok(())
    }

    /// Defines the next value for each calibration input, and forgets those that nothing reads any more.
    fn define(&mut self, value: impl Fn(&Live<'static>) -> Vec<f32> + Sync) {
        let (index, walk) = (self.graph.steps.len(), self.walk);
        self.values.par_iter_mut().for_each(|live| {
            let value = value(live);
            walk.define(index, value, live);
        });
    }

    fn finish(self, reference: &Reference, calibration: &Calibration, bits: Bits) -> (IntGraph, QuantizationReport) {
        let inputs = self.values.len();
        let answers = self.values.iter().map(|live| live[self.walk.output].as_deref().expect("the answer is kept"));
        let pairs: Vec<(&[f32], &Vec<f32>)> = answers.zip(&reference.outputs).collect();
        let output_error = pairs.iter().map(|(a, b)| mean_squared_difference(a, b)).sum::<f64>() / inputs as f64;
        let square = reference.outputs.iter().map(|y| mean_squared_difference(y, &vec![0.0; y.len()])).sum::<f64>();
        let agreement = pairs.iter().filter(|(a, b)| largest(a) == largest(b)).count() as f64 / inputs as f64;
        let report = QuantizationReport {
            bits,
            calibration_inputs: inputs,
            decision_inputs: decision_inputs(inputs).len(),
            layers: self.reports,
            output_error,
            relative_output_error: if square == 0.0 { output_error } else { output_error / (square / inputs as f64) },
            agreement,
            notices: notices(calibration),
        };
        (self.graph, report)
    }
}

fn run(layer: &LinearLayer, weights: &LayerWeights, x: &[f32]) -> Vec<f32> {
    eval::dequantize(layer, &eval::linear_integers(&layer.operator, weights, &eval::quantize(&layer.quantizer, x)))
}

/// Position of the largest number; of equals, the first.
fn largest(values: &[f32]) -> usize {
    (0..values.len()).fold(0, |best, next| if values[next] > values[best] { next } else { best })
}

fn notices(calibration: &Calibration) -> Vec<String> {
    let count = calibration.inputs.len();
    if calibration.generated {
        vec![format!(
            "no calibration data: ranges come from {count} inputs of random numbers in [0, 1], and accuracy will suffer\n  \
             try: `--calibrate FILE.npz` with some hundred real inputs"
        )]
    } else if count < 32 {
        vec![format!("only {count} calibration inputs: some hundred give better ranges")]
    } else {
        Vec::new()
    }
}
