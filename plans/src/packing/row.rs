//! Rows: numbers at equal distances, in a ciphertext and in a tensor. All that moves between the two moves by rows.

use multiversion::multiversion;

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

/// Numbers at equal distances in a ciphertext, wherever else they are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Run {
    /// The first number's slot or coefficient.
    pub position: usize,
    /// From one number to the next.
    pub step: usize,
    /// How many numbers.
    pub length: usize,
}

impl Run {
    /// The slots or coefficients, in order.
    pub fn positions(self) -> impl ExactSizeIterator<Item = usize> {
        (0..self.length).map(move |i| self.position + i * self.step)
    }

    /// Appends the numbers of a ciphertext that stand here.
    pub fn gather(self, numbers: &[u64], gathered: &mut Vec<u64>) {
        if self.step == 1 {
            gathered.extend_from_slice(&numbers[self.position..][..self.length]);
        } else if self.length > 0 {
            // One check of the bounds for all.
            let stretch = &numbers[self.position..][..(self.length - 1) * self.step + 1];
            gathered.extend(stretch.iter().step_by(self.step));
        }
    }

    /// Lists positions as runs of neighbours.
    pub fn list(positions: &[usize]) -> Vec<Run> {
        let neighbours = positions.chunk_by(|&position, &next| next == position + 1);
        neighbours.map(|run| Run { position: run[0], step: 1, length: run.len() }).collect()
    }
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

    /// The row in the ciphertext alone.
    pub fn run(self) -> Run {
        Run { position: self.position, step: self.step, length: self.length }
    }

    /// Puts the row's elements of a tensor, [lifted](lift_codes) already, into a ciphertext's numbers.
    pub fn pack(self, lifted: &[u64], numbers: &mut [u64]) {
        if self.length == 0 {
            return;
        }
        if self.step == 1 && self.stride == 1 {
            numbers[self.position..][..self.length].copy_from_slice(&lifted[self.element..][..self.length]);
            return;
        }
        // One check of the bounds for all.
        let places = &mut numbers[self.position..][..(self.length - 1) * self.step + 1];
        let elements = &lifted[self.element..][..(self.length - 1) * self.stride + 1];
        let elements = elements.iter().step_by(self.stride);
        places.iter_mut().step_by(self.step).zip(elements).for_each(|(place, &element)| *place = element);
    }
}

/// Appends a row, or makes the last one longer where the new one goes on behind it.
pub fn push_row(rows: &mut Vec<Row>, row: Row) {
    if let Some(last) = rows.last_mut()
        && (last.step, last.stride) == (row.step, row.stride)
        && last.position + last.length * last.step == row.position
        && last.element + last.length * last.stride == row.element
    {
        last.length += row.length;
    } else {
        rows.push(row);
    }
}

/// Turns codes into numbers modulo t.
pub fn lift_codes(codes: &[i32], plaintext_modulus: u64) -> Vec<u64> {
    let mut lifted = vec![0; codes.len()];
    // Codes reach beyond t in a layer that makes next to nothing of them, and in no other.
    if !lift_short(codes, plaintext_modulus, &mut lifted) {
        let modulus = plaintext_modulus as i64;
        lifted.iter_mut().zip(codes).for_each(|(number, &code)| *number = i64::from(code).rem_euclid(modulus) as u64);
    }
    lifted
}

/// Lifts codes of size below t; false if there are others.
#[multiversion(targets("x86_64+avx512f+avx512dq+avx512vl", "x86_64+avx2"))]
fn lift_short(codes: &[i32], plaintext_modulus: u64, lifted: &mut [u64]) -> bool {
    let modulus = plaintext_modulus as i64;
    let mut outside = 0;
    for (number, &code) in lifted.iter_mut().zip(codes) {
        let code = i64::from(code);
        let shifted = code + (modulus & (code >> 63));
        // Negative where a code is below -t, or not below t.
        outside |= shifted | (modulus - 1 - shifted);
        *number = shifted as u64;
    }
    outside >= 0
}

/// Reads numbers modulo t, in place, as those that are congruent to them and lie in the t numbers from `low` on.
#[multiversion(targets("x86_64+avx512f+avx512dq+avx512vl", "x86_64+avx2"))]
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
        fn rows_are_moved_number_by_number(row in (0usize..9, 1usize..4, 0usize..9, 1usize..4, 0usize..20)) {
            let (position, step, element, stride, length) = row;
            let row = Row { position, step, element, stride, length };
            let tensor: Vec<u64> = (1..100).collect();
            let (mut numbers, mut expected) = (vec![0; 100], vec![0; 100]);
            row.pack(&tensor, &mut numbers);
            row.positions().zip(row.elements()).for_each(|(position, element)| expected[position] = tensor[element]);
            prop_assert_eq!(&numbers, &expected);
            let mut gathered = Vec::new();
            row.run().gather(&numbers, &mut gathered);
            prop_assert_eq!(gathered, row.elements().map(|element| tensor[element]).collect::<Vec<_>>());
        }

        #[test]
        fn runs_of_neighbours_are_the_positions(positions in prop::collection::btree_set(0usize..40, 0..30)) {
            let positions: Vec<usize> = positions.into_iter().collect();
            let listed: Vec<usize> = Run::list(&positions).into_iter().flat_map(Run::positions).collect();
            prop_assert_eq!(listed, positions);
        }

        #[test]
        fn codes_are_packed_modulo_t(t in 2u64..40, code in -128i32..128) {
            let row = Row { position: 1, step: 2, element: 0, stride: 1, length: 1 };
            let mut numbers = [0; 2];
            row.pack(&lift_codes(&[code], t), &mut numbers);
            prop_assert_eq!(numbers, [0, i64::from(code).rem_euclid(t as i64) as u64]);
        }
    }
}
