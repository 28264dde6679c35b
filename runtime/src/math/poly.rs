//! Polynomials modulo X^N + 1 over several primes, with their form in the type.

use std::marker::PhantomData;

use rand::CryptoRng;
use zeroize::Zeroize;

use super::modulus::Modulus;
use super::ntt::Ntt;
use super::{sample, vector};

/// The form in which a polynomial is its coefficients.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Coefficients;

/// The form in which a polynomial is its values at the roots of X^N + 1, in the order of [`Ntt`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Evaluations;

/// A polynomial in form `F`: one residue of N words for each of the first primes of its [`Ring`].
///
/// Residues stand one after the other, reduced. The ring is not stored; it is an argument of what needs it. There is
/// no `Debug`, because the polynomial may be a secret.
#[derive(Clone, PartialEq, Eq)]
pub struct Poly<F> {
    ring_degree: usize,
    words: Vec<u64>,
    form: PhantomData<F>,
}

impl<F> Poly<F> {
    /// Makes the zero polynomial with `residues` residues.
    pub fn zero(ring_degree: usize, residues: usize) -> Self {
        Self::from_words(ring_degree, vec![0; ring_degree * residues])
    }

    /// Takes residues of N words each, one after the other, each reduced modulo its prime.
    ///
    /// # Panics
    /// When the words do not make whole residues.
    pub fn from_words(ring_degree: usize, words: Vec<u64>) -> Self {
        assert!(words.len().is_multiple_of(ring_degree), "residues have N words");
        Self { ring_degree, words, form: PhantomData }
    }

    /// Returns N.
    pub fn ring_degree(&self) -> usize {
        self.ring_degree
    }

    /// Returns how many residues there are.
    pub fn residue_count(&self) -> usize {
        self.words.len() / self.ring_degree
    }

    /// Returns all words, residue by residue.
    pub fn words(&self) -> &[u64] {
        &self.words
    }

    /// Returns residue `i`.
    pub fn residue(&self, i: usize) -> &[u64] {
        &self.words[i * self.ring_degree..][..self.ring_degree]
    }

    /// Returns residue `i`, to be changed; its words must stay reduced.
    pub fn residue_mut(&mut self, i: usize) -> &mut [u64] {
        &mut self.words[i * self.ring_degree..][..self.ring_degree]
    }

    /// Lists the residues.
    pub fn residues(&self) -> impl ExactSizeIterator<Item = &[u64]> {
        self.words.chunks_exact(self.ring_degree)
    }

    /// Lists the residues, to be changed; their words must stay reduced.
    pub fn residues_mut(&mut self) -> impl ExactSizeIterator<Item = &mut [u64]> {
        self.words.chunks_exact_mut(self.ring_degree)
    }

    /// Forgets the last `count` residues, without rounding: the polynomial is taken modulo the primes that stay.
    pub fn drop_last_residues(&mut self, count: usize) {
        let kept = self.residue_count().checked_sub(count).expect("callers drop residues that are there");
        self.words[kept * self.ring_degree..].zeroize();
        self.words.truncate(kept * self.ring_degree);
    }

    fn with_form<G>(self) -> Poly<G> {
        Poly { ring_degree: self.ring_degree, words: self.words, form: PhantomData }
    }
}

impl<F> Zeroize for Poly<F> {
    fn zeroize(&mut self) {
        self.words.zeroize();
    }
}

impl Poly<Coefficients> {
    /// Replaces X by X^g, for the odd `g` of the automorphism.
    pub fn automorphism(&self, ring: &Ring, automorphism: &Automorphism) -> Self {
        let mut image = Self::zero(self.ring_degree, self.residue_count());
        let wrap = 2 * self.ring_degree - 1;
        for ((from, to), modulus) in self.residues().zip(image.residues_mut()).zip(&ring.moduli) {
            let mut exponent = 0;
            for &coefficient in from {
                let reduced = exponent & (self.ring_degree - 1);
                // X^N = -1. Exponents are public, so this may be a branch.
                to[reduced] = if exponent == reduced { coefficient } else { modulus.neg(coefficient) };
                exponent = (exponent + automorphism.galois_element as usize) & wrap;
            }
        }
        image
    }
}

impl Poly<Evaluations> {
    /// Replaces X by X^g, for the odd `g` of the automorphism: a permutation of the values, the same for every prime.
    pub fn automorphism(&self, automorphism: &Automorphism) -> Self {
        let mut image = Self::zero(self.ring_degree, self.residue_count());
        for (from, to) in self.residues().zip(image.residues_mut()) {
            for (value, &source) in to.iter_mut().zip(&automorphism.sources) {
                *value = from[source as usize];
            }
        }
        image
    }
}

