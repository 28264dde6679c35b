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
    /// For each node, whether the output needs it and it computes on numbers that depend on the input.
    pub(super) variable_nodes: Vec<bool>,
    /// Tensors that depend on the numbers of the network's input, not only on its shape.
    pub(super) variable: HashSet<String>,
    /// Tensors that a live node reads, or that are the output.
    pub(super) used: HashSet<String>,
}

impl Flow {
    /// Follows a graph's tensors and reports those that are read but not there.
    pub(super) fn follow(graph: &GraphProto, problems: &mut Problems) -> Flow {
        let makers = makers(graph, problems);
        let live = live(graph, &makers);
        let variable_nodes = vec![false; live.len()];
        let mut flow = Flow { live, variable_nodes, variable: HashSet::new(), used: HashSet::new() };
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
            known.extend(made(node));
            flow.used.extend(read(node).map(str::to_string));
            if family(&node.op_type) != Family::OfShapes && read(node).any(|tensor| flow.variable.contains(tensor)) {
                flow.variable_nodes[index] = true;
                flow.variable.extend(made(node).map(str::to_string));
            }
        }
        for output in graph.output.iter().map(|output| &output.name) {
            if !known.contains(output.as_str()) {
                problems.model(Reason::OutputNotMade { output: output.clone() });
            } else if !flow.variable.contains(output) && problems.is_empty() {
                problems.model(Reason::OutputConstant { output: output.clone() });
            }
        }
        flow
    }
}

/// Finds which node defines which tensor; the first, where there are several, and that is reported.
fn makers<'a>(graph: &'a GraphProto, problems: &mut Problems) -> HashMap<&'a str, usize> {
    let mut makers = HashMap::new();
    for (index, node) in graph.node.iter().enumerate() {
        for tensor in made(node) {
            if *makers.entry(tensor).or_insert(index) != index {
                problems.node(index, Reason::DefinedTwice { tensor: tensor.into() });
            }
        }
    }
    makers
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
