//! Rows: numbers at equal distances, in a ciphertext and in a tensor. All that moves between the two moves by rows.

/// A stretch of numbers, of which number i sits at `position + i * step` of a ciphertext and is element
/// `element + i * stride` of a tensor.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Row {
    /// The first number's slot or coefficient.
    pub position: usize,
    /// From one number to the next, in the ciphertext.
    pub step: usize,
    /// The first number's place in the tensor, row-major.
    pub element: usize,
    /// From one number to the next, in the tensor.
    pub stride: usize,
    /// How many numbers.
    pub length: usize,
}

impl Row {
    /// The slots or coefficients, in order.
    pub fn positions(self) -> impl ExactSizeIterator<Item = usize> {
        (0..self.length).map(move |i| self.position + i * self.step)
    }

    /// The places in the tensor, in order.
    pub fn elements(self) -> impl ExactSizeIterator<Item = usize> {
        (0..self.length).map(move |i| self.element + i * self.stride)
    }

    /// Puts the row's codes into a ciphertext's numbers modulo t.
    pub fn pack(self, codes: &[i32], plaintext_modulus: u64, numbers: &mut [u64]) {
        let modulus = plaintext_modulus as i64;
        for (position, element) in self.positions().zip(self.elements()) {
            let code = i64::from(codes[element]);
            let lifted = if code < 0 { code + modulus } else { code };
            // Codes reach beyond t in a layer that makes next to nothing of them, and in no other.
            let inside = (0..modulus).contains(&lifted);
            numbers[position] = if inside { lifted as u64 } else { code.rem_euclid(modulus) as u64 };
        }
    }
}

/// Reads numbers modulo t, in place, as those that are congruent to them and lie in the t numbers from `low` on.
pub fn lift(numbers: &mut [i64], plaintext_modulus: u64, low: i64) {
    let modulus = plaintext_modulus as i64;
    let shift = (-low).rem_euclid(modulus);
    for number in numbers {
        let shifted = *number + shift;
        *number = low + if shifted >= modulus { shifted - modulus } else { shifted };
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
            let mut lifted = [number];
            lift(&mut lifted, t, low);
            prop_assert!((low..low + t as i64).contains(&lifted[0]));
            prop_assert_eq!((lifted[0] - number).rem_euclid(t as i64), 0);
        }

        #[test]
        fn codes_are_packed_modulo_t(t in 2u64..40, code in -128i32..128) {
            let row = Row { position: 1, step: 2, element: 0, stride: 1, length: 1 };
            let mut numbers = [0; 2];
            row.pack(&[code], t, &mut numbers);
            prop_assert_eq!(numbers, [0, i64::from(code).rem_euclid(t as i64) as u64]);
        }
    }
}
