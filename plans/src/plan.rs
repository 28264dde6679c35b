//! The plan: what `chococ compile` writes and `choco-run` carries out. Plain data; [`check`](crate::check) says
//! whether it holds together.

use serde::{Deserialize, Serialize};

use crate::cost::Cost;
use crate::network::{ClientStep, LinearLayer, ValueId};
use crate::noise::Budget;
use crate::packing::Packing;
use crate::params::{KeyParameters, Parameters, StageParameters};
use crate::security;

/// Version of the format that this library reads and writes. CHANGELOG.md says how to migrate.
pub const FORMAT_VERSION: u32 = 3;

/// A client-aided plan for one network.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Plan {
    /// Version of the format: [`FORMAT_VERSION`].
    pub format_version: u32,
    /// The model that was compiled.
    pub model: FileId,
    /// The weights, which the server needs and the client does not.
    pub weights: FileId,
    /// How activations and weights were turned into integers.
    pub quantization: Quantization,
    /// What the plan's security rests on.
    pub security: Security,
    /// Shape of the network's input, without a batch axis. Value 0 holds it.
    pub input_shape: Vec<usize>,
    /// The value that is the network's answer.
    pub output: ValueId,
    /// Keys, and the encryption parameters that they depend on; each is used by some stage.
    pub key_sets: Vec<KeySet>,
    /// What is done, in order.
    pub stages: Vec<Stage>,
}

/// A file beside the plan.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct FileId {
    /// Its name, without a folder.
    pub file: String,
    /// SHA-256 of its bytes, in hexadecimal.
    pub sha256: String,
}

/// How a network was quantised.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Quantization {
    /// Bits of an activation that crosses the wire.
    pub activation_bits: u32,
    /// Bits of a weight, sign included.
    pub weight_bits: u32,
    /// Where ranges of activations come from.
    pub calibration: String,
}

/// What a plan's security rests on, in words that a report can print.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Security {
    /// Bits of classical security of every parameter set.
    pub bits: u32,
    /// The table that says so.
    pub table: String,
    /// Who learns what.
    pub threat_model: String,
}

/// The threat model of every plan in this format.
const THREAT_MODEL: &str = "honest-but-curious server: it sees ciphertexts, sizes and timing, never an input, an \
                                activation or an answer; the client may learn the model";

impl Security {
    /// What every plan in this format rests on.
    pub fn stated() -> Security {
        Security {
            bits: security::SECURITY_BITS,
            table: security::SOURCE.to_owned(),
            threat_model: THREAT_MODEL.to_owned(),
        }
    }
}

/// Stages that share one secret key and the Galois keys made from it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct KeySet {
    /// What the stages have in common.
    pub parameters: KeyParameters,
    /// The g of every automorphism X -> X^g that the server performs in any of them, ascending: one Galois key each,
    /// no more.
    pub galois: Vec<u64>,
}

/// A stretch of a plan on one side.
#[expect(clippy::large_enum_variant, reason = "a plan has a handful of stages, and a box would show in every match")]
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub enum Stage {
    /// In the clear, on the client.
    Client(Vec<ClientStep>),
    /// Encrypted, on the server; a round trip.
    Server(ServerStage),
}

/// One linear layer, and how it is evaluated under encryption.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ServerStage {
    /// What it computes.
    pub layer: LinearLayer,
    /// Which of the plan's key sets it uses.
    pub key_set: usize,
    /// Its own parameters, beside those of the key set.
    pub parameters: StageParameters,
    /// Where its numbers sit.
    pub packing: Packing,
    /// Noise budgets, estimated.
    pub budget: Budget,
    /// Bytes and operations, counted.
    pub cost: Cost,
    /// Why this packing: the best of those that lost, if any other was tried and fitted.
    pub runner_up: Option<RunnerUp>,
}

/// The choice that came second.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct RunnerUp {
    /// Its packing.
    pub packing: Packing,
    /// Its ring degree.
    pub ring_degree: usize,
    /// Its bytes, in both directions.
    pub bytes: usize,
}

impl Plan {
    /// The server stages, in order.
    pub fn server_stages(&self) -> impl Iterator<Item = &ServerStage> {
        self.stages.iter().filter_map(|stage| match stage {
            Stage::Server(server) => Some(server),
            Stage::Client(_) => None,
        })
    }

    /// The steps of all client stages, in order.
    pub fn client_steps(&self) -> impl Iterator<Item = &ClientStep> {
        self.stages.iter().flat_map(|stage| match stage {
            Stage::Client(steps) => steps.as_slice(),
            Stage::Server(_) => &[],
        })
    }

    /// All parameters of a stage; None where it names no key set of this plan.
    pub fn parameters(&self, stage: &ServerStage) -> Option<Parameters> {
        let keys = self.key_sets.get(stage.key_set)?.parameters.clone();
        Some(Parameters { keys, stage: stage.parameters })
    }

    /// Costs of all stages together.
    pub fn cost(&self) -> Cost {
        let mut total = Cost::default();
        self.server_stages().for_each(|stage| total.add(&stage.cost));
        total
    }

    /// Bytes of all Galois keys, sent once a session.
    pub fn galois_bytes(&self) -> usize {
        crate::cost::galois_message_bytes(self.key_sets.iter().map(|set| (&set.parameters, set.galois.len())))
    }
}
