//! What can go wrong, and the exit code that says so.

use std::path::PathBuf;
use std::process::ExitCode;

use chococ_compiler::Error;
use chococ_compiler::onnx::Report;
use chococ_plans::file::FileError;
use chococ_plans::input::InputError;

/// The exit codes, for `--help`.
pub const EXIT_CODES: &str = "\
Exit codes:
  0  done
  1  standard output cannot be written
  2  wrong arguments
  3  a file cannot be read or written, or is damaged: the model, the plan
  4  the network cannot be compiled, with these options or at all
  5  the calibration data does not fit";

/// Why a command ends without having done its work.
#[derive(Debug, thiserror::Error)]
pub enum Failure {
    /// Standard output cannot be written.
    #[error("cannot write the output: {0}")]
    Output(std::io::Error),
    /// The model's file cannot be read.
    #[error("{path}: {error}")]
    Model {
        /// The file.
        path: PathBuf,
        /// What the system says.
        error: std::io::Error,
    },
    /// A plan or its weights cannot be read or written.
    #[error(transparent)]
    Plan(#[from] FileError),
    /// The output's name serves for no file.
    #[error("{0} is no name for a plan\n  try: `-o NAME.ron`")]
    OutputName(PathBuf),
    /// The network cannot be compiled.
    #[error("{path}: {error}")]
    Compile {
        /// The model's file.
        path: PathBuf,
        /// What stands in the way.
        error: Error,
    },
    /// Nodes that cannot be compiled, as `check` lists them.
    #[error("{path}: {} of {} nodes cannot be compiled\n{report}", report.problems.len(), report.nodes)]
    Check {
        /// The model's file.
        path: PathBuf,
        /// All of them.
        report: Report,
    },
    /// Calibration data that cannot be used.
    #[error("{0}")]
    Calibration(#[from] InputError),
}

impl Failure {
    /// The exit code of this failure.
    pub fn exit_code(&self) -> ExitCode {
        ExitCode::from(match self {
            Failure::Output(_) => 1,
            Failure::OutputName(_) => 2,
            Failure::Model { .. } | Failure::Plan(_) => 3,
            Failure::Compile { error, .. } => match error {
                Error::NotOnnx { .. } => 3,
                Error::NoCalibrationInputs | Error::CalibrationShape { .. } | Error::CalibrationNotFinite { .. } => 5,
                Error::CannotCompile(_)
                | Error::NoParameters(_)
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
pub fn read_model(path: &std::path::Path) -> Result<Vec<u8>, Failure> {
    std::fs::read(path).map_err(|error| Failure::Model { path: path.to_owned(), error })
}
