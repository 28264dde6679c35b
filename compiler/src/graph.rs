//! The network as imported: operators, shapes, float weights, ONNX names.

use std::collections::BTreeSet;

use chococ_plans::eval::{self, Operand};
use chococ_plans::op::{ClientOp, Linear};
use petgraph::Direction::{Incoming, Outgoing};
use petgraph::graph::{DiGraph, NodeIndex};
use petgraph::visit::EdgeRef;

/// A float network with one input and one output, for one image at a time.
///
/// Every node but the input reads what its incoming edges bring; an edge's weight says which input of its consumer it
/// is. The graph has no cycle and no node that the output does not need.
#[derive(Clone, Debug)]
pub struct Graph {
    /// The operators.
    pub nodes: DiGraph<Node, usize>,
    /// The one node that is [`Op::Input`].
    pub input: NodeIndex,
    /// The node whose value is the network's answer.
    pub output: NodeIndex,
}

/// One operator and the tensor that it defines.
#[derive(Clone, Debug, PartialEq)]
pub struct Node {
    /// The ONNX node it came from.
    pub name: String,
    /// What it computes.
    pub op: Op,
    /// Shape of its value, without the batch axis.
    pub shape: Vec<usize>,
}

/// What a node computes.
#[derive(Clone, Debug, PartialEq)]
pub enum Op {
    /// Nothing: the value is the network's input.
    Input,
    /// A linear layer, with its weights.
    Linear {
        /// Its shapes.
        operator: Linear,
        /// Weights, in the order of [`Linear::weight_shape`].
        weights: Vec<f32>,
        /// One number an output channel.
        bias: Vec<f32>,
    },
    /// An operator without weights worth encrypting for.
    Client(ClientOp),
}

impl Op {
    /// ONNX's name for it.
    pub fn kind(&self) -> &'static str {
        match self {
            Op::Input => "Input",
            Op::Linear { operator, .. } => operator.kind(),
            Op::Client(op) => op.kind(),
        }
    }
}

impl Graph {
    /// Counts the results of all linear layers: the client decrypts that many coefficients, or more.
    pub fn results(&self) -> usize {
        let linear = |node: NodeIndex| match &self.nodes[node].op {
            Op::Linear { operator, .. } => operator.output_shape().iter().product(),
            Op::Input | Op::Client(_) => 0,
        };
        self.order().into_iter().map(linear).sum()
    }

    /// Lists the nodes, each after those it reads; of several that could come next, the lowest index does.
    ///
    /// # Panics
    /// If the graph has a cycle.
    pub fn order(&self) -> Vec<NodeIndex> {
        let mut waits_for: Vec<usize> =
            self.nodes.node_indices().map(|node| self.nodes.edges_directed(node, Incoming).count()).collect();
        let mut ready: BTreeSet<NodeIndex> =
            self.nodes.node_indices().filter(|node| waits_for[node.index()] == 0).collect();
        let mut order = Vec::with_capacity(self.nodes.node_count());
        while let Some(node) = ready.pop_first() {
            order.push(node);
            for edge in self.nodes.edges_directed(node, Outgoing) {
                let waits = &mut waits_for[edge.target().index()];
                *waits -= 1;
                if *waits == 0 {
                    ready.insert(edge.target());
                }
            }
        }
        assert_eq!(order.len(), self.nodes.node_count(), "a network has no cycle");
        order
    }

    /// Lists what a node reads, in the order of its inputs.
    pub fn producers(&self, node: NodeIndex) -> Vec<NodeIndex> {
        let mut inputs: Vec<(usize, NodeIndex)> =
            self.nodes.edges_directed(node, Incoming).map(|edge| (*edge.weight(), edge.source())).collect();
        inputs.sort_unstable();
        inputs.into_iter().map(|(_, producer)| producer).collect()
    }

    /// Lists who reads a node's value, by index; a node that reads it twice is listed twice.
    pub fn consumers(&self, node: NodeIndex) -> Vec<NodeIndex> {
        let mut consumers: Vec<NodeIndex> = self.nodes.neighbors_directed(node, Outgoing).collect();
        consumers.sort_unstable();
        consumers
    }

    /// Finds the one reader of a node's value; none if there are several, or if the value is also the answer.
    pub fn sole_consumer(&self, node: NodeIndex) -> Option<NodeIndex> {
        match self.consumers(node)[..] {
            [consumer] if node != self.output => Some(consumer),
            _ => None,
        }
    }

    /// Removes a node that reads one value of its own shape; its consumers read that value instead.
    ///
    /// Renumbers, as [`Graph::skip`].
    ///
    /// # Panics
    /// If the node is the input, or does not read exactly one value of its own shape.
    pub fn bypass(&mut self, node: NodeIndex) {
        let [producer] = self.producers(node)[..] else { panic!("only a node with one input can be bypassed") };
        assert_eq!(self.nodes[producer].shape, self.nodes[node].shape, "a bypass keeps the shape");
        self.skip(node);
    }

