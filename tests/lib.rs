//! What the tests that need more than one crate share: compiled networks, and inferences on both sides of the wire.

use std::sync::Arc;

use chacha20::ChaCha20Rng;
use chococ_compiler::{CalibrationInputs, Compiled, Options, compile};
use chococ_models::{Model, built_named, named};
use chococ_plans::check::{CheckedPlan, check};
use chococ_plans::input::{Samples, read_samples};
use chococ_plans::packing::PackingKind;
use chococ_plans::weights::Weights;
use chococ_runtime::client::{StageRecord, Watch};
use chococ_runtime::server::Operations;
use chococ_runtime::{Client, Server, Turn};
use rand::SeedableRng;

/// Calibration images that the tests use: enough for MNIST, and quick.
pub const CALIBRATION_IMAGES: usize = 100;

/// A network of models/.
///
/// # Panics
/// If there is none of that name.
pub fn model(name: &str) -> &'static Model {
    named(name).unwrap_or_else(|| panic!("models/ has no {name}"))
}

/// Images of a model's own kind: the first of those to calibrate with, or of those held out.
///
/// # Panics
/// If the files of this repository are damaged.
pub fn images(model: &Model, held_out: bool, count: usize) -> Samples {
    let path = if held_out { model.test_images() } else { model.calibration_images() };
    read_samples(path, &model.input_shape, Some(count)).expect("the images are part of this repository")
}

/// What the tests compile a model with.
pub fn options(model: &Model, bits: u32, packing: Option<PackingKind>) -> Options {
    Options {
        calibration: Some(CalibrationInputs {
            description: format!("{CALIBRATION_IMAGES} training images"),
            inputs: images(model, false, CALIBRATION_IMAGES).inputs,
        }),
        activation_bits: bits,
        weight_bits: bits,
        packing,
        ..Options::new(format!("{}.onnx", model.name), format!("{}.safetensors", model.name))
    }
}

/// Compiles a network of models/ at the given bits.
///
/// # Panics
/// If it does not compile.
pub fn compiled(name: &str, bits: u32, packing: Option<PackingKind>) -> Compiled {
    compiled_with(&options(model(name), bits, packing), name)
}

/// Compiles a network of models/ with any options.
///
/// # Panics
/// If it does not compile.
pub fn compiled_with(options: &Options, name: &str) -> Compiled {
    let bytes = std::fs::read(model(name).path()).expect("the model is part of this repository");
    compile(&bytes, options, &|_| {}).unwrap_or_else(|error| panic!("{name}: {error}"))
}

/// Compiles a network that is built on the spot, with as many made-up images as the others have real ones.
///
/// # Panics
/// If there is none of that name, or it does not compile.
pub fn compiled_built(name: &str) -> Compiled {
    let network = built_named(name).unwrap_or_else(|| panic!("no network {name} is built"));
    let description = format!("{CALIBRATION_IMAGES} made-up images");
    let options = Options {
        calibration: Some(CalibrationInputs { description, inputs: network.inputs(CALIBRATION_IMAGES) }),
        ..Options::new(format!("{name}.onnx"), format!("{name}.safetensors"))
    };
    compile(&network.onnx(), &options, &|_| {}).unwrap_or_else(|error| panic!("{name}: {error}"))
}

/// Both sides of a plan, ready for inferences.
pub struct Pair {
    /// The plan.
    pub plan: Arc<CheckedPlan>,
    /// Its weights.
    pub weights: Weights,
    /// The client, watching integers and budgets.
    pub client: Client,
    /// The server.
    pub server: Server,
    /// The client's message of Galois keys.
    pub galois_keys: Vec<u8>,
    /// Where all randomness comes from.
    pub rng: ChaCha20Rng,
}

/// One inference, as both sides saw it.
pub struct Run {
    /// The answer.
    pub output: Vec<f32>,
    /// What the client recorded of each server stage.
    pub records: Vec<StageRecord>,
    /// What the server counted.
    pub operations: Operations,
}

impl Pair {
    /// Sets both sides up; all randomness follows from `seed`.
    ///
    /// # Panics
    /// If the plan and its weights do not hold together.
    pub fn new(compiled: &Compiled, seed: u64) -> Pair {
        let weights = Weights::from_bytes(&compiled.weights, &compiled.plan).expect("the compiler's own weights");
        Pair::with_weights(check(compiled.plan.clone()).expect("the compiler's own plan"), weights, seed)
    }

    /// As [`Pair::new`], for a plan that is checked already.
    ///
    /// # Panics
    /// If the weights lack a layer.
    pub fn with_weights(plan: CheckedPlan, weights: Weights, seed: u64) -> Pair {
        let plan = Arc::new(plan);
        let mut rng = ChaCha20Rng::seed_from_u64(seed);
        let client = Client::new(plan.clone(), &mut rng).expect("a checked plan's parameters work");
        let client = client.watch(Watch { integers: true, budgets: true });
        let galois_keys = client.galois_keys(&mut rng);
        let server = Server::new(plan.clone(), &weights, &|_, _| {}).expect("the weights are complete");
        Pair { plan, weights, client, server, galois_keys, rng }
    }

    /// Runs one inference under encryption.
    ///
    /// # Panics
    /// If either side refuses what the other sent.
    pub fn run(&mut self, input: &[f32]) -> Run {
        let session = self.server.session(&self.galois_keys).expect("the client's own keys");
        let (mut inference, mut turn) = self.client.start(input, &mut self.rng).expect("an input of the right shape");
        loop {
            match turn {
                Turn::Send(request) => {
                    let reply = session.answer(&request).expect("the client's own request");
                    turn = inference.resume(&reply, &mut self.rng).expect("the server's own reply");
                }
                Turn::Done(output) => {
                    let records = inference.records().to_vec();
                    return Run { output, records, operations: session.operations() };
                }
            }
        }
    }
}

/// Compares a run with the compiler's own `eval`, and with what the plan says it costs.
///
/// # Errors
/// The first difference, in words.
pub fn compare(compiled: &Compiled, input: &[f32], run: &Run) -> Result<(), String> {
    let trace = compiled.reference.eval(input);
    if run.records.len() != trace.codes.len() {
        return Err(format!("{} stages were run, of {}", run.records.len(), trace.codes.len()));
    }
    for (stage, record) in compiled.plan.server_stages().zip(&run.records) {
        let name = &stage.layer.name;
        if record.codes != trace.codes[name] {
            return Err(format!("{name}: other codes than eval"));
        }
        if record.accumulators != trace.accumulators[name] {
            return Err(format!("{name}: other accumulators than eval"));
        }
        if (record.bytes_up, record.bytes_down) != (stage.cost.bytes_up, stage.cost.bytes_down) {
            return Err(format!("{name}: other bytes than the cost table"));
        }
        let measured = record.budget_bits.ok_or("budgets are watched")?;
        if measured < stage.budget.reply_bits {
            return Err(format!("{name}: measured budget {measured} below {}", stage.budget.reply_bits));
        }
    }
    let (counted, stated) = (run.operations, compiled.plan.cost());
    let counted = [counted.hoisted_rotations, counted.rotations, counted.products, counted.mask_products];
    if counted != [stated.hoisted_rotations, stated.rotations, stated.products, stated.mask_products] {
        return Err(format!("operations {counted:?}, the plan states {stated:?}"));
    }
    let bits = |values: &[f32]| values.iter().map(|value| value.to_bits()).collect::<Vec<_>>();
    match bits(&run.output) == bits(&trace.output) {
        true => Ok(()),
        false => Err("another answer than eval".to_owned()),
    }
}
