//! Rows: numbers at equal distances, in a ciphertext and in a tensor. All that moves between the two moves by rows.

use std::borrow::Cow;

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
            let begin = gathered.len();
            gathered.resize(begin + self.length, 0);
            let places = gathered[begin..].iter_mut();
            places.zip(stretch.iter().step_by(self.step)).for_each(|(place, &number)| *place = number);
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
        self.run().positions()
    }

    /// The places in the tensor, in order.
    pub fn elements(self) -> impl ExactSizeIterator<Item = usize> {
        (0..self.length).map(move |i| self.element + i * self.stride)
    }

    /// The row in the ciphertext alone.
    pub fn run(self) -> Run {
        Run { position: self.position, step: self.step, length: self.length }
    }

    /// Puts the row's codes, [of size below t](reduce_codes), into a ciphertext's numbers modulo t.
    pub fn pack(self, codes: &[i32], plaintext_modulus: u64, numbers: &mut [u64]) {
        if self.length == 0 {
            return;
        }
        let lift = |code: i32| {
            let code = i64::from(code);
            (code + (plaintext_modulus as i64 & (code >> 63))) as u64
        };
        if self.step == 1 && self.stride == 1 {
            let places = numbers[self.position..][..self.length].iter_mut();
            places.zip(&codes[self.element..][..self.length]).for_each(|(place, &code)| *place = lift(code));
            return;
        }
        // One check of the bounds for all.
        let places = &mut numbers[self.position..][..(self.length - 1) * self.step + 1];
        let codes = &codes[self.element..][..(self.length - 1) * self.stride + 1];
        let codes = codes.iter().step_by(self.stride);
        places.iter_mut().step_by(self.step).zip(codes).for_each(|(place, &code)| *place = lift(code));
    }
}

/// Appends a row, or makes the last one longer where the new one goes on behind it.
pub fn push_row(rows: &mut Vec<Row>, mut row: Row) {
    if row.length == 1 {
        // Any distances will do for one number: these let a dense layer's become one row.
        (row.step, row.stride) = (1, 1);
    }
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
            let tensor: Vec<i32> = (1..100).map(|i| if i % 3 == 0 { -i } else { i }).collect();
            let modulo = |element: usize| i64::from(tensor[element]).rem_euclid(1000) as u64;
            let (mut numbers, mut expected) = (vec![0; 100], vec![0; 100]);
            row.pack(&tensor, 1000, &mut numbers);
            row.positions().zip(row.elements()).for_each(|(position, element)| expected[position] = modulo(element));
            prop_assert_eq!(&numbers, &expected);
            let mut gathered = Vec::new();
            row.run().gather(&numbers, &mut gathered);
            prop_assert_eq!(gathered, row.elements().map(modulo).collect::<Vec<_>>());
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
            row.pack(&reduce_codes(&[code], t), t, &mut numbers);
            prop_assert_eq!(numbers, [0, i64::from(code).rem_euclid(t as i64) as u64]);
        }
    }
}
