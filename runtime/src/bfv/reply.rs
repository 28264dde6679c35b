//! Replies: ciphertexts on their way back to the client, over the smallest modulus that still decrypts.
//!
//! The modulus of a reply is one prime, whatever q was. Its c1 travels transformed, so that its product with the secret
//! takes the client one transform; of c0 the coefficients that nobody asks for stay behind, and the low bits of the others.

use super::ciphertext::Ciphertext;
use super::context::Context;
use super::decrypt::unscale_one;
use super::factor::subtract_once;
use super::keys::ReplyKey;
use super::vectorized::vectorized;
use crate::math::modulus::Modulus;
use crate::math::poly::{Coefficients, Poly};
use crate::math::vector;
use chococ_plans::packing::row::{Run, gather};
use zeroize::{Zeroize, Zeroizing};

/// A ciphertext over the prime p of the replies.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Reply {
    /// Of c0 the coefficients that are asked for, without their low bits.
    pub c0: Vec<u64>,
    /// c1 in evaluation form.
    pub c1: Vec<u64>,
}

impl Reply {
    /// Sets no memory aside yet.
    pub(crate) fn empty() -> Reply {
        Reply { c0: Vec::new(), c1: Vec::new() }
    }

    /// Switches a ciphertext to the modulus p: each c becomes p c / q, rounded, of c0 cut to the bits that are kept.
    ///
    /// `returned` lists the coefficients of c0 that travel. The message stays, since its scale q/t becomes p/t; the
    /// noise shrinks by p/q and gains a rounding of variance 2N/36 for c1, 4^dropped/12 for c0.
    pub fn new(context: &Context, ciphertext: Ciphertext, returned: &[usize]) -> Reply {
        let dropped = context.parameters().stage.reply_dropped_bits;
        let (modulus, ntt) = context.reply();
        let c0 = fractions(context, &context.ring().inverse(ciphertext.c0));
        let c0 = returned.iter().map(|&position| scaled(c0[position], modulus.value(), dropped)).collect();
        let mut c1 = fractions(context, &context.ring().inverse(ciphertext.c1));
        c1.iter_mut().for_each(|c| *c = scaled(*c, modulus.value(), 0));
        ntt.forward(&mut c1);
        Reply { c0, c1 }
    }
}

impl Zeroize for Reply {
    /// Wipes what decryption has left.
    fn zeroize(&mut self) {
        self.c0.as_mut_slice().zeroize();
        self.c1.as_mut_slice().zeroize();
    }
}

/// Returns x / q for each coefficient x, in units of 2^-64, at most 2 of them a residue short.
///
/// With y_i = x (q/q_i)^-1 mod q_i, x/q is the sum of y_i/q_i up to an integer: words that wrap.
fn fractions(context: &Context, poly: &Poly<Coefficients>) -> Vec<u64> {
    let level = context.level(poly.residue_count());
    let mut fractions = vec![0u64; poly.ring_degree()];
    let mut shares = vec![0; poly.ring_degree()];
    for (i, (residue, factor)) in poly.residues().zip(&level.to_shares).enumerate() {
        shares.copy_from_slice(residue);
        vector::scalar_mul_assign(context.modulus(i), &mut shares, factor.value());
        add_fractions(context.modulus(i), &shares, &mut fractions);
    }
    fractions
}

/// Adds y/q_i in units of 2^-64 for each y, at most 2 short, and forgets what is whole.
fn add_fractions(modulus: Modulus, shares: &[u64], fractions: &mut [u64]) {
    let bits = modulus.bits();
    // Between 2^63 and 2^64.
    let ratio = (1u128 << (63 + bits)) / u128::from(modulus.value());
    for (fraction, &share) in fractions.iter_mut().zip(shares) {
        *fraction = fraction.wrapping_add(((u128::from(share) * ratio) >> (bits - 1)) as u64);
    }
}

/// Returns p times a fraction: to the nearest integer if no bits are dropped, else cut to those above.
fn scaled(fraction: u64, p: u64, dropped: u32) -> u64 {
    let product = u128::from(fraction) * u128::from(p);
    match dropped {
        // p itself stands for 0.
        0 => subtract_once(((product + (1 << 63)) >> 64) as u64, p),
        dropped => (product >> (64 + dropped)) as u64,
    }
}

/// Decrypts a reply: the results modulo t, in the order of `returned`.
pub fn decrypt_reply(context: &Context, key: &ReplyKey, reply: &Reply, returned: &[usize]) -> Vec<u64> {
    let mut reply = reply.clone();
    let mut results = Vec::with_capacity(returned.len());
    decrypt_reply_into(context, key, &mut reply, &Run::list(returned), &mut results);
    reply.zeroize();
    results
}

