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
    let Some(reader) = graph.sole_consumer(node) else { return false };
    let Op::Linear { operator: Linear::Conv(conv), .. } = &mut graph.nodes[reader].op else { return false };
    if conv.input[0] != image[0] {
        return false;
    }
    conv.input = image;
    conv.pads_before = [conv.pads_before[0] + top, conv.pads_before[1] + left];
    true
}
