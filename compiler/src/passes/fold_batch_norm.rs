//! Folds batch norms, and other scalings of whole channels, into the linear layers beside them.

use chococ_plans::op::{ClientOp, Conv, Linear};
use petgraph::graph::NodeIndex;

use crate::graph::{Graph, Op};

/// Removes every [`Affine`](ClientOp::Affine) that a neighbour can take in.
///
/// Assumes nothing. Makes true: no affine follows a linear layer, or another affine, as its only reader; none is the
/// identity; none has as its only reader a dense layer, or a convolution that adds no padding. An affine that remains
/// costs the client one product and one sum a value, and nothing on the wire.
///
/// * Linear, then affine: y = s (W x + b) + h = (s W) x + (s b + h), an output channel at a time.
/// * Affine, then linear: W (s x + h) + b = (W s) x + (b + W h), an input channel at a time. Padding must be absent, since
///   a padded zero stands for the affine's result, not for its input; unless h is 0, when zero stays zero.
///
/// The first is preferred: it holds for any padding. An affine after a Relu can only go forward, and one before a
/// Reshape stays: its channels are no longer those of the dense layer's input.
///
/// The function is unchanged but for rounding. Products are computed in double precision.
///
/// Source: Jacob et al., "Quantization and Training of Neural Networks for Efficient Integer-Arithmetic-Only
/// Inference", §3.2, for the first.
pub fn fold_batch_norm(mut graph: Graph) -> Graph {
    loop {
        let order = graph.order();
        let folded = order.iter().find(|&&node| folds_back(&mut graph, node));
        let Some(&folded) = folded.or_else(|| order.iter().find(|&&node| folds_forward(&mut graph, node))) else {
            return graph.sorted();
        };
        graph.bypass(folded);
    }
}

/// Folds an affine into the node before it; the affine then no longer matters.
fn folds_back(graph: &mut Graph, node: NodeIndex) -> bool {
    let Op::Client(ClientOp::Affine { scale, shift }) = &graph.nodes[node].op else { return false };
    if scale.iter().all(|&factor| factor == 1.0) && shift.iter().all(|&summand| summand == 0.0) {
        return true;
    }
    let [producer] = graph.producers(node)[..] else { return false };
    if graph.sole_consumer(producer) != Some(node) {
        return false;
    }
    let (before, affine) = graph.nodes.index_twice_mut(producer, node);
    let Op::Client(ClientOp::Affine { scale, shift }) = &affine.op else { return false };
    absorb_affine(&mut before.op, scale, shift)
}

/// Makes an operator do what an affine after it does; false, and no change, if it is neither linear nor an affine.
pub(crate) fn absorb_affine(before: &mut Op, scale: &[f32], shift: &[f32]) -> bool {
    match before {
        Op::Linear { weights, bias, .. } => {
            let per_channel = (weights.len() / bias.len().max(1)).max(1);
            for (channel, &factor) in weights.chunks_mut(per_channel).zip(scale) {
                channel.iter_mut().for_each(|weight| *weight *= factor);
            }
            apply(bias, scale, shift);
            true
        }
        Op::Client(ClientOp::Affine { scale: first_scale, shift: first_shift }) => {
            apply(first_shift, scale, shift);
            first_scale.iter_mut().zip(scale).for_each(|(first, factor)| *first *= factor);
            true
        }
        Op::Client(_) | Op::Input => false,
    }
}

/// Replaces each number by scale * number + shift.
fn apply(numbers: &mut [f32], scale: &[f32], shift: &[f32]) {
    for ((number, &factor), &summand) in numbers.iter_mut().zip(scale).zip(shift) {
        *number = (f64::from(*number) * f64::from(factor) + f64::from(summand)) as f32;
    }
}

/// Folds an affine into the linear layer after it; the affine then no longer matters.
fn folds_forward(graph: &mut Graph, node: NodeIndex) -> bool {
    let Op::Client(ClientOp::Affine { .. }) = &graph.nodes[node].op else { return false };
    let Some(reader) = graph.sole_consumer(node) else { return false };
    let (affine, reader) = graph.nodes.index_twice_mut(node, reader);
    let Op::Client(ClientOp::Affine { scale, shift }) = &affine.op else { return false };
    let Op::Linear { operator, weights, bias } = &mut reader.op else { return false };
    let (groups, pads) = match operator {
        Linear::Dense(_) => (1, false),
        Linear::Conv(conv) => (conv.groups, pads(conv)),
    };
    if pads && shift.iter().any(|&summand| summand != 0.0) {
        return false;
    }
    // Weights are (outputs, inputs of the group, taps).
    let inputs_of_group = scale.len() / groups;
    let outputs_of_group = bias.len() / groups;
    let taps = weights.len() / (bias.len() * inputs_of_group);
    for (output, bias) in bias.iter_mut().enumerate() {
        let first_input = output / outputs_of_group * inputs_of_group;
        let mut sum = f64::from(*bias);
        for input in 0..inputs_of_group {
            let (factor, summand) = (scale[first_input + input], shift[first_input + input]);
            for weight in &mut weights[(output * inputs_of_group + input) * taps..][..taps] {
                sum += f64::from(*weight) * f64::from(summand);
                *weight *= factor;
            }
        }
        *bias = sum as f32;
    }
    true
}

/// Says whether a window of a convolution reads zeros outside the image.
fn pads(conv: &Conv) -> bool {
    (0..2).any(|axis| {
        let last_start = (conv.output[axis + 1] - 1) * conv.strides[axis];
        let field = (conv.kernel[axis] - 1) * conv.dilations[axis] + 1;
        conv.pads_before[axis] > 0 || last_start + field > conv.input[axis + 1]
    })
}
