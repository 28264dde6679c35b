//! From tract's typed graph to ours: operators recognised, shapes without the batch axis.

use std::collections::{HashMap, HashSet};

use chococ_plans::check::meaning::MOST_AXES;
use chococ_plans::op::ClientOp;
use petgraph::graph::{DiGraph, NodeIndex};
use tract_onnx::pb::NodeProto;
use tract_onnx::prelude::{DatumType, OutletId, TypedModel, TypedNode};
use tract_onnx::tract_core::ops::array::{Pad, Slice, StridedSlice, TypedConcat};
use tract_onnx::tract_core::ops::binary::TypedBinOp;
use tract_onnx::tract_core::ops::cast::Cast;
use tract_onnx::tract_core::ops::change_axes::AxisOp;
use tract_onnx::tract_core::ops::cnn::{Conv, MaxPool, SumPool};
use tract_onnx::tract_core::ops::einsum::EinSum;
use tract_onnx::tract_core::ops::element_wise::ElementWiseOp;
use tract_onnx::tract_core::ops::identity::Identity;
use tract_onnx::tract_core::ops::nn::{Reduce, Softmax, SoftmaxKind};

use super::constants::LARGEST_TENSOR;
use super::flow::Flow;
use super::functions::Functions;
use super::reason::Reason;
use super::report::Problems;
use super::typed::source_node;
use crate::graph::{Graph, Node, Op};

/// Numbers of a constant that a plan may hold; weights lie in a file of their own.
const LARGEST_CONSTANT: usize = 1 << 16;

/// A tensor of tract's graph, in terms of ours.
#[derive(Clone)]
pub(super) struct Value {
    /// The node that holds its numbers, in the same order.
    pub(super) node: NodeIndex,
    /// tract's shape, batch axis and all; the node itself may still have another.
    pub(super) view: Vec<usize>,
    /// The ONNX node that gave it this shape.
    pub(super) viewed_by: String,
}

/// A constant of tract's graph.
pub(super) struct Constant {
    /// tract's shape.
    pub(super) shape: Vec<usize>,
    /// Its numbers, row-major.
    pub(super) values: Vec<f32>,
}

/// The translation under way.
pub(super) struct Lowering<'a> {
    /// The ONNX nodes.
    source: &'a [NodeProto],
    pub(super) model: &'a TypedModel,
    flow: &'a Flow,
    problems: &'a mut Problems,
    nodes: DiGraph<Node, usize>,
    values: HashMap<OutletId, Value>,
    /// Nodes of tract's that their producer has computed already: they only pass a value on.
    pub(super) absorbed: HashSet<usize>,
    pub(super) functions: Functions,
    input: Option<NodeIndex>,
}

/// Translates a typed graph and reports every node that has no counterpart.
///
/// After a refusal the node's value is taken as if it were given, so that what comes after is looked at too. None if
/// there was a problem, now or before.
pub(super) fn lower(source: &[NodeProto], model: &TypedModel, flow: &Flow, problems: &mut Problems) -> Option<Graph> {
    let order = model.eval_order().ok()?;
    let mut lowering = Lowering {
        source,
        model,
        flow,
        problems,
        nodes: DiGraph::new(),
        values: HashMap::new(),
        absorbed: HashSet::new(),
        functions: Functions::of(source, flow, model, &order),
        input: None,
    };
    for id in order {
        lowering.node(&model.nodes()[id]);
    }
    lowering.finish()
}

