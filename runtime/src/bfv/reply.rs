//! Replies: ciphertexts on their way back to the client, over the smallest modulus that still decrypts.
//!
//! The modulus of a reply is 2^w, whatever the primes were: its coefficients are bits, of which c0 also does without
//! the lowest, and scaling by t/2^w is a product and a shift.

use super::ciphertext::Ciphertext;
use super::context::Context;
use super::keys::SecretKey;
use super::vectorized::vectorized;
use crate::math::modulus::Modulus;
use crate::math::poly::{Coefficients, Poly};
use crate::math::vector;
use chococ_plans::packing::row::Run;
use zeroize::{Zeroize, Zeroizing};

/// A ciphertext over 2^w, in coefficients: of c0 those that are asked for, without their low bits.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Reply {
    /// Of c0 the coefficients that travel, each of w less the dropped bits.
    pub c0: Vec<u64>,
    /// All N coefficients of c1, of w bits.
    pub c1: Vec<u64>,
}

impl Reply {
    /// Sets no memory aside yet.
    pub(crate) fn empty() -> Reply {
        Reply { c0: Vec::new(), c1: Vec::new() }
    }

    /// Switches a ciphertext to the modulus 2^w: each c becomes round(2^w c / q), of c0 to the bits that are kept.
    ///
    /// `returned` lists the coefficients of c0 that travel. The message stays, since its scale q/t becomes 2^w/t; the
    /// noise shrinks by 2^w/q and gains a rounding of variance 2N/36 for c1, 4^dropped/12 for c0.
    pub fn new(context: &Context, ciphertext: Ciphertext, returned: &[usize]) -> Reply {
        let parameters = context.parameters();
        let bits = parameters.stage.reply_bits;
        let c0 = rounded(context, &context.ring().inverse(ciphertext.c0), bits - parameters.stage.reply_dropped_bits);
        let c1 = rounded(context, &context.ring().inverse(ciphertext.c1), bits);
        Reply { c0: returned.iter().map(|&position| c0[position]).collect(), c1 }
    }
}

impl Zeroize for Reply {
    /// Wipes what decryption has left.
    fn zeroize(&mut self) {
        self.c0.as_mut_slice().zeroize();
        self.c1.as_mut_slice().zeroize();
    }
}

