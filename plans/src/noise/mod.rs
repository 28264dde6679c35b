//! The noise budget that a stage is expected to have left: a bound that holds but for one run in 2^40 or more.
//!
//! The noise of a ciphertext (c0, c1) is c0 + c1 s - q m / t, a polynomial; its coefficients are sums of very many small
//! independent terms, hence nearly normal, and their variance follows the evaluation step by step. Decryption is
//! correct while every coefficient stays below q / (2 t); the budget is the log2 of that limit over [`TAIL`] standard
//! deviations.

pub(crate) mod profile;

use serde::{Deserialize, Serialize};

use crate::params::{ERROR_VARIANCE, KeyParameters, Parameters, SECRET_VARIANCE, bits_of};

pub use profile::Profile;

/// Standard deviations that a coefficient may stray.
///
/// A normal variable strays further than 8.9 deviations with probability 2^-60.6, so an inference that decrypts up to
/// 2^20 coefficients (256 ciphertexts at N = 4096, several times what VGG16 needs) fails with probability below 2^-40.
pub const TAIL: f64 = 8.9;

/// Coefficients of one inference that [`TAIL`] allows for.
pub const COEFFICIENTS: usize = 1 << 20;

/// Noise budgets of one stage, in bits, each for the worst of its ciphertexts.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Budget {
    /// After encryption by the secret key.
    pub fresh_bits: f64,
    /// After the last product and rotation.
    pub evaluated_bits: f64,
    /// After the modulus has been switched for the reply: what the client decrypts with.
    pub reply_bits: f64,
}

/// The key that encrypts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EncryptionKey {
    /// The client's own; c1 is expanded from a seed.
    Secret,
    /// The public key, under all primes, the special one divided out: as the paper's accelerator does it.
    Public,
}

/// Variance of one noise coefficient after encryption, the rounding of the scaled message aside.
pub fn fresh_variance(parameters: &Parameters, key: EncryptionKey) -> f64 {
    match key {
        EncryptionKey::Secret => ERROR_VARIANCE,
        EncryptionKey::Public => {
            // u e + e1 + e2 s under q P, then divided by P, which adds the rounding of both polynomials.
            let n = parameters.keys.ring_degree as f64;
            let encrypted = ERROR_VARIANCE * (1.0 + 2.0 * n * SECRET_VARIANCE);
            match parameters.keys.key_switching_prime {
                Some(p) => encrypted / (p as f64).powi(2) + switched_rounding(&parameters.keys),
                None => encrypted,
            }
        }
    }
}

/// Variance that one key switch adds.
///
/// Each digit, from -B/2 to B/2 - 1 for its base B and so of mean square B^2 / 12 + 1/6, multiplies N fresh errors; then
/// all is divided by P.
pub fn key_switch_variance(keys: &KeyParameters) -> f64 {
    let Some(special) = keys.key_switching_prime else { return 0.0 };
    let digit_bits = keys.digit_bits;
    let squares: f64 = keys
        .ciphertext_primes
        .iter()
        .flat_map(|&prime| {
            let bits = bits_of(prime);
            // A residue that is one digit is below the prime itself; of several, the last one is the shortest.
            let base = move |digit: u32| match bits <= digit_bits {
                true => prime as f64,
                false => f64::from(digit_bits.min(bits - digit * digit_bits)).exp2(),
            };
            (0..bits.div_ceil(digit_bits)).map(move |digit| base(digit).powi(2) / 12.0 + 1.0 / 6.0)
        })
        .sum();
    keys.ring_degree as f64 * ERROR_VARIANCE * squares / (special as f64).powi(2) + switched_rounding(keys)
}

/// Estimates the budgets of a stage.
pub fn estimate(parameters: &Parameters, profile: &Profile, key: EncryptionKey) -> Budget {
    let fresh = received(parameters, key);
    let evaluated = evaluated(parameters, profile, fresh);
    let budget = |log2_modulus, noise| budget_bits(log2_modulus, parameters, noise);
    Budget {
        fresh_bits: budget(parameters.keys.log2_q(), Noise { variance: fresh + ROUNDING, shift: 0.0 }),
        evaluated_bits: budget(parameters.keys.log2_q(), evaluated),
        reply_bits: budget(log2_reply(parameters), replied(parameters, evaluated)),
    }
}

/// How far a result is from decrypting to another number, in standard deviations of its noise.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Margin {
    /// If what is not random about the noise comes to nothing.
    pub at_best: f64,
    /// If it points the wrong way as far as it can.
    pub at_worst: f64,
}

