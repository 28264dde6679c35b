//! `chococ check`: every node that cannot be compiled, all in one run.

use std::path::PathBuf;

use chococ_compiler::onnx;

use crate::failure::{Failure, read_model};
use crate::print;

/// What to check.
#[derive(clap::Args)]
pub struct Arguments {
    /// The network
    model: PathBuf,
}

pub fn run(arguments: &Arguments) -> Result<(), Failure> {
    let path = &arguments.model;
    let model = read_model(path)?;
    let report = onnx::check(&model).map_err(|error| Failure::Compile { path: path.clone(), error })?;
    if report.compiles() {
        return print(&format!("{}: all {} nodes can be compiled\n", path.display(), report.nodes));
    }
    Err(Failure::Check { path: path.clone(), report })
}
