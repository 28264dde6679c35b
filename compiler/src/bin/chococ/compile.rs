//! `chococ compile`: an ONNX network in, a plan and its weights out.

use std::fmt::Write;
use std::path::{Path, PathBuf};
use std::time::Duration;

use chococ_compiler::passes::choose_packing::{Outcome, StageSearch};
use chococ_compiler::passes::quantize::QuantizationReport;
use chococ_compiler::target::{Objective, Target};
use chococ_compiler::{CalibrationInputs, Compiled, DEFAULT_MAX_SERVER_BYTES, Options, compile, onnx};
use chococ_plans::file;
use chococ_plans::input::read_samples;
use chococ_plans::packing::{Alignment, PackingKind};
use indicatif::{ProgressBar, ProgressStyle};

use crate::failure::{EXIT_CODES, Failure, read_model};
use crate::inspect::table::{kilobytes, table};
use crate::tell;

/// Calibration inputs that are read at most: far more than make a difference, and no file fills the memory.
const CALIBRATION_INPUTS: usize = 10_000;

/// What to compile, and how.
#[derive(clap::Args)]
#[command(after_help = EXIT_CODES)]
pub struct Arguments {
    /// The network, an ONNX file
    model: PathBuf,
    /// Inputs to take the ranges of activations from: some hundred real ones, as `images` in an .npz file
    #[arg(long, value_name = "FILE.npz")]
    calibrate: Option<PathBuf>,
    /// Where to write the plan; its weights go beside it [default: the model's name with .ron, in this folder]
    #[arg(short, long, value_name = "PLAN.ron")]
    output: Option<PathBuf>,
    /// Bits of an activation that crosses the wire, 2 to 8
    #[arg(long, value_name = "BITS", default_value_t = 4, value_parser = clap::value_parser!(u32).range(2..=8))]
    activation_bits: u32,
    /// Bits of a weight, sign included, 2 to 8
    #[arg(long, value_name = "BITS", default_value_t = 4, value_parser = clap::value_parser!(u32).range(2..=8))]
    weight_bits: u32,
    /// Where numbers sit in ciphertexts
    #[arg(long, value_enum, default_value_t = PackingChoice::Auto)]
    packing: PackingChoice,
    /// Only this ring degree N: a power of two from 1024 to 32768
    #[arg(long, value_name = "N", value_parser = ring_degree)]
    ring_degree: Option<usize>,
    /// What to spend least of
    #[arg(long, value_enum, default_value_t = ObjectiveChoice::Bytes)]
    objective: ObjectiveChoice,
    /// The link and the machines at its ends, as in compiler/targets [default: watch.ron there]
    #[arg(long, value_name = "TARGET.ron")]
    target: Option<PathBuf>,
    /// Most bytes that Galois keys may take [default: 4000000, or more where nothing else works]
    #[arg(long, value_name = "BYTES")]
    max_key_bytes: Option<usize>,
    /// Most bytes of memory for the server's weights, where any packing takes fewer
    #[arg(long, value_name = "BYTES", default_value_t = DEFAULT_MAX_SERVER_BYTES)]
    max_server_bytes: usize,
    /// Say what was decided, what the search rejected, and why
    #[arg(short, long)]
    verbose: bool,
}

/// The packings that can be asked for.
#[derive(Clone, Copy, clap::ValueEnum)]
enum PackingChoice {
    /// Whatever costs least; the masked baseline is never tried
    Auto,
    /// Slots, with redundant cells around each image
    Rotational,
    /// Slots, with zeros among the weights
    Punctured,
    /// Slots, the baseline: a product with a mask after each rotation
    Masked,
    /// No slots: one number a coefficient
    Coefficients,
}

impl PackingChoice {
    fn kind(self) -> Option<PackingKind> {
        match self {
            PackingChoice::Auto => None,
            PackingChoice::Rotational => Some(PackingKind::Slots(Alignment::Rotational)),
            PackingChoice::Punctured => Some(PackingKind::Slots(Alignment::Punctured)),
            PackingChoice::Masked => Some(PackingKind::Slots(Alignment::Masked)),
            PackingChoice::Coefficients => Some(PackingKind::Coefficients),
        }
    }
}

