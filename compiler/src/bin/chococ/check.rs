//! `chococ check`: every node that cannot be compiled, all in one run.
//!
//! Import finds what is not supported. A layer can be supported and yet too large for any packing; its shapes tell,
//! so it is found here. Whether a noise budget is left depends on options and weights: that is for `compile` to say.

use std::fmt;
use std::path::PathBuf;

use chococ_compiler::Error;
use chococ_compiler::graph::{Graph, Op};
use chococ_compiler::onnx::{self, Problem};
use chococ_plans::check::PlanError;
use chococ_plans::noise::COEFFICIENTS;
use chococ_plans::op::Linear;
use chococ_plans::packing::layout::Layout;
use chococ_plans::packing::misfit::Misfit;
use chococ_plans::packing::windows::Windows;
use chococ_plans::packing::{CoefficientPacking, Packing};
use chococ_plans::security::ring_degrees;
use petgraph::graph::NodeIndex;

use crate::failure::{EXIT_CODES, Failure, read_model};
use crate::print;

/// What to check.
#[derive(clap::Args)]
#[command(after_help = EXIT_CODES)]
pub struct Arguments {
    /// The network, an ONNX file
    model: PathBuf,
}

/// All that keeps a network from being compiled.
#[derive(Debug)]
pub struct Refusals {
    /// Nodes of the ONNX graph.
    nodes: usize,
    /// In the order of the nodes; what concerns the model as a whole comes first.
    refusals: Vec<Refusal>,
}

/// One thing that keeps a network from being compiled.
#[derive(Debug)]
enum Refusal {
    /// What import does not support.
    Unsupported(Problem),
    /// More results than a plan can have.
    TooMany(PlanError),
    /// A linear layer that has no layout.
    TooLarge {
        /// The ONNX node.
        node: String,
        /// ONNX's name of its operator.
        kind: &'static str,
        /// By how much.
        misfit: Misfit,
    },
}

pub fn run(arguments: &Arguments) -> Result<(), Failure> {
    let path = &arguments.model;
    let model = read_model(path)?;
    let failed = |error: Error| Failure::Compile { path: path.clone(), error };
    let report = onnx::check(&model).map_err(failed)?;
    let nodes = report.nodes;
    let refusals: Vec<Refusal> = match report.compiles() {
        true => too_large(&onnx::import(&model, &mut Vec::new()).map_err(failed)?),
        false => report.problems.into_iter().map(Refusal::Unsupported).collect(),
    };
    match refusals.is_empty() {
        true => print(&format!("{}: all {nodes} nodes can be compiled\n", path.display())),
        false => Err(Failure::Check { path: path.clone(), refusals: Refusals { nodes, refusals } }),
    }
}

/// Lists the layers that no packing fits, after what is too much for all of them together.
fn too_large(graph: &Graph) -> Vec<Refusal> {
    let refusal = |index: NodeIndex| {
        let node = &graph.nodes[index];
        match &node.op {
            Op::Linear { operator, .. } => {
                let kind = operator.kind();
                misfit(operator).map(|misfit| Refusal::TooLarge { node: node.name.clone(), kind, misfit })
            }
            Op::Input | Op::Client(_) => None,
        }
    };
    let found = graph.results();
    let together = (found > COEFFICIENTS).then_some(Refusal::TooMany(PlanError::TooLarge { found }));
    together.into_iter().chain(graph.order().into_iter().filter_map(refusal)).collect()
}

/// Says why a layer has no layout at all, if so: of the largest ring degree, which comes nearest.
///
/// The smallest tiles by themselves fit into a ciphertext wherever anything does. They take the most products, though:
/// where those are too many, larger tiles, several channels a ciphertext and stacked outputs take fewer.
fn misfit(operator: &Linear) -> Option<Misfit> {
    let tried = |tile, interleave, stack, ring_degree| {
        let packing = CoefficientPacking { tile, tiles_at_once: 1, interleave, stack, merge: 1 };
        Layout::new(operator, Packing::Coefficients(packing), ring_degree).err()
    };
    let [rows, columns] = Windows::new(operator).output;
    let sizes = |most: usize| (0..=most.ilog2()).map(|log| 1usize << log);
    let of_degree = |ring_degree: usize| {
        let smallest = tried([1, 1], 1, 1, ring_degree)?;
        let Misfit::ProgramTooLarge { .. } = smallest else { return Some(smallest) };
        let tiles = sizes(rows.max(columns).next_power_of_two()).map(|side| [side.min(rows), side.min(columns)]);
        let mut larger = tiles
            .flat_map(|tile| sizes(ring_degree).flat_map(move |a| sizes(ring_degree / a).map(move |b| (tile, a, b))));
        let fits = larger.any(|(tile, interleave, stack)| tried(tile, interleave, stack, ring_degree).is_none());
        (!fits).then_some(smallest)
    };
    ring_degrees().map(of_degree).reduce(Option::and).flatten()
}

impl fmt::Display for Refusals {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let of_model = |refusal: &&Refusal| {
            matches!(refusal, Refusal::Unsupported(Problem { node: None, .. }) | Refusal::TooMany(_))
        };
        let model = self.refusals.iter().filter(of_model).count();
        match (model, self.refusals.len() - model) {
            (0, nodes) => write!(f, "{nodes} of {} nodes cannot be compiled", self.nodes),
            (_, 0) => write!(f, "the model cannot be compiled"),
            (_, nodes) => write!(f, "the model, and {nodes} of {} nodes, cannot be compiled", self.nodes),
        }?;
        self.refusals.iter().try_for_each(|refusal| write!(f, "\n{refusal}"))
    }
}

impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Refusal::Unsupported(problem) => problem.fmt(f),
            Refusal::TooMany(error) => write!(f, "{error}\n  try: smaller images, or fewer channels"),
            Refusal::TooLarge { node, kind, misfit } => {
                let cure = match misfit {
                    Misfit::TooManyCells { .. } | Misfit::BlockTooLarge { .. } => {
                        "reduce the size of the kernel in this node"
                    }
                    Misfit::ProgramTooLarge { .. }
                    | Misfit::BabyShifts { .. }
                    | Misfit::MasksFollowInputs
                    | Misfit::Tile { .. }
                    | Misfit::Interleave { .. } => "fewer channels or features in this node",
                };
                write!(f, "node `{node}` ({kind}): {misfit}\n  try: {cure}")
            }
        }
    }
}
