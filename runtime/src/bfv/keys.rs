//! The secret key, and the public key made from it.

use super::context::Context;
use super::lift::lift_small;
use crate::math::poly::{Coefficients, Evaluations, Poly, Ring};
use crate::math::{sample, vector};
use rand::CryptoRng;
use zeroize::{Zeroize, Zeroizing};

/// A secret s with uniform coefficients in {-1, 0, 1}.
///
/// It stays where it was made: it is wiped when dropped, and neither prints nor serialises.
pub struct SecretKey {
    /// s under all primes, the special one included.
    evaluations: Poly<Evaluations>,
    /// s under the prime of [`Context::exact`], prepared to be a factor.
    exact: Zeroizing<Vec<u64>>,
}

impl SecretKey {
    /// Draws a secret key from `rng`.
    pub fn generate(context: &Context, rng: &mut impl CryptoRng) -> Self {
        let mut ternary = Zeroizing::new(vec![0; context.ring_degree()]);
        sample::ternary(rng, &mut ternary);
        let (modulus, ntt) = context.exact();
        let mut exact = Zeroizing::new(vec![0; context.ring_degree()]);
        lift_small(modulus, 1, &ternary, &mut exact);
        ntt.forward(&mut exact);
        ntt.prepare_factor(&mut exact);
        Self { evaluations: small(context.ring(), 1, &ternary, context.key_residues()), exact }
    }

    /// Returns s under the prime of [`Context::exact`], prepared to be a factor.
    pub(super) fn exact(&self) -> &[u64] {
        &self.exact
    }

    /// Returns s, residue by residue, the special prime's last.
    pub(super) fn evaluations(&self) -> &Poly<Evaluations> {
        &self.evaluations
    }
}

impl Drop for SecretKey {
    fn drop(&mut self) {
        self.evaluations.zeroize();
    }
}

/// An encryption of zero under all primes, the special one included: (b, a) with b = -a s + e.
///
/// Where the client holds the secret key, encrypting with that is cheaper in bytes and in noise; the public key is
/// there for comparison with schemes that encrypt with it.
#[derive(Clone)]
pub struct PublicKey {
    pub(super) b: Poly<Evaluations>,
    pub(super) a: Poly<Evaluations>,
}

impl PublicKey {
    /// Draws the public key of a secret key: first a, then e.
    pub fn generate(context: &Context, secret: &SecretKey, rng: &mut impl CryptoRng) -> Self {
        let a = context.ring().uniform(context.key_residues(), rng);
        let mut b = error(context.ring(), context.key_residues(), rng);
        subtract_product(context.ring(), &mut b, &a, &secret.evaluations);
        Self { b, a }
    }
}

/// Size of an error coefficient at most: 21 bits against 21.
pub(super) const ERROR_BOUND: u64 = 21;

/// Draws an error polynomial in evaluation form.
pub(super) fn error(ring: &Ring, residues: usize, rng: &mut impl CryptoRng) -> Poly<Evaluations> {
    let mut error = Zeroizing::new(vec![0; ring.ring_degree()]);
    sample::error(rng, &mut error);
    small(ring, ERROR_BOUND, &error, residues)
}

/// Transforms coefficients of size at most `bound`; works in place, so nothing is left to wipe.
pub(super) fn small(ring: &Ring, bound: u64, coefficients: &[i8], residues: usize) -> Poly<Evaluations> {
    let mut poly: Poly<Coefficients> = Poly::zero(ring.ring_degree(), residues);
    for (residue, &modulus) in poly.residues_mut().zip(ring.moduli()) {
        lift_small(modulus, bound, coefficients, residue);
    }
    ring.forward(poly)
}

/// Subtracts the product of `a` and `b` from `from`.
pub(super) fn subtract_product(
    ring: &Ring,
    from: &mut Poly<Evaluations>,
    a: &Poly<Evaluations>,
    b: &Poly<Evaluations>,
) {
    ring.neg_assign(from);
    for (i, residue) in from.residues_mut().enumerate() {
        vector::pointwise_mul_add(ring.moduli()[i], residue, a.residue(i), b.residue(i));
    }
    ring.neg_assign(from);
}
