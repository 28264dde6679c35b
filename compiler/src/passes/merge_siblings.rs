//! Makes one convolution of those that read the same image.

use chococ_plans::check::meaning::LARGEST_TENSOR;
use chococ_plans::op::{ClientOp, Conv, Linear};
use petgraph::graph::NodeIndex;

use crate::graph::{Graph, Node, Op};

/// Merges convolutions that read one value, where a kernel of one may lie inside that of the other: a value that several
/// need is then encrypted and sent once.
///
/// Assumes nothing. Makes true: of convolutions with one input, none could be a part of another one without making the
/// weights of both [more than twice as many](MOST_GROWTH). Two become one with the output channels of both; the smaller
/// kernel is filled up with zeros, which cost the server what its weights would. A slice behind it gives each reader
/// its own channels, on the client, for nothing.
///
/// It is what the expansion of a fire module is (1x1 beside 3x3), or a residual block that halves its image (3x3 beside a
/// 1x1 on the way around it). Two kernels fit if strides, dilations and image are the same, neither has groups, and the
/// taps of one are taps of the other at the same places.
pub fn merge_siblings(mut graph: Graph) -> Graph {
    while let Some([first, second]) = siblings(&graph) {
        merge(&mut graph, first, second);
    }
    graph.sorted()
}

/// Finds two convolutions that can be merged; the first has the larger kernel.
fn siblings(graph: &Graph) -> Option<[NodeIndex; 2]> {
    let fit = |&first: &NodeIndex, &second: &NodeIndex| {
        let pair = conv(graph, first).zip(conv(graph, second)).filter(|_| first != second);
        pair.is_some_and(|(a, b)| offset(a, b).is_some() && growth_is_bounded(a, b))
    };
    graph.order().into_iter().find_map(|node| {
        let mut readers = graph.consumers(node);
        readers.dedup();
        let pair = |first: &NodeIndex| readers.iter().find(|second| fit(first, second)).map(|second| [*first, *second]);
        readers.iter().find_map(pair)
    })
}

fn conv(graph: &Graph, node: NodeIndex) -> Option<&Conv> {
    match &graph.nodes[node].op {
        Op::Linear { operator: Linear::Conv(conv), .. } if conv.groups == 1 => Some(conv),
        _ => None,
    }
}

/// How many times as many weights two convolutions may have as one: those of a fire module have 1.8 times.
pub const MOST_GROWTH: usize = 2;

fn growth_is_bounded(first: &Conv, second: &Conv) -> bool {
    let [taps, other_taps] = [first, second].map(|conv| conv.kernel[0] * conv.kernel[1]);
    let together = (first.output[0] + second.output[0]) * taps;
    let inputs = first.input[0];
    together <= MOST_GROWTH * (first.output[0] * taps + second.output[0] * other_taps)
        && together.saturating_mul(inputs) <= LARGEST_TENSOR
}

/// Where the taps of a second convolution lie among those of a first, if all of them do.
fn offset(first: &Conv, second: &Conv) -> Option<[usize; 2]> {
    let alike = first.input == second.input
        && first.output[1..] == second.output[1..]
        && first.strides == second.strides
        && (0..2).all(|axis| second.kernel[axis] == 1 || first.dilations[axis] == second.dilations[axis]);
    if !alike {
        return None;
    }
    let along = |axis: usize| {
        let before = first.pads_before[axis].checked_sub(second.pads_before[axis])?;
        let taps = before / first.dilations[axis];
        (before.is_multiple_of(first.dilations[axis]) && taps + second.kernel[axis] <= first.kernel[axis])
            .then_some(taps)
    };
    Some([along(0)?, along(1)?])
}

/// Makes the first convolution do what the second does as well.
fn merge(graph: &mut Graph, first: NodeIndex, second: NodeIndex) {
    let mut name = format!("{}+{}", graph.nodes[first].name, graph.nodes[second].name);
    while graph.nodes.node_weights().any(|node| node.name == name) {
        name.push('+');
    }
    let (whole, part) = (graph.nodes[first].clone(), graph.nodes[second].clone());
    let (
        Op::Linear { operator: Linear::Conv(of_whole), mut weights, mut bias },
        Op::Linear { operator: Linear::Conv(of_part), weights: other_weights, bias: other_bias },
    ) = (whole.op, part.op)
    else {
        unreachable!("both are convolutions")
    };
    let [top, left] = offset(&of_whole, &of_part).expect("they were found to fit");
    let (taps, other_taps) = (of_whole.kernel[0] * of_whole.kernel[1], of_part.kernel[0] * of_part.kernel[1]);
    for plane in other_weights.chunks_exact(other_taps) {
        let mut filled = vec![0.0; taps];
        for (row, numbers) in plane.chunks_exact(of_part.kernel[1]).enumerate() {
            filled[(top + row) * of_whole.kernel[1] + left..][..numbers.len()].copy_from_slice(numbers);
        }
        weights.extend(filled);
    }
    bias.extend(other_bias);
    let channels = [of_whole.output[0], of_part.output[0]];
    let operator = Conv { output: [channels[0] + channels[1], of_whole.output[1], of_whole.output[2]], ..of_whole };
    let shape = operator.output.to_vec();
    let op = Op::Linear { operator: Linear::Conv(operator), weights, bias };
    let producer = graph.producers(first)[0];
    let merged = graph.nodes.add_node(Node { name, op, shape });
    graph.nodes.add_edge(producer, merged, 0);
    // The two go on as slices, under their own names.
    for (node, begin) in [(first, 0), (second, channels[0])] {
        let incoming = graph.nodes.edges_directed(node, petgraph::Direction::Incoming);
        let edges: Vec<_> = incoming.map(|edge| petgraph::visit::EdgeRef::id(&edge)).collect();
        edges.into_iter().for_each(|edge| {
            graph.nodes.remove_edge(edge);
        });
        graph.nodes.add_edge(merged, node, 0);
        graph.nodes[node].op = Op::Client(ClientOp::Slice { axis: 0, begin });
    }
}

