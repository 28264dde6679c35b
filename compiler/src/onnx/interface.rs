//! The model as a whole: one float32 image in, one tensor out.

use std::collections::HashSet;

use tract_onnx::pb::tensor_proto::DataType;
use tract_onnx::pb::tensor_shape_proto::{Dimension, dimension};
use tract_onnx::pb::{GraphProto, TensorShapeProto, ValueInfoProto, type_proto};

use super::reason::Reason;
use super::report::Problems;

/// The most nodes and initialisers that are read; networks have a few hundred, and some steps take quadratic time.
const LARGEST_GRAPH: usize = 20_000;

/// Checks that there is a graph of a size worth looking at.
pub(super) fn check_size(graph: &GraphProto) -> Option<Reason> {
    match graph.node.len() + graph.initializer.len() {
        _ if graph.node.is_empty() => Some(Reason::NoGraph),
        nodes if nodes > LARGEST_GRAPH => Some(Reason::TooLarge { nodes, limit: LARGEST_GRAPH }),
        _ => None,
    }
}

/// Checks the graph's input and output, and binds a dynamic batch axis to 1, with a notice.
///
/// Afterwards, unless there is a problem, `graph.input` is the one real input (old files list initialisers too), and
/// each of its axes has a positive length, the first 1.
pub(super) fn check(graph: &mut GraphProto, problems: &mut Problems, notices: &mut Vec<String>) {
    let stored: HashSet<&str> = graph.initializer.iter().map(|tensor| tensor.name.as_str()).collect();
    graph.input.retain(|input| !stored.contains(input.name.as_str()));
    match &mut graph.input[..] {
        [input] => check_input(input, problems, notices),
        inputs => problems.model(Reason::Inputs { names: names(inputs) }),
    }
    if graph.output.len() != 1 {
        problems.model(Reason::Outputs { names: names(&graph.output) });
    }
}

fn names(values: &[ValueInfoProto]) -> Vec<String> {
    values.iter().map(|value| value.name.clone()).collect()
}

fn check_input(input: &mut ValueInfoProto, problems: &mut Problems, notices: &mut Vec<String>) {
    let name = input.name.clone();
    let Some(type_proto::Value::TensorType(tensor)) = input.r#type.as_mut().and_then(|kind| kind.value.as_mut()) else {
        return problems.model(Reason::InputType { input: name, found: "no tensor".into() });
    };
    if tensor.elem_type != DataType::Float as i32 {
        let found = data_type_name(tensor.elem_type);
        problems.model(Reason::InputType { input: name.clone(), found });
    }
    match &mut tensor.shape {
        Some(shape) if shape.dim.len() >= 2 => check_shape(&name, shape, problems, notices),
        Some(shape) => problems.model(Reason::InputRank { input: name, rank: Some(shape.dim.len()) }),
        None => problems.model(Reason::InputRank { input: name, rank: None }),
    }
}

fn check_shape(input: &str, shape: &mut TensorShapeProto, problems: &mut Problems, notices: &mut Vec<String>) {
    for (axis, dimension) in shape.dim.iter_mut().enumerate() {
        // Some exporters write -1 or 0 for "unknown".
        let symbol = match &dimension.value {
            Some(dimension::Value::DimValue(length)) if *length > 0 => {
                if axis == 0 && *length != 1 {
                    problems.model(Reason::FixedBatch { input: input.into(), batch: *length });
                }
                continue;
            }
            Some(dimension::Value::DimValue(length)) => length.to_string(),
            Some(dimension::Value::DimParam(symbol)) => symbol.clone(),
            None => "?".into(),
        };
        if axis == 0 {
            notices.push(format!("input `{input}`: the batch axis (`{symbol}`) is dynamic; it is bound to 1"));
            *dimension = Dimension { value: Some(dimension::Value::DimValue(1)), ..Dimension::default() };
        } else {
            problems.model(Reason::DynamicAxis { input: input.into(), axis, symbol });
        }
    }
}

/// Names a type as ONNX's documentation does.
pub(super) fn data_type_name(data_type: i32) -> String {
    match DataType::try_from(data_type) {
        Ok(data_type) => data_type.as_str_name().to_lowercase(),
        Err(_) => format!("type {data_type}"),
    }
}
