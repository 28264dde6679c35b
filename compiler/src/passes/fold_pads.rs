//! Lets convolutions pad for themselves.

use chococ_plans::op::{ClientOp, Linear};
use petgraph::graph::NodeIndex;

use crate::graph::{Graph, Op};

/// Removes every [`Pad`](ClientOp::Pad) with zeros whose only reader is a convolution.
///
/// Assumes nothing. Makes true: no convolution reads an image with zeros around it that it could leave out. Zeros that a
/// convolution makes up cost nothing; those of an image are encrypted and sent.
pub fn fold_pads(mut graph: Graph) -> Graph {
    while let Some(folded) = graph.order().into_iter().find(|&node| folds(&mut graph, node)) {
        graph.skip(folded);
    }
    graph.sorted()
}

/// Gives the zeros of a padding to the convolution behind it; the padding then no longer matters.
fn folds(graph: &mut Graph, node: NodeIndex) -> bool {
    let Op::Client(ClientOp::Pad { before, value: 0.0 }) = &graph.nodes[node].op else { return false };
    let (&[0, top, left], &[producer]) = (&before[..], &graph.producers(node)[..]) else { return false };
    let Ok(image) = <[usize; 3]>::try_from(&graph.nodes[producer].shape[..]) else { return false };
    let padded = &graph.nodes[node].shape;
    if padded.len() != 3 || (0..3).any(|axis| before[axis] + image[axis] > padded[axis]) {
        return false;
    }
    let Some(reader) = graph.sole_consumer(node) else { return false };
    let Op::Linear { operator: Linear::Conv(conv), .. } = &mut graph.nodes[reader].op else { return false };
    if conv.input[0] != image[0] {
        return false;
    }
    conv.input = image;
    conv.pads_before = [conv.pads_before[0] + top, conv.pads_before[1] + left];
    true
}

#[cfg(test)]
mod tests {
    use chococ_plans::op::Conv;
    use petgraph::graph::DiGraph;

    use super::*;
    use crate::graph::Node;

    /// Two channels of 4 x 5, padded to `padded` with `before` in front, under a 3 x 3 kernel that pads by one more.
    fn padded(before: [usize; 3], padded: [usize; 3], value: f32) -> Graph {
        let conv = Conv {
            input: padded,
            output: [2, padded[1], padded[2]],
            kernel: [3, 3],
            strides: [1, 1],
            pads_before: [1, 1],
            dilations: [1, 1],
            groups: 1,
        };
        let weights = (0..2 * padded[0] * 9).map(|i| (i as f32 * 0.7).sin()).collect();
        let mut nodes = DiGraph::new();
        let input = nodes.add_node(Node { name: "x".into(), op: Op::Input, shape: vec![2, 4, 5] });
        let pad = Op::Client(ClientOp::Pad { before: before.to_vec(), value });
        let pad = nodes.add_node(Node { name: "pad".into(), op: pad, shape: padded.to_vec() });
        let shape = conv.output.to_vec();
        let op = Op::Linear { operator: Linear::Conv(conv), weights, bias: vec![0.5, -0.5] };
        let output = nodes.add_node(Node { name: "y".into(), op, shape });
        nodes.add_edge(input, pad, 0);
        nodes.add_edge(pad, output, 0);
        Graph { nodes, input, output }
    }

    #[test]
    fn folding_changes_no_answer() {
        let x: Vec<f32> = (0..40).map(|i| (i as f32 * 0.37).cos()).collect();
        let even = ([0, 1, 1], [2, 6, 7], 0.0, true);
        let uneven = ([0, 2, 0], [2, 6, 8], 0.0, true);
        let channels = ([1, 1, 1], [4, 6, 7], 0.0, false);
        let ones = ([0, 1, 1], [2, 6, 7], 1.0, false);
        for (before, shape, value, folds) in [even, uneven, channels, ones] {
            let graph = padded(before, shape, value);
            let expected = graph.answer(&x);
            let folded = fold_pads(graph);
            assert_eq!(folded.nodes.node_count(), if folds { 2 } else { 3 }, "{before:?} in {shape:?}");
            assert_eq!(folded.answer(&x), expected, "{before:?} in {shape:?}");
        }
    }
}
