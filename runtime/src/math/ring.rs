//! The ring of polynomials: its primes, their transforms, and arithmetic residue by residue.

use rand::CryptoRng;

use super::modulus::Modulus;
use super::ntt::Ntt;
use super::poly::{Coefficients, Evaluations, Poly};
use super::{sample, vector};

/// The ring `Z_q[X] / (X^N + 1)` for q a product of primes.
///
/// A polynomial with fewer residues than the ring has primes belongs to the first ones.
pub struct Ring {
    ring_degree: usize,
    moduli: Vec<Modulus>,
    ntts: Vec<Ntt>,
}

impl Ring {
    /// Prepares the ring of degree N over distinct primes.
    ///
    /// `None` unless N is a power of two, at least 4, and each p is 1 modulo 2N.
    ///
    /// # Panics
    /// When a modulus is even or not below 2^61.
    pub fn new(ring_degree: usize, primes: &[u64]) -> Option<Self> {
        let moduli: Vec<Modulus> = primes.iter().map(|&p| Modulus::new(p)).collect();
        let ntts = moduli.iter().map(|&p| Ntt::new(ring_degree, p)).collect::<Option<_>>()?;
        Some(Self { ring_degree, moduli, ntts })
    }

    /// Returns N.
    pub fn ring_degree(&self) -> usize {
        self.ring_degree
    }

    /// Returns the primes.
    pub fn moduli(&self) -> &[Modulus] {
        &self.moduli
    }

    /// Returns the transforms, one a prime.
    pub fn ntts(&self) -> &[Ntt] {
        &self.ntts
    }

    /// Draws a uniform polynomial with `residues` residues: residue after residue, each as [`sample::uniform`] does.
    pub fn uniform<F>(&self, residues: usize, rng: &mut impl CryptoRng) -> Poly<F> {
        let mut poly = Poly::zero(self.ring_degree, residues);
        for (residue, &modulus) in poly.residues_mut().zip(&self.moduli[..residues]) {
            sample::uniform(modulus, rng, residue);
        }
        poly
    }

    /// Reads N small coefficients into `residues` residues; time does not depend on their values.
    pub fn from_small(&self, coefficients: &[i8], residues: usize) -> Poly<Coefficients> {
        assert_eq!(coefficients.len(), self.ring_degree, "a polynomial has N coefficients");
        let mut poly = Poly::zero(self.ring_degree, residues);
        for (residue, modulus) in poly.residues_mut().zip(&self.moduli[..residues]) {
            for (word, &coefficient) in residue.iter_mut().zip(coefficients) {
                *word = modulus.from_signed(i64::from(coefficient));
            }
        }
        poly
    }

    /// Transforms coefficients into values.
    pub fn forward(&self, mut poly: Poly<Coefficients>) -> Poly<Evaluations> {
        self.check(&poly);
        poly.residues_mut().zip(&self.ntts).for_each(|(residue, ntt)| ntt.forward(residue));
        poly.with_form()
    }

    /// Transforms values into coefficients.
    pub fn inverse(&self, mut poly: Poly<Evaluations>) -> Poly<Coefficients> {
        self.check(&poly);
        poly.residues_mut().zip(&self.ntts).for_each(|(residue, ntt)| ntt.inverse(residue));
        poly.with_form()
    }

    /// Adds in place: a = a + b.
    pub fn add_assign<F>(&self, a: &mut Poly<F>, b: &Poly<F>) {
        self.pairwise(a, b, vector::add_assign);
    }

    /// Subtracts in place: a = a - b.
    pub fn sub_assign<F>(&self, a: &mut Poly<F>, b: &Poly<F>) {
        self.pairwise(a, b, vector::sub_assign);
    }

    /// Negates in place.
    pub fn neg_assign<F>(&self, a: &mut Poly<F>) {
        self.check(a);
        a.residues_mut().zip(&self.moduli).for_each(|(residue, &modulus)| vector::neg_assign(modulus, residue));
    }

    /// Multiplies in place: a = ab.
    pub fn mul_assign(&self, a: &mut Poly<Evaluations>, b: &Poly<Evaluations>) {
        self.pairwise(a, b, vector::mul_assign);
    }

