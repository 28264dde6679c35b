//! The message's way into a ciphertext, round(qm/t), exactly.

use super::context::Context;
use super::encode::Plaintext;
use super::factor::{Factor, subtract_once};
use super::keys::ERROR_BOUND;
use super::vectorized::vectorized;
use zeroize::Zeroizing;

/// A plaintext on its way to round(qm/t), where q is the modulus of some level.
///
/// With r the representative of qm modulo t that is closest to 0, round(qm/t) = (qm - r)/t. The division is exact and
/// q is 0 modulo each of its primes q_i, so the residue is -r t^-1 modulo q_i: no number is ever wider than a word.
/// A rounded q/t times m, as schemes often have it, would be off by up to m (q mod t)/t.
pub(super) struct ScaledMessage<'a> {
    context: &'a Context,
    /// qm modulo t, in [0, t).
    rests: Zeroizing<Vec<u64>>,
}

impl<'a> ScaledMessage<'a> {
    /// Starts the scaling to the modulus of `level`.
    pub fn new(context: &'a Context, level: usize, plaintext: &Plaintext) -> Self {
        assert_eq!(plaintext.coefficients().len(), context.ring_degree(), "the plaintext has N coefficients");
        let mut rests = Zeroizing::new(plaintext.coefficients().to_vec());
        multiply(context.level(level).q_mod_t, context.plaintext_modulus(), &mut rests);
        Self { context, rests }
    }

    /// Adds the N coefficients of round(qm/t) modulo the prime of residue i, which the level keeps.
    pub fn add_to(&self, i: usize, residue: &mut [u64]) {
        let t = self.context.plaintext_modulus();
        add_scaled(self.context.residue(i).minus_inverse_t, t, self.context.modulus(i).value(), &self.rests, residue);
    }
}

/// Replaces each x of residue i by round(qm/t) + e - x modulo the residue's prime, q being that of `level`.
///
/// Returns false, and changes nothing, where t is beyond 32 bits.
pub(super) fn mask_message(
    context: &Context,
    [level, i]: [usize; 2],
    plaintext: &Plaintext,
    errors: &[i8],
    residue: &mut [u64],
) -> bool {
    let (t, modulus) = (context.plaintext_modulus(), context.modulus(i).value());
    if t >= 1 << 32 || modulus <= ERROR_BOUND {
        return false;
    }
    let lengths = [plaintext.coefficients().len(), errors.len(), residue.len()];
    assert_eq!(lengths, [context.ring_degree(); 3], "there are N coefficients of everything");
    let factors = [context.level(level).q_mod_t, context.residue(i).minus_inverse_t];
    let mask = if modulus < 1 << 32 { mask_narrow } else { mask_wide };
    mask(factors, [t, modulus], plaintext.coefficients(), errors, residue);
    true
}

vectorized! {
    /// As [`mask_message`], given q modulo t, -1/t modulo the prime, t and the prime.
    fn mask_narrow(factors: [Factor; 2], moduli: [u64; 2], message: &[u64], errors: &[i8], words: &mut [u64]) {
        let [to_rest, minus_inverse_t] = factors;
        for ((word, &m), &error) in words.iter_mut().zip(message).zip(errors) {
            let rest = to_rest.mul_narrow(m);
            *word = masked(*word, rest, minus_inverse_t.mul_narrow(rest), error, moduli);
        }
    }
}

vectorized! {
    /// As [`mask_narrow`], for any prime.
    fn mask_wide(factors: [Factor; 2], moduli: [u64; 2], message: &[u64], errors: &[i8], words: &mut [u64]) {
        let [to_rest, minus_inverse_t] = factors;
        for ((word, &m), &error) in words.iter_mut().zip(message).zip(errors) {
            let rest = to_rest.mul_narrow(m);
            *word = masked(*word, rest, minus_inverse_t.mul_short(rest), error, moduli);
        }
    }
}

/// Returns what masks a word, given -rest/t modulo the prime.
#[inline(always)]
fn masked(word: u64, rest: u64, scaled: u64, error: i8, [t, modulus]: [u64; 2]) -> u64 {
    // As in `add_scaled`.
    let scaled = scaled + (t.wrapping_sub(2 * rest) >> 63);
    let error = i64::from(error);
    let error = (error + (modulus as i64 & (error >> 63))) as u64;
    // scaled, error and -word are at most p each, so the sum at most 3p < 2^62.
    subtract_once(subtract_once(scaled + error + (modulus - word), 2 * modulus), modulus)
}

vectorized! {
    /// Multiplies words below t.
    fn multiply(by: Factor, t: u64, words: &mut [u64]) {
        if t <= 1 << 32 {
            words.iter_mut().for_each(|word| *word = by.mul_short(*word));
        } else {
            words.iter_mut().for_each(|word| *word = by.mul(*word));
        }
    }
}

vectorized! {
    /// Adds to each word the scaled message of its rest.
    fn add_scaled(minus_inverse_t: Factor, t: u64, modulus: u64, rests: &[u64], words: &mut [u64]) {
        // Above t/2 the centred rest is `rest` - t, and -(rest - t) t^-1 = -rest t^-1 + 1.
        let above = |rest: u64| t.wrapping_sub(2 * rest) >> 63;
        let add = |word: u64, scaled: u64| subtract_once(word + subtract_once(scaled, modulus), modulus);
        let words = words.iter_mut().zip(rests);
        if t <= 1 << 32 {
            words.for_each(|(word, &rest)| *word = add(*word, minus_inverse_t.mul_short(rest) + above(rest)));
        } else {
            words.for_each(|(word, &rest)| *word = add(*word, minus_inverse_t.mul(rest) + above(rest)));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use chococ_plans::params::{KeyParameters, Parameters, StageParameters};

    #[test]
    fn scales_as_division_of_long_integers_does() {
        for t in [2, 17, 1 << 10, 65_537] {
            let parameters = Parameters {
                keys: KeyParameters {
                    ring_degree: 8,
                    ciphertext_primes: vec![1_073_692_673, 97, 113],
                    key_switching_prime: None,
                    digit_bits: 10,
                },
                stage: StageParameters {
                    request_dropped_bits: 0,
                    reply_modulus: 97,
                    reply_dropped_bits: 0,
                    plaintext_modulus: t,
                },
            };
            let context = Context::new(&parameters).expect("each prime is 1 modulo 16");
            let messages: Vec<u64> = [0, 1, t / 3, t / 2, t / 2 + 1, t - 1, 1, 0].map(|m| m % t).to_vec();
            let plaintext = Plaintext::from_coefficients(&context, messages.clone());
            for level in 1..=3 {
                let primes = &parameters.keys.ciphertext_primes[..level];
                let q: u64 = primes.iter().product();
                let message = ScaledMessage::new(&context, level, &plaintext);
                for (i, prime) in primes.iter().enumerate() {
                    let mut scaled = [prime - 1; 8];
                    message.add_to(i, &mut scaled);
                    for (scaled, &m) in scaled.iter().zip(&messages) {
                        // round(qm/t), a tie rounded down.
                        let exact = (2 * u128::from(q) * u128::from(m) + u128::from(t) - 1) / (2 * u128::from(t));
                        assert_eq!(u128::from(scaled + 1) % u128::from(*prime), exact % u128::from(*prime));
                    }
                }
            }
        }
    }
}