/// Returns round(2^bits x / q) modulo 2^bits for each coefficient x.
///
/// With y_i = x (q/q_i)^-1 mod q_i, x/q is the sum of y_i/q_i up to an integer: in units of 2^-64, words that wrap.
fn rounded(context: &Context, poly: &Poly<Coefficients>, bits: u32) -> Vec<u64> {
    let level = context.level(poly.residue_count());
    let mut fractions = vec![0u64; poly.ring_degree()];
    let mut shares = vec![0; poly.ring_degree()];
    for (i, (residue, factor)) in poly.residues().zip(&level.to_shares).enumerate() {
        shares.copy_from_slice(residue);
        vector::scalar_mul_assign(context.modulus(i), &mut shares, factor.value());
        add_fractions(context.modulus(i), &shares, &mut fractions);
    }
    let (half, shift) = (1 << (u64::BITS - 1 - bits), u64::BITS - bits);
    fractions.iter_mut().for_each(|fraction| *fraction = fraction.wrapping_add(half) >> shift);
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

/// Decrypts a reply: the results modulo t, in the order of `returned`.
///
/// c1 s is computed exactly, as the integers that its coefficients are, by a prime that none of them reaches: two
/// transforms and a product. The rest is arithmetic modulo 2^w.
pub fn decrypt_reply(context: &Context, secret: &SecretKey, reply: &Reply, returned: &[usize]) -> Vec<u64> {
    let mut reply = reply.clone();
    let mut results = Vec::with_capacity(returned.len());
    decrypt_reply_into(context, secret, &mut reply, &Run::list(returned), &mut results);
    reply.zeroize();
    results
}

/// Decrypts as [`decrypt_reply`] does, replacing what is in `results`; what stays in `reply` is secret.
pub(crate) fn decrypt_reply_into(
    context: &Context,
    secret: &SecretKey,
    reply: &mut Reply,
    returned: &[Run],
    results: &mut Vec<u64>,
) {
    phase(context, secret, reply, returned, results);
    unscale(context.plaintext_modulus(), context.parameters().stage.reply_bits, results);
}

/// Measures how many more bits of noise a reply can take: log2(2^w/(2t)) - log2(largest noise of a result).
///
/// It depends on the secret key and on the errors drawn: it is for tests and reports, and never travels.
pub fn measured_reply_budget_bits(context: &Context, secret: &SecretKey, reply: &Reply, returned: &[usize]) -> f64 {
    let (mut reply, mut words) = (reply.clone(), Vec::with_capacity(returned.len()));
    phase(context, secret, &mut reply, &Run::list(returned), &mut words);
    reply.zeroize();
    let phase = Zeroizing::new(words);
    let (t, bits) = (context.plaintext_modulus(), context.parameters().stage.reply_bits);
    let mut messages = phase.clone();
    unscale(t, bits, &mut messages);
    let noise = phase.iter().zip(messages.iter()).map(|(&x, &message)| {
        let scaled = ((u128::from(message) << (bits + 1)) + u128::from(t)) / (2 * u128::from(t));
        let distance = x.wrapping_sub(scaled as u64) & mask(bits);
        distance.min((1 << bits) - distance)
    });
    let largest = noise.max().unwrap_or(0).max(1);
    f64::from(bits) - (t as f64).log2() - 1.0 - (largest as f64).log2()
}

/// Writes c0 + c1 s modulo 2^w, where `returned` says, instead of what is in `words`; c1 is used up.
fn phase(context: &Context, secret: &SecretKey, reply: &mut Reply, returned: &[Run], words: &mut Vec<u64>) {
    let (bits, dropped) = (context.parameters().stage.reply_bits, context.parameters().stage.reply_dropped_bits);
    let (modulus, ntt) = context.exact();
    center_in_place(bits, modulus.value(), &mut reply.c1);
    ntt.multiply(&mut reply.c1, secret.exact());
    words.clear();
    match returned {
        [all] if all.length == reply.c1.len() => std::mem::swap(words, &mut reply.c1),
        _ => returned.iter().for_each(|run| run.gather(&reply.c1, words)),
    }
    add_upper(modulus.value(), [bits, dropped], &reply.c0, words);
}

vectorized! {
    /// Replaces words of `bits` bits, seen as centred numbers, by their residues modulo a larger modulus.
    fn center_in_place(bits: u32, modulus: u64, words: &mut [u64]) {
        // What lies above 2^(w-1) is 2^w more than it should be.
        let (half, more) = (1u64 << (bits - 1), modulus - (1 << bits));
        for word in words {
            let above = (half.wrapping_sub(*word) as i64 >> 63) as u64;
            *word += more & above;
        }
    }
}

vectorized! {
    /// Takes residues, seen as centred numbers, modulo 2^bits, and adds upper bits.
    fn add_upper(modulus: u64, counts: [u32; 2], uppers: &[u64], words: &mut [u64]) {
        let [bits, dropped] = counts;
        for (word, &upper) in words.iter_mut().zip(uppers) {
            // Above half the prime stands a negative number; modulo 2^w, less the prime.
            let above = ((modulus / 2).wrapping_sub(*word) as i64 >> 63) as u64;
            *word = word.wrapping_sub(modulus & above).wrapping_add(upper << dropped) & mask(bits);
        }
    }
}

#[inline(always)]
fn mask(bits: u32) -> u64 {
    (1 << bits) - 1
}

/// Replaces each x, of `bits` bits, by round(t x / 2^bits) modulo t.
fn unscale(t: u64, bits: u32, words: &mut [u64]) {
    if bits + (u64::BITS - t.leading_zeros()) < u64::BITS {
        unscale_short(t, bits, words);
    } else {
        let half = 1u128 << (bits - 1);
        for word in words {
            let scaled = ((u128::from(*word) * u128::from(t) + half) >> bits) as u64;
            *word = super::factor::subtract_once(scaled, t);
        }
    }
}

vectorized! {
    /// As [`unscale`], where no product is beyond a word.
    fn unscale_short(t: u64, bits: u32, words: &mut [u64]) {
        let half = 1 << (bits - 1);
        for word in words {
            *word = super::factor::subtract_once((*word * t + half) >> bits, t);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use chococ_plans::params::{KeyParameters, Parameters, StageParameters};
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn scaling_is_division_of_long_integers(t in 2u64..1 << 40, bits in 10u32..52, x: u64) {
            let mut words = vec![x & mask(bits), 0, mask(bits)];
            let expected: Vec<u64> = words
                .iter()
                .map(|&x| (((2 * u128::from(x) * u128::from(t) + (1 << bits)) >> (bits + 1)) % u128::from(t)) as u64)
                .collect();
            unscale(t, bits, &mut words);
            prop_assert_eq!(words, expected);
        }

        #[test]
        fn switching_is_rounding(xs in prop::array::uniform8(any::<u128>()), bits in 5u32..45, level in 1usize..=3) {
            let primes = [1_125_899_906_826_241, 97, 1_073_692_673];
            let context = Context::new(&Parameters { keys: KeyParameters { ring_degree: 8, ciphertext_primes: primes.to_vec(), key_switching_prime: None, digit_bits: 10 }, stage: StageParameters { plaintext_modulus: 17, request_dropped_bits: 0, reply_bits: bits, reply_dropped_bits: 0 } })
            .expect("each prime is 1 modulo 16");
            let q: u128 = primes[..level].iter().map(|&p| u128::from(p)).product();
            let xs = xs.map(|x| x % q);
            let words = primes[..level].iter().flat_map(|&p| xs.map(|x| (x % u128::from(p)) as u64)).collect();
            for (found, x) in rounded(&context, &Poly::from_words(8, words), bits).into_iter().zip(xs) {
                // 2^w x is below 2^45 2^87; a tie within the last bits of the fractions may fall either way.
                let exact = (x as f64 / q as f64).fract();
                let near = (found as f64 - exact * (1u64 << bits) as f64).rem_euclid((1u64 << bits) as f64);
                prop_assert!(near.min((1u64 << bits) as f64 - near) < 0.51, "{found} for {x}");
            }
        }
    }
}
