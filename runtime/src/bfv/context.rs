//! One parameter set made ready: transforms and constants, for every number of residues a ciphertext may keep.

use std::sync::Arc;

use super::encode::Encoder;
use super::factor::{Factor, inverse};
use crate::math::modulus::Modulus;
use crate::math::ntt::Ntt;
use crate::math::poly::Ring;
use chococ_plans::params::{EXACT_PRODUCT_BITS, KeyParameters, Parameters, StageParameters};
use chococ_plans::primes::{is_prime, ntt_primes_below};

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
    /// A stage's replies are wider than those of the context whose transforms it would share.
    #[error("replies of {wider} bits, and transforms for {most}")]
    WiderReply {
        /// The stage's.
        wider: u32,
        /// The context's.
        most: u32,
    },
    /// A reply keeps no bits, or more than its decryption computes with.
    #[error("a reply keeps {reply_bits} bits, less {dropped} of c0; at this ring degree there may be {most}")]
    ReplyBits {
        /// w.
        reply_bits: u32,
        /// Low bits of c0 that are left out.
        dropped: u32,
        /// What decryption takes.
        most: u32,
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
    transforms: Arc<Transforms>,
    /// In the order of the ring's primes.
    residues: Vec<Residue>,
    levels: Vec<Level>,
    encoder: Option<Encoder>,
}

/// What contexts share that differ in a stage's own parameters alone.
struct Transforms {
    /// Over the ciphertext primes, then the special prime where there is one.
    ring: Ring,
    /// The transform by which a reply's c1 s is computed exactly.
    exact: Ntt,
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
        let exact = exact_transform(parameters);
        Self::over(Arc::new(Transforms { ring, exact }), parameters.clone())
    }

    /// Returns the context of another stage under the same keys, which shares this one's transforms.
    ///
    /// Secret and Galois keys of either context are those of the other, where the first one's replies are the wider.
    ///
    /// # Errors
    /// The first [`ParameterError`] found; [`ParameterError::WiderReply`], where this context's replies are narrower.
    pub fn of_stage(&self, stage: StageParameters) -> Result<Self, ParameterError> {
        let parameters = Parameters { keys: self.parameters.keys.clone(), stage };
        check_stage(&parameters)?;
        let (wider, most) = (stage.reply_bits, self.parameters.stage.reply_bits);
        if wider > most {
            return Err(ParameterError::WiderReply { wider, most });
        }
        Self::over(self.transforms.clone(), parameters)
    }

    fn over(transforms: Arc<Transforms>, parameters: Parameters) -> Result<Self, ParameterError> {
        let (ring, t) = (&transforms.ring, parameters.stage.plaintext_modulus);
        let residues = (0..ring.moduli().len()).map(|i| Residue::new(ring.moduli(), i, t)).collect::<Result<_, _>>()?;
        let levels =
            (1..=parameters.keys.ciphertext_primes.len()).map(|level| Level::new(&ring.moduli()[..level], t)).collect();
        // The encoder would take a composite for a field.
        let encoder = if is_prime(t) { Encoder::new(parameters.keys.ring_degree, t) } else { None };
        Ok(Self { parameters, transforms, residues, levels, encoder })
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
        &self.transforms.ring
    }

    /// Returns the modulus of residue i; the special prime is residue k.
    pub(super) fn modulus(&self, i: usize) -> Modulus {
        self.transforms.ring.moduli()[i]
    }

    /// Returns the transform of residue i.
    pub(super) fn ntt(&self, i: usize) -> &Ntt {
        &self.transforms.ring.ntts()[i]
    }

    /// Returns a prime that no coefficient of a reply's c1 s reaches, centred, and its transform.
    pub(super) fn exact(&self) -> (Modulus, &Ntt) {
        (self.transforms.exact.modulus(), &self.transforms.exact)
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

/// Prepares the transform for c1 s: coefficients of c1 are at most 2^(w-1), of s at most 1, so those of the product at
/// most N 2^(w-1). A prime of 52 - log2 N bits is the fastest, as the kernels have room for all of a transform; then one
/// of 50 bits; one of 60 is the largest.
fn exact_transform(parameters: &Parameters) -> Ntt {
    let n = parameters.keys.ring_degree;
    let needed = parameters.stage.reply_bits + n.ilog2() + 1;
    let bits = [52 - n.ilog2(), 50].into_iter().find(|&bits| needed <= bits).unwrap_or(EXACT_PRODUCT_BITS + 1);
    let prime = ntt_primes_below(bits, n).next().expect("there are primes of 37 bits and more for every ring degree");
    Ntt::new(n, Modulus::new(prime)).expect("the prime is 1 modulo 2N")
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
    let StageParameters { plaintext_modulus, reply_bits, reply_dropped_bits: dropped, .. } = parameters.stage;
    if !(2..1 << 60).contains(&plaintext_modulus) {
        return Err(ParameterError::PlaintextModulus(plaintext_modulus));
    }
    let most = EXACT_PRODUCT_BITS - parameters.keys.ring_degree.ilog2();
    if reply_bits > most || dropped >= reply_bits {
        return Err(ParameterError::ReplyBits { reply_bits, dropped, most });
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
                reply_bits: 20,
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
        let replies = |reply_bits, dropped| E::ReplyBits { reply_bits, dropped, most: 56 };
        assert_eq!(refusal(|p| p.stage.reply_bits = 57), replies(57, 0));
        assert_eq!(refusal(|p| p.stage.reply_dropped_bits = 20), replies(20, 20));
        for prime in [0, 2, 33, 101, (1 << 61) - 1] {
            let expected = E::NoTransform { prime, double_degree: 16 };
            assert_eq!(refusal(|p| p.keys.ciphertext_primes[0] = prime), expected);
        }
        let expected = E::SharedFactor { plaintext_modulus: 970, prime: 97 };
        assert_eq!(refusal(|p| p.stage.plaintext_modulus = 970), expected);
        assert_eq!(expected.to_string(), "plaintext modulus 970 is a multiple of the ciphertext prime 97");
    }
}
