//! Checks encryption parameters: that they work, and that they are secure.

use crate::check::PlanError;
use crate::params::Parameters;
use crate::primes::is_prime;
use crate::security;

/// Primes up to this many bits fit the runtime's arithmetic.
const LARGEST_PRIME_BITS: u32 = 60;

pub(super) fn check(key_set: usize, parameters: &Parameters) -> Result<(), PlanError> {
    let wrong = |problem: String| Err(PlanError::Parameters { key_set, problem });
    let ring_degree = parameters.ring_degree;
    let Some(limit) = security::largest_log2_modulus(ring_degree) else {
        let degrees: Vec<usize> = security::ring_degrees().collect();
        return wrong(format!("ring degree {ring_degree} is none of {degrees:?}"));
    };
    let primes = &parameters.ciphertext_primes;
    if !(1..=primes.len()).contains(&parameters.reply_primes) {
        return wrong(format!("a reply keeps {} of {} ciphertext primes", parameters.reply_primes, primes.len()));
    }
    if !(1..=LARGEST_PRIME_BITS).contains(&parameters.digit_bits) {
        return wrong(format!("digits of {} bits", parameters.digit_bits));
    }
    let mut all = primes.clone();
    all.extend(parameters.key_switching_prime);
    all.push(parameters.plaintext_modulus);
    for (index, &prime) in all.iter().enumerate() {
        if prime >> LARGEST_PRIME_BITS != 0 || prime % (2 * ring_degree as u64) != 1 || !is_prime(prime) {
            return wrong(format!(
                "{prime} is no prime below 2^{LARGEST_PRIME_BITS} that is 1 modulo {}",
                2 * ring_degree
            ));
        }
        if all[..index].contains(&prime) {
            return wrong(format!("the prime {prime} occurs twice"));
        }
    }
    let found = parameters.log2_whole();
    if found > f64::from(limit) {
        return Err(PlanError::Insecure { key_set, found, ring_degree, limit });
    }
    Ok(())
}
