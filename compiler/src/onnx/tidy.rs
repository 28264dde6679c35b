//! Puts together again what tract takes apart: several of its nodes for one ONNX node.

use chococ_plans::op::ClientOp;
use petgraph::graph::NodeIndex;

use crate::graph::{Graph, Op};
use crate::passes::fold_batch_norm::absorb_affine;

/// Makes one node of each ONNX node, and folds an added bias into the linear layer before it.
///
/// A Gemm arrives as a product, a scaling and an addition; a batch norm as a scaling and an addition; a clip as a
/// maximum and a minimum. All parts have the ONNX node's name.
pub(super) fn tidy(mut graph: Graph) -> Graph {
    while let Some(merged) = graph.order().into_iter().find(|&node| merges(&mut graph, node)) {
        graph.bypass(merged);
    }
    for node in graph.nodes.node_weights_mut() {
        if node.op == Op::Client(ClientOp::Clip { low: 0.0, high: f32::MAX }) {
            node.op = Op::Client(ClientOp::Relu);
        }
    }
    graph.sorted()
}

/// Merges a node into the one before it, if they belong together; the node then no longer matters.
fn merges(graph: &mut Graph, node: NodeIndex) -> bool {
    let [producer] = graph.producers(node)[..] else { return false };
    if graph.sole_consumer(producer) != Some(node) {
        return false;
    }
    let same_name = graph.nodes[producer].name == graph.nodes[node].name;
    let (first, second) = graph.nodes.index_twice_mut(producer, node);
    match (&mut first.op, &second.op) {
        (
            Op::Client(ClientOp::Clip { low, high }),
            Op::Client(ClientOp::Clip { low: second_low, high: second_high }),
        ) if same_name => {
            // The second applies last: its bounds win where the two contradict each other.
            (*low, *high) = (clamp(*low, *second_low, *second_high), clamp(*high, *second_low, *second_high));
            true
        }
        (before, Op::Client(ClientOp::Affine { scale, shift })) => {
            let is_bias = matches!(before, Op::Linear { .. }) && scale.iter().all(|&factor| factor == 1.0);
            (same_name || is_bias) && absorb_affine(before, scale, shift)
        }
        _ => false,
    }
}

/// Clamps to any two bounds, in the order of the operators: where they contradict each other, the upper one wins.
fn clamp(value: f32, low: f32, high: f32) -> f32 {
    value.max(low).min(high)
}
