//! What can go wrong, and the exit code that says so.

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use chococ_compiler::Error;
use chococ_compiler::target::TargetError;
use chococ_plans::check::PlanError;
use chococ_plans::file::FileError;
use chococ_plans::input::InputError;

use crate::check::Refusals;

/// The exit codes, for `--help`.
pub const EXIT_CODES: &str = "\
Exit codes:
  0  done
  1  standard output cannot be written
  2  wrong arguments
  3  a file cannot be read or written, or is damaged: the model, the plan, its weights, the target
  4  the network cannot be compiled, with these options or at all
  5  the calibration data cannot be read, or does not fit the network";

/// Why a command ends without having done its work.
#[derive(Debug, thiserror::Error)]
pub enum Failure {
    /// Standard output cannot be written.
    #[error("cannot write the output: {0}\n  try: check where standard output goes")]
    Output(std::io::Error),
    /// The model's file cannot be read.
    #[error("{path}: {error}\n  try: check the path and its permissions")]
    Model {
        /// The file.
        path: PathBuf,
        /// What the system says.
        error: std::io::Error,
    },
    /// The target's file cannot be read.
    #[error("{path}: {error}\n  try: check the path and its permissions")]
    ReadTarget {
        /// The file.
        path: PathBuf,
        /// What the system says.
        error: std::io::Error,
    },
    /// The target's file does not hold one.
    #[error("{path}: {error}")]
    Target {
        /// The file.
        path: PathBuf,
        /// What is wrong with it.
        error: TargetError,
    },
    /// A plan or its weights cannot be read or written.
    #[error(transparent)]
    Plan(#[from] FileError),
    /// The output's name serves for no plan.
    #[error("{0} is no name for a plan\n  try: `-o NAME.ron`")]
    OutputName(PathBuf),
    /// The output would replace what it is made from.
    #[error("{0} is read by this command and would be overwritten\n  try: another name, by `-o NAME.ron`")]
    Overwrites(PathBuf),
    /// The output's folder is not there.
    #[error("{0}: there is no such folder\n  try: create it, or `-o` with another path")]
    OutputFolder(PathBuf),
    /// The network cannot be compiled.
    #[error("{path}: {error}{}", cure_of_network(error))]
    Compile {
        /// The model's file.
        path: PathBuf,
        /// What stands in the way.
        error: Error,
    },
    /// Nodes that cannot be compiled, as `check` lists them.
    #[error("{path}: {refusals}")]
    Check {
        /// The model's file.
        path: PathBuf,
        /// All of them.
        refusals: Refusals,
    },
    /// Calibration data that cannot be used.
    #[error("{0}")]
    Calibration(#[from] InputError),
}

/// What to do about a network of which no plan can be made, where the plan's own error does not say.
fn cure_of_network(error: &Error) -> &'static str {
    match error {
        Error::Plan(PlanError::FileName(_)) => "\n  try: rename the model, or `-o NAME.ron`",
        Error::Plan(PlanError::TooLarge { .. }) => "\n  try: smaller images, or fewer channels",
        _ => "",
    }
}

impl Failure {
    /// The exit code of this failure.
    pub fn exit_code(&self) -> ExitCode {
        ExitCode::from(match self {
            Failure::Output(_) => 1,
            Failure::OutputName(_) | Failure::Overwrites(_) => 2,
            Failure::Model { .. }
            | Failure::ReadTarget { .. }
            | Failure::Target { .. }
            | Failure::Plan(_)
            | Failure::OutputFolder(_) => 3,
            Failure::Compile { error, .. } => match error {
                Error::NotOnnx { .. } => 3,
                Error::NoCalibrationInputs | Error::CalibrationShape { .. } | Error::CalibrationNotFinite { .. } => 5,
                Error::CannotCompile(_)
                | Error::NoParameters(_)
                | Error::GaloisKeys { .. }
                | Error::Plan(_)
                | Error::Bits { .. }
                | Error::NotFinite { .. }
                | Error::RangeTooWide { .. }
                | Error::DuplicateName { .. } => 4,
            },
            Failure::Check { .. } => 4,
            Failure::Calibration(_) => 5,
        })
    }
}

/// Reads a model's file.
///
/// # Errors
/// [`Failure::Model`].
pub fn read_model(path: &Path) -> Result<Vec<u8>, Failure> {
    std::fs::read(path).map_err(|error| Failure::Model { path: path.to_owned(), error })
}
