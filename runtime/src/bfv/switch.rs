//! Making the modulus smaller: the last prime is divided out of a ciphertext, with rounding.

use super::ciphertext::Ciphertext;
use super::context::Context;
use super::lift::lift_centered;
use crate::math::poly::{Evaluations, Poly};
use crate::math::vector;

/// Switches a ciphertext to the modulus of `level`: each c becomes round(c q'/q), prime by prime from the last.
///
/// The message stays, since its scale q/t becomes q'/t; the noise shrinks by q'/q and gains, a prime, a rounding of
/// variance (1 + 2N/3)/12. Costs 2 transforms a prime dropped, and 2 for each that then stays.
///
/// # Panics
/// When `level` is 0 or above the ciphertext's own.
pub fn switch_modulus(context: &Context, mut ciphertext: Ciphertext, level: usize) -> Ciphertext {
    assert!((1..=ciphertext.level()).contains(&level), "the modulus only shrinks, and one prime stays");
    for dropped in (level..ciphertext.level()).rev() {
        for poly in [&mut ciphertext.c0, &mut ciphertext.c1] {
            drop_last(context, dropped, poly);
        }
    }
    ciphertext
}

/// Divides by the prime of the last residue, `dropped`, and rounds.
fn drop_last(context: &Context, dropped: usize, poly: &mut Poly<Evaluations>) {
    let mut last = poly.residue(dropped).to_vec();
    context.ntt(dropped).inverse(&mut last);
    poly.drop_last_residues(1);
    divide(context, dropped, &last, poly);
}

/// Divides by the prime of residue `dropped`, and rounds, a polynomial of which `poly` has the earlier residues as
/// evaluations and `last` has that residue as coefficients.
///
/// round(x/p) = (x - r)/p with r the centred residue of x modulo p: exact, residue by residue.
pub(super) fn divide(context: &Context, dropped: usize, last: &[u64], poly: &mut Poly<Evaluations>) {
    let mut rest = vec![0; context.ring_degree()];
    for (i, residue) in poly.residues_mut().enumerate() {
        let modulus = context.modulus(i);
        lift_centered(context.modulus(dropped).value(), modulus, last, &mut rest);
        context.ntt(i).forward(&mut rest);
        vector::sub_scale_assign(modulus, residue, &rest, context.drop_factor(dropped, i).value());
    }
}
