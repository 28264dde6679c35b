//! Measures all that the client does for one inference, against the client of the paper and against no server at all.
//!
//! Look at: the two ratios. The first is how many times more work the same client would have in the way of the CHOCO
//! paper, with rotational redundancy at (8192, {58, 58, 59}) and encryption by a public key, on the same kernels and
//! down to the bytes of the messages. The second is how many times longer the whole network takes on the same core in
//! floats, by tract. Everything is measured in this one run, on one core, in turns, the shortest of many inferences
//! each; the link and the server do not count.
//!
//! Run: cargo run --release --example client_work -- lenet5_large squeezenet vgg16

mod papers;

use std::error::Error;
use std::hint::black_box;
use std::process::ExitCode;
use std::sync::Arc;
use std::time::{Duration, Instant};

use chococ_compiler::{CalibrationInputs, Options, compile};
use chococ_models::{built, built_named};
use chococ_plans::check::{CheckedPlan, check};
use chococ_plans::input::read_samples;
use chococ_plans::weights::Weights;
use chococ_runtime::reference::integers;
use chococ_runtime::{ChaCha20, Client, Server, Turn};
use comfy_table::{CellAlignment, Table, presets};
use rand::Rng;
use tract_onnx::prelude::{Framework, InferenceModelExt, IntoRunnable, IntoTValue, Tensor, TypedRunnableModel, tvec};

/// Inferences of each kind in a row, and how often they take turns: the shortest of all counts.
///
/// Others may disturb a machine for seconds. Where each kind has its turn again and again, none is favoured.
const RUNS: usize = 7;
const ROUNDS: usize = 7;

/// Images to take the ranges of activations from.
const CALIBRATION_IMAGES: usize = 100;

fn main() -> ExitCode {
    let mut names: Vec<String> = std::env::args().skip(1).collect();
    if names.is_empty() {
        names.push("lenet5_large".to_owned());
    }
    let mut table = Table::new();
    table.load_style(presets::ASCII_MARKDOWN);
    table.set_header(["network", "client ms", "the paper's way, ms", "ratio", "tract, floats, ms", "ratio"]);
    for name in &names {
        match measure(name) {
            Ok(row) => table.add_row(row),
            Err(error) => {
                eprintln!("{name}: {error}");
                return ExitCode::FAILURE;
            }
        };
    }
    table.column_iter_mut().skip(1).for_each(|column| column.set_cell_alignment(CellAlignment::Right));
    println!("{table}");
    ExitCode::SUCCESS
}

/// A network with inputs.
struct Network {
    onnx: Vec<u8>,
    input_shape: [usize; 3],
    inputs: Vec<Vec<f32>>,
}

fn network(name: &str) -> Result<Network, Box<dyn Error>> {
    if let Some(network) = built_named(name) {
        let inputs = network.inputs(CALIBRATION_IMAGES);
        return Ok(Network { onnx: network.onnx(), input_shape: network.input_shape, inputs });
    }
    let names = chococ_models::all().iter().map(|model| model.name).chain(built().iter().map(|network| network.name));
    let unknown = || format!("there is no such network; there are {}", names.collect::<Vec<_>>().join(", "));
    let model = chococ_models::named(name).ok_or_else(unknown)?;
    let inputs = read_samples(model.calibration_images(), &model.input_shape, Some(CALIBRATION_IMAGES))?.inputs;
    Ok(Network { onnx: std::fs::read(model.path())?, input_shape: model.input_shape, inputs })
}

fn measure(name: &str) -> Result<Vec<String>, Box<dyn Error>> {
    let network = network(name)?;
    let input = network.inputs[0].clone();
    let options = Options {
        calibration: Some(CalibrationInputs { description: "made-up inputs".to_owned(), inputs: network.inputs }),
        ..Options::new(format!("{name}.onnx"), format!("{name}.safetensors"))
    };
    let compiled = compile(&network.onnx, &options, &|step| eprintln!("{name}: {step} ..."))?;
    let weights = Weights::from_bytes(&compiled.weights, &compiled.plan)?;
    let plan = Arc::new(check(compiled.plan)?);
    let expected = integers(&plan, &weights, &input)?;

    // Every run draws the same numbers, so that its requests are those that were answered.
    let mut seed = [0; 32];
    rand::rng().fill_bytes(&mut seed);
    let replies = replies(&plan, &weights, &input, seed)?;
    let client = Client::new(plan.clone(), &mut ChaCha20::new(seed, 0))?;
    let papers = papers::prepare(&plan, &expected.stages)?;
    let local = local(&network.onnx)?;
    let tensor = Tensor::from_shape(&[&[1], &network.input_shape[..]].concat(), &input)?;
    let (mut ours, mut shortest) = (Ours { all: Duration::MAX, clear: Duration::MAX }, [Duration::MAX; 2]);
    for _ in 0..ROUNDS {
        for _ in 0..RUNS {
            let run = run(&client, &input, &replies, &mut ChaCha20::new(seed, 1))?;
            ours = if run.all < ours.all { run } else { ours };
        }
        for _ in 0..RUNS {
            shortest[0] = shortest[0].min(papers::run(&papers));
        }
        for _ in 0..RUNS {
            let input = tvec!(tensor.clone().into_tvalue());
            let begun = Instant::now();
            black_box(local.run(input)?);
            shortest[1] = shortest[1].min(begun.elapsed());
        }
    }
    let papers = shortest[0] + ours.clear;
    let ms = |time: Duration| format!("{:.2}", 1e3 * time.as_secs_f64());
    let ratio = |time: Duration| format!("{:.1}", time.as_secs_f64() / ours.all.as_secs_f64());
    Ok(vec![name.to_owned(), ms(ours.all), ms(papers), ratio(papers), ms(shortest[1]), ratio(shortest[1])])
}

/// What the client took for an inference.
struct Ours {
    /// Everything but waiting.
    all: Duration,
    /// Its operators in the clear alone.
    clear: Duration,
}

/// What the server answers to a client that draws its numbers from a seed.
fn replies(
    plan: &Arc<CheckedPlan>,
    weights: &Weights,
    input: &[f32],
    seed: [u8; 32],
) -> Result<Vec<Vec<u8>>, Box<dyn Error>> {
    let client = Client::new(plan.clone(), &mut ChaCha20::new(seed, 0))?;
    let server = Server::new(plan.clone(), weights, &|_, _| {})?;
    let session = server.session(&client.galois_keys(&mut rand::rng()))?;
    let mut rng = ChaCha20::new(seed, 1);
    let (mut inference, mut turn) = client.start(input, &mut rng)?;
    let mut replies = Vec::new();
    while let Turn::Send(request) = turn {
        replies.push(session.answer(&request)?);
        turn = inference.resume(&replies[replies.len() - 1], &mut rng)?;
    }
    Ok(replies)
}

/// Measures one inference of a client, given what is answered.
fn run(client: &Client, input: &[f32], replies: &[Vec<u8>], rng: &mut ChaCha20) -> Result<Ours, chococ_runtime::Error> {
    let begun = Instant::now();
    let (mut inference, _) = client.start(input, rng)?;
    for reply in replies {
        black_box(inference.resume(reply, rng)?);
    }
    let all = begun.elapsed();
    let clear = inference.records().iter().map(|record| record.clear).sum::<Duration>() + inference.tail();
    Ok(Ours { all, clear })
}

/// The network in floats, by tract, as optimised as it makes it.
fn local(onnx: &[u8]) -> Result<Arc<TypedRunnableModel>, Box<dyn Error>> {
    Ok(tract_onnx::onnx().model_for_read(&mut &*onnx)?.into_optimized()?.into_runnable()?)
}
