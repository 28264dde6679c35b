//! Numbers modulo t: codes on their way into ciphertexts, and results on their way out.

use std::borrow::Cow;

use multiversion::multiversion;

/// Returns codes that are congruent to `codes` modulo t and of size below t: nearly always those codes themselves.
pub fn reduce_codes(codes: &[i32], plaintext_modulus: u64) -> Cow<'_, [i32]> {
    // Codes reach beyond t in a layer that makes next to nothing of them, and in no other.
    match i32::try_from(plaintext_modulus) {
        Ok(modulus) if !are_below(codes, modulus) => codes.iter().map(|code| code.rem_euclid(modulus)).collect(),
        _ => Cow::Borrowed(codes),
    }
}

/// Says whether all codes are of size below a bound.
#[multiversion(targets("x86_64+avx512f+avx512dq+avx512vl", "x86_64+avx2"))]
fn are_below(codes: &[i32], bound: i32) -> bool {
    let (mut lowest, mut highest) = (0, 0);
    for &code in codes {
        lowest = code.min(lowest);
        highest = code.max(highest);
    }
    -bound < lowest && highest < bound
}

/// What reads numbers modulo t as those that are congruent to them and lie in the t numbers from `low` on.
#[derive(Clone, Copy, Debug)]
pub struct Lift {
    modulus: i64,
    low: i64,
    /// -low modulo t.
    shift: i64,
}

impl Lift {
    /// For one t and one range.
    pub fn new(plaintext_modulus: u64, low: i64) -> Lift {
        let modulus = plaintext_modulus as i64;
        Lift { modulus, low, shift: (-low).rem_euclid(modulus) }
    }

    /// Lifts a number in [0, t).
    #[inline(always)]
    pub fn apply(self, number: i64) -> i64 {
        let shifted = number + self.shift;
        self.low + if shifted >= self.modulus { shifted - self.modulus } else { shifted }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn numbers_are_lifted_into_their_range(t in 2u64..1 << 40, low in -(1i64 << 41)..1 << 41, number: u64) {
            let number = (number % t) as i64;
            let lifted = Lift::new(t, low).apply(number);
            prop_assert!((low..low + t as i64).contains(&lifted));
            prop_assert_eq!((lifted - number).rem_euclid(t as i64), 0);
        }
    }
}
