//! Batch encoding: N slots as the N coefficients of a plaintext, so that products of polynomials are products of slots.

use super::context::Context;
use crate::math::modulus::Modulus;
use crate::math::ntt::Ntt;
use crate::math::vector;
use chococ_plans::params::SLOT_GENERATOR;
use zeroize::{Zeroize, ZeroizeOnDrop};

/// A polynomial with N coefficients modulo t: what a ciphertext holds.
///
/// It may be a client's data, so it is wiped when dropped and does not print.
#[derive(Clone, PartialEq, Eq, Zeroize, ZeroizeOnDrop)]
pub struct Plaintext {
    coefficients: Vec<u64>,
}

impl Plaintext {
    /// Takes N coefficients in [0, t) as they are, constant first: the encoding of packings by coefficients.
    ///
    /// # Panics
    /// When there are not N of them or one is not below t.
    pub fn from_coefficients(context: &Context, coefficients: Vec<u64>) -> Self {
        check(context.ring_degree(), context.plaintext_modulus(), &coefficients);
        Self { coefficients }
    }

    /// Takes coefficients that the caller knows to be N and reduced.
    pub(super) fn from_reduced(coefficients: Vec<u64>) -> Self {
        Self { coefficients }
    }

    /// Returns memory for N coefficients: the plaintext 0.
    pub(crate) fn zero(context: &Context) -> Self {
        Self { coefficients: vec![0; context.ring_degree()] }
    }

    /// Changes the coefficients as [`from_coefficients`](Self::from_coefficients) takes them.
    ///
    /// The caller knows them to be below t.
    pub(crate) fn set(&mut self, context: &Context, change: impl FnOnce(&mut [u64])) {
        change(&mut self.coefficients);
        debug_assert!(vector::are_below(&self.coefficients, context.plaintext_modulus()), "coefficients are below t");
    }

    /// Returns the N coefficients in [0, t), constant first.
    pub fn coefficients(&self) -> &[u64] {
        &self.coefficients
    }
}

/// Turns slots into plaintexts and back, for one ring degree and plaintext modulus.
///
/// Slots are listed first row, then second row, N/2 each. Slot j of the first row is the plaintext's value at
/// zeta^(3^j), of the second at zeta^(-3^j), as fixed in [`chococ_plans::params`].
pub struct Encoder {
    ntt: Ntt,
    /// Where slot j stands in the transform's order.
    positions: Vec<u32>,
}

impl Encoder {
    /// Prepares the encoder; `None` when t has no transform.
    pub(super) fn new(ring_degree: usize, plaintext_modulus: u64) -> Option<Self> {
        // A prime that is not 1 modulo 2N has none; nor may it be passed on, as it may be even.
        if plaintext_modulus % (2 * ring_degree as u64) != 1 {
            return None;
        }
        let ntt = Ntt::new(ring_degree, Modulus::new(plaintext_modulus))?;
        Some(Self { ntt, positions: slot_positions(ring_degree) })
    }

    /// Encodes N slots in [0, t): one inverse transform modulo t.
    ///
    /// # Panics
    /// When there are not N slots or one is not below t.
    pub fn encode(&self, slots: &[u64]) -> Plaintext {
        let mut plaintext = Plaintext { coefficients: vec![0; self.ntt.ring_degree()] };
        self.encode_into(slots, &mut plaintext);
        plaintext
    }

    /// Encodes as [`encode`](Self::encode) does, in the memory of a plaintext of this ring degree.
    ///
    /// # Panics
    /// As there.
    pub fn encode_into(&self, slots: &[u64], plaintext: &mut Plaintext) {
        check(self.ntt.ring_degree(), self.ntt.modulus().value(), slots);
        for (&position, &slot) in self.positions.iter().zip(slots) {
            plaintext.coefficients[position as usize] = slot;
        }
        self.ntt.inverse(&mut plaintext.coefficients);
    }

    /// Returns the N slots of a plaintext, in [0, t): one transform modulo t.
    ///
    /// # Panics
    /// When the plaintext is of another ring degree.
    pub fn decode(&self, plaintext: &Plaintext) -> Vec<u64> {
        let mut values = plaintext.coefficients.clone();
        let mut slots = vec![0; values.len()];
        self.decode_into(&mut values, &mut slots);
        values.as_mut_slice().zeroize();
        slots
    }

