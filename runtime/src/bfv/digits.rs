//! Cutting a polynomial into small digits, residue by residue, for key switching.

use super::context::Context;
use super::lift::{center, lift};
use super::vectorized::vectorized;
use crate::math::modulus::Modulus;

/// Where one digit stands: it belongs to a residue and weighs 2^`shift` there, and 0 in all other residues.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Digit {
    pub residue: usize,
    pub shift: u32,
}

/// Lists the digits of a polynomial with `level` residues: of the first residue from the lowest, then of the next.
///
/// Those of a lower level are a prefix, so a key for the highest level serves them all.
pub(super) fn digits(context: &Context, level: usize) -> impl Iterator<Item = Digit> {
    let digit_bits = context.parameters().keys.digit_bits;
    (0..level).flat_map(move |residue| {
        let count = digit_count(context.modulus(residue), digit_bits);
        (0..count).map(move |j| Digit { residue, shift: j * digit_bits })
    })
}

/// Returns how many digits one residue has.
pub(super) fn digit_count(modulus: Modulus, digit_bits: u32) -> u32 {
    modulus.bits().div_ceil(digit_bits)
}

/// Balanced digits of one prime: x = sum of d_j 2^(wj) modulo p with |d_j| <= 2^(w-1), one more for the last.
///
/// Balanced, because the noise of key switching grows with the mean square of the digits, and that is four times
/// smaller than for digits from 0 up.
pub(super) struct Balanced {
    modulus: Modulus,
    digit_bits: u32,
    count: u32,
    /// Half a base in every digit but the last, which makes their borrows vanish.
    offset: i64,
}

impl Balanced {
    pub fn new(modulus: Modulus, digit_bits: u32) -> Self {
        let count = digit_count(modulus, digit_bits);
        let offset = (0..count - 1).map(|j| 1i64 << (j * digit_bits + digit_bits - 1)).sum();
        Self { modulus, digit_bits, count, offset }
    }

    /// Returns the largest size digit j can have.
    fn bound(&self, j: u32) -> u64 {
        if j + 1 < self.count {
            1 << (self.digit_bits - 1)
        } else {
            // |x| < 2^(bits - 1), and what the digits below carry up is at most 1.
            (1 << (self.modulus.bits() - 1 - j * self.digit_bits)) + 1
        }
    }

    /// Writes digit j of each residue as a residue of `to`.
    pub fn write(&self, j: u32, residues: &[u64], to: Modulus, out: &mut [u64]) {
        let (shift, mask, below) = if j + 1 < self.count {
            (j * self.digit_bits, (1i64 << self.digit_bits) - 1, 1i64 << (self.digit_bits - 1))
        } else {
            (j * self.digit_bits, -1, 0)
        };
        let cut = Cut { modulus: self.modulus.value(), offset: self.offset, shift, mask, below };
        cut_and_lift(cut, residues, to, self.bound(j), out);
    }
}

/// How to cut one digit out of a centred residue.
#[derive(Clone, Copy)]
struct Cut {
    modulus: u64,
    offset: i64,
    shift: u32,
    mask: i64,
    below: i64,
}

vectorized! {
    /// Cuts the digit out of each residue and lifts it.
    ///
    /// With centred |x| < 2^59 and the offset below 2^60, all sums fit; `>>` and `&` are floor and remainder of the
    /// base for negative numbers too.
    fn cut_and_lift(cut: Cut, residues: &[u64], to: Modulus, bound: u64, out: &mut [u64]) {
        let digits = residues.iter().map(|&x| {
            let centered = center(x, cut.modulus, cut.modulus / 2);
            (((centered + cut.offset) >> cut.shift) & cut.mask) - cut.below
        });
        lift(to, bound, digits, out);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn digits_sum_to_the_centred_residue(half in 1u64..1 << 59, digit_bits in 1u32..=60, x: u64) {
            let modulus = Modulus::new(2 * half + 1);
            for x in [x % modulus.value(), 0, half, half + 1, modulus.value() - 1] {
                let balanced = Balanced::new(modulus, digit_bits);
                let mut sum = 0i128;
                for j in 0..digit_count(modulus, digit_bits) {
                    // A modulus that every digit is small for shows its sign.
                    let (wide, mut digit) = (Modulus::new((1 << 61) - 1), [0]);
                    balanced.write(j, &[x], wide, &mut digit);
                    let digit = wide.centered(digit[0]);
                    prop_assert!(digit.unsigned_abs() <= balanced.bound(j), "digit {} is {}", j, digit);
                    sum += i128::from(digit) << (j * digit_bits);
                }
                prop_assert_eq!(sum, i128::from(modulus.centered(x)));
            }
        }
    }
}
