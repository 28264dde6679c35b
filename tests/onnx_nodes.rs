//! The node tests of ONNX's own backend suite: what is imported computes what ONNX says, or is refused by name.
//!
//! tests/onnx_nodes.py writes the suite as networks of one image, and says what it leaves out. Here each is imported
//! and evaluated in floats; those with a linear layer are compiled as well, and run under encryption, where every
//! integer must be the reference's.
//!
//! tests/onnx_nodes.refused lists the cases that the importer refuses, so that none starts or stops to be refused
//! unnoticed. Rewrites the list: `CHOCOC_WRITE_REFUSED=1`, with the command at [`FOLDER`].

use std::collections::BTreeMap;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};

use chococ_compiler::graph::{Graph, Op};
use chococ_compiler::passes::fold_batch_norm::fold_batch_norm;
use chococ_compiler::{CalibrationInputs, Options, compile, onnx};
use chococ_tests::{Pair, compare};
use ndarray::{ArrayD, Axis};
use ndarray_npy::read_npy;
use rayon::prelude::*;

/// Names the folder that onnx_nodes.py wrote:
/// `CHOCOC_ONNX_NODES=folder cargo test --release --workspace --test onnx_nodes -- --ignored --nocapture`.
const FOLDER: &str = "CHOCOC_ONNX_NODES";

/// Set to rewrite the list of cases that are refused.
const WRITE: &str = "CHOCOC_WRITE_REFUSED";

/// How far an answer may be from ONNX's, as in ONNX's own runner: relative, and absolute.
const TOLERANCES: [f32; 2] = [1e-3, 1e-7];

/// Bits of activations and weights under encryption.
const BITS: u32 = 8;

/// The fewest cases that must have run under encryption.
const LEAST_ENCRYPTED: usize = 30;

/// A case of the suite: a model, and what it answers to each sample.
struct Case {
    name: String,
    model: Vec<u8>,
    samples: Vec<Vec<f32>>,
    answers: Vec<Vec<f32>>,
}

/// What became of a case.
#[derive(Clone, Debug, PartialEq)]
enum Outcome {
    /// The importer refused it, for this reason.
    Refused(String),
    /// ONNX says otherwise.
    Wrong(String),
    /// The importer, the evaluation or the encrypted run panicked.
    Panicked(String),
    /// All answers are ONNX's.
    Passed(Encrypted),
}

/// What became of a case that passed, under encryption.
#[derive(Clone, Debug, PartialEq)]
enum Encrypted {
    /// It has no linear layer, so that nothing is encrypted.
    NoLinearLayer,
    /// The compiler refused it, for this reason.
    NotCompiled(String),
    /// Every integer was the reference's.
    Passed,
    /// Some integer was not.
    Wrong(String),
}

#[test]
#[ignore = "needs what tests/onnx_nodes.py writes"]
fn the_importer_computes_what_onnx_says() {
    let folder =
        std::env::var_os(FOLDER).unwrap_or_else(|| panic!("{FOLDER} names no folder; see the top of this file"));
    let names = names(Path::new(&folder));
    let outcomes: BTreeMap<String, Outcome> =
        names.into_par_iter().map(|path| Case::read(&path)).map(|case| (case.name.clone(), outcome(&case))).collect();

    let count = |holds: fn(&Outcome) -> bool| outcomes.values().filter(|outcome| holds(outcome)).count();
    let encrypted = count(|outcome| *outcome == Outcome::Passed(Encrypted::Passed));
    let wrong = count(|outcome| matches!(outcome, Outcome::Wrong(_) | Outcome::Passed(Encrypted::Wrong(_))));
    let panicked = count(|outcome| matches!(outcome, Outcome::Panicked(_)));
    println!(
        "{} cases: {} passed, {encrypted} of them under encryption, too; {} refused, {wrong} wrong, {panicked} panicked",
        outcomes.len(),
        count(|outcome| matches!(outcome, Outcome::Passed(_))),
        count(|outcome| matches!(outcome, Outcome::Refused(_))),
    );
    for (name, outcome) in &outcomes {
        match outcome {
            Outcome::Passed(Encrypted::NoLinearLayer) => {}
            Outcome::Passed(Encrypted::Passed) => println!("{name}: passed, under encryption, too"),
            Outcome::Passed(Encrypted::NotCompiled(reason)) => println!("{name}: not compiled: {reason}"),
            Outcome::Passed(Encrypted::Wrong(problem)) => println!("{name}: WRONG under encryption: {problem}"),
            Outcome::Refused(reason) => println!("{name}: refused: {reason}"),
            Outcome::Wrong(problem) => println!("{name}: WRONG: {problem}"),
            Outcome::Panicked(message) => println!("{name}: PANICKED: {message}"),
        }
    }
    assert_eq!((wrong, panicked), (0, 0), "cases that are wrong or panicked; they are listed above");
    assert!(encrypted >= LEAST_ENCRYPTED, "{encrypted} cases ran under encryption, of at least {LEAST_ENCRYPTED}");
    compare_refused(&outcomes);
}

/// Lists the folders of the cases, by name.
fn names(folder: &Path) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(folder).unwrap_or_else(|error| panic!("{}: {error}", folder.display()));
    let mut names: Vec<PathBuf> = entries.map(|entry| entry.expect("a folder that can be read").path()).collect();
    names.sort_unstable();
    names
}

