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
}

/// Copies the numbers of a ciphertext that stand in runs to places one after the other, as many as they are.
pub fn gather(numbers: &[u64], runs: &[Run], places: &mut [u64]) {
    let mut rest = places;
    for run in runs {
        let places = rest.split_off_mut(..run.length).expect("there is a place for each number");
        // One check of the bounds for all.
        let stretch = &numbers[run.position..][..reach(run.length, run.step)];
        if run.step == 1 {
            places.copy_from_slice(stretch);
        } else {
            places.iter_mut().zip(stretch.iter().step_by(run.step)).for_each(|(place, &number)| *place = number);
        }
    }
    assert!(rest.is_empty(), "as many places as numbers");
}

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
    /// Puts the codes, [of size below t](reduce_codes), into a ciphertext's numbers modulo t.
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

/// Numbers from the first to the last of a row, those between included.
fn reach(length: usize, distance: usize) -> usize {
    if length == 0 { 0 } else { (length - 1) * distance + 1 }
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

/// Makes one row of rows that follow each other; numbers that stand alone become rows at whatever distances they have.
pub fn join(rows: impl IntoIterator<Item = Row>) -> Vec<Row> {
    let mut joined: Vec<Row> = Vec::new();
    for row in rows.into_iter().filter(|row| row.length > 0) {
        match joined.last_mut().and_then(|last| Some((one_row(*last, row)?, last))) {
            Some((longer, last)) => *last = longer,
            None => joined.push(row),
        }
    }
    joined
}

/// Returns a row of the numbers of both, if they make one.
fn one_row(first: Row, second: Row) -> Option<Row> {
    let (step, stride) = match (first.length, second.length) {
        (1, 1) => (second.position.checked_sub(first.position)?, second.element.checked_sub(first.element)?),
        (1, _) => (second.step, second.stride),
        (_, 1) => (first.step, first.stride),
        _ if (first.step, first.stride) == (second.step, second.stride) => (first.step, first.stride),
        _ => return None,
    };
    let goes_on = step > 0
        && stride > 0
        && second.position == first.position + first.length * step
        && second.element == first.element + first.length * stride;
    goes_on.then_some(Row { step, stride, length: first.length + second.length, ..first })
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
        fn runs_of_neighbours_are_the_positions(positions in prop::collection::btree_set(0usize..40, 0..30)) {
            let positions: Vec<usize> = positions.into_iter().collect();
            let listed: Vec<usize> = Run::list(&positions).into_iter().flat_map(Run::positions).collect();
            prop_assert_eq!(listed, positions);
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
