//! What can go wrong when a plan is carried out.

use crate::bfv::context::ParameterError;
use crate::wire::{Kind, MessageError};

/// What a user, a file or a peer can cause.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum Error {
    /// An input of another size than the network's.
    #[error("the input has {found} numbers, the network takes {shape:?}\n  try: an input of the network's own shape")]
    InputLength {
        /// How many numbers came.
        found: usize,
        /// Shape of the network's input.
        shape: Vec<usize>,
    },
    /// An input that no network can take.
    #[error("the input is {value} at index {index}, and inputs must be finite\n  try: clean the data first")]
    InputNotFinite {
        /// The place, row-major, counted from 0.
        index: usize,
        /// The number.
        value: f32,
    },
    /// Encryption parameters that this library cannot compute with.
    #[error("key set {key_set}: {problem}\n  try: compile the model again, and leave the parameters to the compiler")]
    Parameters {
        /// Index of the key set.
        key_set: usize,
        /// What is wrong with them.
        problem: ParameterError,
    },
    /// Weights that lack a layer of the plan, or hold it in another size.
    #[error(
        "the weights do not hold layer `{layer}` as the plan has it\n  try: read the weights file that the plan names"
    )]
    Weights {
        /// The layer.
        layer: String,
    },
    /// A message that is not the one that should have come.
    #[error("a message was refused ({expected}): {problem}")]
    Message {
        /// What should have come.
        expected: Kind,
        /// What is wrong with it.
        problem: MessageError,
    },
    /// A reply to an inference that has ended.
    #[error("a reply came although the inference has ended")]
    Ended,
}

impl Error {
    /// Says that a message was not the one expected.
    pub(crate) fn message(expected: Kind) -> impl FnOnce(MessageError) -> Error {
        move |problem| Error::Message { expected, problem }
    }
}