#[cfg(test)]
mod tests {
    use petgraph::graph::DiGraph;

    use super::*;

    fn convolution(kernel: usize, pads: usize, outputs: usize, strides: usize) -> Op {
        let size = (7 + 2 * pads - kernel) / strides + 1;
        let operator = Conv {
            input: [2, 7, 7],
            output: [outputs, size, size],
            kernel: [kernel; 2],
            strides: [strides; 2],
            pads_before: [pads; 2],
            dilations: [1, 1],
            groups: 1,
        };
        let count = outputs * 2 * kernel * kernel;
        let weights = (0..count).map(|i| (i as f32 * 0.7 + kernel as f32).sin()).collect();
        Op::Linear { operator: Linear::Conv(operator), weights, bias: (0..outputs).map(|i| i as f32).collect() }
    }

    /// Convolutions of one image, whose outputs are put one behind the other.
    fn fan(operators: Vec<Op>) -> Graph {
        let mut nodes = DiGraph::new();
        let input = nodes.add_node(Node { name: "x".into(), op: Op::Input, shape: vec![2, 7, 7] });
        let mut shape = vec![0, 0, 0];
        let mut branches = Vec::new();
        for (index, op) in operators.into_iter().enumerate() {
            let Op::Linear { operator, .. } = &op else { unreachable!("only convolutions") };
            let own = operator.output_shape();
            shape = vec![shape[0] + own[0], own[1], own[2]];
            branches.push(nodes.add_node(Node { name: format!("conv{index}"), op, shape: own }));
        }
        let concat = Op::Client(ClientOp::Concat { axis: 0 });
        let output = nodes.add_node(Node { name: "y".into(), op: concat, shape });
        for (slot, &branch) in branches.iter().enumerate() {
            nodes.add_edge(input, branch, 0);
            nodes.add_edge(branch, output, slot);
        }
        Graph { nodes, input, output }
    }

    fn linear_nodes(graph: &Graph) -> usize {
        graph.nodes.node_weights().filter(|node| matches!(node.op, Op::Linear { .. })).count()
    }

    #[test]
    fn kernels_inside_others_are_merged_and_the_function_stays() {
        let x: Vec<f32> = (0..98).map(|i| (i as f32 * 0.37).cos()).collect();
        for strides in [1, 2] {
            let operators = vec![
                convolution(1, 0, 1, strides),
                convolution(3, 1, 2, strides),
                convolution(5, 2, 4, strides),
                convolution(3, 1, 1, strides),
            ];
            let graph = fan(operators);
            let before = graph.answer(&x);
            let merged = merge_siblings(graph);
            assert_eq!(linear_nodes(&merged), 1);
            for (found, expected) in merged.answer(&x).iter().zip(before) {
                assert!((found - expected).abs() < 1e-5);
            }
        }
    }

    #[test]
    fn a_small_kernel_of_many_channels_is_not_filled_up() {
        let merged = merge_siblings(fan(vec![convolution(1, 0, 20, 1), convolution(5, 2, 1, 1)]));
        assert_eq!(linear_nodes(&merged), 2);
    }

    #[test]
    fn kernels_that_read_elsewhere_stay_apart() {
        // 1x1 without padding reads the pixels that the middle of a 3x3 with padding reads, not of one without.
        let graph = fan(vec![convolution(3, 0, 2, 1), convolution(5, 1, 2, 1), convolution(1, 0, 2, 1)]);
        let sizes: Vec<usize> = graph.nodes.node_weights().map(|node| node.shape[1]).collect();
        assert_eq!(sizes[1..4], [5, 5, 7]);
        let merged = merge_siblings(graph);
        assert_eq!(linear_nodes(&merged), 2, "3x3 lies inside 5x5; 1x1 makes another image");
    }
}