    /// Removes a node that reads one value, of whatever shape; its consumers, which must be ready for it, read that
    /// value instead.
    ///
    /// Renumbers: the last node takes the index that becomes free. [`Graph::sorted`] puts indices back in order.
    ///
    /// # Panics
    /// If the node is the input, or does not read exactly one value.
    pub fn skip(&mut self, node: NodeIndex) {
        let [producer] = self.producers(node)[..] else { panic!("only a node with one input can be skipped") };
        let readers: Vec<(NodeIndex, usize)> =
            self.nodes.edges_directed(node, Outgoing).map(|edge| (edge.target(), *edge.weight())).collect();
        for (reader, slot) in readers {
            self.nodes.add_edge(producer, reader, slot);
        }
        if self.output == node {
            self.output = producer;
        }
        let last = NodeIndex::new(self.nodes.node_count() - 1);
        self.nodes.remove_node(node);
        for end in [&mut self.input, &mut self.output] {
            if *end == last {
                *end = node;
            }
        }
    }

    /// Renumbers the nodes in the order of [`Graph::order`].
    pub fn sorted(self) -> Graph {
        let order = self.order();
        let mut place = vec![NodeIndex::new(0); order.len()];
        for (position, node) in order.iter().enumerate() {
            place[node.index()] = NodeIndex::new(position);
        }
        let (input, output) = (place[self.input.index()], place[self.output.index()]);
        let (old_nodes, old_edges) = self.nodes.into_nodes_edges();
        let mut old_nodes: Vec<Option<Node>> = old_nodes.into_iter().map(|node| Some(node.weight)).collect();
        let mut nodes = DiGraph::with_capacity(old_nodes.len(), old_edges.len());
        for node in order {
            nodes.add_node(old_nodes[node.index()].take().expect("an order lists each node once"));
        }
        let mut edges: Vec<_> = old_edges
            .into_iter()
            .map(|edge| (place[edge.target().index()], edge.weight, place[edge.source().index()]))
            .collect();
        edges.sort_unstable();
        for (reader, slot, producer) in edges {
            nodes.add_edge(producer, reader, slot);
        }
        Graph { nodes, input, output }
    }

    /// Computes every node's value in single precision, by node index; the answer is that of [`Graph::output`].
    ///
    /// # Panics
    /// If `x` does not have as many numbers as the input's shape says.
    pub fn eval(&self, x: &[f32]) -> Vec<Vec<f32>> {
        let elements: usize = self.nodes[self.input].shape.iter().product();
        assert_eq!(x.len(), elements, "one number for each element of the input");
        let mut values = vec![Vec::new(); self.nodes.node_count()];
        for index in self.order() {
            let node = &self.nodes[index];
            let producers = self.producers(index);
            values[index.index()] = match &node.op {
                Op::Input => x.to_vec(),
                Op::Linear { operator, weights, bias } => {
                    let producer = producers.first().expect("a linear layer reads a value");
                    eval::linear_floats(operator, weights, bias, &values[producer.index()])
                }
                Op::Client(op) => {
                    let operand = |&producer: &NodeIndex| Operand {
                        shape: &self.nodes[producer].shape,
                        numbers: &values[producer.index()],
                    };
                    eval::client(op, &producers.iter().map(operand).collect::<Vec<_>>(), &node.shape)
                }
            };
        }
        values
    }

    /// Computes the network's answer in single precision.
    ///
    /// # Panics
    /// As [`Graph::eval`].
    pub fn answer(&self, x: &[f32]) -> Vec<f32> {
        self.eval(x).swap_remove(self.output.index())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn relu(name: &str) -> Node {
        Node { name: name.into(), op: Op::Client(ClientOp::Relu), shape: vec![2] }
    }

    /// input -> a -> b -> c, inserted backwards.
    fn chain() -> Graph {
        let mut nodes = DiGraph::new();
        let [c, b, a] = ["c", "b", "a"].map(|name| nodes.add_node(relu(name)));
        let input = nodes.add_node(Node { name: "x".into(), op: Op::Input, shape: vec![2] });
        for (producer, consumer) in [(input, a), (a, b), (b, c)] {
            nodes.add_edge(producer, consumer, 0);
        }
        Graph { nodes, input, output: c }
    }

    fn names(graph: &Graph) -> Vec<&str> {
        graph.order().into_iter().map(|node| graph.nodes[node].name.as_str()).collect()
    }

    #[test]
    fn order_follows_edges() {
        assert_eq!(names(&chain()), ["x", "a", "b", "c"]);
    }

    #[test]
    fn sorted_numbers_in_order() {
        let graph = chain().sorted();
        assert_eq!(graph.order(), (0..4).map(NodeIndex::new).collect::<Vec<_>>());
        assert_eq!((graph.input.index(), graph.output.index()), (0, 3));
        assert_eq!(names(&graph), ["x", "a", "b", "c"]);
    }

    #[test]
    fn bypass_keeps_the_ends_right() {
        let mut graph = chain();
        graph.bypass(graph.output);
        assert_eq!(names(&graph), ["x", "a", "b"]);
        assert_eq!(graph.nodes[graph.output].name, "b");
        assert_eq!(graph.nodes[graph.input].name, "x");
        assert_eq!(graph.answer(&[-1.0, 2.0]), [0.0, 2.0]);
    }

    #[test]
    fn the_answer_counts_as_a_reader() {
        let mut graph = chain();
        let b = graph.producers(graph.output)[0];
        assert_eq!(graph.sole_consumer(b), Some(graph.output));
        graph.output = b;
        assert_eq!(graph.sole_consumer(b), None);
    }
}
