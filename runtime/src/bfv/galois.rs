//! Galois keys: what the server needs to apply X -> X^g to a ciphertext, made by the client.

use super::ciphertext::{Seed, uniform_stream};
use super::context::Context;
use super::digits::{Digit, digits};
use super::keys::{SecretKey, error, subtract_product};
use crate::math::poly::{Automorphism, Evaluations, Poly};
use crate::math::vector;
use rand::CryptoRng;
use std::collections::BTreeMap;
use zeroize::Zeroizing;

/// What can be wrong with Galois keys.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum GaloisKeyError {
    /// The parameters rotate nothing.
    #[error("there is no key-switching prime, so there are no Galois keys")]
    NoKeySwitchingPrime,
    /// The number is not the exponent of an automorphism.
    #[error("{element} is not a Galois element: odd, and below {double_degree}")]
    NotGaloisElement {
        /// The number.
        element: u64,
        /// 2N.
        double_degree: u64,
    },
    /// A rotation was asked for whose key was not sent.
    #[error("no Galois key for element {0}")]
    Missing(u64),
}

/// A Galois key as it travels: the a parts are named, not written out.
#[derive(Clone)]
pub struct SeededGaloisKey {
    /// The g of X -> X^g.
    pub element: u64,
    /// Where the a parts come from, together with the stream: digit by digit, each residue by residue.
    pub seed: Seed,
    /// Which of the seed's streams holds them.
    pub stream: u64,
    /// The b parts, one a digit, each over all primes.
    pub b: Vec<Poly<Evaluations>>,
}

impl SeededGaloisKey {
    /// Makes the key for one Galois element; draws one error a digit from `rng`.
    ///
    /// For the digit that weighs B in residue i: b = -a s' + e + P B s in that residue, and -a s' + e in all others
    /// and under P, where s'(X) = s(X^(1/g)). So the key takes c1 s to the secret s', and X -> X^g, applied to the
    /// *result*, takes s' to s. (Applied to the whole key it gives the usual one, from s(X^g) to s. Permuting the
    /// result instead is cheaper than permuting all digits.)
    ///
    /// A pair of seed and stream serves *once*, for a key or a ciphertext.
    ///
    /// # Errors
    /// [`GaloisKeyError::NoKeySwitchingPrime`] and [`GaloisKeyError::NotGaloisElement`].
    pub fn generate(
        context: &Context,
        secret: &SecretKey,
        element: u64,
        seed: Seed,
        stream: u64,
        rng: &mut impl CryptoRng,
    ) -> Result<Self, GaloisKeyError> {
        check(context, element)?;
        let (ring, residues) = (context.ring(), context.key_residues());
        let inverse = Automorphism::new(ring.ring_degree(), inverse_element(ring.ring_degree(), element));
        let source = Zeroizing::new(secret.evaluations().automorphism(&inverse));
        let mut uniform = uniform_stream(seed, stream);
        let b = digits(context, context.top_level()).map(|digit| {
            let a = ring.uniform(residues, &mut uniform);
            let mut b = error(ring, residues, rng);
            subtract_product(ring, &mut b, &a, &source);
            add_weighted_secret(context, secret, digit, &mut b);
            b
        });
        Ok(Self { element, seed, stream, b: b.collect() })
    }

    /// Writes the a parts out.
    ///
    /// # Errors
    /// As for [`generate`](Self::generate): the key may come from a peer.
    pub fn expand(self, context: &Context) -> Result<GaloisKey, GaloisKeyError> {
        check(context, self.element)?;
        let mut uniform = uniform_stream(self.seed, self.stream);
        let expanded =
            self.b.into_iter().map(|b| KeyDigit { b, a: context.ring().uniform(context.key_residues(), &mut uniform) });
        let digits = expanded.collect();
        Ok(GaloisKey { automorphism: Automorphism::new(context.ring_degree(), self.element), digits })
    }
}

/// Adds P B s to the residue of the digit that weighs B.
fn add_weighted_secret(context: &Context, secret: &SecretKey, digit: Digit, b: &mut Poly<Evaluations>) {
    let modulus = context.modulus(digit.residue);
    let special = context.modulus(context.top_level()).value();
    let weight = modulus.mul(modulus.reduce(special), modulus.reduce(1 << digit.shift));
    let mut weighted = Zeroizing::new(secret.evaluations().residue(digit.residue).to_vec());
    vector::scalar_mul_assign(modulus, &mut weighted, weight);
    vector::add_assign(modulus, b.residue_mut(digit.residue), &weighted);
}

/// Inverts a Galois element modulo 2N: the group has exponent N/2, so g^(N/2 - 1) is 1/g.
fn inverse_element(ring_degree: usize, element: u64) -> u64 {
    let order = 2 * ring_degree as u64;
    (1..ring_degree / 2).fold(1, |power, _| power * element % order)
}

fn check(context: &Context, element: u64) -> Result<(), GaloisKeyError> {
    let double_degree = 2 * context.ring_degree() as u64;
    if !context.has_key_switching() {
        return Err(GaloisKeyError::NoKeySwitchingPrime);
    }
    if element.is_multiple_of(2) || element >= double_degree {
        return Err(GaloisKeyError::NotGaloisElement { element, double_degree });
    }
    Ok(())
}

/// A Galois key as the server uses it.
#[derive(Clone)]
pub struct GaloisKey {
    automorphism: Automorphism,
    digits: Vec<KeyDigit>,
}

/// What one digit is multiplied by, over all primes.
#[derive(Clone)]
pub(super) struct KeyDigit {
    pub b: Poly<Evaluations>,
    pub a: Poly<Evaluations>,
}

impl GaloisKey {
    /// Returns the g of X -> X^g.
    pub fn element(&self) -> u64 {
        self.automorphism.galois_element()
    }

    /// Returns the map X -> X^g.
    pub(super) fn automorphism(&self) -> &Automorphism {
        &self.automorphism
    }

    /// Returns the parts, one a digit of the highest level.
    pub(super) fn digits(&self) -> &[KeyDigit] {
        &self.digits
    }
}

/// The Galois keys a server has, by their elements.
#[derive(Clone, Default)]
pub struct GaloisKeys {
    keys: BTreeMap<u64, GaloisKey>,
}

impl GaloisKeys {
    /// Returns the key for a Galois element.
    ///
    /// # Errors
    /// [`GaloisKeyError::Missing`], naming the element.
    pub fn get(&self, element: u64) -> Result<&GaloisKey, GaloisKeyError> {
        self.keys.get(&element).ok_or(GaloisKeyError::Missing(element))
    }

    /// Lists the elements there are keys for, in order.
    pub fn elements(&self) -> impl Iterator<Item = u64> {
        self.keys.keys().copied()
    }
}

impl FromIterator<GaloisKey> for GaloisKeys {
    fn from_iter<I: IntoIterator<Item = GaloisKey>>(keys: I) -> Self {
        Self { keys: keys.into_iter().map(|key| (key.element(), key)).collect() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn inverse_elements_undo_elements() {
        for n in [8, 16, 1024] {
            for element in (1..2 * n as u64).step_by(2) {
                assert_eq!(element * inverse_element(n, element) % (2 * n as u64), 1);
            }
        }
    }
}
