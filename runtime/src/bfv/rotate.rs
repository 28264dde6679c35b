//! Rotations: X -> X^g on a ciphertext, by key switching, one at a time or many of one ciphertext.

use super::ciphertext::Ciphertext;
use super::context::Context;
use super::digits::{Balanced, digit_count};
use super::galois::{GaloisKey, GaloisKeyError, GaloisKeys, KeyDigit};
use super::switch::divide;
use crate::math::accumulate::{LazyAccumulator, Term};
use crate::math::modulus::Modulus;
use crate::math::poly::{Evaluations, Poly};
use crate::math::vector;
use chococ_plans::packing::Rotation;
use chococ_plans::params::rotation_element;

/// Rotates each row of slots left by `steps` (right when negative), which wrap modulo N/2.
///
/// Adds the noise of one key switch, whatever `steps` is; 0 steps cost nothing.
///
/// # Errors
/// [`GaloisKeyError::Missing`], naming the [`rotation_element`] of `steps`.
pub fn rotate_rows(
    context: &Context,
    ciphertext: &Ciphertext,
    steps: i64,
    keys: &GaloisKeys,
) -> Result<Ciphertext, GaloisKeyError> {
    let rotation = Rotation::left(steps, context.ring_degree() / 2);
    apply(context, ciphertext, rotation_element(context.ring_degree(), rotation), keys)
}

/// Swaps the two rows of slots; noise and errors as for [`rotate_rows`].
pub fn swap_rows(context: &Context, ciphertext: &Ciphertext, keys: &GaloisKeys) -> Result<Ciphertext, GaloisKeyError> {
    apply(context, ciphertext, rotation_element(context.ring_degree(), Rotation { steps: 0, swap: true }), keys)
}

/// Replaces X by X^`element` in the message: any composition of a rotation and a swap as one key switch.
///
/// # Errors
/// [`GaloisKeyError::Missing`], naming the element.
pub fn apply(
    context: &Context,
    ciphertext: &Ciphertext,
    element: u64,
    keys: &GaloisKeys,
) -> Result<Ciphertext, GaloisKeyError> {
    if element == 1 {
        return Ok(ciphertext.clone());
    }
    Ok(hoist(context, ciphertext).apply(keys.get(element)?))
}

/// A ciphertext whose c1 is cut into digits and transformed, so that many rotations share that work.
pub struct Hoisted<'a> {
    context: &'a Context,
    ciphertext: &'a Ciphertext,
    /// One a digit, over the residues of the level, then the special prime.
    digits: Vec<Poly<Evaluations>>,
}

/// Prepares a ciphertext for many rotations: l inverse transforms and, for each digit, l.
///
/// # Panics
/// When there is no special prime, hence no key that the result could be used with.
pub fn hoist<'a>(context: &'a Context, ciphertext: &'a Ciphertext) -> Hoisted<'a> {
    assert!(context.has_key_switching(), "rotations need a key-switching prime");
    let level = ciphertext.level();
    let mut prepared = Vec::new();
    for residue in 0..level {
        prepared.extend(decompose(context, ciphertext, residue));
    }
    Hoisted { context, ciphertext, digits: prepared }
}

/// Cuts one residue of c1 into digits, each transformed under all primes of the level and the special one.
fn decompose(context: &Context, ciphertext: &Ciphertext, residue: usize) -> Vec<Poly<Evaluations>> {
    let (n, level) = (context.ring_degree(), ciphertext.level());
    let (modulus, digit_bits) = (context.modulus(residue), context.parameters().keys.digit_bits);
    let balanced = Balanced::new(modulus, digit_bits);
    let mut coefficients = ciphertext.c1.residue(residue).to_vec();
    context.ntt(residue).inverse(&mut coefficients);
    let mut polys = Vec::new();
    for j in 0..digit_count(modulus, digit_bits) {
        let mut poly = Poly::zero(n, level + 1);
        for position in (0..=level).filter(|&position| j > 0 || position != residue) {
            let prime = prime_at(context, level, position);
            let out = poly.residue_mut(position);
            balanced.write(j, &coefficients, context.modulus(prime), out);
            context.ntt(prime).forward(out);
        }
        polys.push(poly);
    }
    // The digits sum to the residue, so under its own prime the lowest one needs no transform.
    let (lowest, others) = polys.split_first_mut().expect("a residue has a digit");
    let lowest = lowest.residue_mut(residue);
    lowest.copy_from_slice(ciphertext.c1.residue(residue));
    for (j, poly) in (1..).zip(others) {
        let mut weighted = poly.residue(residue).to_vec();
        vector::scalar_mul_assign(modulus, &mut weighted, modulus.reduce(1 << (j * digit_bits)));
        vector::sub_assign(modulus, lowest, &weighted);
    }
    polys
}

/// Returns which of the context's primes is at a position of a digit: those of the level, then the special one.
fn prime_at(context: &Context, level: usize, position: usize) -> usize {
    if position < level { position } else { context.top_level() }
}

impl Hoisted<'_> {
    /// Replaces X by X^g in the message, for the g of the key; equals [`apply`] in every bit.
    pub fn apply(&self, key: &GaloisKey) -> Ciphertext {
        let mut c0 = self.switched(key, |digit| &digit.b);
        self.context.ring().add_assign(&mut c0, &self.ciphertext.c0);
        let c1 = self.switched(key, |digit| &digit.a);
        Ciphertext { c0: c0.automorphism(key.automorphism()), c1: c1.automorphism(key.automorphism()) }
    }

    /// Multiplies the digits by one part of the key, sums, and divides the special prime out.
    fn switched(&self, key: &GaloisKey, part: impl Fn(&KeyDigit) -> &Poly<Evaluations>) -> Poly<Evaluations> {
        let (context, n, level) = (self.context, self.context.ring_degree(), self.ciphertext.level());
        let mut sum = Poly::zero(n, level);
        let mut special = vec![0; n];
        for position in 0..=level {
            let prime = prime_at(context, level, position);
            let pairs = self.digits.iter().zip(key.digits());
            let terms: Vec<Term<'_>> =
                pairs.map(|(digit, parts)| (digit.residue(position), part(parts).residue(prime))).collect();
            let out = if position < level { sum.residue_mut(position) } else { &mut special };
            sum_products(context.modulus(prime), &terms, out);
        }
        context.ntt(context.top_level()).inverse(&mut special);
        divide(context, context.top_level(), &special, &mut sum);
        sum
    }
}

/// Writes the sum of the products.
///
/// From a few terms on, one reduction a sum is cheaper than one a product; then sums are taken in stretches, whose
/// running sums stay in a first-level cache.
fn sum_products(modulus: Modulus, terms: &[Term<'_>], out: &mut [u64]) {
    const FEW: usize = 3;
    const STRETCH: usize = 512;
    if let [(a, b), others @ ..] = terms
        && terms.len() <= FEW
    {
        vector::pointwise_mul(modulus, a, b, out);
        others.iter().for_each(|(a, b)| vector::pointwise_mul_add(modulus, out, a, b));
        return;
    }
    let length = out.len().min(STRETCH);
    let mut sum = LazyAccumulator::new(modulus, length);
    // N is a power of two, so stretches are of one length.
    for (i, out) in out.chunks_exact_mut(length).enumerate() {
        let range = i * length..(i + 1) * length;
        let terms: Vec<Term<'_>> = terms.iter().map(|(a, b)| (&a[range.clone()], &b[range.clone()])).collect();
        sum.add_products(&terms);
        sum.finish(out);
    }
}
