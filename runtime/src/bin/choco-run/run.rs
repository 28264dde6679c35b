//! The default command: one inference, with everything it cost.

use std::path::PathBuf;
use std::time::Duration;

use chococ_plans::input::read_samples;
use chococ_runtime::client::Watch;
use chococ_runtime::reference;
use comfy_table::{Table, presets};
use serde::Serialize;

use crate::failure::Failure;
use crate::sides::{Inferred, Loaded, Sides, largest};
use crate::{Backend, Common, print};

/// What to run, and how.
#[derive(clap::Args)]
pub struct Arguments {
    // Spelled out: clap does not see that these arguments are given where the ones they share are flattened in.
    /// The plan; its weights lie beside it
    plan: PathBuf,
    /// Draw keys and errors from this seed instead of the operating system: for tests only, it gives the secrets away
    #[arg(long, value_name = "S")]
    seed: Option<u64>,
    /// Threads of the server [default: as many as there are cores]
    #[arg(long, value_name = "T", value_parser = clap::value_parser!(u16).range(1..=1024))]
    threads: Option<u16>,
    /// The input: an .npy or .npz file, or a .png picture
    #[arg(long, value_name = "FILE")]
    input: PathBuf,
    /// Which sample of the file, counted from 0
    #[arg(long, value_name = "I", default_value_t = 0)]
    index: usize,
    /// Who computes the linear layers
    #[arg(long, value_enum, default_value_t = Backend::Bfv)]
    backend: Backend,
    /// Compare every integer of every stage with the reference, and fail if one differs
    #[arg(long)]
    verify: bool,
    /// Print one JSON document
    #[arg(long)]
    json: bool,
}

/// Everything about one inference. Field names are stable; their endings are units.
#[derive(Serialize)]
struct Report {
    backend: &'static str,
    class: usize,
    scores: Vec<f32>,
    /// None where nothing was compared.
    verified: Option<bool>,
    stages: Vec<StageReport>,
    client_ms: f64,
    server_ms: f64,
    bytes_up: usize,
    bytes_down: usize,
    galois_keys_bytes: usize,
    galois_keys_ms: f64,
    first_inference_bytes: usize,
    later_inference_bytes: usize,
}

#[derive(Serialize)]
struct StageReport {
    name: String,
    client_clear_ms: f64,
    client_encrypt_ms: f64,
    client_decrypt_ms: f64,
    server_ms: f64,
    bytes_up: usize,
    bytes_down: usize,
    estimated_budget_bits: f64,
    measured_budget_bits: Option<f64>,
}

impl Arguments {
    fn common(&self) -> Common {
        Common { plan: self.plan.clone(), seed: self.seed, threads: self.threads }
    }
}

pub fn run(arguments: &Arguments) -> Result<(), Failure> {
    if arguments.verify && arguments.backend == Backend::Plain {
        return Err(Failure::NothingToVerify);
    }
    let loaded = arguments.common().load()?;
    let shape = &loaded.plan.plan().input_shape;
    let limit = arguments.index.saturating_add(1);
    let mut samples = read_samples(&arguments.input, shape, Some(limit))?.inputs;
    if arguments.index >= samples.len() {
        return Err(Failure::Index { index: arguments.index, samples: samples.len() });
    }
    let input = samples.swap_remove(arguments.index);
    let report = match arguments.backend {
        Backend::Plain => in_the_clear(&loaded, &input)?,
        Backend::Bfv => encrypted(arguments, &loaded, &input)?,
    };
    if arguments.json {
        return print(&(serde_json::to_string_pretty(&report).expect("a report is plain data") + "\n"));
    }
    print(&report.text())
}

fn in_the_clear(loaded: &Loaded, input: &[f32]) -> Result<Report, Failure> {
    let output = reference::integers(&loaded.plan, &loaded.weights, input)?.output;
    Ok(Report {
        backend: "plain",
        class: largest(&output),
        scores: output,
        verified: None,
        stages: Vec::new(),
        client_ms: 0.0,
        server_ms: 0.0,
        bytes_up: 0,
        bytes_down: 0,
        galois_keys_bytes: 0,
        galois_keys_ms: 0.0,
        first_inference_bytes: 0,
        later_inference_bytes: 0,
    })
}

