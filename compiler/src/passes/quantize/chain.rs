//! The nodes that the output depends on, in execution order.

use chococ_plans::eval;

use crate::graph::{Graph, Node, Op};

/// The way from the input to the output. Every operator reads one tensor, so no more than this matters to the output.
pub(super) struct Chain<'a> {
    pub(super) input_shape: &'a [usize],
    /// Operators only; node i reads value i, where value 0 is the input, and defines value i + 1.
    pub(super) nodes: Vec<&'a Node>,
}

impl<'a> Chain<'a> {
    pub(super) fn of(graph: &'a Graph) -> Chain<'a> {
        let mut nodes = Vec::new();
        let mut at = graph.output;
        while at != graph.input {
            nodes.push(&graph.nodes[at]);
            let [producer] = graph.producers(at)[..] else { unreachable!("every operator reads one tensor") };
            at = producer;
        }
        nodes.reverse();
        Chain { input_shape: &graph.nodes[graph.input].shape, nodes }
    }

    /// Shape of what node `index` reads.
    pub(super) fn shape_before(&self, index: usize) -> &'a [usize] {
        if index == 0 { self.input_shape } else { &self.nodes[index - 1].shape }
    }

    /// Evaluates the nodes from `first` on in floats; `observe` sees the index and the value of each.
    pub(super) fn run(&self, first: usize, x: Vec<f32>, mut observe: impl FnMut(usize, &[f32])) -> Vec<f32> {
        let mut value = x;
        for (index, node) in self.nodes.iter().enumerate().skip(first) {
            value = match &node.op {
                Op::Input => unreachable!("the input is not among the operators"),
                Op::Linear { operator, weights, bias } => eval::linear_floats(operator, weights, bias, &value),
                Op::Client(op) => eval::client(op, self.shape_before(index), &node.shape, &value),
            };
            observe(index, &value);
        }
        value
    }
}
