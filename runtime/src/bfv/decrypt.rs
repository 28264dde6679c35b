//! Decryption at any level: c0 + c1 s, and from that the message.

use super::ciphertext::Ciphertext;
use super::context::Context;
use super::encode::Plaintext;
use super::factor::{Factor, subtract_once};
use super::keys::SecretKey;
use super::vectorized::vectorized;
use crate::math::modulus::Modulus;
use crate::math::poly::{Coefficients, Evaluations, Poly};
use crate::math::vector;
use zeroize::Zeroizing;

/// Decrypts a ciphertext as the server holds it: one product and one inverse transform a residue, then the scaling by
/// t/q.
///
/// The fractions that it rounds are computed to 2^-32 or better. They are multiples of 1/q, so that for an odd q below
/// 2^31 none is nearer to a half than that; for larger moduli the noise must leave 2^-32 between them and a half.
pub fn decrypt(context: &Context, secret: &SecretKey, ciphertext: &Ciphertext) -> Plaintext {
    unscale(context, &phase(context, secret, ciphertext))
}

/// Returns c0 + c1 s.
pub(super) fn phase(context: &Context, secret: &SecretKey, ciphertext: &Ciphertext) -> Zeroizing<Poly<Coefficients>> {
    let mut phase = times_secret(context, secret, &ciphertext.c1);
    context.ring().add_assign(&mut phase, &ciphertext.c0);
    Zeroizing::new(context.ring().inverse(phase))
}

fn times_secret(context: &Context, secret: &SecretKey, c1: &Poly<Evaluations>) -> Poly<Evaluations> {
    let mut product = Poly::zero(context.ring_degree(), c1.residue_count());
    for (i, residue) in product.residues_mut().enumerate() {
        vector::pointwise_mul(context.modulus(i), c1.residue(i), secret.evaluations().residue(i), residue);
    }
    product
}

/// Returns round(tx/q) modulo t for each coefficient x of a phase.
pub(super) fn unscale(context: &Context, phase: &Poly<Coefficients>) -> Plaintext {
    let modulus = context.modulus(0).value();
    let coefficients = if phase.residue_count() == 1 && modulus < 1 << 32 && context.plaintext_modulus() < modulus {
        let mut scaled = phase.residue(0).to_vec();
        unscale_short(modulus, context.plaintext_modulus(), &mut scaled);
        scaled
    } else {
        unscale_long(context, phase)
    };
    Plaintext::from_reduced(coefficients)
}

/// Replaces each x modulo one prime q by round(tx/q) modulo t.
pub(super) fn unscale_one(modulus: u64, plaintext_modulus: u64, words: &mut [u64]) {
    if modulus < 1 << 32 && plaintext_modulus < modulus {
        return unscale_short(modulus, plaintext_modulus, words);
    }
    let (q, t) = (u128::from(modulus), u128::from(plaintext_modulus));
    words.iter_mut().for_each(|word| *word = ((2 * t * u128::from(*word) + q) / (2 * q) % t) as u64);
}

/// Scales from one prime below 2^32: a multiplication by t/q in 64-bit fixed point.
///
/// With c = round(2^64 t/q), x c / 2^64 is off from tx/q by at most q/2 / 2^64 < 2^-33. The low half of c takes part
/// through its upper word only, rounded: 2^-33 more.
fn unscale_short(modulus: u64, plaintext_modulus: u64, words: &mut [u64]) {
    let (q, t) = (u128::from(modulus), u128::from(plaintext_modulus));
    // t < q, so that c is below 2^64.
    let ratio = ((t << 65) + q) / (2 * q);
    multiply_and_round(ratio as u64, plaintext_modulus, words);
}

vectorized! {
    /// Writes round(x ratio / 2^64) modulo t for each word x < 2^32, where x ratio / 2^64 < t + 1/2.
    fn multiply_and_round(ratio: u64, t: u64, words: &mut [u64]) {
        for word in words {
            let x = *word & LOW;
            // At most t * 2^32 + 2^31, and t < 2^32.
            let fixed = x * (ratio >> 32) + ((x * (ratio & LOW) + (1 << 31)) >> 32);
            // t itself stands for 0: x was just below q.
            *word = subtract_once((fixed + (1 << 31)) >> 32, t);
        }
    }
}

/// The low half of a word.
const LOW: u64 = 0xffff_ffff;

/// Bits after the point in [`unscale_long`]: a sum of 32 fractions and a half stay below 2^64.
const FRACTION_BITS: u32 = 58;

/// Scales from any number of primes.
///
/// With y_i = x (q/q_i)^-1 mod q_i, x = sum of y_i q/q_i up to multiples of q, so tx/q = sum of t y_i/q_i up to
/// multiples of t. With z_i = t y_i mod q_i, the fractional part of t y_i/q_i is z_i/q_i, and the integer part
/// (t y_i - z_i)/q_i is -z_i q_i^-1 modulo t: nothing exceeds a word, and only the fractions are approximate, each by
/// less than 2 units of 2^-58.
///
/// Source: Halevi, Polyakov and Shoup, "An improved RNS variant of the BFV scheme", CT-RSA 2019, for the sum.
fn unscale_long(context: &Context, phase: &Poly<Coefficients>) -> Vec<u64> {
    let (n, t) = (context.ring_degree(), context.plaintext_modulus());
    let mut integers = vec![0; n];
    let mut fractions = Zeroizing::new(vec![1u64 << (FRACTION_BITS - 1); n]);
    let mut shares = Zeroizing::new(vec![0; n]);
    for (i, (residue, unscale)) in phase.residues().zip(&context.level(phase.residue_count()).unscale).enumerate() {
        let modulus = context.modulus(i);
        shares.copy_from_slice(residue);
        vector::scalar_mul_assign(modulus, &mut shares, unscale.value());
        add_fractions(modulus, &shares, &mut fractions);
        let to_integer = context.residue(i).minus_inverse_mod_t;
        add_integers([to_integer, to_integer.shifted_by_32()], t, &shares, &mut integers);
    }
    // Up to 32 units carry over, which may be several t.
    let reduce = Factor::new(1, t);
    for (integer, fraction) in integers.iter_mut().zip(fractions.iter()) {
        *integer = reduce.mul(*integer + (fraction >> FRACTION_BITS));
    }
    integers
}