/// Computes the margin of the results of a stage, however small.
pub fn margin(parameters: &Parameters, profile: &Profile, key: EncryptionKey) -> Margin {
    let Noise { variance, shift } = replied(parameters, evaluated(parameters, profile, received(parameters, key)));
    let limit = parameters.stage.reply_modulus as f64 / (2.0 * parameters.stage.plaintext_modulus as f64);
    Margin { at_best: limit / variance.sqrt(), at_worst: (limit - shift) / variance.sqrt() }
}

/// Variance of one noise coefficient as the server receives it, the rounding of the scaled message aside.
fn received(parameters: &Parameters, key: EncryptionKey) -> f64 {
    // What a request leaves out of c0 is as good as an error of its own.
    let dropped = match parameters.stage.request_dropped_bits {
        0 => 0.0,
        bits => dropped_bits(bits),
    };
    fresh_variance(parameters, key) + dropped
}

fn evaluated(parameters: &Parameters, profile: &Profile, fresh: f64) -> Noise {
    match profile {
        Profile::Slots(profile) => profile.evaluate(parameters, fresh),
        Profile::Coefficients(profile) => profile.evaluate(parameters, fresh),
    }
}

fn log2_reply(parameters: &Parameters) -> f64 {
    (parameters.stage.reply_modulus as f64).log2()
}

fn replied(parameters: &Parameters, evaluated: Noise) -> Noise {
    let kept = (log2_reply(parameters) - parameters.keys.log2_q()).exp2();
    // The rounding of c1 meets the secret, that of c0 includes the bits that are dropped.
    let rounding = dropped_bits(parameters.stage.reply_dropped_bits)
        + ROUNDING * parameters.keys.ring_degree as f64 * SECRET_VARIANCE;
    Noise { variance: evaluated.variance * kept.powi(2) + rounding, shift: evaluated.shift * kept }
}

/// Probability that a normal variable strays from its mean by more than so many standard deviations, either way.
///
/// By the power series of the error function where that is short, by its continued fraction beyond; to 1e-9 of itself.
///
/// Source: Abramowitz and Stegun, Handbook of Mathematical Functions, 7.1.6 and 7.1.14.
pub fn tail_probability(deviations: f64) -> f64 {
    if deviations <= 0.0 {
        return 1.0;
    }
    let density = (-deviations * deviations / 2.0).exp() / (2.0 * std::f64::consts::PI).sqrt();
    if deviations < 3.0 {
        let mut term = deviations;
        let mut sum = term;
        for odd in (3..).step_by(2).take(60) {
            term *= deviations * deviations / f64::from(odd);
            sum += term;
        }
        return 1.0 - 2.0 * density * sum;
    }
    let fraction = (1..=80).rev().fold(deviations, |below, level| deviations + f64::from(level) / below);
    2.0 * density / fraction
}

/// The noise of a coefficient: normal around something that is no larger than a shift.
#[derive(Clone, Copy, Debug)]
struct Noise {
    variance: f64,
    shift: f64,
}

/// Variance of rounding to multiples of 2^bits.
fn dropped_bits(bits: u32) -> f64 {
    ROUNDING * f64::from(2 * bits).exp2()
}

/// Variance of rounding one real number to an integer.
const ROUNDING: f64 = 1.0 / 12.0;

/// Variance of rounding both polynomials of a ciphertext, the second multiplied by the secret.
fn switched_rounding(keys: &KeyParameters) -> f64 {
    ROUNDING * (1.0 + keys.ring_degree as f64 * SECRET_VARIANCE)
}

fn budget_bits(log2_modulus: f64, parameters: &Parameters, noise: Noise) -> f64 {
    let limit = log2_modulus - (parameters.stage.plaintext_modulus as f64).log2() - 1.0;
    let bits = limit - (TAIL * noise.variance.sqrt() + noise.shift).log2();
    // A hundredth of a bit, downwards: what plans state must not hang on the last digit of a logarithm.
    (bits * 100.0).floor() / 100.0
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tails_are_those_of_the_normal_distribution() {
        // From tables of the normal distribution: 2 (1 - Phi(z)).
        for (deviations, probability) in [
            (0.0, 1.0),
            (1.0, 0.317_310_507_9),
            (2.0, 0.045_500_263_9),
            (3.0, 0.002_699_796_1),
            (4.0, 6.334_248_4e-5),
            (6.0, 1.973_175_3e-9),
        ] {
            let found = tail_probability(deviations);
            assert!((found / probability - 1.0).abs() < 1e-6, "{found} at {deviations}");
        }
        let jump = tail_probability(3.0 - 1e-12) / tail_probability(3.0) - 1.0;
        assert!(jump.abs() < 1e-8, "both ways agree where they meet, but for {jump}");
        assert!(tail_probability(TAIL) < (-60f64).exp2());
    }
}
