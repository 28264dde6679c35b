//! The network on integers with known ranges; [`IntGraph::eval`] is what it means.
//!
//! Whatever runs a plan, in the clear or encrypted, must give what `eval` gives, bit for bit.

use std::collections::BTreeMap;

use chococ_plans::eval::{self, Operand};
use chococ_plans::network::{ClientStep, LayerWeights, LinearLayer, ValueId};

/// A network whose linear layers are exact on integers and whose other operators are in `f32`.
#[derive(Clone, Debug, PartialEq)]
pub struct IntGraph {
    /// Shape of value 0, the input, without a batch axis.
    pub input_shape: Vec<usize>,
    /// The value that is the network's answer.
    pub output: ValueId,
    /// In execution order: a step reads only values that an earlier one defines, or the input.
    pub steps: Vec<IntStep>,
    /// Integer weights, by the name of their layer.
    pub weights: BTreeMap<String, LayerWeights>,
    /// The weights and the bias that each layer was quantised from, by its name: what [`IntGraph::eval_floats`] uses.
    pub float_weights: BTreeMap<String, (Vec<f32>, Vec<f32>)>,
}

/// One step, on whichever side computes it.
#[derive(Clone, Debug, PartialEq)]
pub enum IntStep {
    /// In the clear, in `f32`.
    Client(ClientStep),
    /// On integers, exactly.
    Linear(LinearLayer),
}

/// Everything that one evaluation computed.
#[derive(Clone, Debug, PartialEq)]
pub struct Trace {
    /// Every value, the input among them.
    pub values: BTreeMap<ValueId, Vec<f32>>,
    /// What each linear layer was given, by its name: what the client encrypts.
    pub codes: BTreeMap<String, Vec<i32>>,
    /// What each linear layer computed, by its name: what the client decrypts.
    pub accumulators: BTreeMap<String, Vec<i64>>,
    /// The network's answer.
    pub output: Vec<f32>,
}

impl IntStep {
    /// The ONNX node it came from.
    pub fn name(&self) -> &str {
        match self {
            IntStep::Client(step) => &step.name,
            IntStep::Linear(layer) => &layer.name,
        }
    }

    /// The values it reads.
    pub fn inputs(&self) -> &[ValueId] {
        match self {
            IntStep::Client(step) => &step.inputs,
            IntStep::Linear(layer) => std::slice::from_ref(&layer.input),
        }
    }

    /// The value it defines.
    pub fn output(&self) -> ValueId {
        match self {
            IntStep::Client(step) => step.output,
            IntStep::Linear(layer) => layer.output,
        }
    }

    /// Shape of the value it defines, without a batch axis.
    pub fn shape(&self) -> Vec<usize> {
        match self {
            IntStep::Client(step) => step.shape.clone(),
            IntStep::Linear(layer) => layer.operator.output_shape(),
        }
    }
}

impl IntGraph {
    /// Evaluates the network on one input, and keeps every number on the way.
    ///
    /// `input` is in the order of `input_shape`. Linear layers are exact; all else is `f32`, with sums in a fixed order.
    pub fn eval(&self, input: &[f32]) -> Trace {
        let mut codes = BTreeMap::new();
        let mut accumulators = BTreeMap::new();
        let values = self.walk(input, |layer, x| {
            let layer_codes = eval::quantize(&layer.quantizer, x);
            let sums = eval::linear_integers(&layer.operator, &self.weights[&layer.name], &layer_codes);
            let y = eval::dequantize(layer, &sums);
            codes.insert(layer.name.clone(), layer_codes);
            accumulators.insert(layer.name.clone(), sums);
            y
        });
        let output = values[&self.output].clone();
        Trace { values, codes, accumulators, output }
    }