vectorized! {
    /// Adds z/q_i in units of 2^-58 for each z, less than 2 short.
    fn add_fractions(modulus: Modulus, shares: &[u64], fractions: &mut [u64]) {
        let bits = modulus.bits();
        // floor(2^(63 + bits) / q_i) < 2^64: with z shifted up by 64 - bits, the high word of the product is z/q_i in
        // units of 2^-63. The floors here and below, and the low halves' product left out, make it less than 4 short.
        let ratio = ((1u128 << (63 + bits)) / u128::from(modulus.value())) as u64;
        let (ratio_high, ratio_low) = (ratio >> 32, ratio & LOW);
        for (fraction, &z) in fractions.iter_mut().zip(shares) {
            let z = z << (64 - bits);
            let (high, low) = (z >> 32, z & LOW);
            let quotient = high * ratio_high + ((high * ratio_low) >> 32) + ((low * ratio_high) >> 32);
            *fraction += quotient >> (63 - FRACTION_BITS);
        }
    }
}

vectorized! {
    /// Adds -z q_i^-1 modulo t for each z, given the factor for its low half and the one for its high half.
    fn add_integers(factors: [Factor; 2], t: u64, shares: &[u64], integers: &mut [u64]) {
        for (integer, &z) in integers.iter_mut().zip(shares) {
            let low = subtract_once(*integer + factors[0].mul_short(z), t);
            *integer = subtract_once(low + factors[1].mul_short(z >> 32), t);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use chococ_plans::params::{KeyParameters, Parameters, StageParameters};
    use chococ_plans::primes::ntt_primes_below;
    use proptest::prelude::*;

    fn context(ciphertext_primes: &[u64], plaintext_modulus: u64) -> Context {
        let parameters = Parameters {
            keys: KeyParameters {
                ring_degree: 8,
                ciphertext_primes: ciphertext_primes.to_vec(),
                key_switching_prime: None,
                digit_bits: 10,
            },
            stage: StageParameters {
                request_dropped_bits: 0,
                reply_modulus: 97,
                reply_dropped_bits: 0,
                plaintext_modulus,
            },
        };
        Context::new(&parameters).expect("the test's primes have transforms")
    }

    proptest! {
        #[test]
        fn scales_as_division_of_long_integers_does(
            xs in prop::array::uniform8(any::<u128>()),
            level in 1usize..=2,
            t in prop::sample::select(vec![2u64, 17, 1 << 10, 65_537, (1 << 30) + 1]),
        ) {
            let primes = &[1_073_692_673, 1_125_899_906_826_241][..level];
            let context = context(primes, t);
            let q: u128 = primes.iter().map(|&p| u128::from(p)).product();
            // Both ends of the range round to 0. The middle of a long one is closer to a half than promised.
            let mut xs = xs.map(|x| x % q);
            (xs[0], xs[1], xs[2]) = (0, q - 1, if level == 1 { q / 2 } else { q / 3 });
            let words = primes.iter().flat_map(|&p| xs.map(|x| (x % u128::from(p)) as u64)).collect();
            let plaintext = unscale(&context, &Poly::from_words(8, words));
            for (&m, x) in plaintext.coefficients().iter().zip(xs) {
                // tx < 2^80 * 2^31
                let exact = (2 * x * u128::from(t) + q) / (2 * q) % u128::from(t);
                prop_assert_eq!(u128::from(m), exact);
            }
        }

        #[test]
        fn one_prime_may_have_any_width(bits in 10u32..60, t in 2u64..1 << 40, x: u64) {
            let q = ntt_primes_below(bits, 8).next().expect("there are primes of every width");
            let mut words = vec![x % q, 0, q - 1, q / 2];
            let scale = |&x: &u64| {
                (2 * u128::from(x) * u128::from(t) + u128::from(q)) / (2 * u128::from(q)) % u128::from(t)
            };
            let expected: Vec<u64> = words.iter().map(scale).map(|x| x as u64).collect();
            unscale_one(q, t, &mut words);
            // The middle, as odd as q is, comes so near to a tie that either will do.
            prop_assert_eq!(&words[..3], &expected[..3]);
        }

        #[test]
        fn the_short_path_agrees_with_the_long_one(seed: u64) {
            let context = context(&[1_073_692_673], 65_537);
            let words = (1..=8u64).map(|i| seed.wrapping_mul(i) % 1_073_692_673).collect();
            let phase = Poly::from_words(8, words);
            let short = unscale(&context, &phase);
            prop_assert_eq!(short.coefficients(), unscale_long(&context, &phase));
        }
    }
}
