//! One parameter set made ready: transforms and constants, for every number of residues a ciphertext may keep.

use std::sync::Arc;

use super::encode::Encoder;
use super::factor::{Factor, inverse};
use crate::math::modulus::Modulus;
use crate::math::ntt::Ntt;
use crate::math::poly::Ring;
use chococ_plans::params::{KeyParameters, Parameters, StageParameters, bits_of};
use chococ_plans::primes::is_prime;

/// What makes numbers unfit to compute with.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ParameterError {
    /// The ring degree is not a power of two in range.
    #[error("ring degree {0} is not a power of two from 8 to 32768")]
    RingDegree(usize),
    /// The ciphertext modulus has no primes, or too many.
    #[error("{0} ciphertext primes; there must be 1 to 32")]
    ResidueCount(usize),
    /// A modulus that should have a transform has none.
    #[error("{prime} is not a prime below 2^60 that is 1 modulo {double_degree}")]
    NoTransform {
        /// The number found.
        prime: u64,
        /// 2N.
        double_degree: usize,
    },
    /// A prime stands twice in the ciphertext modulus and the special prime.
    #[error("the prime {0} occurs twice; residues need different primes")]
    RepeatedPrime(u64),
    /// The plaintext modulus is out of range.
    #[error("plaintext modulus {0} is not in 2..2^60")]
    PlaintextModulus(u64),
    /// The plaintext modulus shares a factor with a ciphertext prime.
    #[error("plaintext modulus {plaintext_modulus} is a multiple of the ciphertext prime {prime}")]
    SharedFactor {
        /// t.
        plaintext_modulus: u64,
        /// The prime that divides it.
        prime: u64,
    },
    /// Key switching cannot cut residues into such digits.
    #[error("digits of {0} bits; there must be 1 to 60")]
    DigitBits(u32),
    /// A reply leaves out all bits of c0, or more.
    #[error("replies of {bits} bits that leave out {dropped} of c0")]
    ReplyBits {
        /// Of the reply's prime.
        bits: u32,
        /// Low bits of c0 that are left out.
        dropped: u32,
    },
}

/// Constants of one residue i.
pub(super) struct Residue {
    /// -t^-1 modulo q_i: turns what is left of qm modulo t into the scaled message.
    pub minus_inverse_t: Factor,
    /// -q_i^-1 modulo t.
    pub minus_inverse_mod_t: Factor,
    /// The modulus of each later residue, inverted modulo this one: entry j - i - 1 is for residue j, special prime
    /// last.
    drop_factors: Vec<Factor>,
}

/// Constants of a ciphertext that keeps the first l primes, whose product is q.
pub(super) struct Level {
    /// q modulo t.
    pub q_mod_t: Factor,
    /// For each residue i, t (q/q_i)^-1 modulo q_i.
    pub unscale: Vec<Factor>,
    /// For each residue i, (q/q_i)^-1 modulo q_i.
    pub to_shares: Vec<Factor>,
}

/// One BFV instance: all that keys, encryption and evaluation share, nothing secret.
///
/// A *level* is the number of ciphertext primes that a ciphertext keeps, from 1 to k.
///
/// Security is not judged here: tests compute with toys. `chococ_plans` checks it for plans.
pub struct Context {
    parameters: Parameters,
    /// Over the ciphertext primes, then the special prime where there is one.
    ring: Arc<Ring>,
    /// In the order of the ring's primes.
    residues: Vec<Residue>,
    levels: Vec<Level>,
    encoder: Option<Encoder>,
    /// The transform under the prime that replies are switched to.
    reply: Ntt,
}

impl Context {
    /// Prepares transforms and constants; costs some milliseconds at N = 8192.
    ///
    /// The ring degree is 8 to 32768. A plaintext modulus that has no transform is accepted: it encrypts coefficients,
    /// and only batch encoding is missing.
    ///
    /// # Errors
    /// The first [`ParameterError`] found.
    pub fn new(parameters: &Parameters) -> Result<Self, ParameterError> {
        check_keys(&parameters.keys)?;
        check_stage(parameters)?;
        keep_freed_memory();
        let primes: Vec<u64> =
            parameters.keys.ciphertext_primes.iter().chain(&parameters.keys.key_switching_prime).copied().collect();
        (0..primes.len()).try_for_each(|i| check_prime(parameters.keys.ring_degree, &primes, i))?;
        let ring = Ring::new(parameters.keys.ring_degree, &primes).expect("each prime is 1 modulo 2N");
        Self::over(Arc::new(ring), parameters.clone())
    }

    /// Returns the context of another stage under the same keys, which shares this one's transforms.
    ///
    /// Secret and Galois keys of either context serve the other.
    ///
    /// # Errors
    /// The first [`ParameterError`] found.
    pub fn of_stage(&self, stage: StageParameters) -> Result<Self, ParameterError> {
        let parameters = Parameters { keys: self.parameters.keys.clone(), stage };
        check_stage(&parameters)?;
        Self::over(self.ring.clone(), parameters)
    }