impl Case {
    fn read(folder: &Path) -> Case {
        let name = folder.file_name().expect("a folder in a folder").to_string_lossy().into_owned();
        let numbers = |file: &str| -> Vec<Vec<f32>> {
            let array: ArrayD<f32> =
                read_npy(folder.join(file)).unwrap_or_else(|error| panic!("{name}, {file}: {error}"));
            array.axis_iter(Axis(0)).map(|one| one.iter().copied().collect()).collect()
        };
        let model = std::fs::read(folder.join("model.onnx")).unwrap_or_else(|error| panic!("{name}: {error}"));
        let (samples, answers) = (numbers("input.npy"), numbers("output.npy"));
        assert!(!samples.is_empty(), "{name}: there is a sample");
        assert_eq!(samples.len(), answers.len(), "{name}: an answer for each sample");
        Case { name, model, samples, answers }
    }
}

fn outcome(case: &Case) -> Outcome {
    catch_unwind(AssertUnwindSafe(|| imported(case))).unwrap_or_else(|payload| {
        Outcome::Panicked(match payload.downcast::<String>() {
            Ok(message) => *message,
            Err(payload) => payload.downcast::<&str>().map_or("no message".to_owned(), |message| message.to_string()),
        })
    })
}

fn imported(case: &Case) -> Outcome {
    let graph = match onnx::import(&case.model, &mut Vec::new()) {
        Ok(graph) => graph,
        Err(error) => return Outcome::Refused(first_line(&error.to_string())),
    };
    let folded = fold_batch_norm(graph.clone());
    for (index, (sample, answer)) in case.samples.iter().zip(&case.answers).enumerate() {
        let elements: usize = graph.nodes[graph.input].shape.iter().product();
        if elements != sample.len() {
            return Outcome::Wrong(format!("the network reads {elements} numbers, and a sample has {}", sample.len()));
        }
        if let Err(problem) = close(&graph.answer(sample), answer) {
            return Outcome::Wrong(format!("sample {index}: {problem}"));
        }
        if let Err(problem) = close(&folded.answer(sample), answer) {
            return Outcome::Wrong(format!("sample {index}, with batch norm folded: {problem}"));
        }
    }
    Outcome::Passed(encrypted(case, &graph))
}

/// Compares an answer with ONNX's.
fn close(ours: &[f32], theirs: &[f32]) -> Result<(), String> {
    if ours.len() != theirs.len() {
        return Err(format!("{} numbers, and should be {}", ours.len(), theirs.len()));
    }
    let [relative, absolute] = TOLERANCES;
    let same = |a: f32, b: f32| a == b || (a.is_nan() && b.is_nan()) || (a - b).abs() <= absolute + relative * b.abs();
    match ours.iter().zip(theirs).position(|(&a, &b)| !same(a, b)) {
        None => Ok(()),
        Some(place) => Err(format!("number {place} is {}, and should be {}", ours[place], theirs[place])),
    }
}

/// Compiles a case, calibrated on its own samples, and runs each under encryption.
fn encrypted(case: &Case, graph: &Graph) -> Encrypted {
    if !graph.nodes.node_weights().any(|node| matches!(node.op, Op::Linear { .. })) {
        return Encrypted::NoLinearLayer;
    }
    let options = Options {
        calibration: Some(CalibrationInputs { description: "its samples".to_owned(), inputs: case.samples.clone() }),
        activation_bits: BITS,
        weight_bits: BITS,
        ..Options::new(format!("{}.onnx", case.name), format!("{}.safetensors", case.name))
    };
    let compiled = match compile(&case.model, &options, &|_| {}) {
        Ok(compiled) => compiled,
        Err(error) => return Encrypted::NotCompiled(first_line(&error.to_string())),
    };
    if compiled.plan.server_stages().next().is_none() {
        return Encrypted::NoLinearLayer;
    }
    let mut pair = Pair::new(&compiled, 1);
    for (index, sample) in case.samples.iter().enumerate() {
        let run = pair.run(sample);
        if let Err(problem) = compare(&compiled, sample, &run) {
            return Encrypted::Wrong(format!("sample {index}: {problem}"));
        }
    }
    Encrypted::Passed
}

fn first_line(text: &str) -> String {
    text.lines().next().unwrap_or_default().to_owned()
}

/// Compares the cases that are refused with the list of them; or rewrites it.
fn compare_refused(outcomes: &BTreeMap<String, Outcome>) {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("onnx_nodes.refused");
    let lines = outcomes.iter().filter_map(|(name, outcome)| match outcome {
        Outcome::Refused(reason) => Some(format!("{name}\t{reason}\n")),
        _ => None,
    });
    let found: String = lines.collect();
    if std::env::var_os(WRITE).is_some() {
        std::fs::write(&path, &found).expect("the folder of the tests can be written to");
    }
    let listed = std::fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    let missing = |from: &str, of: &str| -> Vec<String> {
        of.lines().filter(|line| !from.lines().any(|other| other == *line)).map(str::to_owned).collect()
    };
    let (started, stopped) = (missing(&listed, &found), missing(&found, &listed));
    assert!(
        started.is_empty() && stopped.is_empty(),
        "refused, and not listed in {}: {started:#?}\nlisted, and not refused like that: {stopped:#?}",
        path.display()
    );
}
