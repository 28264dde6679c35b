//! Cuts the integer graph into stages: linear layers to the server, all between them to the client.
//!
//! Assumes steps in execution order. Makes true: sides alternate, but for linear layers that follow one another
//! directly, each of which is a round trip of its own since its input must be quantised.

use chococ_plans::network::{ClientStep, LinearLayer};

use crate::int_graph::{IntGraph, IntStep};

/// A stage before anything is said of encryption.
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
