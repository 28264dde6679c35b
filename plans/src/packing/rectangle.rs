//! Rectangles: rows at equal distances, and the loops that move their numbers.

use multiversion::multiversion;

use crate::packing::row::{Row, join, reach};

/// Rows alike, at equal distances.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Rectangle {
    /// The first row.
    pub row: Row,
    /// How many rows.
    pub rows: usize,
    /// From one row to the next, in the ciphertext.
    pub row_step: usize,
    /// From one row to the next, in the tensor.
    pub row_stride: usize,
}

impl Rectangle {
    /// Puts the codes, [of size below t](super::modulo::reduce_codes), into a ciphertext's numbers modulo t.
    pub fn pack(&self, codes: &[i32], plaintext_modulus: u64, numbers: &mut [u64]) {
        pack_rows(self, codes, plaintext_modulus, numbers);
    }

    /// Adds a ciphertext's numbers, each below t, to sums modulo t.
    pub fn add(&self, numbers: &[u64], plaintext_modulus: u64, sums: &mut [i64]) {
        add_rows(self, numbers, plaintext_modulus, sums);
    }

    /// Takes numbers, listed one after the other, off the front of `numbers`, to where they go in a tensor.
    pub fn place(&self, numbers: &mut &[u64], tensor: &mut [i64]) {
        let Rectangle { row: Row { length, stride, .. }, .. } = *self;
        for row in self.list() {
            let taken = numbers.split_off(..length).expect("there is a number for each place");
            let places = &mut tensor[row.element..][..reach(length, stride)];
            places.iter_mut().step_by(stride).zip(taken).for_each(|(place, &number)| *place = number as i64);
        }
    }

    /// The rows, in order.
    pub fn list(&self) -> impl Iterator<Item = Row> {
        let Rectangle { row, rows, row_step, row_stride } = *self;
        let (position, element) = (row.position, row.element);
        (0..rows).map(move |i| Row { position: position + i * row_step, element: element + i * row_stride, ..row })
    }
}

/// As [`Rectangle::pack`].
#[multiversion(targets("x86_64+avx512f+avx512dq+avx512vl", "x86_64+avx2"))]
fn pack_rows(rectangle: &Rectangle, codes: &[i32], plaintext_modulus: u64, numbers: &mut [u64]) {
    let Row { step, stride, length, .. } = rectangle.row;
    let modulus = plaintext_modulus as i64;
    let lift = |code: i32| {
        let code = i64::from(code);
        (code + (modulus & (code >> 63))) as u64
    };
    for row in rectangle.list() {
        // One check of the bounds for all of a row.
        let places = &mut numbers[row.position..][..reach(length, step)];
        let codes = &codes[row.element..][..reach(length, stride)];
        if step == 1 && stride == 1 {
            places.iter_mut().zip(codes).for_each(|(place, &code)| *place = lift(code));
        } else {
            let codes = codes.iter().step_by(stride);
            places.iter_mut().step_by(step).zip(codes).for_each(|(place, &code)| *place = lift(code));
        }
    }
}

/// As [`Rectangle::add`].
#[multiversion(targets("x86_64+avx512f+avx512dq+avx512vl", "x86_64+avx2"))]
fn add_rows(rectangle: &Rectangle, numbers: &[u64], plaintext_modulus: u64, sums: &mut [i64]) {
    let Row { step, stride, length, .. } = rectangle.row;
    let modulus = plaintext_modulus as i64;
    let add = |sum: &mut i64, part: u64| {
        let added = *sum + part as i64;
        *sum = if added >= modulus { added - modulus } else { added };
    };
    for row in rectangle.list() {
        let parts = &numbers[row.position..][..reach(length, step)];
        let sums = &mut sums[row.element..][..reach(length, stride)];
        if step == 1 && stride == 1 {
            sums.iter_mut().zip(parts).for_each(|(sum, &part)| add(sum, part));
        } else {
            let parts = parts.iter().step_by(step);
            sums.iter_mut().step_by(stride).zip(parts).for_each(|(sum, &part)| add(sum, part));
        }
    }
}

