//! ONNX in: from the protobuf to a [`Graph`], or to the list of everything that cannot be compiled.
//!
//! Two looks are taken. The first, at the protobuf alone, finds what no shape is needed for: an operator, an input, an
//! attribute, weights that are not constant. The second, at the typed graph that tract makes of it, finds the rest.
//! Both report all they find, so that one run names everything there is to change.

mod constants;
mod element_wise;
mod flow;
mod functions;
mod interface;
mod layers;
mod lower;
mod moves;
mod nodes;
mod operators;
mod pointwise;
mod pooling;
mod reason;
mod report;
mod tensors;
mod tidy;
mod typed;

pub use operators::operators;
pub use reason::Reason;
pub use report::{Label, Problem, Report};

use std::collections::HashSet;

use tract_onnx::pb::{ModelProto, NodeProto};
use tract_onnx::prelude::Framework;

use self::flow::Flow;
use self::report::Problems;
use crate::error::Error;
use crate::graph::Graph;

/// Reads an ONNX model.
///
/// The graph has one node for each ONNX node that computes something. Batch norm arrives as
/// [`Affine`](chococ_plans::op::ClientOp::Affine), `Flatten` and its like as
/// [`Reshape`](chococ_plans::op::ClientOp::Reshape) where the next operator needs the new shape; dropout, identities and
/// transposes that move nothing disappear. A dynamic batch axis is bound to 1, which `notices` then says.
///
/// # Errors
/// [`Error::NotOnnx`] if the bytes do not parse; [`Error::CannotCompile`] with all problems, as [`check`] lists them.
pub fn import(model: &[u8], notices: &mut Vec<String>) -> Result<Graph, Error> {
    let (graph, report) = examine(model, notices)?;
    graph.ok_or(Error::CannotCompile(report))
}

/// Lists everything in an ONNX model that cannot be compiled, each with its node, its reason and a cure.
///
/// # Errors
/// [`Error::NotOnnx`] if the bytes do not parse.
pub fn check(model: &[u8]) -> Result<Report, Error> {
    Ok(examine(model, &mut Vec::new())?.1)
}

fn examine(bytes: &[u8], notices: &mut Vec<String>) -> Result<(Option<Graph>, Report), Error> {
    let mut model = parse(bytes)?;
    let Some(graph) = model.graph.as_mut() else {
        return Err(Error::NotOnnx { reason: "it holds no graph".into() });
    };
    let mut problems = Problems::new(labels(&graph.node));
    if let Some(reason) = interface::check_size(graph) {
        problems.model(reason);
        return Ok((None, problems.report()));
    }
    interface::check(graph, &mut problems, notices);
    let flow = Flow::follow(graph, &mut problems);
    tensors::check(graph, |tensor| flow.used.contains(tensor)).for_each(|reason| problems.model(reason));
    nodes::check(graph, &flow, &mut problems);
    let bounded = constants::are_bounded(graph, &flow, &mut problems);
    // Without a fixed input and all weights there are no shapes to look at, and constants without bound are not made.
    // The second look renames nodes, but still asks for their attributes.
    let source = graph.node.clone();
    let graph = if problems.has_model() || !bounded { None } else { with_shapes(model, &source, &flow, &mut problems) };
    Ok((graph, problems.report()))
}

/// Takes the second look, at shapes.
fn with_shapes(mut model: ModelProto, source: &[NodeProto], flow: &Flow, problems: &mut Problems) -> Option<Graph> {
    typed::prepare(&mut model, flow);
    let failure = match typed::translate(&model) {
        Ok(typed) => return lower::lower(source, &typed, flow, problems).map(tidy::tidy),
        Err(failure) => failure,
    };
    if problems.is_empty() {
        let reason = Reason::Shape { message: failure.message };
        match failure.node {
            Some(index) => problems.node(index, reason),
            None => problems.model(reason),
        }
    } else if typed::cut_before(&mut model, |index| problems.has(index))
        && let Ok(typed) = typed::translate(&model)
    {
        // Refused operators may be unknown to tract as well; what comes before them can still be looked at.
        lower::lower(source, &typed, flow, problems);
    }
    None
}

fn parse(bytes: &[u8]) -> Result<ModelProto, Error> {
    if bytes.is_empty() {
        return Err(Error::NotOnnx { reason: "it is empty".into() });
    }
    let parsed = tract_onnx::onnx().proto_model_for_read(&mut &bytes[..]);
    parsed.map_err(|error| Error::NotOnnx { reason: error.root_cause().to_string() })
}

/// Names the nodes: by name if it has one of its own, or else by first output, or else by index.
fn labels(nodes: &[NodeProto]) -> Vec<Label> {
    let mut taken = HashSet::new();
    let label = |(index, node): (usize, &NodeProto)| {
        let own = [Some(&node.name), node.output.first()].into_iter().flatten();
        let free = own.filter(|name| !name.is_empty()).find(|name| !taken.contains(*name)).cloned();
        let name = free.unwrap_or_else(|| index.to_string());
        taken.insert(name.clone());
        let operator = match node.domain.as_str() {
            "" | "ai.onnx" => node.op_type.clone(),
            domain => format!("{domain}.{}", node.op_type),
        };
        Label { name, operator }
    };
    nodes.iter().enumerate().map(label).collect()
}
