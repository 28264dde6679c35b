//! ONNX in, plan out.
//!
//! - [`onnx`]: protobuf to [`graph::Graph`]; refuses at once what it cannot compile
//! - [`graph`]: the network as imported, in floats
//! - [`int_graph`]: the same on integers with known ranges; its `eval` is what everything else must agree with
//! - [`target`]: what for: a link, two machines, and what to spend least of
//! - [`passes`]: one step a file, in the order in which [`compile`] takes them

pub mod error;
pub mod graph;
pub mod int_graph;
pub mod no_parameters;
pub mod onnx;
pub mod passes;
pub mod target;

use chococ_plans::check::{PlanError, check};
use chococ_plans::file::sha256;
use chococ_plans::noise::COEFFICIENTS;
use chococ_plans::packing::PackingKind;
use chococ_plans::plan::{FileId, Plan, Quantization};

pub use crate::error::Error;
use crate::graph::Graph;
use crate::int_graph::IntGraph;
use crate::passes::choose_packing::StageSearch;
use crate::passes::choose_stages::{Chosen, choose_stages};
use crate::passes::fold_batch_norm::fold_batch_norm;
use crate::passes::fold_pads::fold_pads;
use crate::passes::lower::{Origin, lower};
use crate::passes::merge_siblings::merge_siblings;
use crate::passes::quantize::{Bits, Calibration, QuantizationReport, quantize};
use crate::passes::split_stages::split_stages;
use crate::target::{Objective, Target};

/// What to compile for.
#[derive(Clone, Debug)]
pub struct Options {
    /// Name of the model's file, for the plan to record.
    pub model_file: String,
    /// Name of the weights file that will lie beside the plan.
    pub weights_file: String,
    /// Inputs to take ranges from; made up where there are none.
    pub calibration: Option<CalibrationInputs>,
    /// Bits of an activation that crosses the wire, 2 to 8.
    pub activation_bits: u32,
    /// Bits of a weight, sign included, 2 to 8.
    pub weight_bits: u32,
    /// Only this kind of packing; otherwise whatever costs least, the masked baseline excepted.
    pub packing: Option<PackingKind>,
    /// Only this ring degree.
    pub ring_degree: Option<usize>,
    /// What to spend least of.
    pub objective: Objective,
    /// The link, and the machines at its ends.
    pub target: Target,
    /// Most bytes that the Galois keys of all stages may take; [`DEFAULT_MAX_KEY_BYTES`] where possible if None.
    pub max_key_bytes: Option<usize>,
    /// Most bytes of memory that the server's weights may take, where there is anything smaller.
    pub max_server_bytes: usize,
}

/// Bytes of Galois keys that are few enough for most clients.
pub const DEFAULT_MAX_KEY_BYTES: usize = 4_000_000;

/// Bytes of weights that leave a server of 2 GiB room to work.
pub const DEFAULT_MAX_SERVER_BYTES: usize = 1_900_000_000;

impl Options {
    /// What is done unless one asks for something else: 4 bits, the fewest bytes, everything tried.
    pub fn new(model_file: String, weights_file: String) -> Options {
        Options {
            model_file,
            weights_file,
            calibration: None,
            activation_bits: 4,
            weight_bits: 4,
            packing: None,
            ring_degree: None,
            objective: Objective::default(),
            target: Target::default(),
            max_key_bytes: None,
            max_server_bytes: DEFAULT_MAX_SERVER_BYTES,
        }
    }
}

/// Real inputs of a network.
#[derive(Clone, Debug, PartialEq)]
pub struct CalibrationInputs {
    /// Where they come from, for the plan to record.
    pub description: String,
    /// The inputs, each row-major in the network's input shape.
    pub inputs: Vec<Vec<f32>>,
}

/// What came of a compilation.
#[derive(Clone, Debug)]
pub struct Compiled {
    /// The plan.
    pub plan: Plan,
    /// The bytes of its weights file.
    pub weights: Vec<u8>,
    /// The network on integers: the reference for every way to run the plan.
    pub reference: IntGraph,
    /// What the user should know.
    pub notices: Vec<String>,
    /// How ranges and weights were decided.
    pub quantization: QuantizationReport,
    /// What was tried for each server stage.
    pub search: Vec<StageSearch>,
}

/// How many made-up images stand in for calibration data.
const MADE_UP_IMAGES: usize = 64;

/// Compiles an ONNX model to a plan. The same model, data and options give the same bytes.
///
/// `progress` is told what is being done.
///
/// # Errors
/// [`Error`], naming the node and the cure.
pub fn compile(model: &[u8], options: &Options, progress: &(dyn Fn(&str) + Sync)) -> Result<Compiled, Error> {
    let mut notices = Vec::new();
    progress("reading the model");
    let graph = merge_siblings(fold_pads(fold_batch_norm(onnx::import(model, &mut notices)?)));
    let mut compiled = compile_graph(&graph, sha256(model), options, progress)?;
    notices.append(&mut compiled.notices);
    Ok(Compiled { notices, ..compiled })
}

/// Compiles a network that is imported already; `model_hash` is what the plan will call its model by.
///
/// # Errors
/// [`Error`], naming the node and the cure.
pub fn compile_graph(
    graph: &Graph,
    model_hash: String,
    options: &Options,
    progress: &(dyn Fn(&str) + Sync),
) -> Result<Compiled, Error> {
    // Said before the search, which takes minutes for such networks.
    let found = graph.results();
    if found > COEFFICIENTS {
        return Err(PlanError::TooLarge { found }.into());
    }
    let (description, calibration) = match &options.calibration {
        Some(given) => (given.description.clone(), Calibration::new(given.inputs.clone())),
        None => {
            let shape = &graph.nodes[graph.input].shape;
            ("random numbers".to_owned(), Calibration::uniform(shape, MADE_UP_IMAGES, 0))
        }
    };
    progress("quantising");
    let bits = Bits { activation: options.activation_bits, weight: options.weight_bits };
    let (reference, quantization) = quantize(graph, &calibration, bits)?;
    progress("choosing packings and parameters");
    let parts = split_stages(&reference);
    let Chosen { choices, search, key_bytes } = choose_stages(&parts, options, progress)?;
    let origin = Origin {
        model: FileId { file: options.model_file.clone(), sha256: model_hash },
        weights_file: options.weights_file.clone(),
        quantization: Quantization {
            activation_bits: options.activation_bits,
            weight_bits: options.weight_bits,
            calibration: description,
        },
    };
    let (plan, weights) = lower(&reference, parts, choices, origin);
    check(plan.clone())?;
    let mut notices = quantization.notices.clone();
    if options.max_key_bytes.is_none() && key_bytes > DEFAULT_MAX_KEY_BYTES {
        notices.push(format!(
            "Galois keys take {key_bytes} bytes: nothing tried comes to {DEFAULT_MAX_KEY_BYTES} or less"
        ));
    }
    Ok(Compiled { plan, weights, reference, notices, quantization, search })
}
