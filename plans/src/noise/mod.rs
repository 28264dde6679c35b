//! The noise budget that a stage is expected to have left: a bound that holds but for one run in 2^40 or more.
//!
//! The noise of a ciphertext (c0, c1) is c0 + c1 s - q m / t, a polynomial; its coefficients are sums of very many small
//! independent terms, hence nearly normal, and their variance follows the evaluation step by step. Decryption is
//! correct while every coefficient stays below q / (2 t); the budget is the log2 of that limit over [`TAIL`] standard
//! deviations.

mod profile;

use serde::{Deserialize, Serialize};

use crate::params::{ERROR_VARIANCE, Parameters, SECRET_VARIANCE, bits_of};

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
            let n = parameters.ring_degree as f64;
            let encrypted = ERROR_VARIANCE * (1.0 + 2.0 * n * SECRET_VARIANCE);
            match parameters.key_switching_prime {
                Some(p) => encrypted / (p as f64).powi(2) + switched_rounding(parameters),
                None => encrypted,
            }
        }
    }
}

/// Variance that one key switch adds.
///
/// Each digit, from -B/2 to B/2 - 1 for its base B and so of mean square B^2 / 12 + 1/6, multiplies N fresh errors; then
/// all is divided by P.
pub fn key_switch_variance(parameters: &Parameters) -> f64 {
    let Some(special) = parameters.key_switching_prime else { return 0.0 };
    let digit_bits = parameters.digit_bits;
    let squares: f64 = parameters
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
    parameters.ring_degree as f64 * ERROR_VARIANCE * squares / (special as f64).powi(2) + switched_rounding(parameters)
}

/// Estimates the budgets of a stage.
pub fn estimate(parameters: &Parameters, profile: &Profile, key: EncryptionKey) -> Budget {
    // What a request leaves out of c0 is as good as an error of its own.
    let dropped = match parameters.request_dropped_bits {
        0 => 0.0,
        bits => dropped_bits(bits),
    };
    let fresh = fresh_variance(parameters, key) + dropped;
    let Noise { variance, shift } = match profile {
        Profile::Slots(profile) => profile.evaluate(parameters, fresh),
        Profile::Coefficients(profile) => profile.evaluate(parameters, fresh),
    };
    let kept = (f64::from(parameters.reply_bits) - parameters.log2_q()).exp2();
    // The rounding of c1 meets the secret, that of c0 includes the bits that are dropped.
    let rounding =
        dropped_bits(parameters.reply_dropped_bits) + ROUNDING * parameters.ring_degree as f64 * SECRET_VARIANCE;
    let reply = Noise { variance: variance * kept.powi(2) + rounding, shift: shift * kept };
    let budget = |log2_modulus, noise| budget_bits(log2_modulus, parameters, noise);
    Budget {
        fresh_bits: budget(parameters.log2_q(), Noise { variance: fresh + ROUNDING, shift: 0.0 }),
        evaluated_bits: budget(parameters.log2_q(), Noise { variance, shift }),
        reply_bits: budget(f64::from(parameters.reply_bits), reply),
    }
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
fn switched_rounding(parameters: &Parameters) -> f64 {
    ROUNDING * (1.0 + parameters.ring_degree as f64 * SECRET_VARIANCE)
}

fn budget_bits(log2_modulus: f64, parameters: &Parameters, noise: Noise) -> f64 {
    let limit = log2_modulus - (parameters.plaintext_modulus as f64).log2() - 1.0;
    let bits = limit - (TAIL * noise.variance.sqrt() + noise.shift).log2();
    // A hundredth of a bit, downwards: what plans state must not hang on the last digit of a logarithm.
    (bits * 100.0).floor() / 100.0
}
