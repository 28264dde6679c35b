//! Functions of one number: taken whole from the ONNX node, however many nodes tract makes of it.

use std::collections::HashMap;

use chococ_plans::op::{ClientOp, Function};
use tract_onnx::pb::NodeProto;
use tract_onnx::prelude::{OutletId, TypedModel, TypedNode};

use super::flow::Flow;
use super::lower::{Lowering, Value};
use super::nodes::attribute;
use super::reason::Reason;
use super::typed::source_node;
use crate::graph::Op;

/// The functions of a model, by ONNX node, and how far they have been followed.
pub(super) struct Functions {
    /// The function itself; none where it is a `PRelu`, whose slopes are a tensor.
    functions: HashMap<usize, Option<Function>>,
    /// The last of the nodes that tract has made of each.
    last: HashMap<usize, usize>,
    /// What each reads, once that is known.
    reads: HashMap<usize, OutletId>,
    /// The constant that the input of a `PRelu` is multiplied with.
    slopes: HashMap<usize, OutletId>,
}

impl Functions {
    /// Finds the functions among the nodes that depend on the input.
    pub(super) fn of(source: &[NodeProto], flow: &Flow, model: &TypedModel, order: &[usize]) -> Functions {
        let nodes = source.iter().enumerate().filter(|(index, _)| flow.variable_nodes[*index]);
        let found = |(index, node): (usize, &NodeProto)| match node.op_type.as_str() {
            "PRelu" => Some((index, None)),
            _ => Some((index, Some(function(node)?))),
        };
        let functions: HashMap<usize, Option<Function>> = nodes.filter_map(found).collect();
        let mut last = HashMap::new();
        for &id in order {
            let node = &model.nodes()[id];
            if let Some(source) = source_node(&node.name).filter(|source| functions.contains_key(source)) {
                last.insert(source, id);
            }
        }
        Functions { functions, last, reads: HashMap::new(), slopes: HashMap::new() }
    }

    /// The function that a node of tract's is a part of.
    pub(super) fn source(&self, node: &TypedNode) -> Option<usize> {
        source_node(&node.name).filter(|source| self.functions.contains_key(source))
    }
}

/// Reads a function and its parameters.
fn function(node: &NodeProto) -> Option<Function> {
    let float = |name: &str, default: f32| attribute(node, name).map_or(default, |attribute| attribute.f);
    Some(match node.op_type.as_str() {
        "Abs" => Function::Abs,
        "Ceil" => Function::Ceil,
        "Celu" => Function::Celu { alpha: float("alpha", 1.0) },
        "Elu" => Function::Elu { alpha: float("alpha", 1.0) },
        "Erf" => Function::Erf,
        "Exp" => Function::Exp,
        "Floor" => Function::Floor,
        "Gelu" => Function::Gelu { approximate: attribute(node, "approximate").is_some_and(|text| text.s == b"tanh") },
        "HardSigmoid" => Function::HardSigmoid { alpha: float("alpha", 0.2), beta: float("beta", 0.5) },
        "HardSwish" => Function::HardSwish,
        "LeakyRelu" => Function::LeakyRelu { alpha: float("alpha", 0.01) },
        "Log" => Function::Log,
        "Mish" => Function::Mish,
        "Neg" => Function::Neg,
        "Reciprocal" => Function::Reciprocal,
        "Round" => Function::Round,
        "Selu" => Function::Selu { alpha: float("alpha", 1.673_263_2), gamma: float("gamma", 1.050_701) },
        "Sigmoid" => Function::Sigmoid,
        "Sign" => Function::Sign,
        "Softplus" => Function::Softplus,
        "Softsign" => Function::Softsign,
        "Sqrt" => Function::Sqrt,
        "Swish" => Function::Swish { alpha: float("alpha", 1.0) },
        "Tanh" => Function::Tanh,
        "ThresholdedRelu" => Function::ThresholdedRelu { alpha: float("alpha", 1.0) },
        _ => return None,
    })
}

impl Lowering<'_> {
    /// Goes on with a function; its last node has its value.
    ///
    /// A function acts on the numbers where they are: a change of shape before it is put off until after it.
    pub(super) fn function(
        &mut self,
        source: usize,
        node: &TypedNode,
        view: Vec<usize>,
    ) -> Result<Option<Value>, Reason> {
        for &input in &node.inputs {
            if self.constant(input)?.is_some() {
                if node.op().name() == "Mul" {
                    self.functions.slopes.insert(source, input);
                }
            } else if source_node(&self.model.nodes()[input.node].name) != Some(source) {
                self.functions.reads.entry(source).or_insert(input);
            }
        }
        if self.functions.last.get(&source) != Some(&node.id) {
            return Ok(None);
        }
        let reads = *self.functions.reads.get(&source).ok_or(Reason::Operator)?;
        let value = self.value(reads)?;
        if value.view != view {
            return Err(Reason::Operator);
        }
        let op = match self.functions.functions[&source] {
            Some(function) if function.parameters().iter().all(|number| number.is_finite()) => {
                ClientOp::Function(function)
            }
            Some(_) => return Err(Reason::NotFinite),
            None => {
                let outlet = *self.functions.slopes.get(&source).ok_or(Reason::Operator)?;
                let slopes = self.weights(outlet)?;
                let refusal = Reason::NotPerChannel { constant: slopes.shape.clone(), shape: view.clone() };
                ClientOp::PRelu { slopes: self.per_channel(reads, &slopes)?.ok_or(refusal)? }
            }
        };
        let shape = self.shape(self.value(reads)?.node).to_vec();
        self.add_node(node, &[reads], Op::Client(op), shape, view).map(Some)
    }
}
