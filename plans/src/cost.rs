//! What a stage costs: bytes on the wire, byte for byte, and the operations of either side.

use serde::{Deserialize, Serialize};

use crate::evaluation::Evaluation;
use crate::packing::layout::Layout;
use crate::params::{KeyParameters, Parameters, bits_of};

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
    /// Rotations and merges of sums: one decomposition and one key switch each.
    pub rotations: usize,
    /// Products of ciphertexts with weights.
    pub products: usize,
    /// Products of ciphertexts with masks: none but in the masked baseline.
    pub mask_products: usize,
    /// Memory of the weights that the server keeps ready, in bytes.
    pub server_bytes: usize,
}

/// Counts what a stage costs.
pub fn count(parameters: &Parameters, layout: &Layout, evaluation: &Evaluation) -> Cost {
    let Evaluation { hoisted_rotations, rotations, products, mask_products, multiplicands, .. } = *evaluation;
    Cost {
        ciphertexts_up: layout.inputs(),
        ciphertexts_down: layout.outputs(),
        bytes_up: request_bytes(parameters, (0..layout.inputs()).map(|input| layout.sent_count(input))),
        bytes_down: reply_bytes(parameters, (0..layout.outputs()).map(|output| layout.returned_count(output))),
        hoisted_rotations,
        rotations,
        products,
        mask_products,
        server_bytes: multiplicands * multiplicand_bytes(&parameters.keys),
    }
}

/// Bytes of one polynomial modulo `primes`, each residue packed at its true width.
pub fn polynomial_bytes(ring_degree: usize, primes: &[u64]) -> usize {
    primes.iter().map(|&prime| packed_bytes(ring_degree, bits_of(prime))).sum()
}

/// Bytes of `count` numbers of `bits` bits, packed.
pub fn packed_bytes(count: usize, bits: u32) -> usize {
    (count * bits as usize).div_ceil(8)
}

/// Bytes of a request: `sent` says how many coefficients of c0 travel, for each fresh, seeded ciphertext.
pub fn request_bytes(parameters: &Parameters, sent: impl IntoIterator<Item = usize>) -> usize {
    let widths = || {
        parameters.keys.ciphertext_primes.iter().map(|&prime| bits_of(prime) - parameters.stage.request_dropped_bits)
    };
    let ciphertext = |sent| widths().map(|bits| packed_bytes(sent, bits)).sum::<usize>();
    HEADER_BYTES + SEED_BYTES + sent.into_iter().map(ciphertext).sum::<usize>()
}

/// Bytes of a reply: `returned` says how many coefficients of c0 travel, for each ciphertext.
pub fn reply_bytes(parameters: &Parameters, returned: impl IntoIterator<Item = usize>) -> usize {
    let bits = bits_of(parameters.stage.reply_modulus);
    let c1 = packed_bytes(parameters.keys.ring_degree, bits);
    let c0 = |returned| packed_bytes(returned, bits - parameters.stage.reply_dropped_bits);
    HEADER_BYTES + returned.into_iter().map(|returned| c1 + c0(returned)).sum::<usize>()
}

/// Memory of a plaintext that is ready to be multiplied by, in bytes: a word for each residue of each coefficient, of 32
/// bits where all primes are below 2^32.
pub fn multiplicand_bytes(keys: &KeyParameters) -> usize {
    let short = keys.ciphertext_primes.iter().all(|&prime| prime < 1 << 32);
    keys.ring_degree * keys.ciphertext_primes.len() * if short { size_of::<u32>() } else { size_of::<u64>() }
}

/// Bytes of one seeded Galois key: a polynomial modulo q P for each digit.
pub fn galois_key_bytes(parameters: &KeyParameters) -> usize {
    let mut primes = parameters.ciphertext_primes.clone();
    primes.extend(parameters.key_switching_prime);
    parameters.digits() * polynomial_bytes(parameters.ring_degree, &primes)
}

/// Bytes of the one message that carries all Galois keys: `sets` pairs parameters with their number of keys.
pub fn galois_message_bytes<'a>(sets: impl IntoIterator<Item = (&'a KeyParameters, usize)>) -> usize {
    let set = |(parameters, keys): (&KeyParameters, usize)| match keys {
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
        self.server_bytes += other.server_bytes;
    }
}
