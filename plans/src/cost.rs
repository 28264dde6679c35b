//! What a stage costs: bytes on the wire, byte for byte, and the operations of either side.

use serde::{Deserialize, Serialize};

use crate::packing::layout::Layout;
use crate::packing::program::Program;
use crate::params::{Parameters, bits_of};

/// Bytes in front of every message: see the runtime's `wire` module for their meaning.
pub const HEADER_BYTES: usize = 16;

/// Bytes of the seed from which the receiver expands what the sender drew at random.
pub const SEED_BYTES: usize = 32;

/// Costs of one server stage.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Cost {
    /// Ciphertexts from client to server.
    pub ciphertexts_up: usize,
    /// Ciphertexts from server to client.
    pub ciphertexts_down: usize,
    /// Bytes of the message that carries them up.
    pub bytes_up: usize,
    /// Bytes of the message that carries them down.
    pub bytes_down: usize,
    /// Rotations of inputs: one key switch each, but one decomposition an input ciphertext.
    pub hoisted_rotations: usize,
    /// Rotations of sums: one decomposition and one key switch each.
    pub rotations: usize,
    /// Products of ciphertexts with weights.
    pub products: usize,
    /// Products of ciphertexts with masks: none but in the masked baseline.
    pub mask_products: usize,
}

/// Counts what a stage costs.
pub fn count(parameters: &Parameters, layout: &Layout, program: &Program) -> Cost {
    let rotated = program.rotated_inputs();
    let (up, down) = (layout.placement.inputs, layout.placement.outputs);
    Cost {
        ciphertexts_up: up,
        ciphertexts_down: down,
        bytes_up: upload_bytes(parameters, up),
        bytes_down: reply_bytes(parameters, down),
        hoisted_rotations: rotated.iter().filter(|(_, baby)| !baby.rotation.is_identity()).count(),
        rotations: program.rotations_of_sums(),
        products: program.products(),
        mask_products: rotated.iter().filter(|(_, baby)| layout.mask(baby.offset).is_some()).count(),
    }
}

/// Bytes of one polynomial modulo `primes`, each residue packed at its true width.
pub fn polynomial_bytes(ring_degree: usize, primes: &[u64]) -> usize {
    primes.iter().map(|&prime| (ring_degree * bits_of(prime) as usize).div_ceil(8)).sum()
}

/// Bytes of a message with `ciphertexts` fresh, seeded ciphertexts.
pub fn upload_bytes(parameters: &Parameters, ciphertexts: usize) -> usize {
    let c0 = polynomial_bytes(parameters.ring_degree, &parameters.ciphertext_primes);
    HEADER_BYTES + SEED_BYTES + ciphertexts * c0
}

/// Bytes of a message with `ciphertexts` results, modulus switched.
pub fn reply_bytes(parameters: &Parameters, ciphertexts: usize) -> usize {
    let kept = &parameters.ciphertext_primes[..parameters.reply_primes];
    HEADER_BYTES + ciphertexts * 2 * polynomial_bytes(parameters.ring_degree, kept)
}

/// Bytes of one seeded Galois key: a polynomial modulo q P for each digit.
pub fn galois_key_bytes(parameters: &Parameters) -> usize {
    let mut primes = parameters.ciphertext_primes.clone();
    primes.extend(parameters.key_switching_prime);
    parameters.digits() * polynomial_bytes(parameters.ring_degree, &primes)
}

/// Bytes of the one message that carries all Galois keys: `sets` pairs parameters with their number of keys.
pub fn galois_message_bytes<'a>(sets: impl IntoIterator<Item = (&'a Parameters, usize)>) -> usize {
    let set = |(parameters, keys): (&Parameters, usize)| match keys {
        0 => 0,
        keys => SEED_BYTES + keys * galois_key_bytes(parameters),
    };
    HEADER_BYTES + sets.into_iter().map(set).sum::<usize>()
}

impl Cost {
    /// Bytes in both directions.
    pub fn bytes(&self) -> usize {
        self.bytes_up + self.bytes_down
    }

    /// Adds another stage's costs.
    pub fn add(&mut self, other: &Cost) {
        self.ciphertexts_up += other.ciphertexts_up;
        self.ciphertexts_down += other.ciphertexts_down;
        self.bytes_up += other.bytes_up;
        self.bytes_down += other.bytes_down;
        self.hoisted_rotations += other.hoisted_rotations;
        self.rotations += other.rotations;
        self.products += other.products;
        self.mask_products += other.mask_products;
    }
}