    fn over(ring: Arc<Ring>, parameters: Parameters) -> Result<Self, ParameterError> {
        let t = parameters.stage.plaintext_modulus;
        let residues = (0..ring.moduli().len()).map(|i| Residue::new(ring.moduli(), i, t)).collect::<Result<_, _>>()?;
        let levels =
            (1..=parameters.keys.ciphertext_primes.len()).map(|level| Level::new(&ring.moduli()[..level], t)).collect();
        // The encoder would take a composite for a field.
        let encoder = if is_prime(t) { Encoder::new(parameters.keys.ring_degree, t) } else { None };
        let reply = Ntt::new(parameters.keys.ring_degree, Modulus::new(parameters.stage.reply_modulus))
            .expect("the prime is 1 modulo 2N");
        Ok(Self { parameters, ring, residues, levels, encoder, reply })
    }

    /// Returns the parameters the context was made from.
    pub fn parameters(&self) -> &Parameters {
        &self.parameters
    }

    /// Returns N.
    pub fn ring_degree(&self) -> usize {
        self.parameters.keys.ring_degree
    }

    /// Returns t.
    pub fn plaintext_modulus(&self) -> u64 {
        self.parameters.stage.plaintext_modulus
    }

    /// Returns k, the level of a fresh ciphertext.
    pub fn top_level(&self) -> usize {
        self.levels.len()
    }

    /// Returns the batch encoder; `None` when t is not a prime that is 1 modulo 2N.
    pub fn encoder(&self) -> Option<&Encoder> {
        self.encoder.as_ref()
    }

    /// Returns the ring over all primes: those of the ciphertext, in order, then the special one if there is one.
    ///
    /// A ciphertext of a lower level belongs to its first primes.
    pub fn ring(&self) -> &Ring {
        &self.ring
    }

    /// Returns the modulus of residue i; the special prime is residue k.
    pub(super) fn modulus(&self, i: usize) -> Modulus {
        self.ring.moduli()[i]
    }

    /// Returns the transform of residue i.
    pub(super) fn ntt(&self, i: usize) -> &Ntt {
        &self.ring.ntts()[i]
    }

    /// Returns the prime that replies are switched to, and its transform.
    pub(super) fn reply(&self) -> (Modulus, &Ntt) {
        (self.reply.modulus(), &self.reply)
    }

    /// Says whether there is a special prime, hence whether ciphertexts can be rotated.
    pub fn has_key_switching(&self) -> bool {
        self.parameters.keys.key_switching_prime.is_some()
    }

    /// Returns the constants of residue i; the special prime is residue k.
    pub(super) fn residue(&self, i: usize) -> &Residue {
        &self.residues[i]
    }

    /// Returns the number of residues in a key: k, and one more where there is a special prime.
    pub(super) fn key_residues(&self) -> usize {
        self.residues.len()
    }

    /// Returns the constants of ciphertexts with `level` residues.
    pub(super) fn level(&self, level: usize) -> &Level {
        &self.levels[level - 1]
    }

    /// Returns the modulus of residue `dropped`, inverted modulo that of the earlier residue `kept`.
    pub(super) fn drop_factor(&self, dropped: usize, kept: usize) -> Factor {
        self.residues[kept].drop_factors[dropped - kept - 1]
    }
}

impl Residue {
    fn new(moduli: &[Modulus], i: usize, t: u64) -> Result<Self, ParameterError> {
        let (modulus, prime) = (moduli[i], moduli[i].value());
        let shared = || ParameterError::SharedFactor { plaintext_modulus: t, prime };
        let inverse_t = inverse(t, prime).ok_or_else(shared)?;
        let inverse_prime = inverse(prime, t).ok_or_else(shared)?;
        let drop_factor = |later: &Modulus| Factor::new(modulus.inverse(modulus.reduce(later.value())), prime);
        Ok(Self {
            minus_inverse_t: Factor::new(modulus.neg(inverse_t), prime),
            minus_inverse_mod_t: Factor::new(t - inverse_prime, t),
            drop_factors: moduli[i + 1..].iter().map(drop_factor).collect(),
        })
    }
}

impl Level {
    fn new(moduli: &[Modulus], t: u64) -> Self {
        let inverse_of_others = |modulus: Modulus| {
            let others = moduli.iter().filter(|&&other| other != modulus);
            modulus.inverse(others.fold(1, |product, other| modulus.mul(product, modulus.reduce(other.value()))))
        };
        let scaled = |by: u64| {
            let factor = move |&modulus: &Modulus| modulus.mul(modulus.reduce(by), inverse_of_others(modulus));
            moduli.iter().map(move |modulus| Factor::new(factor(modulus), modulus.value())).collect()
        };
        let q_mod_t = moduli
            .iter()
            .fold(1, |product, modulus| (u128::from(product) * u128::from(modulus.value()) % u128::from(t)) as u64);
        Self { q_mod_t: Factor::new(q_mod_t, t), unscale: scaled(t), to_shares: scaled(1) }
    }
}

