//! `chococ ops`: the ONNX operators that are supported, and where each runs.

use chococ_compiler::onnx::operators;

use crate::failure::Failure;
use crate::print;

/// Prints a line an operator.
pub fn run() -> Result<(), Failure> {
    let width = operators().map(|(name, _)| name.len()).max().unwrap_or(0);
    let lines = operators().map(|(name, place)| format!("{name:<width$}  {place}\n"));
    print(&lines.collect::<String>())
}