fn encrypted(arguments: &Arguments, loaded: &Loaded, input: &[f32]) -> Result<Report, Failure> {
    let mut rng = arguments.common().rng();
    let watch = Watch { integers: arguments.verify, budgets: true };
    let sides = Sides::new(loaded, watch, &mut rng)?;
    let session = sides.server.session(&sides.galois_keys)?;
    let inferred = sides.infer(&session, input, &mut rng)?;
    if arguments.verify {
        let expected = reference::integers(&loaded.plan, &loaded.weights, input)?;
        expected.compare(&loaded.plan, &inferred.records, &inferred.output)?;
    }
    Ok(Report::new(loaded, &sides, inferred, arguments.verify))
}

fn milliseconds(time: Duration) -> f64 {
    // A microsecond is as fine as these times mean anything.
    (time.as_secs_f64() * 1e6).round() / 1e3
}

impl Report {
    fn new(loaded: &Loaded, sides: &Sides, inferred: Inferred, verified: bool) -> Report {
        let stages: Vec<StageReport> = loaded
            .plan
            .server_stages()
            .zip(inferred.records.iter().zip(&inferred.server))
            .map(|(checked, (record, server))| StageReport {
                name: checked.stage.layer.name.clone(),
                client_clear_ms: milliseconds(record.clear),
                client_encrypt_ms: milliseconds(record.encrypt),
                client_decrypt_ms: milliseconds(record.decrypt),
                server_ms: milliseconds(*server),
                bytes_up: record.bytes_up,
                bytes_down: record.bytes_down,
                estimated_budget_bits: checked.stage.budget.reply_bits,
                measured_budget_bits: record.budget_bits.map(|bits| (bits * 100.0).round() / 100.0),
            })
            .collect();
        let client = |record: &chococ_runtime::client::StageRecord| record.clear + record.encrypt + record.decrypt;
        let (up, down) = stages.iter().fold((0, 0), |(up, down), stage| (up + stage.bytes_up, down + stage.bytes_down));
        Report {
            backend: "bfv",
            class: largest(&inferred.output),
            verified: verified.then_some(true),
            client_ms: milliseconds(inferred.records.iter().map(client).sum::<Duration>() + inferred.tail),
            server_ms: milliseconds(inferred.server.iter().sum()),
            scores: inferred.output,
            stages,
            bytes_up: up,
            bytes_down: down,
            galois_keys_bytes: sides.galois_keys.len(),
            galois_keys_ms: milliseconds(sides.keys_time),
            first_inference_bytes: up + down + sides.galois_keys.len(),
            later_inference_bytes: up + down,
        }
    }

    fn text(&self) -> String {
        let scores: Vec<String> = self.scores.iter().map(|score| format!("{score:.3}")).collect();
        let answer = format!("class {}\nscores {}\n", self.class, scores.join(" "));
        if self.stages.is_empty() {
            return answer;
        }
        let mut table = Table::new();
        table.load_style(presets::ASCII_MARKDOWN).set_header(vec![
            "stage",
            "client ms",
            "server ms",
            "kB up",
            "kB down",
            "budget estimated",
            "measured",
        ]);
        for stage in &self.stages {
            let client = stage.client_clear_ms + stage.client_encrypt_ms + stage.client_decrypt_ms;
            table.add_row([
                stage.name.clone(),
                format!("{client:.2}"),
                format!("{:.1}", stage.server_ms),
                kilobytes(stage.bytes_up),
                kilobytes(stage.bytes_down),
                format!("{:.1} bits", stage.estimated_budget_bits),
                stage.measured_budget_bits.map_or(String::new(), |bits| format!("{bits:.1} bits")),
            ]);
        }
        let verified = match self.verified {
            Some(_) => "verified        every integer of every stage is the reference's\n",
            None => "",
        };
        format!(
            "{answer}\n{table}\n\n\
             client          {:.2} ms, on one core\n\
             server          {:.1} ms\n\
             per inference   {} kB: {} up, {} down\n\
             Galois keys     {} kB, once a session: {} kB with the first inference; made in {:.1} ms\n{verified}",
            self.client_ms,
            self.server_ms,
            kilobytes(self.later_inference_bytes),
            kilobytes(self.bytes_up),
            kilobytes(self.bytes_down),
            kilobytes(self.galois_keys_bytes),
            kilobytes(self.first_inference_bytes),
            self.galois_keys_ms,
        )
    }
}

fn kilobytes(bytes: usize) -> String {
    format!("{:.1}", bytes as f64 / 1e3)
}