/// Tells the allocator to expect large blocks.
///
/// Evaluation allocates and frees polynomials all the time. glibc at first maps blocks from 128 KiB on from the system
/// and returns them when freed, and page faults are a quarter of a rotation; once it has seen a larger block freed,
/// it keeps blocks up to that size, and twice as much at the top of the heap. The block is never touched, so it costs
/// no memory; other allocators do not mind.
///
/// Source: mallopt(3), `M_MMAP_THRESHOLD`.
fn keep_freed_memory() {
    const BLOCK_BYTES: usize = 24 << 20;
    drop(std::hint::black_box(Vec::<u8>::with_capacity(BLOCK_BYTES)));
}

/// Checks what does not need number theory.
fn check_keys(keys: &KeyParameters) -> Result<(), ParameterError> {
    let KeyParameters { ring_degree, digit_bits, .. } = *keys;
    let residues = keys.ciphertext_primes.len();
    if !ring_degree.is_power_of_two() || !(8..=32768).contains(&ring_degree) {
        return Err(ParameterError::RingDegree(ring_degree));
    }
    // Decryption adds up fractions of all residues in a word with five bits to spare.
    if !(1..=32).contains(&residues) {
        return Err(ParameterError::ResidueCount(residues));
    }
    if !(1..=60).contains(&digit_bits) {
        return Err(ParameterError::DigitBits(digit_bits));
    }
    Ok(())
}

/// Checks a stage's own parameters.
fn check_stage(parameters: &Parameters) -> Result<(), ParameterError> {
    let StageParameters { plaintext_modulus, reply_modulus, reply_dropped_bits: dropped, .. } = parameters.stage;
    if !(2..1 << 60).contains(&plaintext_modulus) {
        return Err(ParameterError::PlaintextModulus(plaintext_modulus));
    }
    check_prime(parameters.keys.ring_degree, &[reply_modulus], 0)?;
    let bits = bits_of(reply_modulus);
    if dropped >= bits {
        return Err(ParameterError::ReplyBits { bits, dropped });
    }
    Ok(())
}

/// Checks one of the primes.
fn check_prime(ring_degree: usize, primes: &[u64], i: usize) -> Result<(), ParameterError> {
    let (prime, double_degree) = (primes[i], 2 * ring_degree);
    if prime >= 1 << 60 || !is_prime(prime) || prime % double_degree as u64 != 1 {
        return Err(ParameterError::NoTransform { prime, double_degree });
    }
    if primes[..i].contains(&prime) {
        return Err(ParameterError::RepeatedPrime(prime));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parameters() -> Parameters {
        Parameters {
            keys: KeyParameters {
                ring_degree: 8,
                ciphertext_primes: vec![1_073_692_673, 97],
                key_switching_prime: Some(113),
                digit_bits: 10,
            },
            stage: StageParameters {
                request_dropped_bits: 0,
                reply_modulus: 1_048_433,
                reply_dropped_bits: 0,
                plaintext_modulus: 17,
            },
        }
    }

    fn refusal(change: impl Fn(&mut Parameters)) -> ParameterError {
        let mut changed = parameters();
        change(&mut changed);
        Context::new(&changed).err().expect("refused")
    }

    #[test]
    fn accepts_a_toy() {
        let context = Context::new(&parameters()).expect("each prime is 1 modulo 16");
        assert_eq!((context.top_level(), context.key_residues(), context.has_key_switching()), (2, 3, true));
        assert!(context.encoder().is_some());
    }

    #[test]
    fn a_plaintext_modulus_without_a_transform_has_no_encoder() {
        for t in [2, 1 << 17, 19, 9] {
            let stage = StageParameters { plaintext_modulus: t, ..parameters().stage };
            let context = Context::new(&Parameters { stage, ..parameters() }).expect("coprime to q");
            assert!(context.encoder().is_none());
        }
    }

    #[test]
    fn refuses_unfit_numbers() {
        use ParameterError as E;
        assert_eq!(refusal(|p| p.keys.ring_degree = 24), E::RingDegree(24));
        assert_eq!(refusal(|p| p.keys.ring_degree = 4), E::RingDegree(4));
        assert_eq!(refusal(|p| p.keys.ciphertext_primes.clear()), E::ResidueCount(0));
        assert_eq!(refusal(|p| p.keys.ciphertext_primes[1] = 113), E::RepeatedPrime(113));
        assert_eq!(refusal(|p| p.keys.digit_bits = 0), E::DigitBits(0));
        assert_eq!(refusal(|p| p.stage.plaintext_modulus = 1), E::PlaintextModulus(1));
        let bits = E::ReplyBits { bits: 20, dropped: 20 };
        assert_eq!(refusal(|p| p.stage.reply_dropped_bits = 20), bits);
        let composite = E::NoTransform { prime: 33, double_degree: 16 };
        assert_eq!(refusal(|p| p.stage.reply_modulus = 33), composite);
        for prime in [0, 2, 33, 101, (1 << 61) - 1] {
            let expected = E::NoTransform { prime, double_degree: 16 };
            assert_eq!(refusal(|p| p.keys.ciphertext_primes[0] = prime), expected);
        }
        let expected = E::SharedFactor { plaintext_modulus: 970, prime: 97 };
        assert_eq!(refusal(|p| p.stage.plaintext_modulus = 970), expected);
        assert_eq!(expected.to_string(), "plaintext modulus 970 is a multiple of the ciphertext prime 97");
    }
}
