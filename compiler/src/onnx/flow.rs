//! What depends on what in the protobuf: which nodes the output needs, which of them depend on the input.

use std::collections::{HashMap, HashSet};

use tract_onnx::pb::{GraphProto, NodeProto};

use super::operators::{Family, family};
use super::reason::Reason;
use super::report::Problems;

/// The dependencies of a graph.
pub(super) struct Flow {
    /// For each node, whether the output needs it.
    pub(super) live: Vec<bool>,
    /// Tensors that depend on the numbers of the network's input, not only on its shape.
    pub(super) variable: HashSet<String>,
    /// Tensors that a live node reads, or that are the output.
    pub(super) used: HashSet<String>,
}

impl Flow {
    /// Follows a graph's tensors and reports those that are read but not there.
    pub(super) fn follow(graph: &GraphProto, problems: &mut Problems) -> Flow {
        let makers: HashMap<&str, usize> = graph
            .node
            .iter()
            .enumerate()
            .flat_map(|(index, node)| made(node).map(move |tensor| (tensor, index)))
            .collect();
        let live = live(graph, &makers);
        let mut flow = Flow { live, variable: HashSet::new(), used: HashSet::new() };
        flow.variable.extend(graph.input.iter().map(|input| input.name.clone()));
        flow.used.extend(graph.output.iter().map(|output| output.name.clone()));
        let mut known: HashSet<&str> = graph.input.iter().map(|input| input.name.as_str()).collect();
        known.extend(graph.initializer.iter().map(|tensor| tensor.name.as_str()));
        for (index, node) in graph.node.iter().enumerate().filter(|(index, _)| flow.live[*index]) {
            for tensor in read(node).filter(|tensor| !known.contains(tensor)) {
                let tensor_name = tensor.to_string();
                problems.node(
                    index,
                    match makers.contains_key(tensor) {
                        true => Reason::OutOfOrder { tensor: tensor_name },
                        false => Reason::MissingTensor { tensor: tensor_name },
                    },
                );
            }
            for tensor in made(node).filter(|tensor| !known.insert(tensor)) {
                problems.node(index, Reason::DefinedTwice { tensor: tensor.into() });
            }
            flow.used.extend(read(node).map(str::to_string));
            if family(&node.op_type) != Family::OfShapes && read(node).any(|tensor| flow.variable.contains(tensor)) {
                flow.variable.extend(made(node).map(str::to_string));
            }
        }
        for output in graph.output.iter().map(|output| &output.name) {
            if !known.contains(output.as_str()) {
                problems.model(Reason::OutputNotMade { output: output.clone() });
            } else if !flow.variable.contains(output) {
                problems.model(Reason::OutputConstant { output: output.clone() });
            }
        }
        flow
    }

    /// Says whether a node computes on numbers that depend on the input.
    pub(super) fn is_variable(&self, node: &NodeProto) -> bool {
        family(&node.op_type) != Family::OfShapes && read(node).any(|tensor| self.variable.contains(tensor))
    }
}

/// Lists what a node reads; ONNX leaves out an optional input by an empty name.
pub(super) fn read(node: &NodeProto) -> impl Iterator<Item = &str> {
    node.input.iter().map(String::as_str).filter(|tensor| !tensor.is_empty())
}

/// Lists what a node defines.
pub(super) fn made(node: &NodeProto) -> impl Iterator<Item = &str> {
    node.output.iter().map(String::as_str).filter(|tensor| !tensor.is_empty())
}

/// Finds the nodes that the output needs.
fn live(graph: &GraphProto, makers: &HashMap<&str, usize>) -> Vec<bool> {
    let mut live = vec![false; graph.node.len()];
    let mut needed: Vec<&str> = graph.output.iter().map(|output| output.name.as_str()).collect();
    while let Some(tensor) = needed.pop() {
        if let Some(&maker) = makers.get(tensor)
            && !std::mem::replace(&mut live[maker], true)
        {
            needed.extend(read(&graph.node[maker]));
        }
    }
    live
}
