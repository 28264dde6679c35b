//! Lifting: small signed numbers, or centred residues of one prime, as residues of another.

use super::vectorized::vectorized;
use crate::math::modulus::Modulus;

vectorized! {
    /// Writes small numbers, of size at most `bound`, as residues of `to`.
    pub(super) fn lift_small(to: Modulus, bound: u64, values: &[i8], out: &mut [u64]) {
        lift(to, bound, values.iter().map(|&value| value.into()), out);
    }
}

vectorized! {
    /// Writes signed numbers, of size at most `bound`, as residues of `to`.
    pub(super) fn lift_signed(to: Modulus, bound: u64, values: &[i64], out: &mut [u64]) {
        lift(to, bound, values.iter().copied(), out);
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

/// Time does not depend on the values: they may be secrets, errors or messages.
#[inline(always)]
fn lift(to: Modulus, bound: u64, values: impl Iterator<Item = i64>, out: &mut [u64]) {
    if bound < to.value() {
        let modulus = to.value() as i64;
        for (out, value) in out.iter_mut().zip(values) {
            *out = (value + (modulus & (value >> 63))) as u64;
        }
    } else {
        for (out, value) in out.iter_mut().zip(values) {
            *out = to.from_signed(value);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn lifts_keep_the_centred_number(from in 1u64..1 << 59, to in 1u64..1 << 59, x: u64) {
            // Lifting needs no primality, only odd moduli.
            let (from, to) = (Modulus::new(2 * from + 1), Modulus::new(2 * to + 1));
            let x = x % from.value();
            let mut out = [0];
            lift_centered(from.value(), to, &[x], &mut out);
            let expected = i128::from(from.centered(x)).rem_euclid(i128::from(to.value()));
            prop_assert_eq!(i128::from(out[0]), expected);
            lift_signed(to, from.value() / 2, &[from.centered(x)], &mut out);
            prop_assert_eq!(i128::from(out[0]), expected);
        }
    }
}