/// The objectives that can be asked for.
#[derive(Clone, Copy, clap::ValueEnum)]
enum ObjectiveChoice {
    /// Bytes on the wire for an inference
    Bytes,
    /// The client's time for encryption and decryption
    ClientTime,
    /// Time until the answer
    Latency,
}

impl From<ObjectiveChoice> for Objective {
    fn from(choice: ObjectiveChoice) -> Objective {
        match choice {
            ObjectiveChoice::Bytes => Objective::Bytes,
            ObjectiveChoice::ClientTime => Objective::ClientTime,
            ObjectiveChoice::Latency => Objective::Latency,
        }
    }
}

fn ring_degree(text: &str) -> Result<usize, String> {
    let degrees: Vec<usize> = chococ_plans::security::ring_degrees().collect();
    text.parse().ok().filter(|degree| degrees.contains(degree)).ok_or_else(|| format!("must be one of {degrees:?}"))
}

pub fn run(arguments: &Arguments) -> Result<(), Failure> {
    let path = &arguments.model;
    let model = read_model(path)?;
    let (plan_path, weights_path) = outputs(arguments)?;
    let options = Options {
        model_file: name_of(path),
        weights_file: name_of(&weights_path),
        calibration: calibration(arguments, &model)?,
        activation_bits: arguments.activation_bits,
        weight_bits: arguments.weight_bits,
        packing: arguments.packing.kind(),
        ring_degree: arguments.ring_degree,
        objective: arguments.objective.into(),
        target: target(arguments)?,
        max_key_bytes: arguments.max_key_bytes,
        max_server_bytes: arguments.max_server_bytes,
    };
    let bar = spinner();
    let compiled = compile(&model, &options, &|step| bar.set_message(step.to_owned()));
    bar.finish_and_clear();
    let compiled = compiled.map_err(|error| Failure::Compile { path: path.clone(), error })?;
    file::write(&plan_path, &compiled.plan, &compiled.weights)?;
    tell(&report(&compiled, &plan_path, arguments.verbose));
    Ok(())
}

/// Names the plan's file and that of its weights, before time is spent on what could not be written there.
fn outputs(arguments: &Arguments) -> Result<(PathBuf, PathBuf), Failure> {
    let plan = match &arguments.output {
        Some(path) => path.clone(),
        None => with_suffix(Path::new(arguments.model.file_stem().unwrap_or_default()), ".ron"),
    };
    if plan.file_name().is_none() || plan.is_dir() || plan.extension().is_some_and(|end| end == "safetensors") {
        return Err(Failure::OutputName(plan));
    }
    if let Some(folder) = plan.parent().filter(|folder| !folder.as_os_str().is_empty() && !folder.is_dir()) {
        return Err(Failure::OutputFolder(folder.to_owned()));
    }
    // Only .ron makes way: the end of another name may be what tells two plans apart.
    let weights = match plan.extension().is_some_and(|end| end == "ron") {
        true => plan.with_extension("safetensors"),
        false => with_suffix(&plan, ".safetensors"),
    };
    let inputs = [Some(&arguments.model), arguments.calibrate.as_ref()];
    for output in [&plan, &weights] {
        if inputs.into_iter().flatten().any(|input| same_file(input, output)) {
            return Err(Failure::Overwrites(output.clone()));
        }
    }
    Ok((plan, weights))
}

/// A path with more at its end, whatever dots are in its name.
fn with_suffix(path: &Path, suffix: &str) -> PathBuf {
    let mut longer = path.as_os_str().to_owned();
    longer.push(suffix);
    PathBuf::from(longer)
}

/// Says whether two paths lead to one file that exists, however they are spelled.
fn same_file(a: &Path, b: &Path) -> bool {
    matches!((a.canonicalize(), b.canonicalize()), (Ok(a), Ok(b)) if a == b)
}

/// Calibration images with a description, read in the shape that the network takes.
fn calibration(arguments: &Arguments, model: &[u8]) -> Result<Option<CalibrationInputs>, Failure> {
    let Some(path) = &arguments.calibrate else { return Ok(None) };
    let graph = onnx::import(model, &mut Vec::new());
    let graph = graph.map_err(|error| Failure::Compile { path: arguments.model.clone(), error })?;
    let inputs = read_samples(path, &graph.nodes[graph.input].shape, Some(CALIBRATION_INPUTS))?.inputs;
    Ok(Some(CalibrationInputs { description: format!("{} inputs of {}", inputs.len(), name_of(path)), inputs }))
}