    /// Writes the slots of a plaintext, in [0, t), given its N coefficients, in [0, t), which are overwritten.
    ///
    /// # Panics
    /// When either has not N words.
    pub(crate) fn decode_into(&self, coefficients: &mut [u64], slots: &mut [u64]) {
        assert_eq!(slots.len(), self.positions.len(), "there are N slots");
        self.ntt.forward(coefficients);
        for (slot, &position) in slots.iter_mut().zip(&self.positions) {
            *slot = coefficients[position as usize];
        }
    }
}

/// Checks the shape and the range of slots or coefficients, in time that does not depend on their values.
fn check(ring_degree: usize, plaintext_modulus: u64, values: &[u64]) {
    assert_eq!(values.len(), ring_degree, "a plaintext has N slots or coefficients");
    assert!(vector::are_below(values, plaintext_modulus), "slots and coefficients are below t = {plaintext_modulus}");
}

/// Lists where each slot stands in the order of the transform, whose index i is the exponent 2 bitrev(i) + 1.
fn slot_positions(ring_degree: usize) -> Vec<u32> {
    let order = 2 * ring_degree as u64;
    let powers = || std::iter::successors(Some(1), |power| Some(power * SLOT_GENERATOR % order)).take(ring_degree / 2);
    powers().chain(powers().map(|power| order - power)).map(|exponent| position_of(ring_degree, exponent)).collect()
}

/// Returns where the transform keeps the value at psi^exponent, for an odd exponent below 2N.
fn position_of(ring_degree: usize, exponent: u64) -> u32 {
    let index = (exponent / 2) as u32;
    index.reverse_bits() >> (u32::BITS - ring_degree.ilog2())
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn slots_are_values_at_powers_of_three() {
        // N = 8, t = 17: 3 is the smallest primitive 16th root of unity.
        let encoder = Encoder::new(8, 17).expect("17 = 1 mod 16");
        let t = Modulus::new(17);
        let coefficients: Vec<u64> = (0..8).map(|i| (5 * i + 2) % 17).collect();
        let slots = encoder.decode(&Plaintext::from_reduced(coefficients.clone()));
        let value = |exponent: u64| {
            let point = t.pow(3, exponent);
            coefficients.iter().rev().fold(0, |sum, &c| t.add(t.mul(sum, point), c))
        };
        let exponents = [1, 3, 9, 27 % 16, 15, 13, 7, 16 - 27 % 16];
        assert_eq!(slots, exponents.map(value));
    }

    proptest! {
        #[test]
        fn decoding_undoes_encoding(slots in prop::collection::vec(0u64..97, 16)) {
            let encoder = Encoder::new(16, 97).expect("97 = 1 mod 32");
            prop_assert_eq!(encoder.decode(&encoder.encode(&slots)), slots);
        }

        #[test]
        fn products_of_plaintexts_are_products_of_slots(
            a in prop::collection::vec(0u64..97, 16),
            b in prop::collection::vec(0u64..97, 16),
        ) {
            let encoder = Encoder::new(16, 97).expect("97 = 1 mod 32");
            let (x, y) = (encoder.encode(&a), encoder.encode(&b));
            let mut product = [0i64; 16];
            for i in 0..16 {
                for j in 0..16 {
                    let sign = if i + j < 16 { 1 } else { -1 };
                    product[(i + j) % 16] += sign * (x.coefficients[i] * y.coefficients[j]) as i64;
                }
            }
            let product = Plaintext::from_reduced(product.iter().map(|c| c.rem_euclid(97) as u64).collect());
            let expected: Vec<u64> = a.iter().zip(&b).map(|(a, b)| a * b % 97).collect();
            prop_assert_eq!(encoder.decode(&product), expected);
        }
    }

    #[test]
    #[should_panic(expected = "below t = 17")]
    fn refuses_a_slot_out_of_range() {
        Encoder::new(8, 17).expect("17 = 1 mod 16").encode(&[0, 0, 17, 0, 0, 0, 0, 0]);
    }
}
