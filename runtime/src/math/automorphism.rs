//! The automorphisms X -> X^g, on either form of a polynomial.

use super::poly::{Coefficients, Evaluations, Poly};
use super::ring::Ring;

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

    fn check<F>(&self, poly: &Poly<F>) {
        assert_eq!(poly.ring_degree(), self.sources.len(), "the automorphism is of the polynomial's ring degree");
    }
}

impl Poly<Coefficients> {
    /// Replaces X by X^g, for the odd `g` of the automorphism.
    ///
    /// # Panics
    /// When the polynomial and the ring or the automorphism differ in degree.
    pub fn automorphism(&self, ring: &Ring, automorphism: &Automorphism) -> Self {
        ring.check(self);
        automorphism.check(self);
        let mut image = Self::zero(self.ring_degree(), self.residue_count());
        let wrap = 2 * self.ring_degree() - 1;
        for ((from, to), modulus) in self.residues().zip(image.residues_mut()).zip(ring.moduli()) {
            let mut exponent = 0;
            for &coefficient in from {
                let reduced = exponent & (self.ring_degree() - 1);
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
    ///
    /// # Panics
    /// When the polynomial and the automorphism differ in degree.
    pub fn automorphism(&self, automorphism: &Automorphism) -> Self {
        automorphism.check(self);
        let mut words = Vec::with_capacity(self.ring_degree() * self.residue_count());
        for from in self.residues() {
            words.extend(automorphism.sources.iter().map(|&source| from[source as usize]));
        }
        Self::from_words(self.ring_degree(), words)
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
}
