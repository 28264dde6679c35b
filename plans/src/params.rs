//! Encryption parameters, as unchecked numbers, and the conventions that go with them.
//!
//! The N slots of a plaintext are 2 rows of N/2. Slot j of the first row is the value of the plaintext polynomial at
//! zeta^(3^j), slot j of the second row its value at zeta^(-3^j), where zeta is the smallest primitive 2N-th root of
//! unity modulo t. Hence the automorphism X -> X^(3^s) rotates each row left by s, and X -> X^(2N-1) swaps the rows.

use serde::{Deserialize, Serialize};

use crate::packing::Rotation;

/// Generator of the slot order: slot j sits at the exponent 3^j modulo 2N.
pub const SLOT_GENERATOR: u64 = 3;

/// Variance of one error coefficient: centred binomial of 2 x 21 bits, standard deviation 3.24.
pub const ERROR_VARIANCE: f64 = 10.5;

/// Variance of one coefficient of the uniform ternary secret.
pub const SECRET_VARIANCE: f64 = 2.0 / 3.0;

/// Everything that fixes one BFV instance, and the form in which its ciphertexts travel.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Parameters {
    /// What keys depend on.
    pub keys: KeyParameters,
    /// What they do not.
    pub stage: StageParameters,
}

/// The parameters that keys depend on: stages that agree in them may share a secret key and its Galois keys.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct KeyParameters {
    /// N, a power of two: coefficients in a polynomial, slots in a plaintext.
    pub ring_degree: usize,
    /// The primes of the ciphertext modulus q, each 1 modulo 2N.
    pub ciphertext_primes: Vec<u64>,
    /// The special prime P that only key switching uses; absent where nothing is rotated or merged.
    pub key_switching_prime: Option<u64>,
    /// Key switching cuts each residue into digits of this many bits.
    pub digit_bits: u32,
}

/// The parameters that a stage has for itself, whatever keys it shares.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct StageParameters {
    /// t: for slots a prime that is 1 modulo 2N, for coefficients any number.
    pub plaintext_modulus: u64,
    /// Low bits of c0 that a request leaves out; 0 where q has several primes.
    pub request_dropped_bits: u32,
    /// The prime, 1 modulo 2N, that a reply is switched to: its c1 travels transformed.
    pub reply_modulus: u64,
    /// Low bits of c0 that a reply leaves out.
    pub reply_dropped_bits: u32,
}

/// Returns the g for which X -> X^g rotates rows left, and then swaps them if the rotation says so.
pub fn rotation_element(ring_degree: usize, rotation: Rotation) -> u64 {
    let order = 2 * ring_degree as u64;
    let rotated = (0..rotation.steps % (ring_degree / 2)).fold(1, |power, _| power * SLOT_GENERATOR % order);
    if rotation.swap { order - rotated } else { rotated }
}

/// Returns the g for which X -> X^g keeps even multiples of `step` as they are and negates odd ones.
pub fn merging_element(ring_degree: usize, step: usize) -> u64 {
    (ring_degree / step) as u64 + 1
}

/// Width of the numbers modulo `modulus`, in bits.
pub fn bits_of(modulus: u64) -> u32 {
    u64::BITS - (modulus - 1).leading_zeros()
}

impl KeyParameters {
    /// Slots in one of the two rows.
    pub fn row_length(&self) -> usize {
        self.ring_degree / 2
    }

    /// log2 of the ciphertext modulus q.
    pub fn log2_q(&self) -> f64 {
        log2_of(&self.ciphertext_primes)
    }

    /// log2 of the whole modulus, special prime included: what security is judged by.
    pub fn log2_whole(&self) -> f64 {
        self.log2_q() + self.key_switching_prime.map_or(0.0, |p| (p as f64).log2())
    }

    /// Digits that key switching cuts a whole ciphertext polynomial into, residue by residue.
    pub fn digits(&self) -> usize {
        self.ciphertext_primes.iter().map(|&q| bits_of(q).div_ceil(self.digit_bits) as usize).sum()
    }
}

fn log2_of(primes: &[u64]) -> f64 {
    primes.iter().map(|&p| (p as f64).log2()).sum()
}