    /// Evaluates the network as it was before quantisation: the same steps with the float weights.
    pub fn eval_floats(&self, input: &[f32]) -> Vec<f32> {
        let mut values = self.walk(input, |layer, x| {
            let (weights, bias) = &self.float_weights[&layer.name];
            eval::linear_floats(&layer.operator, weights, bias, x)
        });
        values.remove(&self.output).expect("the output is the input or defined by a step")
    }

    /// The linear layers, in execution order.
    pub fn layers(&self) -> impl Iterator<Item = &LinearLayer> {
        self.steps.iter().filter_map(|step| match step {
            IntStep::Client(_) => None,
            IntStep::Linear(layer) => Some(layer),
        })
    }

    fn walk(
        &self,
        input: &[f32],
        mut linear: impl FnMut(&LinearLayer, &[f32]) -> Vec<f32>,
    ) -> BTreeMap<ValueId, Vec<f32>> {
        let mut values = BTreeMap::from([(ValueId(0), input.to_vec())]);
        let mut shapes = BTreeMap::from([(ValueId(0), self.input_shape.clone())]);
        for step in &self.steps {
            let reads = step.inputs().iter();
            let operands: Vec<Operand<'_>> =
                reads.map(|input| Operand { shape: &shapes[input], numbers: &values[input] }).collect();
            let y = match step {
                IntStep::Client(client) => eval::client(&client.op, &operands, &client.shape),
                IntStep::Linear(layer) => linear(layer, operands[0].numbers),
            };
            values.insert(step.output(), y);
            shapes.insert(step.output(), step.shape());
        }
        values
    }
}

#[cfg(test)]
mod tests {
    use chococ_plans::network::Quantizer;
    use chococ_plans::op::{ClientOp, Dense, Linear};

    use super::*;

    /// y = relu([[2, -1]] x + 3) with x in steps of 0.5 and weights in steps of 0.25.
    fn tiny() -> IntGraph {
        let layer = LinearLayer {
            name: "fc".into(),
            operator: Linear::Dense(Dense { inputs: 2, outputs: 1 }),
            input: ValueId(0),
            output: ValueId(1),
            quantizer: Quantizer { scale: 0.5, low: 0, high: 15 },
            weight_bits: 4,
            output_scales: vec![0.125],
            output_ranges: vec![(24 - 4 * 15, 24 + 7 * 15)],
            weight_energy: 99,
        };
        let relu = ClientStep {
            name: "relu".into(),
            op: ClientOp::Relu,
            inputs: vec![ValueId(1)],
            output: ValueId(2),
            shape: vec![1],
        };
        IntGraph {
            input_shape: vec![2],
            output: ValueId(2),
            steps: vec![IntStep::Linear(layer), IntStep::Client(relu)],
            weights: BTreeMap::from([("fc".into(), LayerWeights { weights: vec![7, -4], bias: vec![24] })]),
            float_weights: BTreeMap::from([("fc".into(), (vec![2.0, -1.0], vec![3.0]))]),
        }
    }

    #[test]
    fn eval_keeps_every_number_on_the_way() {
        let trace = tiny().eval(&[1.3, 2.0]);
        assert_eq!(trace.codes["fc"], [3, 4]);
        assert_eq!(trace.accumulators["fc"], [3 * 7 - 4 * 4 + 24]);
        assert_eq!(trace.values[&ValueId(0)], [1.3, 2.0]);
        assert_eq!(trace.values[&ValueId(1)], [29.0 * 0.125]);
        assert_eq!(trace.output, [29.0 * 0.125]);
    }

    #[test]
    fn eval_clips_and_the_float_reference_does_not() {
        let graph = tiny();
        assert_eq!(graph.eval(&[0.0, 100.0]).codes["fc"], [0, 15]);
        assert_eq!(graph.eval(&[0.0, 100.0]).output, [0.0]);
        assert_eq!(graph.eval_floats(&[1.0, 2.0]), [3.0]);
        assert_eq!(graph.eval_floats(&[0.0, 2.5]), [0.5]);
    }
}
