//! Plaintexts prepared to be multiplied with, which is how a server keeps its weights.

use super::context::Context;
use super::encode::Plaintext;
use super::lift::lift_centered;
use crate::math::vector;

/// A plaintext's centred lift, in evaluation form under all ciphertext primes.
///
/// The lift takes each coefficient from (-t/2, t/2], which makes products noisier by as little as the weights allow.
/// Where all primes are below 2^32, words take 4 bytes, not 8.
#[derive(Clone)]
pub struct Multiplicand {
    ring_degree: usize,
    words: Words,
}

/// Residues, one after the other.
#[derive(Clone)]
enum Words {
    Short(Vec<u32>),
    Long(Vec<u64>),
}

/// One residue of a multiplicand.
#[derive(Clone, Copy)]
pub(super) enum Residue<'a> {
    Short(&'a [u32]),
    Long(&'a [u64]),
}

impl Multiplicand {
    /// Prepares a plaintext: k transforms.
    pub fn new(context: &Context, plaintext: &Plaintext) -> Self {
        Self::scaled(context, plaintext, |_| None)
    }

    /// Prepares a plaintext divided by `divisor` *modulo q*, not modulo t.
    ///
    /// What it multiplies decrypts to nonsense until it has been added up to a multiple of `divisor`, as the sum of a
    /// ciphertext and its automorphisms is: then noise and message are back to those of the plaintext itself.
    ///
    /// # Panics
    /// When a ciphertext prime divides `divisor`.
    pub fn divided(context: &Context, plaintext: &Plaintext, divisor: u64) -> Self {
        Self::scaled(context, plaintext, |i| {
            let modulus = context.modulus(i);
            let residue = modulus.reduce(divisor);
            assert_ne!(residue, 0, "the divisor {divisor} has an inverse modulo q");
            Some(modulus.inverse(residue))
        })
    }

    /// Lifts, multiplies residue i by `factor(i)`, transforms.
    fn scaled(context: &Context, plaintext: &Plaintext, factor: impl Fn(usize) -> Option<u64>) -> Self {
        let n = context.ring_degree();
        let mut words = vec![0; n * context.top_level()];
        for (i, residue) in words.chunks_exact_mut(n).enumerate() {
            lift_centered(context.plaintext_modulus(), context.modulus(i), plaintext.coefficients(), residue);
            if let Some(factor) = factor(i) {
                vector::scalar_mul_assign(context.modulus(i), residue, factor);
            }
            context.ntt(i).forward(residue);
        }
        let short = context.parameters().keys.ciphertext_primes.iter().all(|&prime| prime < 1 << 32);
        let words =
            if short { Words::Short(words.iter().map(|&word| word as u32).collect()) } else { Words::Long(words) };
        Self { ring_degree: n, words }
    }

    /// Returns the memory that the words take, in bytes.
    pub fn size_bytes(&self) -> usize {
        match &self.words {
            Words::Short(words) => size_of_val(words.as_slice()),
            Words::Long(words) => size_of_val(words.as_slice()),
        }
    }

    /// Returns residue i.
    pub(super) fn residue(&self, i: usize) -> Residue<'_> {
        let range = i * self.ring_degree..(i + 1) * self.ring_degree;
        match &self.words {
            Words::Short(words) => Residue::Short(&words[range]),
            Words::Long(words) => Residue::Long(&words[range]),
        }
    }
}
