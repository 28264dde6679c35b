//! The message's way into a ciphertext, round(qm/t), exactly.

use super::context::Context;
use super::encode::Plaintext;
use super::factor::subtract_once;
use zeroize::Zeroizing;

/// A plaintext on its way to round(qm/t), where q is the modulus of some level.
///
/// With r the representative of qm modulo t that is closest to 0, round(qm/t) = (qm - r)/t. The division is exact and
/// q is 0 modulo each of its primes q_i, so the residue is -r t^-1 modulo q_i: no number is ever wider than a word.
/// A rounded q/t times m, as schemes often have it, would be off by up to m (q mod t)/t.
pub(super) struct ScaledMessage<'a> {
    context: &'a Context,
    /// qm modulo t, in [0, t).
    rests: Zeroizing<Vec<u64>>,
}

impl<'a> ScaledMessage<'a> {
    /// Starts the scaling to the modulus of `level`.
    pub fn new(context: &'a Context, level: usize, plaintext: &Plaintext) -> Self {
        assert_eq!(plaintext.coefficients().len(), context.ring_degree(), "the plaintext has N coefficients");
        let q_mod_t = context.level(level).q_mod_t;
        let rests = plaintext.coefficients().iter().map(|&m| q_mod_t.mul(m)).collect();
        Self { context, rests: Zeroizing::new(rests) }
    }

    /// Lists the N coefficients of round(qm/t) modulo the prime of residue i, which the level keeps.
    pub fn residue(&self, i: usize) -> impl Iterator<Item = u64> {
        let t = self.context.plaintext_modulus();
        let (factor, modulus) = (self.context.residue(i).minus_inverse_t, self.context.modulus(i).value());
        self.rests.iter().map(move |&rest| {
            // Above t/2 the centred rest is `rest` - t, and -(rest - t) t^-1 = -rest t^-1 + 1.
            let above = (t.wrapping_sub(2 * rest)) >> 63;
            subtract_once(factor.mul(rest) + above, modulus)
        })
    }
}
