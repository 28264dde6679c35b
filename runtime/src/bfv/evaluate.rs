//! What a server computes without any key: sums, and products with plaintexts.

use super::ciphertext::Ciphertext;
use super::context::Context;
use super::encode::Plaintext;
use super::multiplicand::{Multiplicand, Residue};
use super::scale::ScaledMessage;
use crate::math::vector;

/// Adds in place: a = a + b, slot by slot and coefficient by coefficient. Noise adds up.
///
/// # Panics
/// Here and below: when the levels differ.
pub fn add_assign(context: &Context, a: &mut Ciphertext, b: &Ciphertext) {
    context.ring().add_assign(&mut a.c0, &b.c0);
    context.ring().add_assign(&mut a.c1, &b.c1);
}

/// Subtracts in place: a = a - b. Noise adds up.
pub fn sub_assign(context: &Context, a: &mut Ciphertext, b: &Ciphertext) {
    context.ring().sub_assign(&mut a.c0, &b.c0);
    context.ring().sub_assign(&mut a.c1, &b.c1);
}

/// Negates in place.
pub fn neg_assign(context: &Context, a: &mut Ciphertext) {
    context.ring().neg_assign(&mut a.c0);
    context.ring().neg_assign(&mut a.c1);
}

/// Adds a plaintext in place, scaled exactly, so that the noise grows by less than one; one transform a residue.
pub fn add_plain_assign(context: &Context, a: &mut Ciphertext, plaintext: &Plaintext) {
    let message = ScaledMessage::new(context, a.level(), plaintext);
    let mut scaled = vec![0; context.ring_degree()];
    for (i, residue) in a.c0.residues_mut().enumerate() {
        scaled.fill(0);
        message.add_to(i, &mut scaled);
        context.ntt(i).forward(&mut scaled);
        vector::add_assign(context.modulus(i), residue, &scaled);
    }
}

/// Multiplies in place with a prepared plaintext: slot by slot if it is batch-encoded, else as polynomials.
///
/// Each noise coefficient becomes a sum of N with the plaintext's centred coefficients as weights.
pub fn mul_plain_assign(context: &Context, a: &mut Ciphertext, multiplicand: &Multiplicand) {
    for poly in [&mut a.c0, &mut a.c1] {
        for (i, residue) in poly.residues_mut().enumerate() {
            let modulus = context.modulus(i);
            match multiplicand.residue(i) {
                Residue::Long(words) => vector::mul_assign(modulus, residue, words),
                Residue::Short(words) => {
                    let words: Vec<u64> = words.iter().map(|&word| word.into()).collect();
                    vector::mul_assign(modulus, residue, &words);
                }
            }
        }
    }
}