impl Lowering<'_> {
    fn node(&mut self, node: &TypedNode) {
        if node.outputs.iter().all(|outlet| outlet.fact.konst.is_some()) {
            return self.constant_node(node);
        }
        let result = self.fact_shape(node).and_then(|shape| match self.functions.source(node) {
            Some(source) => self.function(source, node, shape),
            None => self.value_of(node, shape).map(Some),
        });
        match result {
            Ok(Some(value)) => drop(self.values.insert(OutletId::new(node.id, 0), value)),
            Ok(None) => {}
            Err(reason) => {
                self.refuse(node, reason);
                self.take_as_given(node);
            }
        }
    }

    /// Looks at a constant: the empty result of a node that depends on the input is one to tract.
    fn constant_node(&mut self, node: &TypedNode) {
        let from_input = source_node(&node.name).is_some_and(|index| self.flow.variable_nodes[index]);
        let shape = node.outputs.first().and_then(|outlet| outlet.fact.shape.as_concrete());
        if let Some(shape) = shape.filter(|shape| from_input && shape.contains(&0)) {
            self.refuse(node, Reason::Empty { shape: shape.to_vec() });
        }
    }

    fn refuse(&mut self, node: &TypedNode, reason: Reason) {
        match source_node(&node.name) {
            Some(index) => self.problems.node(index, reason),
            None => self.problems.model(reason),
        }
    }

    /// The shape of a node's first output, once it is known to be one that a plan can have.
    fn fact_shape(&self, node: &TypedNode) -> Result<Vec<usize>, Reason> {
        let fact = &node.outputs[0].fact;
        let message = || format!("it is {:?}, which is not fixed", fact.shape);
        let shape = fact.shape.as_concrete().ok_or_else(|| Reason::Shape { message: message() })?;
        match shape.iter().fold(1, |product: u64, &dim| product.saturating_mul(dim as u64)) {
            0 => Err(Reason::Empty { shape: shape.to_vec() }),
            elements if elements > LARGEST_TENSOR => Err(Reason::Elements { elements, limit: LARGEST_TENSOR }),
            _ => Ok(shape.to_vec()),
        }
    }

    fn take_as_given(&mut self, node: &TypedNode) {
        for (slot, outlet) in node.outputs.iter().enumerate() {
            let view = outlet.fact.shape.as_concrete().map_or(vec![1], <[usize]>::to_vec);
            let shape = without_batch(&view).unwrap_or(&view).to_vec();
            let given = self.nodes.add_node(Node { name: self.name(node), op: Op::Input, shape });
            self.values.insert(OutletId::new(node.id, slot), Value { node: given, view, viewed_by: self.name(node) });
        }
    }

    fn value_of(&mut self, node: &TypedNode, view: Vec<usize>) -> Result<Value, Reason> {
        if self.model.input_outlets().is_ok_and(|inputs| inputs.contains(&OutletId::new(node.id, 0))) {
            return self.input(node, view);
        }
        let found = node.outputs[0].fact.datum_type;
        if found != DatumType::F32 {
            return Err(Reason::DataType { found: format!("{found:?}").to_lowercase() });
        }
        if self.absorbed.contains(&node.id) {
            return self.passed_on(node, view);
        }
        if let Some(conv) = node.op_as::<Conv>() {
            self.conv(node, conv, view)
        } else if let Some(product) = node.op_as::<EinSum>() {
            self.product(node, product, view)
        } else if let Some(binary) = node.op_as::<TypedBinOp>() {
            self.binary(node, binary, view)
        } else if let Some(pool) = node.op_as::<MaxPool>() {
            self.max_pool(node, pool, view)
        } else if let Some(pool) = node.op_as::<SumPool>() {
            self.average_pool(node, pool, view)
        } else if let Some(reduce) = node.op_as::<Reduce>() {
            self.reduce(node, reduce, view)
        } else if let Some(softmax) = node.op_as::<Softmax>() {
            self.softmax(node, softmax, view)
        } else if let Some(axis_op) = node.op_as::<AxisOp>() {
            self.change_axes(node, axis_op, view)
        } else if let Some(concat) = node.op_as::<TypedConcat>() {
            self.concat(node, concat, view)
        } else if let Some(slice) = node.op_as::<Slice>() {
            self.slice(node, slice, view)
        } else if let Some(slice) = node.op_as::<StridedSlice>() {
            self.strided_slice(node, slice, view)
        } else if let Some(pad) = node.op_as::<Pad>() {
            self.pad(node, pad, view)
        } else if let Some(function) = node.op_as::<ElementWiseOp>() {
            self.element_wise(node, &function.0.name(), view)
        } else if node.op_is::<Identity>() || node.op_is::<Cast>() {
            self.passed_on(node, view)
        } else if node.op().name() == "Resize" {
            self.resize(node, view)
        } else if node.op().name() == "Lrn" {
            self.local_response(node, view)
        } else if node.op().name() == "Dropout" {
            self.dropout(node, view)
        } else {
            Err(Reason::Operator)
        }
    }

    fn input(&mut self, node: &TypedNode, view: Vec<usize>) -> Result<Value, Reason> {
        let shape = without_batch(&view).ok_or_else(|| Reason::BatchLost { shape: view.clone() })?.to_vec();
        let index = self.nodes.add_node(Node { name: node.name.clone(), op: Op::Input, shape });
        self.input = Some(index);
        Ok(Value { node: index, view, viewed_by: node.name.clone() })
    }

    /// Gives the same numbers another shape; the shape is taken on only where somebody asks for it.
    pub(super) fn passed_on(&mut self, node: &TypedNode, view: Vec<usize>) -> Result<Value, Reason> {
        let slot = usize::from(self.constant(node.inputs[0])?.is_some() && node.inputs.len() > 1);
        let value = self.value(node.inputs[slot])?;
        let viewed_by = if value.view == view { value.viewed_by } else { self.name(node) };
        Ok(Value { node: value.node, view, viewed_by })
    }

    fn dropout(&mut self, node: &TypedNode, view: Vec<usize>) -> Result<Value, Reason> {
        // Inputs are data, ratio, training mode; a boolean is the training mode wherever it stands.
        let training = node.inputs[1..].iter().any(|&input| {
            let konst = self.model.outlet_fact(input).ok().and_then(|fact| fact.konst.clone());
            let is_mode = konst.filter(|tensor| tensor.datum_type() == DatumType::Bool);
            is_mode.is_some_and(|tensor| tensor.cast_to_scalar::<bool>().unwrap_or(true))
        });
        if training { Err(Reason::Training) } else { self.passed_on(node, view) }
    }

    fn softmax(&mut self, node: &TypedNode, softmax: &Softmax, view: Vec<usize>) -> Result<Value, Reason> {
        let op: fn(usize) -> ClientOp = match softmax.kind {
            SoftmaxKind::Softmax => |axis| ClientOp::Softmax { axis },
            SoftmaxKind::LogSoftmax => |axis| ClientOp::LogSoftmax { axis },
        };
        let shape = self.in_own_shape(node.inputs[0])?;
        if softmax.axes.iter().any(|&axis| axis >= view.len()) {
            return Err(Reason::SoftmaxAxes { axes: softmax.axes.to_vec(), shape: view });
        }
        // Axes of length 1 change nothing. tract counts the batch axis, unless there is none.
        let long: Vec<usize> = softmax.axes.iter().copied().filter(|&axis| view[axis] != 1).collect();
        let batch_axes = view.len() - shape.len();
        match long[..] {
            [axis] => self.add(node, &node.inputs, op(axis - batch_axes), view),
            [] if !shape.is_empty() && softmax.axes.iter().all(|&axis| axis >= batch_axes) => {
                let axis = softmax.axes.first().map_or(0, |axis| axis - batch_axes);
                self.add(node, &node.inputs, op(axis), view)
            }
            _ => Err(Reason::SoftmaxAxes { axes: softmax.axes.to_vec(), shape: view }),
        }
    }

    fn finish(mut self) -> Option<Graph> {
        let outlet = *self.model.output_outlets().ok()?.first()?;
        if !self.problems.is_empty() {
            return None;
        }
        if let Err(reason) = self.in_own_shape(outlet) {
            self.refuse(&self.model.nodes()[outlet.node], reason);
            return None;
        }
        let many = self.nodes.node_weights().find(|node| node.shape.len() > MOST_AXES);
        if let Some(Node { name, shape, .. }) = many {
            self.problems.model(Reason::Axes { tensor: name.clone(), shape: shape.clone(), most: MOST_AXES });
            return None;
        }
        let output = self.values.get(&outlet)?.node;
        Some(Graph { nodes: self.nodes, input: self.input?, output })
    }

    /// The name that a node's counterpart gets: that of the ONNX node, shared by all that tract made of it.
    pub(super) fn name(&self, node: &TypedNode) -> String {
        source_node(&node.name).map_or(node.name.clone(), |index| self.problems.name(index).to_string())
    }

    /// The ONNX node that tract has made a node of.
    pub(super) fn source(&self, node: &TypedNode) -> Result<&NodeProto, Reason> {
        source_node(&node.name).and_then(|index| self.source.get(index)).ok_or(Reason::Operator)
    }

    /// The value of a tensor that depends on the input.
    pub(super) fn value(&self, outlet: OutletId) -> Result<Value, Reason> {
        self.values.get(&outlet).cloned().ok_or_else(|| Reason::SecondOutput {
            tensor: self.model.outlet_label(outlet).unwrap_or_default().to_string(),
        })
    }

    /// Shape of the node that holds a value, whatever tract's view of it is.
    pub(super) fn shape(&self, node: NodeIndex) -> &[usize] {
        &self.nodes[node].shape
    }

    /// The value of a constant; none if the tensor depends on the input.
    pub(super) fn constant(&self, outlet: OutletId) -> Result<Option<Constant>, Reason> {
        let unreadable = |message: String| Reason::Shape { message };
        let fact = self.model.outlet_fact(outlet).map_err(|error| unreadable(error.to_string()))?;
        let Some(tensor) = &fact.konst else { return Ok(None) };
        let read = || {
            let floats = tensor.cast_to::<f32>()?;
            let values = floats.try_as_plain_ram()?.as_slice::<f32>()?.to_vec();
            Ok(Constant { shape: tensor.shape().to_vec(), values })
        };
        read().map(Some).map_err(|error: tract_onnx::prelude::TractError| unreadable(error.to_string()))
    }

    /// A constant that must be one, of finite numbers: weights.
    pub(super) fn weights(&self, outlet: OutletId) -> Result<Constant, Reason> {
        let tensor = || self.model.outlet_label(outlet).unwrap_or("weights").to_string();
        let constant = self.constant(outlet)?.ok_or_else(|| Reason::NotConstant { tensor: tensor() })?;
        match constant.values.iter().all(|value| value.is_finite()) {
            true => Ok(constant),
            false => Err(Reason::NotFinite),
        }
    }

    /// Makes a value's node have the shape that tract sees, less the batch axis, and returns that shape.
    pub(super) fn in_own_shape(&mut self, outlet: OutletId) -> Result<Vec<usize>, Reason> {
        let value = self.value(outlet)?;
        let shape = without_batch(&value.view).ok_or_else(|| Reason::BatchLost { shape: value.view.clone() })?.to_vec();
        self.reshape(outlet, value, shape.clone());
        Ok(shape)
    }

    /// Makes a value's node a vector. The step is named after the node that asked for a shape; if none did, after the
    /// reader.
    pub(super) fn flatten(&mut self, node: &TypedNode, reads: OutletId, length: usize) -> Result<(), Reason> {
        let mut value = self.value(reads)?;
        if without_batch(&value.view) == Some(self.shape(value.node)) {
            value.viewed_by = format!("{}/flatten", self.name(node));
        }
        self.reshape(reads, value, vec![length]);
        Ok(())
    }

    /// Makes a value's node have the given shape.
    pub(super) fn reshape(&mut self, outlet: OutletId, value: Value, shape: Vec<usize>) {
        if self.nodes[value.node].shape != shape {
            let node = Node { name: value.viewed_by.clone(), op: Op::Client(ClientOp::Reshape), shape };
            let reshaped = self.nodes.add_node(node);
            self.nodes.add_edge(value.node, reshaped, 0);
            self.values.insert(outlet, Value { node: reshaped, ..value });
        }
    }

    /// Makes a constant a node of its own, in the shape that it meets tensors in, less the batch axis.
    fn constant_value(&mut self, node: &TypedNode, outlet: OutletId, constant: Constant) -> Result<Value, Reason> {
        let view = constant.shape;
        let shape = without_batch(&view).ok_or_else(|| Reason::BatchLost { shape: view.clone() })?.to_vec();
        if constant.values.len() > LARGEST_CONSTANT {
            let elements = constant.values.len() as u64;
            return Err(Reason::Elements { elements, limit: LARGEST_CONSTANT as u64 });
        }
        if !constant.values.iter().all(|value| value.is_finite()) {
            return Err(Reason::NotFinite);
        }
        let name = format!("{}/constant", self.name(node));
        let op = Op::Client(ClientOp::Constant { values: constant.values });
        let added = self.nodes.add_node(Node { name: name.clone(), op, shape });
        let value = Value { node: added, view, viewed_by: name };
        self.values.insert(outlet, value.clone());
        Ok(value)
    }

    /// Prepares what an operator on several tensors reads: a value in its own shape, or a constant. Returns that shape.
    pub(super) fn operand(&mut self, node: &TypedNode, outlet: OutletId) -> Result<Vec<usize>, Reason> {
        if !self.values.contains_key(&outlet)
            && let Some(constant) = self.constant(outlet)?
        {
            self.constant_value(node, outlet, constant)?;
        }
        self.in_own_shape(outlet)
    }

    /// Adds a client operator that reads values as their nodes have them; the result has the shape that tract sees.
    pub(super) fn add(
        &mut self,
        node: &TypedNode,
        reads: &[OutletId],
        op: ClientOp,
        view: Vec<usize>,
    ) -> Result<Value, Reason> {
        let shape = without_batch(&view).ok_or_else(|| Reason::BatchLost { shape: view.clone() })?.to_vec();
        self.add_node(node, reads, Op::Client(op), shape, view)
    }

    /// Adds a client operator behind a value that need not be one of tract's.
    pub(super) fn after(&mut self, node: &TypedNode, value: Value, op: ClientOp, shape: Vec<usize>) -> Value {
        self.behind(node, &[&value], Op::Client(op), shape)
    }

    /// Adds any operator behind values that need not be tract's; the result is seen as the first of them is.
    pub(super) fn behind(&mut self, node: &TypedNode, values: &[&Value], op: Op, shape: Vec<usize>) -> Value {
        let added = self.nodes.add_node(Node { name: self.name(node), op, shape });
        for (slot, value) in values.iter().enumerate() {
            self.nodes.add_edge(value.node, added, slot);
        }
        Value { node: added, ..values[0].clone() }
    }

    /// Adds an operator whose node has a shape of its own, beside tract's.
    pub(super) fn add_node(
        &mut self,
        node: &TypedNode,
        reads: &[OutletId],
        op: Op,
        shape: Vec<usize>,
        view: Vec<usize>,
    ) -> Result<Value, Reason> {
        let producers: Vec<NodeIndex> =
            reads.iter().map(|&outlet| Ok(self.value(outlet)?.node)).collect::<Result<_, Reason>>()?;
        let name = self.name(node);
        let added = self.nodes.add_node(Node { name: name.clone(), op, shape });
        for (slot, producer) in producers.into_iter().enumerate() {
            self.nodes.add_edge(producer, added, slot);
        }
        Ok(Value { node: added, view, viewed_by: name })
    }
}

/// Takes the batch axis off a shape; none if axis 0 is not one. A shape with one axis has no batch axis any more.
fn without_batch(view: &[usize]) -> Option<&[usize]> {
    match view {
        [_] => Some(view),
        [1, rest @ ..] => Some(rest),
        _ => None,
    }
}
