//! Compiles LeNet-5-Large and classifies ten handwritten digits that the server cannot see.
//!
//! Look at: the predictions (right, though all the server ever held was ciphertext), the bytes that crossed, the time
//! on either side, and the noise budget, measured beside estimated. The last table puts the figures beside those of
//! the paper that this project sets out from.
//!
//! Run: cargo run --release --example quickstart

use std::error::Error;
use std::sync::Arc;
use std::time::{Duration, Instant};

use chococ_compiler::{CalibrationInputs, Options, compile};
use chococ_models::named;
use chococ_plans::check::{CheckedPlan, check};
use chococ_plans::input::read_samples;
use chococ_plans::weights::Weights;
use chococ_runtime::client::Watch;
use chococ_runtime::{Client, Server, Session, Turn, reference};
use comfy_table::{CellAlignment, Table, presets};

/// Digits to classify, from the held-out images.
const DIGITS: usize = 10;

/// Images to take the ranges of activations from.
const CALIBRATION_IMAGES: usize = 100;

fn main() -> Result<(), Box<dyn Error>> {
    let model = named("lenet5_large").ok_or("the model is part of this repository")?;
    let (plan, weights) = compiled(model)?;
    let mut rng = rand::rng();
    eprintln!("preparing the server's weights ...");
    let server = Server::new(plan.clone(), &weights, &|_, _| {})?;
    let client = Client::new(plan.clone(), &mut rng)?.watch(Watch { integers: true, budgets: true });
    let galois_keys = client.galois_keys(&mut rng);
    let session = server.session(&galois_keys)?;

    let digits = read_samples(model.test_images(), &plan.plan().input_shape, Some(DIGITS))?;
    let labels = digits.labels.ok_or("the held-out digits are labelled")?;
    let mut runs = Vec::new();
    for (image, label) in digits.inputs.iter().zip(&labels) {
        let run = classify(&client, &session, image)?;
        let expected = reference::integers(&plan, &weights, image)?;
        expected.compare(&plan, &run.records, &run.output)?;
        println!("{}", picture(image, &caption(&run, *label)));
        runs.push(run);
    }
    let right = runs.iter().zip(&labels).filter(|(run, label)| largest(&run.output) == **label).count();
    println!("{right} of {DIGITS} digits are right, and every integer of every stage is the reference's.\n");
    println!("{}\n", stages(&plan, &runs));
    println!("{}", beside_the_paper(&plan, &runs, galois_keys.len()));
    Ok(())
}

/// The plan and weights of a model at 4 bits.
fn compiled(model: &chococ_models::Model) -> Result<(Arc<CheckedPlan>, Weights), Box<dyn Error>> {
    let bytes = std::fs::read(model.path())?;
    let inputs = read_samples(model.calibration_images(), &model.input_shape, Some(CALIBRATION_IMAGES))?.inputs;
    let options = Options {
        calibration: Some(CalibrationInputs { description: format!("{} MNIST digits", inputs.len()), inputs }),
        ..Options::new(format!("{}.onnx", model.name), format!("{}.safetensors", model.name))
    };
    let begun = Instant::now();
    let compiled = compile(&bytes, &options, &|step| eprintln!("{}: {step} ...", model.name))?;
    eprintln!("compiled in {:.1} s", begun.elapsed().as_secs_f64());
    let weights = Weights::from_bytes(&compiled.weights, &compiled.plan)?;
    Ok((Arc::new(check(compiled.plan)?), weights))
}

/// One digit, classified.
struct Run {
    output: Vec<f32>,
    records: Vec<chococ_runtime::client::StageRecord>,
    client: Duration,
    server: Vec<Duration>,
}

fn classify(client: &Client, session: &Session<'_>, image: &[f32]) -> Result<Run, Box<dyn Error>> {
    let mut rng = rand::rng();
    let begun = Instant::now();
    let mut server = Vec::new();
    let (mut inference, mut turn) = client.start(image, &mut rng)?;
    let output = loop {
        match turn {
            Turn::Done(output) => break output,
            Turn::Send(request) => {
                let asked = Instant::now();
                let reply = session.answer(&request)?;
                server.push(asked.elapsed());
                turn = inference.resume(&reply, &mut rng)?;
            }
        }
    };
    let client = begun.elapsed() - server.iter().sum();
    Ok(Run { output, records: inference.records().to_vec(), client, server })
}

fn largest(scores: &[f32]) -> usize {
    (0..scores.len()).fold(0, |best, class| if scores[class] > scores[best] { class } else { best })
}

