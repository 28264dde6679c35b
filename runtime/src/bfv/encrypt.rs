//! Encryption: with the secret key, which is what the client does, and with the public key.

use super::ciphertext::{Ciphertext, Seed, SeededCiphertext, uniform_stream};
use super::context::Context;
use super::encode::Plaintext;
use super::keys::{ERROR_BOUND, PublicKey, SecretKey, small};
use super::lift::{lift_centered, lift_small};
use super::scale::{ScaledMessage, mask_message};
use crate::math::poly::{Evaluations, Poly};
use crate::math::{sample, vector};
use rand::CryptoRng;
use zeroize::Zeroizing;

/// Encrypts with the secret key: c1 is uniform, named by a seed and a stream, and c0 = round(qm/t) - c1 s + e.
///
/// Uniform evaluations are uniform coefficients, so c1 needs no transform, and c0 is finished in coefficients: one
/// product and one inverse transform a residue is all. Only e comes from `rng`.
///
/// A pair of seed and stream serves *once*, for a ciphertext or a Galois key, whatever the message.
pub fn encrypt_secret(
    context: &Context,
    secret: &SecretKey,
    plaintext: &Plaintext,
    seed: Seed,
    stream: u64,
    rng: &mut impl CryptoRng,
) -> SeededCiphertext {
    let mut ciphertext = SeededCiphertext::empty(context);
    Encryption::new(context, secret).encrypt(plaintext, seed, stream, rng, &mut ciphertext);
    ciphertext
}

/// Encryption of one ciphertext after the other, in the same memory.
pub struct Encryption<'a> {
    context: &'a Context,
    secret: &'a SecretKey,
    errors: Zeroizing<Vec<i8>>,
}

impl<'a> Encryption<'a> {
    /// Sets memory aside.
    pub fn new(context: &'a Context, secret: &'a SecretKey) -> Self {
        Self { context, secret, errors: Zeroizing::new(vec![0; context.ring_degree()]) }
    }

    /// Encrypts as [`encrypt_secret`] does; what `ciphertext`, of this context, was before makes no difference.
    pub fn encrypt(
        &mut self,
        plaintext: &Plaintext,
        seed: Seed,
        stream: u64,
        rng: &mut impl CryptoRng,
        ciphertext: &mut SeededCiphertext,
    ) {
        let Self { context, secret, errors } = self;
        sample::error(rng, errors);
        (ciphertext.seed, ciphertext.stream) = (seed, stream);
        let mut uniform = uniform_stream(seed, stream);
        let level = context.top_level();
        assert_eq!(ciphertext.c0.residue_count(), level, "a fresh ciphertext is of the highest level");
        for (i, residue) in ciphertext.c0.residues_mut().enumerate() {
            let modulus = context.modulus(i);
            sample::uniform(modulus, &mut uniform, residue);
            context.ntt(i).inverse_of_product(residue, secret.evaluations().residue(i));
            if !mask_message(context, [level, i], plaintext, errors, residue) {
                let mut noisy = Zeroizing::new(vec![0; context.ring_degree()]);
                lift_small(modulus, ERROR_BOUND, errors, &mut noisy);
                ScaledMessage::new(context, level, plaintext).add_to(i, &mut noisy);
                vector::neg_assign(modulus, residue);
                vector::add_assign(modulus, residue, &noisy);
            }
        }
    }
}

/// Encrypts with the public key (b, a), under all primes; where there is a special prime P, divides it out.
///
/// With u ternary and errors e0, e1: c0 = round((b u + e0)/P) + round(qm/t), c1 = round((a u + e1)/P). The division
/// makes the noise of u and e smaller by P, down to that of the rounding. Draws u, e0, e1 from `rng`, in this order.
pub fn encrypt_public(
    context: &Context,
    public: &PublicKey,
    plaintext: &Plaintext,
    rng: &mut impl CryptoRng,
) -> Ciphertext {
    let mut ternary = Zeroizing::new(vec![0; context.ring_degree()]);
    sample::ternary(rng, &mut ternary);
    let mask = Zeroizing::new(small(context.ring(), 1, &ternary, context.key_residues()));
    let message = ScaledMessage::new(context, context.top_level(), plaintext);
    let (e0, e1) = (draw_errors(context, rng), draw_errors(context, rng));
    Ciphertext {
        c0: masked_half(context, &public.b, &mask, &e0, Some(&message)),
        c1: masked_half(context, &public.a, &mask, &e1, None),
    }
}

/// Returns round((key * mask + errors)/P) + message, or without P the same undivided, in evaluation form.
///
/// The errors and the message join the remainder of the division in coefficients, so that they need no transforms of
/// their own: with r the centred remainder, the result is key * mask / P + ((errors - r)/P + message).
fn masked_half(
    context: &Context,
    key: &Poly<Evaluations>,
    mask: &Poly<Evaluations>,
    errors: &[i8],
    message: Option<&ScaledMessage>,
) -> Poly<Evaluations> {
    let (n, level) = (context.ring_degree(), context.top_level());
    let special = context.has_key_switching().then_some(level);
    let remainder = special.map(|special| special_remainder(context, special, key, mask, errors));
    let mut half = Poly::zero(n, level);
    let (mut addend, mut lifted) = (Zeroizing::new(vec![0; n]), Zeroizing::new(vec![0; n]));
    for (i, residue) in half.residues_mut().enumerate() {
        let modulus = context.modulus(i);
        vector::pointwise_mul(modulus, key.residue(i), mask.residue(i), residue);
        lift_small(modulus, ERROR_BOUND, errors, &mut addend);
        if let (Some(special), Some(remainder)) = (special, &remainder) {
            let factor = context.drop_factor(special, i);
            lift_centered(context.modulus(special).value(), modulus, remainder, &mut lifted);
            vector::sub_assign(modulus, &mut addend, &lifted);
            vector::scalar_mul_assign(modulus, &mut addend, factor.value());
            vector::scalar_mul_assign(modulus, residue, factor.value());
        }
        if let Some(message) = message {
            message.add_to(i, &mut addend);
        }
        context.ntt(i).forward(&mut addend);
        vector::add_assign(modulus, residue, &addend);
    }
    half
}

/// Returns key * mask + errors modulo the special prime, in coefficients.
fn special_remainder(
    context: &Context,
    special: usize,
    key: &Poly<Evaluations>,
    mask: &Poly<Evaluations>,
    errors: &[i8],
) -> Zeroizing<Vec<u64>> {
    let (n, modulus) = (context.ring_degree(), context.modulus(special));
    let (mut remainder, mut lifted) = (Zeroizing::new(vec![0; n]), Zeroizing::new(vec![0; n]));
    vector::pointwise_mul(modulus, key.residue(special), mask.residue(special), &mut remainder);
    context.ntt(special).inverse(&mut remainder);
    lift_small(modulus, ERROR_BOUND, errors, &mut lifted);
    vector::add_assign(modulus, &mut remainder, &lifted);
    remainder
}

fn draw_errors(context: &Context, rng: &mut impl CryptoRng) -> Zeroizing<Vec<i8>> {
    let mut errors = Zeroizing::new(vec![0; context.ring_degree()]);
    sample::error(rng, &mut errors);
    errors
}
