//! The noise budget that a stage is expected to have left: a bound that holds but for one run in 2^40 or more.
//!
//! The noise of a ciphertext (c0, c1) is c0 + c1 s - q m / t, a polynomial; its coefficients are sums of very many small
//! independent terms, hence nearly normal, and their variance follows the evaluation step by step. Decryption is
//! correct while every coefficient stays below q / (2 t); the budget is the log2 of that limit over [`TAIL`] standard
//! deviations.

use std::collections::BTreeSet;

use serde::{Deserialize, Serialize};

use crate::packing::grid::Offset;
use crate::packing::layout::Layout;
use crate::packing::program::{Baby, Instruction, Program};
use crate::params::{ERROR_VARIANCE, Parameters, SECRET_VARIANCE, bits_of};

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

/// Variance of one noise coefficient after encryption.
pub fn fresh_variance(parameters: &Parameters, key: EncryptionKey) -> f64 {
    match key {
        EncryptionKey::Secret => ERROR_VARIANCE + ROUNDING,
        EncryptionKey::Public => {
            // u e + e1 + e2 s under q P, then divided by P, which adds the rounding of both polynomials.
            let n = parameters.ring_degree as f64;
            let encrypted = ERROR_VARIANCE * (1.0 + 2.0 * n * SECRET_VARIANCE);
            match parameters.key_switching_prime {
                Some(p) => encrypted / (p as f64).powi(2) + switched_rounding(parameters) + ROUNDING,
                None => encrypted + ROUNDING,
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

/// Factor by which one product with a batch-encoded plaintext multiplies the variance.
///
/// Its N coefficients behave as uniform modulo t, whatever the slots hold, but for a constant vector.
pub fn product_factor(parameters: &Parameters) -> f64 {
    parameters.ring_degree as f64 * (parameters.plaintext_modulus as f64).powi(2) / 12.0
}

/// What the noise of a stage's outputs is made of, whatever the parameters: one entry for each kind of output.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Profile {
    outputs: BTreeSet<Terms>,
}

/// Terms of the noise of one output ciphertext.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
struct Terms {
    /// Products of inputs as they came: without and with a mask.
    still: [usize; 2],
    /// Products of rotated inputs: without and with a mask.
    rotated: [usize; 2],
    /// Rotations of sums and totals.
    switches: usize,
}

impl Profile {
    /// Counts the terms of every output of a program.
    pub fn new(layout: &Layout, program: &Program) -> Profile {
        let masks: BTreeSet<Offset> = layout.grid.offsets().filter(|&offset| layout.mask(offset).is_some()).collect();
        let terms = |instructions: &Vec<Instruction>| {
            let mut terms = Terms::default();
            for instruction in instructions {
                let rotation = match instruction {
                    Instruction::Rotate(rotation) => *rotation,
                    Instruction::Add(sum) => {
                        for Baby { offset, rotation, .. } in sum.products.iter().map(|product| product.baby) {
                            let masked = usize::from(masks.contains(&offset));
                            match rotation.is_identity() {
                                true => terms.still[masked] += 1,
                                false => terms.rotated[masked] += 1,
                            }
                        }
                        sum.rotation
                    }
                };
                terms.switches += usize::from(!rotation.is_identity());
            }
            terms
        };
        Profile { outputs: program.outputs.iter().map(terms).collect() }
    }
}

/// Estimates the budgets of a stage.
pub fn estimate(parameters: &Parameters, profile: &Profile, key: EncryptionKey) -> Budget {
    let fresh = fresh_variance(parameters, key);
    let switched = key_switch_variance(parameters);
    let product = product_factor(parameters);
    let variance = |terms: &Terms| {
        let [still, rotated] =
            [terms.still, terms.rotated].map(|[plain, masked]| plain as f64 + masked as f64 * product);
        (still * fresh + rotated * (fresh + switched)) * product + terms.switches as f64 * switched + ROUNDING
    };
    let evaluated = profile.outputs.iter().map(variance).fold(0.0, f64::max);
    let kept = (parameters.log2_reply() - parameters.log2_q()).exp2();
    let reply = if parameters.reply_primes == parameters.ciphertext_primes.len() {
        evaluated
    } else {
        evaluated * kept.powi(2) + switched_rounding(parameters)
    };
    Budget {
        fresh_bits: budget_bits(parameters.log2_q(), parameters, fresh),
        evaluated_bits: budget_bits(parameters.log2_q(), parameters, evaluated),
        reply_bits: budget_bits(parameters.log2_reply(), parameters, reply),
    }
}

/// Variance of rounding one real number to an integer.
const ROUNDING: f64 = 1.0 / 12.0;

/// Variance of rounding both polynomials of a ciphertext, the second multiplied by the secret.
fn switched_rounding(parameters: &Parameters) -> f64 {
    ROUNDING * (1.0 + parameters.ring_degree as f64 * SECRET_VARIANCE)
}

fn budget_bits(log2_modulus: f64, parameters: &Parameters, variance: f64) -> f64 {
    let limit = log2_modulus - (parameters.plaintext_modulus as f64).log2() - 1.0;
    let bits = limit - TAIL.log2() - variance.log2() / 2.0;
    // A hundredth of a bit, downwards: what plans state must not hang on the last digit of a logarithm.
    (bits * 100.0).floor() / 100.0
}