fn caption(run: &Run, label: usize) -> Vec<String> {
    let bytes = |of: fn(&chococ_runtime::client::StageRecord) -> usize| run.records.iter().map(of).sum::<usize>();
    let budget = run.records.iter().filter_map(|record| record.budget_bits).fold(f64::INFINITY, f64::min);
    vec![
        format!("prediction {}", largest(&run.output)),
        format!("truth      {label}"),
        format!("client     {:.1} ms", milliseconds(run.client)),
        format!("server     {:.1} ms", milliseconds(run.server.iter().sum())),
        format!("sent       {:.1} kB", bytes(|record| record.bytes_up) as f64 / 1e3),
        format!("received   {:.1} kB", bytes(|record| record.bytes_down) as f64 / 1e3),
        format!("noise      {budget:.1} bits of budget left"),
    ]
}

/// A 28 x 28 image in half blocks, two pixels a character, with lines of text beside it.
fn picture(image: &[f32], caption: &[String]) -> String {
    let ink = |y: usize, x: usize| image[y * 28 + x] > 0.4;
    let row = |y: usize| -> String {
        (0..28)
            .map(|x| match (ink(y, x), ink(y + 1, x)) {
                (true, true) => '█',
                (true, false) => '▀',
                (false, true) => '▄',
                (false, false) => ' ',
            })
            .collect()
    };
    let lines = (4..24).step_by(2).enumerate();
    lines
        .map(|(line, y)| {
            format!("{}  {}", row(y), line.checked_sub(1).and_then(|at| caption.get(at)).map_or("", |t| t))
        })
        .map(|line| line.trim_end().to_owned() + "\n")
        .collect()
}

fn milliseconds(time: Duration) -> f64 {
    time.as_secs_f64() * 1e3
}

/// Middle of several measurements, which a busy machine disturbs least.
fn median(mut times: Vec<f64>) -> f64 {
    times.sort_by(f64::total_cmp);
    times[times.len() / 2]
}

fn table(header: &[&str]) -> Table {
    let mut table = Table::new();
    table.load_style(presets::ASCII_MARKDOWN).set_header(header.to_vec());
    for column in 1..header.len() {
        table.column_mut(column).expect("one for each header").set_cell_alignment(CellAlignment::Right);
    }
    table
}

fn stages(plan: &CheckedPlan, runs: &[Run]) -> Table {
    let mut table = table(&["stage", "N", "sent kB", "received kB", "server ms", "budget estimated", "measured"]);
    for (index, checked) in plan.server_stages().enumerate() {
        let cost = &checked.stage.cost;
        let measured = runs.iter().filter_map(|run| run.records[index].budget_bits).fold(f64::INFINITY, f64::min);
        table.add_row([
            checked.stage.layer.name.clone(),
            checked.parameters.keys.ring_degree.to_string(),
            format!("{:.1}", cost.bytes_up as f64 / 1e3),
            format!("{:.1}", cost.bytes_down as f64 / 1e3),
            format!("{:.1}", median(runs.iter().map(|run| milliseconds(run.server[index])).collect())),
            format!("{:.1} bits", checked.stage.budget.reply_bits),
            format!("{measured:.1} bits"),
        ]);
    }
    table
}

/// The paper's figures (README.md says which are its own words) beside those of these runs.
fn beside_the_paper(plan: &CheckedPlan, runs: &[Run], galois_bytes: usize) -> String {
    let cost = plan.plan().cost();
    let one_up = cost.bytes_up / cost.ciphertexts_up;
    let encrypt = |run: &Run| run.records.iter().map(|record| milliseconds(record.encrypt)).sum::<f64>();
    let encryption = median(runs.iter().map(encrypt).collect()) / cost.ciphertexts_up as f64;
    let client = median(runs.iter().map(|run| milliseconds(run.client)).collect());
    let mut table = table(&["LeNet-5-Large", "CHOCO (ASPLOS 2022)", "chococ, here"]);
    table.add_row(["bytes per inference, keys apart", "2.6 MB (1)", &format!("{:.2} MB", cost.bytes() as f64 / 1e6)]);
    table.add_row(["Galois keys, once a session", "unknown", &format!("{:.2} MB", galois_bytes as f64 / 1e6)]);
    table.add_row(["one ciphertext from the client", "262 kB", &format!("{:.0} kB", one_up as f64 / 1e3)]);
    table.add_row([
        "one encryption, in software",
        "275 ms, Cortex-A7 (2)",
        &format!("{encryption:.2} ms, one core here"),
    ]);
    table.add_row(["one encryption, on CHOCO-TACO", "0.66 ms", "not modelled yet"]);
    table.add_row(["the client's whole inference", "unknown", &format!("{client:.1} ms, one core here")]);
    format!("{table}\n{NOTES}")
}

const NOTES: &str = "\
(1) From memory of the paper, not read again. (2) Derived from its 0.66 ms and its speed-up of 417.
The machines differ: compare bytes, not times. Neither system hides the model from the client.";
