//! Reads and writes plans: RON text that ends in a checksum, with the weights in a file beside it.

use std::fmt;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};

use ron::ser::PrettyConfig;
use serde::Deserialize;
use sha2::{Digest, Sha256};

use crate::check::{CheckedPlan, PlanError, check};
use crate::plan::{FORMAT_VERSION, Plan};
use crate::weights::{Weights, WeightsError};

/// A plan, or the weights of one, that cannot be read or written.
#[derive(Debug, thiserror::Error)]
#[error("{path}: {problem}")]
pub struct FileError {
    /// The file.
    pub path: PathBuf,
    /// What is wrong with it.
    pub problem: FileProblem,
}

/// What can be wrong with a file.
#[derive(Debug, thiserror::Error)]
pub enum FileProblem {
    /// The system cannot read or write it.
    #[error("{0}\n  try: check the path and its permissions")]
    Io(#[from] std::io::Error),
    /// No checksum at the end.
    #[error(
        "it does not end in a plan's checksum: it is cut short, or no plan\n  \
         try: the .ron file that `chococ compile` wrote, or compile the model again"
    )]
    NoChecksum,
    /// Something that is no file stands where one is to be written.
    #[error("no plain file, and nothing that may be replaced by one\n  try: another name")]
    NoFile,
    /// The text is not the one that was written.
    #[error("the plan's text does not match its checksum: it was changed or damaged\n  try: compile the model again")]
    Checksum,
    /// Another version of the format.
    #[error(
        "the plan has format version {found}, this program reads {FORMAT_VERSION}\n  \
         try: compile the model again with this version, or run the plan with the one that wrote it"
    )]
    Version {
        /// What the plan says.
        found: u32,
    },
    /// Not a plan.
    #[error("no plan: {0}\n  try: compile the model again")]
    Syntax(String),
    /// A plan that does not hold together.
    #[error(fmt = with_cure)]
    Plan(#[from] PlanError),
    /// No weights beside the plan.
    #[error("the plan's weights are missing\n  try: keep the file beside the plan, or compile the model again")]
    NoWeights,
    /// Other weights than the plan was made with.
    #[error(
        "not the weights that the plan was written with: their SHA-256 is {found}, the plan says {expected}\n  \
         try: bring plan and weights from the same compilation together"
    )]
    WeightsHash {
        /// The file's hash.
        found: String,
        /// What the plan says.
        expected: String,
    },
    /// Weights that do not fit the plan.
    #[error(transparent)]
    Weights(#[from] WeightsError),
}

/// Says what to do about a plan that does not hold together, where its own error does not.
fn with_cure(error: &PlanError, f: &mut fmt::Formatter<'_>) -> fmt::Result {
    match error {
        PlanError::Insecure { .. } => write!(f, "{error}"),
        _ => write!(f, "{error}\n  try: compile the model again"),
    }
}

impl FileProblem {
    fn of(self, path: &Path) -> FileError {
        FileError { path: path.to_owned(), problem: self }
    }
}

/// What stands before the checksum in the last line.
const CHECKSUM: &str = "// sha256: ";

/// SHA-256 in hexadecimal.
pub fn sha256(bytes: &[u8]) -> String {
    Sha256::digest(bytes).iter().map(|byte| format!("{byte:02x}")).collect()
}

/// Writes a plan as text; the same plan always gives the same text.
pub fn to_text(plan: &Plan) -> String {
    let style = PrettyConfig::new().indentor("  ").compact_arrays(true).separate_tuple_members(false).depth_limit(3);
    let body = ron::ser::to_string_pretty(plan, style).expect("a plan is plain data");
    format!("{body}\n{CHECKSUM}{}\n", sha256(body.as_bytes()))
}

/// Reads a plan from text and checks it.
///
/// # Errors
/// [`FileProblem`]: a damaged text, another version, or a plan that does not hold together.
pub fn from_text(text: &str) -> Result<CheckedPlan, FileProblem> {
    #[derive(Deserialize)]
    struct Version {
        format_version: u32,
    }
    let (body, checksum) = text.trim_end().rsplit_once('\n').ok_or(FileProblem::NoChecksum)?;
    let checksum = checksum.strip_prefix(CHECKSUM).ok_or(FileProblem::NoChecksum)?;
    // The version first: a later one may sign its plans differently.
    let version: Version = ron::from_str(body).map_err(|error| FileProblem::Syntax(error.to_string()))?;
    if version.format_version != FORMAT_VERSION {
        return Err(FileProblem::Version { found: version.format_version });
    }
    if sha256(body.as_bytes()) != checksum {
        return Err(FileProblem::Checksum);
    }
    let plan: Plan = ron::from_str(body).map_err(|error| FileProblem::Syntax(error.to_string()))?;
    Ok(check(plan)?)
}

/// Reads a plan from a file and checks it.
///
/// # Errors
/// [`FileError`].
pub fn read_plan(path: &Path) -> Result<CheckedPlan, FileError> {
    let read = || {
        let bytes = std::fs::read(path)?;
        from_text(std::str::from_utf8(&bytes).map_err(|_| FileProblem::NoChecksum)?)
    };
    read().map_err(|problem| problem.of(path))
}

/// Reads the weights of a plan that lies at `plan_path`, and checks them against it.
///
/// # Errors
/// [`FileError`]: no such file, another file, or weights that do not fit.
pub fn read_weights(plan_path: &Path, plan: &Plan) -> Result<Weights, FileError> {
    let path = plan_path.with_file_name(&plan.weights.file);
    let read = || {
        let bytes = std::fs::read(&path).map_err(|error| match error.kind() {
            ErrorKind::NotFound => FileProblem::NoWeights,
            _ => FileProblem::Io(error),
        })?;
        let (found, expected) = (sha256(&bytes), plan.weights.sha256.clone());
        if found != expected {
            return Err(FileProblem::WeightsHash { found, expected });
        }
        Ok(Weights::from_bytes(&bytes, plan)?)
    };
    read().map_err(|problem| problem.of(&path))
}

/// Writes a plan to `path` and its weights beside it, weights first, each whole or not at all.
///
/// # Errors
/// [`FileError`], where the system cannot write.
pub fn write(path: &Path, plan: &Plan, weights: &[u8]) -> Result<(), FileError> {
    let weights_path = path.with_file_name(&plan.weights.file);
    for path in [path, &weights_path] {
        if path.exists() && !path.is_file() {
            return Err(FileProblem::NoFile.of(path));
        }
    }
    write_whole(&weights_path, weights)?;
    write_whole(path, to_text(plan).as_bytes())
}

/// Writes to a file of another name first, so that nobody ever sees half of it.
fn write_whole(path: &Path, bytes: &[u8]) -> Result<(), FileError> {
    let mut partial = path.as_os_str().to_owned();
    partial.push(".partial");
    let written = std::fs::write(&partial, bytes).and_then(|()| std::fs::rename(&partial, path));
    written.map_err(|error| {
        // The first error is the one to report; what is left of the file is of no use.
        let _ = std::fs::remove_file(&partial);
        FileProblem::Io(error).of(path)
    })
}
