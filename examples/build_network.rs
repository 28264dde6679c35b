//! Writes a network with random weights, in the shape of one too large for this repository, and made-up images for it.
//!
//! Look at: the two files, which `chococ compile` and `choco-run` take like any others. Bytes, times and correctness
//! can be measured with them; accuracy cannot, as neither weights nor images mean anything.
//!
//! Run: cargo run --release --example build_network -- vgg16 vgg16.onnx --inputs vgg16.npz

use std::io::{Cursor, ErrorKind, Write};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use chococ_models::{BuiltNetwork, built, built_named};
use clap::builder::{PossibleValue, PossibleValuesParser, TypedValueParser};
use clap::error::ErrorKind as Misuse;
use clap::{CommandFactory, Parser};
use ndarray::Array4;
use ndarray_npy::NpzWriter;

const EXIT_CODES: &str = "\
The weights are random and the images made up, the same ones on every machine:
bytes, times and correctness can be measured with them, accuracy cannot.

Exit codes:
  0  done
  1  standard output cannot be written
  2  wrong arguments
  3  a file cannot be written";

/// Write a network with random weights as an ONNX file, and made-up images for it
#[derive(Parser)]
#[command(name = "build_network", after_help = EXIT_CODES)]
struct Arguments {
    /// Which network
    #[arg(value_parser = names())]
    network: &'static BuiltNetwork,
    /// Where to write it
    #[arg(value_name = "MODEL.onnx")]
    model: PathBuf,
    /// Where to write images in its input's shape, as `images` in an .npz file: to calibrate with, and to run
    #[arg(long, value_name = "FILE.npz")]
    inputs: Option<PathBuf>,
    /// How many images, at most 10000
    #[arg(long, requires = "inputs", default_value_t = 100, value_parser = clap::value_parser!(u16).range(1..=10_000))]
    count: u16,
}

/// Takes the names of the built networks, and lists them in `--help`.
fn names() -> impl TypedValueParser<Value = &'static BuiltNetwork> {
    let values = built().iter().map(|network| PossibleValue::new(network.name).help(network.about));
    PossibleValuesParser::new(values).map(|name| built_named(&name).expect("clap takes no other name"))
}

/// Why the work is not done.
#[derive(Debug, thiserror::Error)]
enum Failure {
    #[error("cannot write the output: {0}\n  try: check where standard output goes")]
    Output(std::io::Error),
    #[error("{path}: {error}\n  try: a folder that is there and writable, with room on its disk")]
    File { path: PathBuf, error: std::io::Error },
}

fn main() -> ExitCode {
    let arguments = Arguments::parse();
    if arguments.inputs.as_ref() == Some(&arguments.model) {
        let text = "the model and its images cannot share one file\n  try: another name behind `--inputs`";
        Arguments::command().error(Misuse::ArgumentConflict, text).exit();
    }
    match run(&arguments) {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => {
            // Where standard error is closed, nobody is left to be told.
            let _ = writeln!(std::io::stderr(), "error: {failure}");
            ExitCode::from(if matches!(failure, Failure::Output(_)) { 1 } else { 3 })
        }
    }
}

fn run(arguments: &Arguments) -> Result<(), Failure> {
    let (network, path) = (arguments.network, &arguments.model);
    let onnx = network.onnx();
    write(path, &onnx)?;
    let megabytes = onnx.len() as f64 / 1e6;
    print(&format!(
        "{}: {}; {} multiplications, {} random weights, {megabytes:.1} MB\n",
        path.display(),
        network.about,
        network.macs,
        network.weights,
    ))?;
    if let Some(path) = &arguments.inputs {
        let count = usize::from(arguments.count);
        write(path, &images(network, count))?;
        print(&format!("{}: {count} made-up images\n", path.display()))?;
    }
    Ok(())
}

fn write(path: &Path, bytes: &[u8]) -> Result<(), Failure> {
    std::fs::write(path, bytes).map_err(|error| Failure::File { path: path.to_owned(), error })
}

/// An .npz file with `images`, float32.
fn images(network: &BuiltNetwork, count: usize) -> Vec<u8> {
    let [channels, height, width] = network.input_shape;
    let pixels = network.inputs(count).concat();
    let images = Array4::from_shape_vec((count, channels, height, width), pixels).expect("images of the input's shape");
    let mut npz = NpzWriter::new_compressed(Cursor::new(Vec::new()));
    npz.add_array("images", &images).expect("memory takes what is written");
    npz.finish().expect("memory takes what is written").into_inner()
}

/// Prints to standard output; a reader that has gone away, as `head` does, is no failure.
fn print(text: &str) -> Result<(), Failure> {
    match std::io::stdout().write_all(text.as_bytes()) {
        Err(error) if error.kind() != ErrorKind::BrokenPipe => Err(Failure::Output(error)),
        _ => Ok(()),
    }
}