/// Gathers rows, in their order, into as few rectangles as one pass finds.
pub fn rectangles(rows: impl IntoIterator<Item = Row>) -> Vec<Rectangle> {
    let mut rectangles: Vec<Rectangle> = Vec::new();
    for row in join(rows) {
        if let Some(last) = rectangles.last_mut()
            && (last.row.step, last.row.stride, last.row.length) == (row.step, row.stride, row.length)
            && row.position > last.row.position
            && row.element > last.row.element
        {
            if last.rows == 1 {
                (last.row_step, last.row_stride) = (row.position - last.row.position, row.element - last.row.element);
            }
            let next = (last.row.position + last.rows * last.row_step, last.row.element + last.rows * last.row_stride);
            if next == (row.position, row.element) {
                last.rows += 1;
                continue;
            }
        }
        rectangles.push(Rectangle { row, rows: 1, row_step: 0, row_stride: 0 });
    }
    rectangles
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::packing::modulo::reduce_codes;
    use crate::packing::row::{Run, gather};

    proptest! {
        #[test]
        fn rectangles_are_moved_number_by_number(
            row in (0usize..9, 1usize..4, 0usize..9, 1usize..4, 0usize..20),
            (rows, row_step, row_stride) in (1usize..4, 1usize..70, 1usize..70),
        ) {
            let (position, step, element, stride, length) = row;
            let row = Row { position, step, element, stride, length };
            let rectangle = Rectangle { row, rows, row_step, row_stride };
            let tensor: Vec<i32> = (1..300).map(|i| if i % 3 == 0 { -i } else { i }).collect();
            let modulo = |element: usize| i64::from(tensor[element]).rem_euclid(1000);
            let pairs: Vec<(usize, usize)> =
                rectangle.list().flat_map(|row| row.positions().zip(row.elements())).collect();

            let (mut numbers, mut expected) = (vec![0; 300], vec![0; 300]);
            rectangle.pack(&tensor, 1000, &mut numbers);
            pairs.iter().for_each(|&(position, element)| expected[position] = modulo(element) as u64);
            prop_assert_eq!(&numbers, &expected);

            let (mut sums, mut expected) = (vec![999; 300], vec![999; 300]);
            rectangle.add(&numbers, 1000, &mut sums);
            for &(position, element) in &pairs {
                expected[element] = (expected[element] + numbers[position] as i64) % 1000;
            }
            prop_assert_eq!(sums, expected);

            let runs: Vec<Run> = rectangle.list().map(Row::run).collect();
            let mut listed = vec![0; pairs.len()];
            gather(&numbers, &runs, &mut listed);
            prop_assert_eq!(&listed, &pairs.iter().map(|&(position, _)| numbers[position]).collect::<Vec<_>>());
            let (mut placed, mut expected) = (vec![0; 300], vec![0; 300]);
            let mut rest = &listed[..];
            rectangle.place(&mut rest, &mut placed);
            pairs.iter().zip(&listed).for_each(|(&(_, element), &number)| expected[element] = number as i64);
            prop_assert_eq!(placed, expected);
            prop_assert!(rest.is_empty());
        }

        #[test]
        fn rectangles_keep_numbers_and_their_order(
            rows in prop::collection::vec((0usize..30, 1usize..4, 0usize..30, 1usize..4, 0usize..4), 0..30)
        ) {
            let row = |(position, step, element, stride, length)| Row { position, step, element, stride, length };
            let rows: Vec<Row> = rows.into_iter().map(row).collect();
            let pairs = |rows: &[Row]| -> Vec<(usize, usize)> {
                rows.iter().flat_map(|row| row.positions().zip(row.elements())).collect()
            };
            let listed: Vec<Row> = rectangles(rows.clone()).iter().flat_map(Rectangle::list).collect();
            prop_assert_eq!(pairs(&listed), pairs(&rows));
        }

        #[test]
        fn codes_are_packed_modulo_t(t in 2u64..40, code in -128i32..128) {
            let row = Row { position: 1, step: 2, element: 0, stride: 1, length: 1 };
            let mut numbers = [0; 2];
            rectangles([row])[0].pack(&reduce_codes(&[code], t), t, &mut numbers);
            prop_assert_eq!(numbers, [0, i64::from(code).rem_euclid(t as i64) as u64]);
        }
    }
}
