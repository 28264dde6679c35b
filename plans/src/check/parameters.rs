//! Checks encryption parameters: that they work, and that they are secure.

use crate::check::PlanError;
use crate::params::{KeyParameters, Parameters, bits_of};
use crate::primes::is_prime;
use crate::security;

/// Primes up to this many bits fit the runtime's arithmetic.
const LARGEST_PRIME_BITS: u32 = 60;

/// So many residues fit the runtime's sums of fractions.
const LARGEST_RESIDUES: usize = 32;

/// Checks the parameters of a key set.
pub(super) fn check_keys(key_set: usize, keys: &KeyParameters) -> Result<(), PlanError> {
    let wrong = |problem: String| Err(PlanError::Parameters { key_set, problem });
    let ring_degree = keys.ring_degree;
    let Some(limit) = security::largest_log2_modulus(ring_degree) else {
        let degrees: Vec<usize> = security::ring_degrees().collect();
        return wrong(format!("ring degree {ring_degree} is none of {degrees:?}"));
    };
    let primes = &keys.ciphertext_primes;
    if primes.is_empty() || primes.len() > LARGEST_RESIDUES {
        return wrong(format!("{} ciphertext primes", primes.len()));
    }
    if !(1..=LARGEST_PRIME_BITS).contains(&keys.digit_bits) {
        return wrong(format!("digits of {} bits", keys.digit_bits));
    }
    let mut all = primes.clone();
    all.extend(keys.key_switching_prime);
    for (index, &prime) in all.iter().enumerate() {
        if !has_transform(prime, ring_degree) {
            return wrong(format!(
                "{prime} is no prime below 2^{LARGEST_PRIME_BITS} that is 1 modulo {}",
                2 * ring_degree
            ));
        }
        if all[..index].contains(&prime) {
            return wrong(format!("the prime {prime} occurs twice"));
        }
    }
    let found = keys.log2_whole();
    if found > f64::from(limit) {
        return Err(PlanError::Insecure { key_set, found, ring_degree, limit });
    }
    Ok(())
}

/// Checks the parameters that a stage has beside those of its key set, which have been checked; Err with the problem.
pub(super) fn check_stage(parameters: &Parameters, slots: bool) -> Result<(), String> {
    let Parameters { keys, stage } = parameters;
    let primes = &keys.ciphertext_primes;
    let t = stage.plaintext_modulus;
    if t < 2 || t >> LARGEST_PRIME_BITS != 0 || primes.iter().any(|&prime| t.is_multiple_of(prime)) {
        return Err(format!("plaintext modulus {t}"));
    }
    let order = 2 * keys.ring_degree as u64;
    if slots && !(is_prime(t) && t % order == 1) {
        return Err(format!("slots need a plaintext modulus that is a prime and 1 modulo {order}"));
    }
    let narrowest = primes.iter().map(|&prime| bits_of(prime)).min().unwrap_or(0);
    let dropped = stage.request_dropped_bits;
    if dropped >= narrowest || dropped > 0 && primes.len() > 1 {
        return Err(format!("requests that leave out {dropped} bits of {} primes", primes.len()));
    }
    let (modulus, dropped) = (stage.reply_modulus, stage.reply_dropped_bits);
    if !has_transform(modulus, keys.ring_degree) {
        return Err(format!(
            "replies modulo {modulus}, which is no prime below 2^{LARGEST_PRIME_BITS} that is 1 modulo {order}"
        ));
    }
    if dropped >= bits_of(modulus) {
        return Err(format!("replies of {} bits that leave out {dropped}", bits_of(modulus)));
    }
    Ok(())
}

/// Says whether polynomials modulo `prime` can be transformed, by the runtime's arithmetic.
fn has_transform(prime: u64, ring_degree: usize) -> bool {
    prime >> LARGEST_PRIME_BITS == 0 && prime % (2 * ring_degree as u64) == 1 && is_prime(prime)
}
