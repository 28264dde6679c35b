//! How large the constants become that a model computes from others.
//!
//! Weights may be transposed, scaled or spelled out by `ConstantOfShape`, and the shape analysis carries such nodes
//! out. A file of a few bytes could ask for any amount of memory that way, so every constant is bounded first, from
//! shapes alone. Bounds are rough where they may be: they refuse only what no network contains.

use std::collections::HashMap;

use chococ_plans::check::meaning;
use tract_onnx::pb::tensor_proto::DataType;
use tract_onnx::pb::{GraphProto, NodeProto, TensorProto};

use super::flow::{Flow, made, read};
use super::reason::Reason;
use super::report::Problems;
use super::tensors::elements;

/// The most elements that a tensor may have: what a plan may hold.
pub(super) const LARGEST_TENSOR: u64 = meaning::LARGEST_TENSOR as u64;

/// The most elements that all computed constants may have together, those on the way to others included.
const LARGEST_TOTAL: u64 = 4 * LARGEST_TENSOR;

/// A bound on a constant.
#[derive(Clone)]
struct Size {
    /// Its shape, where that is certain.
    dims: Option<Vec<u64>>,
    /// At most this many elements.
    elements: u64,
}

impl Size {
    fn of_dims(dims: Vec<u64>) -> Size {
        let elements = dims.iter().fold(1, |product: u64, dim| product.saturating_mul(*dim));
        Size { dims: Some(dims), elements }
    }

    fn at_most(elements: u64) -> Size {
        Size { dims: None, elements }
    }
}

/// Reports the first live node whose constant exceeds a limit, and every one whose constant has no bound.
///
/// Returns whether there is none: otherwise constants must not be computed.
pub(super) fn are_bounded(graph: &GraphProto, flow: &Flow, problems: &mut Problems) -> bool {
    let mut sizes: HashMap<&str, Size> = HashMap::new();
    let mut stored: HashMap<&str, &TensorProto> = HashMap::new();
    for tensor in &graph.initializer {
        stored.insert(&tensor.name, tensor);
        sizes.insert(&tensor.name, stored_size(tensor));
    }
    let (mut total, mut bounded) = (0u64, true);
    let constant = |index: usize| flow.live[index] && !flow.variable_nodes[index];
    for (index, node) in graph.node.iter().enumerate().filter(|(index, _)| constant(*index)) {
        if let ("Constant", Some(tensor)) = (node.op_type.as_str(), node.attribute.iter().find_map(|a| a.t.as_ref())) {
            stored.extend(made(node).map(|output| (output, tensor)));
        }
        let Some(size) = result_size(node, &sizes, &stored) else {
            problems.node(index, Reason::Operator);
            bounded = false;
            continue;
        };
        total = total.saturating_add(size.elements);
        let limits = [(size.elements, LARGEST_TENSOR), (total, LARGEST_TOTAL)];
        if let Some((elements, limit)) = limits.into_iter().find(|(elements, limit)| elements > limit) {
            problems.node(index, Reason::Elements { elements, limit });
            return false;
        }
        sizes.extend(made(node).map(|output| (output, size.clone())));
    }
    bounded
}

fn stored_size(tensor: &TensorProto) -> Size {
    Size::of_dims(tensor.dims.iter().map(|&dim| u64::try_from(dim).unwrap_or(0)).collect())
}

/// Bounds what a node defines; none for operators that make tensors of any size from nothing.
fn result_size(node: &NodeProto, sizes: &HashMap<&str, Size>, stored: &HashMap<&str, &TensorProto>) -> Option<Size> {
    let inputs: Vec<Size> = read(node).map(|tensor| sizes.get(tensor).cloned().unwrap_or(Size::at_most(1))).collect();
    let largest = inputs.iter().map(|size| size.elements).max().unwrap_or(1);
    let product = || inputs.iter().fold(1, |product: u64, size| product.saturating_mul(size.elements));
    Some(match node.op_type.as_str() {
        "Constant" => match node.attribute.first() {
            Some(value) => {
                value.t.as_ref().map_or(Size::at_most(value.ints.len().max(value.floats.len()) as u64), stored_size)
            }
            None => Size::at_most(1),
        },
        // No tensor has more axes than its file has bytes; those of networks have five.
        "Shape" => Size::at_most(64),
        "Size" => Size::at_most(1),
        "ConstantOfShape" => shape_asked_for(node, 0, stored)?,
        "Expand" => Size::at_most(shape_asked_for(node, 1, stored)?.elements.saturating_mul(largest)),
        "Identity" | "Cast" | "Neg" | "Abs" | "Sqrt" | "Reciprocal" | "Exp" | "Log" | "Relu" | "Clip" | "Floor"
        | "Ceil" | "Round" | "Dropout" | "Not" | "Sign" => inputs.into_iter().next()?,
        "Reshape" | "Transpose" | "Squeeze" | "Unsqueeze" | "Flatten" | "Slice" | "Split" | "ReduceMean"
        | "ReduceSum" | "ReduceMax" | "ReduceMin" | "ReduceProd" | "ReduceL2" | "ReduceSumSquare" | "Softmax"
        | "BatchNormalization" | "DequantizeLinear" | "QuantizeLinear" => Size::at_most(largest),
        "Concat" => Size::at_most(inputs.iter().fold(0, |sum, size| size.elements.saturating_add(sum))),
        "Add" | "Sub" | "Mul" | "Div" | "Pow" | "Max" | "Min" | "Where" | "Equal" | "Greater" | "Less" | "And"
        | "Or" | "Mod" | "Sum" => broadcast(&inputs).unwrap_or(Size::at_most(product())),
        "Gather" | "MatMul" | "Gemm" => Size::at_most(product()),
        _ => return None,
    })
}

/// Reads the shape that a node is asked to fill, if it is stored as such.
fn shape_asked_for(node: &NodeProto, slot: usize, stored: &HashMap<&str, &TensorProto>) -> Option<Size> {
    let tensor = stored.get(node.input.get(slot)?.as_str())?;
    if tensor.data_type != DataType::Int64 as i32 {
        return None;
    }
    let from_raw = tensor.raw_data.chunks_exact(8).map(|bytes| i64::from_le_bytes(bytes.try_into().expect("8 bytes")));
    let dims: Vec<i64> = from_raw.chain(tensor.int64_data.iter().copied()).collect();
    elements(&dims)?;
    Some(Size::of_dims(dims.into_iter().map(i64::unsigned_abs).collect()))
}

/// Combines shapes as the operators on equal terms do; none if one is unknown or they do not match.
fn broadcast(inputs: &[Size]) -> Option<Size> {
    let shapes: Vec<&Vec<u64>> = inputs.iter().map(|size| size.dims.as_ref()).collect::<Option<_>>()?;
    let rank = shapes.iter().map(|dims| dims.len()).max()?;
    let along = |axis: usize| shapes.iter().filter_map(move |dims| dims.iter().rev().nth(axis)).copied().max();
    let mut dims: Vec<u64> = (0..rank).map(|axis| along(axis).unwrap_or(1)).collect();
    dims.reverse();
    Some(Size::of_dims(dims))
}
