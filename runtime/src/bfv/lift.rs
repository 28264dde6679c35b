//! Lifting: small signed numbers, or centred residues of one prime, as residues of another.

use super::factor::Factor;
use super::vectorized::vectorized;
use crate::math::modulus::Modulus;

vectorized! {
    /// Writes small numbers, of size at most `bound`, as residues of `to`.
    pub(super) fn lift_small(to: Modulus, bound: u64, values: &[i8], out: &mut [u64]) {
        lift(to, bound, values.iter().map(|&value| value.into()), out);
    }
}

vectorized! {
    /// Writes the centred representatives, of size up to `from`/2, of residues of `from` as residues of `to`.
    ///
    /// `from` is any modulus below 2^62, in particular t; an even one's half stays positive.
    pub(super) fn lift_centered(from: u64, to: Modulus, values: &[u64], out: &mut [u64]) {
        lift(to, from / 2, values.iter().map(|&value| center(value, from, from / 2)), out);
    }
}

/// Returns `value` in [0, modulus) if it is at most `half`, else `value` - `modulus`; without a branch.
#[inline(always)]
pub(super) fn center(value: u64, modulus: u64, half: u64) -> i64 {
    let above = (half as i64 - value as i64) >> 63;
    value as i64 - (modulus as i64 & above)
}

/// Writes signed numbers, of size at most `bound`, as residues of `to`.
///
/// Time does not depend on the values: they may be secrets, errors or messages.
#[inline(always)]
pub(super) fn lift(to: Modulus, bound: u64, values: impl Iterator<Item = i64>, out: &mut [u64]) {
    let modulus = to.value();
    let out = out.iter_mut().zip(values);
    if bound < modulus {
        out.for_each(|(out, value)| *out = (value + (modulus as i64 & (value >> 63))) as u64);
    } else if bound < 1 << 30 {
        // A multiple of the modulus makes values positive, and at most bound + (bound + modulus) <= 3 bound < 2^32.
        let (offset, reduce) = (bound.div_ceil(modulus) * modulus, Factor::new(1, modulus));
        out.for_each(|(out, value)| *out = reduce.mul_short((value + offset as i64) as u64));
    } else {
        out.for_each(|(out, value)| *out = to.from_signed(value));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn lifts_keep_the_centred_number(from_bits in 1u32..60, to_bits in 1u32..60, from: u64, to: u64, x: u64) {
            let (from, to) = (from % (1 << from_bits) + 1, to % (1 << to_bits) + 1);
            // Lifting needs no primality, only odd moduli.
            let (from, to) = (Modulus::new(2 * from + 1), Modulus::new(2 * to + 1));
            let half = from.value() / 2;
            for x in [x % from.value(), 0, half, half + 1, from.value() - 1] {
                let mut out = [0];
                lift_centered(from.value(), to, &[x], &mut out);
                let expected = i128::from(from.centered(x)).rem_euclid(i128::from(to.value()));
                prop_assert_eq!(i128::from(out[0]), expected);
            }
        }

        #[test]
        fn small_numbers_keep_their_sign(to in 1u64..1 << 59, x in -21i8..=21) {
            let to = Modulus::new(2 * to + 1);
            let mut out = [0];
            lift_small(to, 21, &[x], &mut out);
            prop_assert_eq!(out[0], to.from_signed(x.into()));
        }
    }
}
