//! Ciphertexts: as the server computes with them, as the client sends them, as a reply comes back.

use super::context::Context;
use crate::math::chacha::ChaCha20;
use crate::math::poly::{Coefficients, Evaluations, Poly};

/// Expands to uniform polynomials. Two encryptions never share a seed *and* a stream: their difference would be the
/// difference of the messages plus noise.
pub type Seed = [u8; 32];

/// A pair (c0, c1) with c0 + c1 s = round(qm/t) + noise, in the form the server computes in.
///
/// Both have as many residues as the level says, and q is the product of that many first primes.
#[derive(Clone)]
pub struct Ciphertext {
    /// c0.
    pub c0: Poly<Evaluations>,
    /// c1.
    pub c1: Poly<Evaluations>,
}

impl Ciphertext {
    /// Makes the ciphertext (0, 0): an encryption of zero without any noise, from which sums start.
    pub fn zero(context: &Context, level: usize) -> Self {
        assert!((1..=context.top_level()).contains(&level), "a ciphertext keeps 1 to k residues");
        let zero = Poly::zero(context.ring_degree(), level);
        Self { c0: zero.clone(), c1: zero }
    }

    /// Returns how many residues are kept.
    pub fn level(&self) -> usize {
        self.c0.residue_count()
    }
}

/// A fresh ciphertext of the highest level whose c1 is named, not written out: what the client sends.
///
/// c0 is in coefficients, the form the client arrives at.
#[derive(Clone)]
pub struct SeededCiphertext {
    /// c0.
    pub c0: Poly<Coefficients>,
    /// Where c1 comes from, together with the stream.
    pub seed: Seed,
    /// Which of the seed's streams holds c1.
    pub stream: u64,
}

impl SeededCiphertext {
    /// Sets memory aside for a ciphertext; what it holds at first encrypts nothing.
    pub fn empty(context: &Context) -> Self {
        Self { c0: Poly::zero(context.ring_degree(), context.top_level()), seed: [0; 32], stream: 0 }
    }

    /// Writes c1 out and transforms c0: k transforms.
    pub fn expand(self, context: &Context) -> Ciphertext {
        let c1 = expand_uniform(context, self.c0.residue_count(), self.seed, self.stream);
        Ciphertext { c0: context.ring().forward(self.c0), c1 }
    }
}

/// Draws a uniform polynomial, taken to be evaluations, from ChaCha20's stream `stream` under `seed`: residue 0 first,
/// each as [`sample::uniform`](crate::math::sample::uniform) reads it.
pub(super) fn expand_uniform(context: &Context, residues: usize, seed: Seed, stream: u64) -> Poly<Evaluations> {
    context.ring().uniform(residues, &mut uniform_stream(seed, stream))
}

/// Opens a seed's stream at its start.
pub(super) fn uniform_stream(seed: Seed, stream: u64) -> ChaCha20 {
    ChaCha20::new(seed, stream)
}
