//! Writes the plan: stages with their choices, parameters gathered into key sets.
//!
//! Assumes a choice for every server stage. Makes true: equal parameters share one key set, with exactly the Galois
//! keys that its stages use; the plan names its weights by their hash.

use std::collections::BTreeSet;

use chococ_plans::file::sha256;
use chococ_plans::params::Parameters;
use chococ_plans::plan::{FORMAT_VERSION, FileId, KeySet, Plan, Quantization, RunnerUp, Security, ServerStage, Stage};
use chococ_plans::weights::{FloatWeights, Weights};

use crate::int_graph::IntGraph;
use crate::passes::choose_packing::Choice;
use crate::passes::split_stages::Part;

/// What a plan records besides its stages.
#[derive(Clone, Debug)]
pub struct Origin {
    /// The model's file.
    pub model: FileId,
    /// Name of the weights file.
    pub weights_file: String,
    /// How the network was quantised.
    pub quantization: Quantization,
}

/// Writes the plan and the bytes of its weights file.
pub fn lower(
    graph: &IntGraph,
    parts: Vec<Part>,
    choices: Vec<(Choice, Option<RunnerUp>)>,
    origin: Origin,
) -> (Plan, Vec<u8>) {
    let mut key_sets: Vec<(KeySet, BTreeSet<u64>)> = Vec::new();
    let mut choices = choices.into_iter();
    let mut stage = |part| match part {
        Part::Client(steps) => Stage::Client(steps),
        Part::Server(layer) => {
            let (choice, runner_up) = choices.next().expect("one choice for each server stage");
            let Parameters { keys, stage: parameters } = choice.parameters;
            let known = key_sets.iter().position(|(set, _)| set.parameters == keys);
            let key_set = known.unwrap_or_else(|| {
                key_sets.push((KeySet { parameters: keys, galois: Vec::new() }, BTreeSet::new()));
                key_sets.len() - 1
            });
            key_sets[key_set].1.extend(choice.galois);
            let Choice { packing, budget, cost, .. } = choice;
            Stage::Server(ServerStage { layer, key_set, parameters, packing, budget, cost, runner_up })
        }
    };
    let stages = parts.into_iter().map(&mut stage).collect();
    let key_sets = key_sets.into_iter().map(|(set, galois)| KeySet { galois: galois.into_iter().collect(), ..set });
    let floats = graph
        .float_weights
        .iter()
        .map(|(name, (weights, bias))| (name.clone(), FloatWeights { weights: weights.clone(), bias: bias.clone() }));
    let weights = Weights { integers: graph.weights.clone(), floats: floats.collect() }.to_bytes();
    let plan = Plan {
        format_version: FORMAT_VERSION,
        model: origin.model,
        weights: FileId { file: origin.weights_file, sha256: sha256(&weights) },
        quantization: origin.quantization,
        security: Security::stated(),
        input_shape: graph.input_shape.clone(),
        output: graph.output,
        key_sets: key_sets.collect(),
        stages,
    };
    (plan, weights)
}
