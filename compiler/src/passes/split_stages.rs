//! Cuts the integer graph into stages: linear layers to the server, all between them to the client.
//!
//! Assumes steps in execution order. Makes true: sides alternate, but for linear layers that follow one another
//! directly, each of which is a round trip of its own since its input must be quantised.

use chococ_plans::network::{ClientStep, LinearLayer};

use crate::int_graph::{IntGraph, IntStep};

/// A stage before anything is said of encryption.
#[expect(clippy::large_enum_variant, reason = "there is a handful of stages")]
#[derive(Clone, Debug, PartialEq)]
pub enum Part {
    /// In the clear.
    Client(Vec<ClientStep>),
    /// Encrypted.
    Server(LinearLayer),
}

/// Cuts the graph into stages.
pub fn split_stages(graph: &IntGraph) -> Vec<Part> {
    let mut parts = Vec::new();
    for step in &graph.steps {
        match (step, parts.last_mut()) {
            (IntStep::Linear(layer), _) => parts.push(Part::Server(layer.clone())),
            (IntStep::Client(step), Some(Part::Client(steps))) => steps.push(step.clone()),
            (IntStep::Client(step), _) => parts.push(Part::Client(vec![step.clone()])),
        }
    }
    parts
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use chococ_plans::network::{Quantizer, ValueId};
    use chococ_plans::op::{ClientOp, Dense, Linear};

    use super::*;

    fn relu(at: usize) -> IntStep {
        IntStep::Client(ClientStep {
            name: format!("relu{at}"),
            op: ClientOp::Relu,
            inputs: vec![ValueId(at)],
            output: ValueId(at + 1),
            shape: vec![2],
        })
    }

    fn dense(at: usize) -> IntStep {
        IntStep::Linear(LinearLayer {
            name: format!("fc{at}"),
            operator: Linear::Dense(Dense { inputs: 2, outputs: 2 }),
            input: ValueId(at),
            output: ValueId(at + 1),
            quantizer: Quantizer { scale: 1.0, low: 0, high: 15 },
            weight_bits: 4,
            output_scales: vec![1.0; 2],
            output_ranges: vec![(0, 9); 2],
            weight_energy: 9,
        })
    }

    #[test]
    fn each_layer_is_a_stage_and_what_lies_between_is_one() {
        let steps = vec![relu(0), relu(1), dense(2), dense(3), relu(4), relu(5), dense(6)];
        let (weights, float_weights) = (BTreeMap::new(), BTreeMap::new());
        let graph = IntGraph { input_shape: vec![2], output: ValueId(7), steps, weights, float_weights };
        let sides: Vec<String> = split_stages(&graph)
            .iter()
            .map(|part| match part {
                Part::Client(steps) => format!("client {}", steps.len()),
                Part::Server(layer) => format!("server {}", layer.name),
            })
            .collect();
        assert_eq!(sides, ["client 2", "server fc2", "server fc3", "client 2", "server fc6"]);
    }
}
