//! The measured noise budget.

use super::ciphertext::Ciphertext;
use super::context::Context;
use super::decrypt::{phase, unscale};
use super::keys::SecretKey;
use super::scale::ScaledMessage;
use crate::math::poly::{Coefficients, Poly};
use crate::math::vector;

/// Measures how many more bits of noise a ciphertext can take: log2(q/(2t)) - log2(largest noise coefficient).
///
/// The noise is c0 + c1 s - round(qm/t), with m what the ciphertext decrypts to, q the modulus of its level; noise of 0
/// counts as 1. The noise itself is exact, the logarithms are rounded to 1e-12 or so. A ciphertext whose noise has
/// passed its bound decrypts to something else and measures close to 0 from above: the budget is about what was
/// decrypted, not about what was meant.
///
/// It depends on the secret key and on the errors drawn: it is for tests and reports, and never travels.
pub fn measured_budget_bits(context: &Context, secret: &SecretKey, ciphertext: &Ciphertext) -> f64 {
    budget_of(context, &phase(context, secret, ciphertext))
}

fn budget_of(context: &Context, phase: &Poly<Coefficients>) -> f64 {
    let level = phase.residue_count();
    let message = ScaledMessage::new(context, level, &unscale(context, phase));
    // round(qm/t) - phase: the sign of noise does not matter.
    let mut noise = phase.clone();
    context.ring().neg_assign(&mut noise);
    for (i, residue) in noise.residues_mut().enumerate() {
        message.add_to(i, residue);
    }
    let log2_q: f64 = (0..level).map(|i| (context.modulus(i).value() as f64).log2()).sum();
    let largest = magnitudes(context, &noise).into_iter().fold(1.0, f64::max);
    log2_q - (context.plaintext_modulus() as f64).log2() - 1.0 - largest.log2()
}

/// Returns the size of each coefficient's centred representative.
///
/// In mixed radix a number below q has digits, the top ones 0 when it is small, so a float takes it without
/// cancellation. Of x and q - x the smaller is the size.
fn magnitudes(context: &Context, poly: &Poly<Coefficients>) -> Vec<f64> {
    let mut negated = poly.clone();
    context.ring().neg_assign(&mut negated);
    let [positive, negative] = [poly, &negated].map(|poly| values(context, poly));
    positive.into_iter().zip(negative).map(|(x, minus_x)| f64::min(x, minus_x)).collect()
}

/// Returns each coefficient as a number in [0, q).
///
/// Garner's algorithm from the last prime: x = v_l + q_l (v_(l-1) + q_(l-1) (... v_1)), where each digit is found by
/// taking the later ones away and dividing by their primes.
fn values(context: &Context, poly: &Poly<Coefficients>) -> Vec<f64> {
    let count = poly.residue_count();
    let mut digits: Vec<Vec<u64>> = Vec::with_capacity(count);
    for i in (0..count).rev() {
        let modulus = context.modulus(i);
        let mut own = poly.residue(i).to_vec();
        for (later, known) in (i + 1..count).rev().zip(&digits) {
            let known: Vec<u64> = known.iter().map(|&digit| modulus.reduce(digit)).collect();
            vector::sub_assign(modulus, &mut own, &known);
            vector::scalar_mul_assign(modulus, &mut own, context.drop_factor(later, i).value());
        }
        digits.push(own);
    }
    let mut values = vec![0.0; poly.ring_degree()];
    for (i, digits) in digits.into_iter().rev().enumerate() {
        let modulus = context.modulus(i).value() as f64;
        values.iter_mut().zip(digits).for_each(|(value, digit)| *value = *value * modulus + digit as f64);
    }
    values
}

#[cfg(test)]
mod tests {
    use super::*;
    use chococ_plans::params::{KeyParameters, Parameters, StageParameters};
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn magnitudes_are_those_of_the_centred_number(xs in prop::array::uniform8(any::<i128>()), shift in 43u32..127) {
            let primes = [97, 1_125_899_906_826_241, 1_073_692_673];
            let context = Context::new(&Parameters { keys: KeyParameters { ring_degree: 8, ciphertext_primes: primes.to_vec(), key_switching_prime: None, digit_bits: 10 }, stage: StageParameters { request_dropped_bits: 0, reply_modulus: 97, reply_dropped_bits: 0, plaintext_modulus: 17 } })
            .expect("each prime is 1 modulo 16");
            let xs = xs.map(|x| x >> shift);
            let words = primes.iter().flat_map(|&p| xs.map(|x| x.rem_euclid(i128::from(p)) as u64)).collect();
            for (found, x) in magnitudes(&context, &Poly::from_words(8, words)).into_iter().zip(xs) {
                // Below q/2 > 2^85, so x is the centred number itself.
                let exact = x.unsigned_abs() as f64;
                prop_assert!((found - exact).abs() <= exact * 1e-14, "{} for {}", found, x);
            }
        }
    }
}
