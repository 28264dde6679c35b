//! The network as a list of steps in execution order, and the values between them.

use std::borrow::Cow;

use chococ_plans::eval::{self, Operand};

use crate::graph::{Graph, Node, Op};

/// A network's operators in execution order.
pub(super) struct Walk<'a> {
    /// Operators only; node i defines value i + 1, and value 0 is the input.
    pub(super) nodes: Vec<&'a Node>,
    /// The values that each node reads, in its order.
    pub(super) reads: Vec<Vec<usize>>,
    /// The value that is the answer.
    pub(super) output: usize,
    input_shape: &'a [usize],
    /// For each value, the last node that reads it; as many as there are nodes, if it is the answer.
    last_reader: Vec<usize>,
}

/// Values of one input of the network, by number: those that a later node still reads.
pub(super) type Live<'a> = Vec<Option<Cow<'a, [f32]>>>;

impl<'a> Walk<'a> {
    pub(super) fn of(graph: &'a Graph) -> Walk<'a> {
        let order: Vec<_> = graph.order().into_iter().filter(|&node| node != graph.input).collect();
        let mut value = vec![0; graph.nodes.node_count()];
        order.iter().enumerate().for_each(|(place, node)| value[node.index()] = place + 1);
        let reads = |&node| graph.producers(node).into_iter().map(|producer| value[producer.index()]).collect();
        let reads: Vec<Vec<usize>> = order.iter().map(reads).collect();
        let mut last_reader = vec![0; order.len() + 1];
        for (node, reads) in reads.iter().enumerate() {
            reads.iter().for_each(|&value| last_reader[value] = node);
        }
        let output = value[graph.output.index()];
        last_reader[output] = order.len();
        let nodes = order.into_iter().map(|node| &graph.nodes[node]).collect();
        Walk { nodes, reads, output, input_shape: &graph.nodes[graph.input].shape, last_reader }
    }

    /// Shape of a value.
    pub(super) fn shape(&self, value: usize) -> &'a [usize] {
        if value == 0 { self.input_shape } else { &self.nodes[value - 1].shape }
    }

    /// Defines what node `index` defines, and forgets what no node behind it reads.
    pub(super) fn define(&self, index: usize, value: Vec<f32>, live: &mut Live<'_>) {
        live[index + 1] = Some(Cow::Owned(value));
        for &read in self.reads[index].iter().filter(|&&read| self.last_reader[read] <= index) {
            live[read] = None;
        }
    }

    /// Computes node `index` in floats.
    pub(super) fn step(&self, index: usize, live: &Live<'_>) -> Vec<f32> {
        let reads = self.reads[index].iter().map(|&value| Operand {
            shape: self.shape(value),
            numbers: live[value].as_deref().expect("a value is kept until its last reader"),
        });
        let operands: Vec<Operand<'_>> = reads.collect();
        match &self.nodes[index].op {
            Op::Input => unreachable!("the input is not among the operators"),
            Op::Linear { operator, weights, bias } => eval::linear_floats(operator, weights, bias, operands[0].numbers),
            Op::Client(op) => eval::client(op, &operands, &self.nodes[index].shape),
        }
    }

    /// Computes the nodes from `first` on in floats, and returns the answer; `observe` sees the index and the value of
    /// each.
    pub(super) fn finish(&self, first: usize, mut live: Live<'_>, mut observe: impl FnMut(usize, &[f32])) -> Vec<f32> {
        for index in first..self.nodes.len() {
            let value = self.step(index, &live);
            observe(index, &value);
            self.define(index, value, &mut live);
        }
        live[self.output].take().expect("the answer is kept").into_owned()
    }

    /// The values before the first node.
    pub(super) fn start<'x>(&self, input: Cow<'x, [f32]>) -> Live<'x> {
        let mut live = vec![None; self.nodes.len() + 1];
        live[0] = Some(input);
        live
    }
}