/// The target that is asked for.
fn target(arguments: &Arguments) -> Result<Target, Failure> {
    let Some(path) = &arguments.target else { return Ok(Target::default()) };
    let text = std::fs::read_to_string(path).map_err(|error| Failure::ReadTarget { path: path.clone(), error })?;
    Target::read(&text).map_err(|error| Failure::Target { path: path.clone(), error })
}

/// The last part of a path.
fn name_of(path: &Path) -> String {
    path.file_name().unwrap_or_default().to_string_lossy().into_owned()
}

/// A spinner on standard error, if that is a terminal.
fn spinner() -> ProgressBar {
    let bar = ProgressBar::new_spinner();
    bar.set_style(ProgressStyle::with_template("{spinner} {msg} ({elapsed})").expect("a template of known fields"));
    bar.enable_steady_tick(Duration::from_millis(100));
    bar
}

/// What a user should know of a compilation, and a few lines on what came of it.
fn report(compiled: &Compiled, plan_path: &Path, verbose: bool) -> String {
    let mut text = String::new();
    let mut line = |content: String| writeln!(text, "{content}").expect("writing to a string never fails");
    compiled.notices.iter().for_each(|notice| line(format!("note: {notice}")));
    if verbose {
        line(quantization(&compiled.quantization));
        compiled.search.iter().for_each(|search| line(tried(search)));
    }
    let plan = &compiled.plan;
    let (cost, stages) = (plan.cost(), plan.server_stages().count());
    line(format!("{}: {stages} server stages, weights in {}", plan_path.display(), plan.weights.file));
    line(format!(
        "  {} kB up and {} kB down an inference, {} kB of Galois keys once a session",
        kilobytes(cost.bytes_up),
        kilobytes(cost.bytes_down),
        kilobytes(plan.galois_bytes())
    ));
    if let Some(budget) = plan.server_stages().map(|stage| stage.budget.reply_bits).min_by(f64::total_cmp) {
        line(format!("  smallest estimated noise budget {budget:.1} bits"));
    }
    text
}

/// What was decided about each layer's ranges.
fn quantization(report: &QuantizationReport) -> String {
    let mut table = table(&["layer", "activations", "weights", "silent channels", "values", "output error"]);
    for layer in &report.layers {
        let range = |clipped: bool| if clipped { "clipped" } else { "full range" };
        let sign = if layer.signed_activations { "signed" } else { "unsigned" };
        table.add_row([
            layer.name.clone(),
            format!("{sign}, {}", range(layer.clipped_activations)),
            range(layer.clipped_weights).to_owned(),
            layer.silent_channels.to_string(),
            layer.width.to_string(),
            layer.candidates.first().map_or(String::new(), |best| format!("{:.3e}", best.output_error)),
        ]);
    }
    format!(
        "quantised to {} activation bits and {} weight bits; the answer is the float network's on {:.1} % of {} inputs\n{table}",
        report.bits.activation,
        report.bits.weight,
        100.0 * report.agreement,
        report.calibration_inputs
    )
}

/// What was tried for one stage.
fn tried(search: &StageSearch) -> String {
    let mut table = table(&["packing", "N", "kB", "outcome"]);
    for attempt in &search.attempts {
        let (bytes, outcome) = match &attempt.outcome {
            Outcome::Misfit(misfit) => (String::new(), misfit.to_string()),
            Outcome::NoBudget(bits) if bits.is_finite() => {
                (String::new(), format!("the best noise budget is {bits:.1} bits"))
            }
            Outcome::NoBudget(_) => (String::new(), "128-bit security leaves no room for a modulus".to_owned()),
            Outcome::CannotBeat { bytes_at_least } => {
                (format!("{} or more", kilobytes(*bytes_at_least)), "cannot beat the best so far".to_owned())
            }
            Outcome::Fits(choice) => (kilobytes(choice.cost.bytes()), choice.packing.to_string()),
        };
        table.add_row([attempt.kind.to_string(), attempt.ring_degree.to_string(), bytes, outcome]);
    }
    format!("stage {}\n{table}", search.stage)
}