/// The map X -> X^g of a ring, with its permutation of values.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Automorphism {
    galois_element: u64,
    /// Index i of the image is index `sources[i]` of the preimage, in evaluation order.
    sources: Vec<u32>,
}

impl Automorphism {
    /// Tabulates X -> X^g for ring degree N, a power of two.
    ///
    /// # Panics
    /// When `galois_element` is even or not below 2N.
    pub fn new(ring_degree: usize, galois_element: u64) -> Self {
        let order = 2 * ring_degree as u64;
        assert!(
            galois_element % 2 == 1 && galois_element < order,
            "{galois_element} is not odd and below 2N = {order}"
        );
        let shift = u32::BITS - ring_degree.trailing_zeros();
        let reverse = |i: u32| i.reverse_bits().checked_shr(shift).unwrap_or(0);
        // Value i belongs to the exponent 2 bitrev(i) + 1 of psi; the image's value there is the old one at g times it.
        let source = |i| {
            let exponent = (2 * u64::from(reverse(i)) + 1) * galois_element % order;
            reverse((exponent / 2) as u32)
        };
        Self { galois_element, sources: (0..ring_degree as u32).map(source).collect() }
    }

    /// Returns g.
    pub fn galois_element(&self) -> u64 {
        self.galois_element
    }
}

/// The ring Z_q[X] / (X^N + 1) for q a product of primes.
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
        self.transforms(&poly);
        poly.residues_mut().zip(&self.ntts).for_each(|(residue, ntt)| ntt.forward(residue));
        poly.with_form()
    }

    /// Transforms values into coefficients.
    pub fn inverse(&self, mut poly: Poly<Evaluations>) -> Poly<Coefficients> {
        self.transforms(&poly);
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
        self.transforms(a);
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
        assert!(acc.words.len() == a.words.len() && a.words.len() == b.words.len(), "operands have as many residues");
        self.transforms(acc);
        for (i, (residue, &modulus)) in acc.residues_mut().zip(&self.moduli).enumerate() {
            vector::pointwise_mul_add(modulus, residue, a.residue(i), b.residue(i));
        }
    }

    /// Multiplies in place by an integer, given by its residue modulo each prime of `a`.
    pub fn scalar_mul_assign<F>(&self, a: &mut Poly<F>, by: &[u64]) {
        self.transforms(a);
        assert_eq!(by.len(), a.residue_count(), "a scalar has one residue a prime");
        for ((residue, &modulus), &by) in a.residues_mut().zip(&self.moduli).zip(by) {
            vector::scalar_mul_assign(modulus, residue, by);
        }
    }

    fn pairwise<F>(&self, a: &mut Poly<F>, b: &Poly<F>, work: impl Fn(Modulus, &mut [u64], &[u64])) {
        self.transforms(a);
        assert_eq!(a.words.len(), b.words.len(), "operands have as many residues");
        for ((x, y), &modulus) in a.residues_mut().zip(b.residues()).zip(&self.moduli) {
            work(modulus, x, y);
        }
    }

    /// Checks that a polynomial belongs to this ring: degree, and no more residues than primes.
    fn transforms<F>(&self, poly: &Poly<F>) {
        assert_eq!(poly.ring_degree, self.ring_degree, "the polynomial is of this ring's degree");
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
        fn automorphisms_are_ring_maps_in_both_forms(seed: u8, half in 0..N as u64) {
            let (ring, sigma) = (ring(), Automorphism::new(N, 2 * half + 1));
            let (a, b) = (ring.forward(random(seed)), ring.forward(random(!seed)));
            let image = |poly: &Poly<Evaluations>| poly.automorphism(&sigma);
            prop_assert!(image(&ring.mul(&a, &b)) == ring.mul(&image(&a), &image(&b)));
            let (mut sum, mut sum_of_images) = (a.clone(), image(&a));
            ring.add_assign(&mut sum, &b);
            ring.add_assign(&mut sum_of_images, &image(&b));
            prop_assert!(image(&sum) == sum_of_images);
            prop_assert!(ring.forward(random(seed).automorphism(&ring, &sigma)) == image(&a));
        }

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
    fn x_to_the_n_is_minus_one() {
        let ring = ring();
        let mut x = [0i8; N];
        x[3] = 1;
        let image = ring.from_small(&x, 2).automorphism(&ring, &Automorphism::new(N, 7));
        x = [0; N];
        x[5] = -1;
        assert!(image == ring.from_small(&x, 2), "X^21 = -X^5");
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
