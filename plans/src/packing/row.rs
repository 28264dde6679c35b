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

/// Numbers from the first to the last of a row, those between included.
pub(super) fn reach(length: usize, distance: usize) -> usize {
    if length == 0 { 0 } else { (length - 1) * distance + 1 }
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

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn runs_of_neighbours_are_the_positions(positions in prop::collection::btree_set(0usize..40, 0..30)) {
            let positions: Vec<usize> = positions.into_iter().collect();
            let listed: Vec<usize> = Run::list(&positions).into_iter().flat_map(Run::positions).collect();
            prop_assert_eq!(listed, positions);
        }
    }
}
