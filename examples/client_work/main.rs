//! Measures all that the client does for one inference, against the client of the paper and against no server at all.
//!
//! Look at: the two ratios. The first is how many times more work the same client would have in the way of the CHOCO
//! paper, with rotational redundancy at (8192, {58, 58, 59}) and encryption by a public key, on the same kernels and
//! down to the bytes of the messages. The second is how many times longer the whole network takes on the same core in floats, by tract. Everything is measured
//! in this one run, on one core, the shortest of several inferences each; the link and the server do not count.
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
use rand::{Rng, SeedableRng};
use tract_onnx::prelude::{Framework, InferenceModelExt, IntoRunnable, IntoTValue, Tensor, tvec};

/// Inferences of each kind, of which the shortest counts.
const RUNS: usize = 9;

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

    let ours = ours(&plan, &weights, &input)?;
    let papers = papers::client(&plan, &expected.stages)? + ours.clear;
    let local = local(&network.onnx, network.input_shape, &input)?;
    let ms = |time: Duration| format!("{:.2}", 1e3 * time.as_secs_f64());
    let ratio = |time: Duration| format!("{:.1}", time.as_secs_f64() / ours.all.as_secs_f64());
    Ok(vec![name.to_owned(), ms(ours.all), ms(papers), ratio(papers), ms(local), ratio(local)])
}

/// What the client took for an inference.
struct Ours {
    /// Everything but waiting.
    all: Duration,
    /// Its operators in the clear alone.
    clear: Duration,
}

/// Runs an inference, and then the client alone on the same replies again.
fn ours(plan: &Arc<CheckedPlan>, weights: &Weights, input: &[f32]) -> Result<Ours, Box<dyn Error>> {
    let mut rng: ChaCha20 = rand::make_rng();
    // Every run draws the same numbers, so that its requests are those that were answered.
    let mut seed = [0; 32];
    rng.fill_bytes(&mut seed);
    let client = Client::new(plan.clone(), &mut rng)?;
    let mut replies = Vec::new();
    {
        let server = Server::new(plan.clone(), weights, &|_, _| {})?;
        let session = server.session(&client.galois_keys(&mut rng))?;
        let mut rng = ChaCha20::from_seed(seed);
        let (mut inference, mut turn) = client.start(input, &mut rng)?;
        while let Turn::Send(request) = turn {
            replies.push(session.answer(&request)?);
            turn = inference.resume(&replies[replies.len() - 1], &mut rng)?;
        }
    }
    let run = || -> Result<Ours, Box<dyn Error>> {
        let mut rng = ChaCha20::from_seed(seed);
        let begun = Instant::now();
        let (mut inference, _) = client.start(input, &mut rng)?;
        for reply in &replies {
            black_box(inference.resume(reply, &mut rng)?);
        }
        let all = begun.elapsed();
        let clear = inference.records().iter().map(|record| record.clear).sum::<Duration>() + inference.tail();
        Ok(Ours { all, clear })
    };
    let runs = (0..RUNS).map(|_| run()).collect::<Result<Vec<_>, _>>()?;
    Ok(runs.into_iter().min_by_key(|run| run.all).expect("there are runs"))
}

/// Runs the network in floats, by tract, as optimised as it makes it.
fn local(onnx: &[u8], shape: [usize; 3], input: &[f32]) -> Result<Duration, Box<dyn Error>> {
    let model = tract_onnx::onnx().model_for_read(&mut &*onnx)?.into_optimized()?.into_runnable()?;
    let [channels, height, width] = shape;
    let tensor = Tensor::from_shape(&[1, channels, height, width], input)?;
    let mut times = Vec::new();
    for _ in 0..RUNS {
        let input = tvec!(tensor.clone().into_tvalue());
        let begun = Instant::now();
        black_box(model.run(input)?);
        times.push(begun.elapsed());
    }
    Ok(times.into_iter().min().expect("there are runs"))
}