/// Decrypts as [`decrypt_reply`] does, replacing what is in `results`; what stays in `reply` is secret.
pub(crate) fn decrypt_reply_into(
    context: &Context,
    key: &ReplyKey,
    reply: &mut Reply,
    returned: &[Run],
    results: &mut Vec<u64>,
) {
    phase(context, key, reply, returned, results);
    unscale_one(context.reply().0.value(), context.plaintext_modulus(), results);
}

/// Measures how many more bits of noise a reply can take: log2(p/(2t)) - log2(largest noise of a result).
///
/// It depends on the secret key and on the errors drawn: it is for tests and reports, and never travels.
pub fn measured_reply_budget_bits(context: &Context, key: &ReplyKey, reply: &Reply, returned: &[usize]) -> f64 {
    let (mut reply, mut words) = (reply.clone(), Vec::with_capacity(returned.len()));
    phase(context, key, &mut reply, &Run::list(returned), &mut words);
    reply.zeroize();
    let phase = Zeroizing::new(words);
    let (t, p) = (context.plaintext_modulus(), context.reply().0.value());
    let mut messages = phase.clone();
    unscale_one(p, t, &mut messages);
    let noise = phase.iter().zip(messages.iter()).map(|(&x, &message)| {
        let scaled = (2 * u128::from(p) * u128::from(message) + u128::from(t)) / (2 * u128::from(t));
        let distance = (x + p - scaled as u64) % p;
        distance.min(p - distance)
    });
    let largest = noise.max().unwrap_or(0).max(1);
    (p as f64 / t as f64).log2() - 1.0 - (largest as f64).log2()
}

/// Writes c0 + c1 s modulo p, where `returned` says, instead of what is in `words`; c1 is used up.
fn phase(context: &Context, key: &ReplyKey, reply: &mut Reply, returned: &[Run], words: &mut Vec<u64>) {
    let dropped = context.parameters().stage.reply_dropped_bits;
    let (modulus, ntt) = context.reply();
    ntt.inverse_of_product(&mut reply.c1, key.evaluations());
    match returned {
        [all] if all.length == reply.c1.len() => std::mem::swap(words, &mut reply.c1),
        _ => {
            words.resize(reply.c0.len(), 0);
            gather(&reply.c1, returned, words);
        }
    }
    add_upper(modulus.value(), dropped, &reply.c0, words);
}

vectorized! {
    /// Adds numbers modulo p of which only the upper bits are known: half of what they were cut by stands for the rest.
    fn add_upper(p: u64, dropped: u32, uppers: &[u64], words: &mut [u64]) {
        let middle = (1 << dropped) / 2;
        for (word, &upper) in words.iter_mut().zip(uppers) {
            // Below 2p and half of 2^dropped.
            let sum = *word + (upper << dropped) + middle;
            *word = subtract_once(subtract_once(sum, p), p);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use chococ_plans::params::{KeyParameters, Parameters, StageParameters};
    use chococ_plans::primes::ntt_primes_below;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn switching_is_rounding(
            xs in prop::array::uniform8(any::<u128>()), bits in 7u32..45, dropped in 0u32..7, level in 1usize..=3
        ) {
            let ciphertext_primes = vec![1_125_899_906_826_241, 97, 1_073_692_673];
            let p = ntt_primes_below(bits, 8).next().expect("97 and larger ones");
            let q: u128 = ciphertext_primes[..level].iter().map(|&prime| u128::from(prime)).product();
            let xs = xs.map(|x| x % q);
            let residues = |&prime: &u64| xs.map(|x| (x % u128::from(prime)) as u64);
            let words = ciphertext_primes[..level].iter().flat_map(residues).collect();
            let keys = KeyParameters { ring_degree: 8, ciphertext_primes, key_switching_prime: None, digit_bits: 10 };
            let stage = StageParameters {
                plaintext_modulus: 17,
                request_dropped_bits: 0,
                reply_modulus: p,
                reply_dropped_bits: dropped,
            };
            let context = Context::new(&Parameters { keys, stage }).expect("each prime is 1 modulo 16");
            for (fraction, x) in fractions(&context, &Poly::from_words(8, words)).into_iter().zip(xs) {
                let found = scaled(fraction, p, dropped);
                prop_assert!(found <= (p - 1) >> dropped);
                // A tie within the last bits of the fractions may fall either way.
                let exact = (x as f64 / q as f64).fract() * p as f64;
                let received = ((found << dropped) + (1 << dropped) / 2) as f64;
                let off = (received - exact).rem_euclid(p as f64);
                prop_assert!(off.min(p as f64 - off) < f64::from(1u32 << dropped) / 2.0 + 0.01, "{found} for {x}");
            }
        }
    }
}
