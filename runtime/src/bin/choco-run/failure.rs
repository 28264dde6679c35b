//! What can go wrong, and the exit code that says so.

use std::process::ExitCode;

use chococ_plans::file::FileError;
use chococ_plans::input::InputError;
use chococ_runtime::Error;
use chococ_runtime::reference::Difference;

/// The exit codes, for `--help`.
pub const EXIT_CODES: &str = "\
Exit codes:
  0  done
  1  standard output cannot be written, or no threads can be had
  2  wrong arguments
  3  the plan or its weights cannot be read, are damaged, or do not fit together
  4  the input cannot be read, or does not fit the plan
  5  the encrypted run differs from the reference
  6  client and server do not understand each other";

/// Why a command ends without having done its work.
#[derive(Debug, thiserror::Error)]
pub enum Failure {
    /// Standard output cannot be written.
    #[error("cannot write the output: {0}\n  try: check where standard output goes")]
    Output(std::io::Error),
    /// The system gives no threads.
    #[error("cannot start the threads: {0}\n  try: fewer of them, by `--threads T`")]
    Threads(#[from] rayon::ThreadPoolBuildError),
    /// The plan or its weights.
    #[error(transparent)]
    Plan(#[from] FileError),
    /// The input's file.
    #[error(transparent)]
    Input(#[from] InputError),
    /// An index beyond the samples of a file.
    #[error("there is no sample {index}: the file has {samples}\n  try: `--index` from 0 to {}", samples - 1)]
    Index {
        /// What was asked for.
        index: usize,
        /// Samples in the file.
        samples: usize,
    },
    /// Data to evaluate on that does not say what is right.
    #[error("the data has no labels\n  try: `numpy.savez(path, images=images, labels=labels)`")]
    NoLabels,
    /// A comparison of the reference with itself.
    #[error(
        "`--verify` compares an encrypted run with the plain one, which has nothing to be compared with\n  try: leave out `--verify` or `--backend plain`"
    )]
    NothingToVerify,
    /// The encrypted run is wrong.
    #[error("verification failed: {0}\n  try: report it as a bug, with the model and the options")]
    Difference(#[from] Difference),
    /// What the library says: parameters, weights, an input, or a message.
    #[error(transparent)]
    Runtime(#[from] Error),
}

impl Failure {
    /// The exit code of this failure.
    pub fn exit_code(&self) -> ExitCode {
        ExitCode::from(match self {
            Failure::Output(_) | Failure::Threads(_) => 1,
            Failure::NothingToVerify => 2,
            Failure::Plan(_) | Failure::Runtime(Error::Parameters { .. } | Error::Weights { .. }) => 3,
            Failure::Input(_) | Failure::Index { .. } | Failure::NoLabels => 4,
            Failure::Runtime(Error::InputLength { .. } | Error::InputNotFinite { .. }) => 4,
            Failure::Difference(_) => 5,
            Failure::Runtime(Error::Message { .. } | Error::Ended) => 6,
        })
    }
}