    /// Multiplies.
    pub fn mul(&self, a: &Poly<Evaluations>, b: &Poly<Evaluations>) -> Poly<Evaluations> {
        let mut product = a.clone();
        self.mul_assign(&mut product, b);
        product
    }

    /// Multiplies and adds: acc = acc + ab.
    pub fn mul_add_assign(&self, acc: &mut Poly<Evaluations>, a: &Poly<Evaluations>, b: &Poly<Evaluations>) {
        assert!(
            acc.words().len() == a.words().len() && a.words().len() == b.words().len(),
            "operands have as many residues"
        );
        self.check(acc);
        for (i, (residue, &modulus)) in acc.residues_mut().zip(&self.moduli).enumerate() {
            vector::pointwise_mul_add(modulus, residue, a.residue(i), b.residue(i));
        }
    }

    /// Multiplies in place by an integer, given by its residue modulo each prime of `a`.
    pub fn scalar_mul_assign<F>(&self, a: &mut Poly<F>, by: &[u64]) {
        self.check(a);
        assert_eq!(by.len(), a.residue_count(), "a scalar has one residue a prime");
        for ((residue, &modulus), &by) in a.residues_mut().zip(&self.moduli).zip(by) {
            vector::scalar_mul_assign(modulus, residue, by);
        }
    }

    fn pairwise<F>(&self, a: &mut Poly<F>, b: &Poly<F>, work: impl Fn(Modulus, &mut [u64], &[u64])) {
        self.check(a);
        assert_eq!(a.words().len(), b.words().len(), "operands have as many residues");
        for ((x, y), &modulus) in a.residues_mut().zip(b.residues()).zip(&self.moduli) {
            work(modulus, x, y);
        }
    }

    /// Checks that a polynomial belongs to this ring: degree, and no more residues than primes.
    pub(super) fn check<F>(&self, poly: &Poly<F>) {
        assert_eq!(poly.ring_degree(), self.ring_degree, "the polynomial is of this ring's degree");
        assert!(poly.residue_count() <= self.moduli.len(), "the polynomial has no more residues than the ring primes");
    }
}
#[cfg(test)]
mod tests {
    use super::*;
    use chacha20::ChaCha20Rng;
    use proptest::prelude::*;
    use rand::SeedableRng;

    const N: usize = 16;

    fn ring() -> Ring {
        Ring::new(N, &[97, 1_073_692_673, 1_125_899_906_826_241]).expect("each is 1 modulo 32")
    }

    fn random(seed: u8) -> Poly<Coefficients> {
        ring().uniform(3, &mut ChaCha20Rng::from_seed([seed; 32]))
    }

    proptest! {
        #[test]
        fn transforms_undo_each_other(seed: u8) {
            let ring = ring();
            prop_assert!(ring.inverse(ring.forward(random(seed))) == random(seed));
        }

        #[test]
        fn arithmetic_is_that_of_each_word(seed: u8, by: u64) {
            let (ring, b) = (ring(), ring().forward(random(!seed)));
            let mut a = ring.forward(random(seed));
            let scalar: Vec<u64> = ring.moduli().iter().map(|p| p.reduce(by)).collect();
            let before = a.clone();
            ring.mul_add_assign(&mut a, &before, &b);
            ring.sub_assign(&mut a, &b);
            ring.neg_assign(&mut a);
            ring.scalar_mul_assign(&mut a, &scalar);
            for (i, &p) in ring.moduli().iter().enumerate() {
                for j in 0..N {
                    let (x, y) = (before.residue(i)[j], b.residue(i)[j]);
                    let expected = p.mul(p.neg(p.sub(p.add(x, p.mul(x, y)), y)), scalar[i]);
                    prop_assert_eq!(a.residue(i)[j], expected);
                }
            }
        }
    }

    #[test]
    fn a_prefix_of_the_primes_is_a_ring_of_its_own() {
        let ring = ring();
        let mut short = random(1);
        short.drop_last_residues(2);
        assert_eq!((short.residue_count(), short.words().len()), (1, N));
        let mut long = ring.forward(random(1));
        long.drop_last_residues(2);
        assert!(ring.forward(short) == long, "dropping residues and transforming commute");
    }
}
