//! What can be told of a node from the protobuf alone: its operator, its attributes, which of its inputs are constant.
//!
//! All nodes are looked at, so that one run names every operator that is not supported.

use tract_onnx::pb::tensor_proto::DataType;
use tract_onnx::pb::{AttributeProto, GraphProto, NodeProto};

use super::flow::{self, Flow};
use super::interface::data_type_name;
use super::operators::{Family, family};
use super::reason::Reason;
use super::report::Problems;
use super::tensors;

/// The largest kernel, stride, dilation or padding: more than any image has cells on a side.
const LARGEST_WINDOW: i64 = 1 << 16;

/// Reports every live node that cannot be compiled, whatever the shapes.
pub(super) fn check(graph: &GraphProto, flow: &Flow, problems: &mut Problems) {
    for (index, node) in graph.node.iter().enumerate().filter(|(index, _)| flow.live[*index]) {
        let reason = if flow.variable_nodes[index] { variable_node(node, flow) } else { constant_node(node) };
        if let Some(reason) = reason {
            problems.node(index, reason);
        }
    }
}

/// Checks a node that computes constants: anything goes that the shape analysis can carry out by itself.
fn constant_node(node: &NodeProto) -> Option<Reason> {
    foreign(node).or_else(|| {
        let stored = node.attribute.iter().filter_map(|attribute| Some((&attribute.name, attribute.t.as_ref()?)));
        stored.map(|(name, tensor)| tensors::check_tensor(name, tensor)).find_map(|reason| reason)
    })
}

/// Refuses operators of other libraries, and those that hold graphs of their own.
fn foreign(node: &NodeProto) -> Option<Reason> {
    if !matches!(node.domain.as_str(), "" | "ai.onnx") {
        return Some(Reason::Domain { domain: node.domain.clone() });
    }
    node.attribute
        .iter()
        .any(|attribute| attribute.g.is_some() || !attribute.graphs.is_empty())
        .then_some(Reason::Operator)
}

/// Checks a node that computes on what depends on the input.
fn variable_node(node: &NodeProto, flow: &Flow) -> Option<Reason> {
    if let Some(reason) = foreign(node) {
        return Some(reason);
    }
    let operator = node.op_type.as_str();
    let variable: Vec<(usize, &String)> =
        node.input.iter().enumerate().filter(|(_, tensor)| flow.variable.contains(*tensor)).collect();
    match family(operator) {
        Family::Unsupported => return Some(Reason::Operator),
        Family::Supported | Family::Joins | Family::OfShapes => {}
    }
    let weights = match family(operator) {
        Family::Joins => None,
        _ if matches!(operator, "MatMul" | "Gemm") => variable.get(1),
        _ => variable.iter().find(|(slot, _)| *slot > 0),
    };
    if let Some((_, tensor)) = weights {
        return Some(Reason::NotConstant { tensor: tensor.to_string() });
    }
    let second = flow::made(node).skip(1).find(|tensor| flow.used.contains(*tensor));
    if let Some(tensor) = second.filter(|_| operator != "Split") {
        return Some(Reason::SecondOutput { tensor: tensor.into() });
    }
    attributes(node)
}

pub(super) fn attribute<'a>(node: &'a NodeProto, name: &str) -> Option<&'a AttributeProto> {
    node.attribute.iter().find(|attribute| attribute.name == name)
}

fn attributes(node: &NodeProto) -> Option<Reason> {
    match node.op_type.as_str() {
        "Conv" | "MaxPool" | "AveragePool" => window(node),
        // The shape analysis knows the one order.
        "SpaceToDepth" => match attribute(node, "mode").map(|mode| String::from_utf8_lossy(&mode.s)) {
            Some(mode) if mode != "DCR" => Some(Reason::Attribute {
                attribute: "mode".into(),
                found: mode.into_owned(),
                needed: "only `DCR` is".into(),
            }),
            _ => None,
        },
        "BatchNormalization" => match attribute(node, "training_mode") {
            Some(mode) if mode.i != 0 => Some(Reason::Training),
            _ => None,
        },
        "Cast" => match attribute(node, "to") {
            Some(to) if to.i == DataType::Float as i64 => None,
            to => Some(Reason::DataType {
                found: to.map_or("no type".into(), |to| data_type_name(i32::try_from(to.i).unwrap_or(-1))),
            }),
        },
        _ => None,
    }
}

/// Checks the attributes that say how a window moves over an image.
fn window(node: &NodeProto) -> Option<Reason> {
    let per_axis = ["kernel_shape", "strides", "dilations"].map(|name| (name, 1, 1));
    for (name, lowest, per_axis) in per_axis.into_iter().chain([("pads", 0, 2)]) {
        let Some(found) = attribute(node, name) else { continue };
        if ![per_axis, 2 * per_axis].contains(&found.ints.len()) {
            return Some(Reason::SpatialAxes { axes: found.ints.len() / per_axis });
        }
        if found.ints.iter().any(|value| !(lowest..=LARGEST_WINDOW).contains(value)) {
            let needed = format!("each number must lie between {lowest} and {LARGEST_WINDOW}");
            return Some(Reason::Attribute { attribute: name.into(), found: format!("{:?}", found.ints), needed });
        }
    }
    if let Some(group) = attribute(node, "group").filter(|group| group.i < 1) {
        let needed = "it must be at least 1".into();
        return Some(Reason::Attribute { attribute: "group".into(), found: group.i.to_string(), needed });
    }
    let auto_pad = attribute(node, "auto_pad").map(|auto_pad| String::from_utf8_lossy(&auto_pad.s))?;
    let known = ["NOTSET", "VALID", "SAME_UPPER", "SAME_LOWER"];
    (!known.contains(&auto_pad.as_ref())).then(|| Reason::Attribute {
        attribute: "auto_pad".into(),
        found: auto_pad.into_owned(),
        needed: format!("it must be one of {}", known.join(", ")),
    })
}
