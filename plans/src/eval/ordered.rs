//! Products of matrices of floats, with sums in an order that no machine changes.
//!
//! Each number of the result is a sum over taps, four at a time, from the first to the last, and no product is fused
//! with a sum. Numbers of the result do not meet, so that vector units may take many of them at once without a say in
//! the order: sixteen lie side by side in registers, four rows of them, and what they share is copied together first.

use multiversion::multiversion;

/// Numbers of the result that lie side by side.
const LANES: usize = 16;

/// Rows of such lanes that are taken at once.
const ROWS: usize = 4;

/// Kernels, a row an output channel, and windows, a column an output cell.
#[derive(Clone, Copy)]
pub(super) struct Matrices<'a> {
    pub kernels: &'a [f32],
    pub windows: &'a [f32],
    pub taps: usize,
    pub cells: usize,
}

/// Sixteen columns of a factor: for each tap, the numbers that lie side by side.
type Panel = [[f32; LANES]];

/// Fills `planes`, a row an output channel, with the products.
pub(super) fn multiply_in_order(factors: Matrices<'_>, planes: &mut [f32]) {
    let Matrices { kernels, windows, taps, cells } = factors;
    let channels = planes.len() / cells;
    // Lanes are cells; where there are few, they are channels: a product does not mind which factor comes first.
    if cells >= LANES || cells >= channels {
        let fill = |panel: &mut Panel, first: usize| columns_of(windows, cells, first, panel);
        multiply(kernels, cells, taps, fill, planes);
    } else {
        let fill = |panel: &mut Panel, first: usize| rows_of(kernels, first, panel);
        let mut transposed = vec![0.0; planes.len()];
        multiply(&transpose(windows, cells), channels, taps, fill, &mut transposed);
        planes.copy_from_slice(&transpose(&transposed, channels));
    }
}

/// Turns rows of `width` numbers into columns.
fn transpose(matrix: &[f32], width: usize) -> Vec<f32> {
    (0..width).flat_map(|column| matrix[column..].iter().step_by(width).copied()).collect()
}

/// Fills a panel from columns of a matrix with a row for each tap.
fn columns_of(matrix: &[f32], width: usize, first: usize, panel: &mut Panel) {
    for (together, row) in panel.iter_mut().zip(matrix.chunks_exact(width)) {
        match row[first..].first_chunk() {
            Some(whole) => *together = *whole,
            None => together[..width - first].copy_from_slice(&row[first..]),
        }
    }
}

/// Fills a panel from rows of a matrix with a column for each tap.
fn rows_of(matrix: &[f32], first: usize, panel: &mut Panel) {
    for (lane, row) in matrix.chunks_exact(panel.len()).skip(first).take(LANES).enumerate() {
        panel.iter_mut().zip(row).for_each(|(together, &number)| together[lane] = number);
    }
}

/// Multiplies `left`, of rows of `taps` numbers, by panels of a factor of `width` columns.
fn multiply(left: &[f32], width: usize, taps: usize, fill: impl Fn(&mut Panel, usize), product: &mut [f32]) {
    let mut panel = vec![[0.0; LANES]; taps];
    for first in (0..width).step_by(LANES) {
        fill(&mut panel, first);
        let lanes = LANES.min(width - first);
        for (rows, results) in left.chunks(ROWS * taps).zip(product.chunks_mut(ROWS * width)) {
            // Where fewer rows are left, the last one fills the places.
            let last = rows.len() / taps - 1;
            let rows = std::array::from_fn(|row| &rows[row.min(last) * taps..][..taps]);
            let mut sums = [[0.0; LANES]; ROWS];
            sum_in_order(rows, &panel, &mut sums);
            for (result, sums) in results.chunks_exact_mut(width).zip(&sums) {
                result[first..first + lanes].copy_from_slice(&sums[..lanes]);
            }
        }
    }
}

/// Sums products over taps, for each row and lane by itself.
#[multiversion(targets("x86_64+avx512f", "x86_64+avx2"))]
fn sum_in_order(rows: [&[f32]; ROWS], panel: &Panel, sums: &mut [[f32; LANES]; ROWS]) {
    let (fours, rest) = panel.as_chunks::<4>();
    for (four, [p, q, r, s]) in fours.iter().enumerate() {
        for (row, sums) in rows.iter().zip(sums.iter_mut()) {
            let &[a, b, c, d] = row[4 * four..].first_chunk().expect("there is a row of the panel for each tap");
            for lane in 0..LANES {
                sums[lane] += (a * p[lane] + b * q[lane]) + (c * r[lane] + d * s[lane]);
            }
        }
    }
    for (tap, values) in (4 * fours.len()..).zip(rest) {
        for (row, sums) in rows.iter().zip(sums.iter_mut()) {
            for lane in 0..LANES {
                sums[lane] += row[tap] * values[lane];
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::collection::vec;
    use proptest::prelude::*;

    use super::*;

    /// One number at a time, in the order that is promised.
    fn naive(factors: Matrices<'_>, channel: usize, cell: usize) -> f32 {
        let Matrices { kernels, windows, taps, cells } = factors;
        let term = |tap: usize| kernels[channel * taps + tap] * windows[tap * cells + cell];
        let fours = taps / 4 * 4;
        let sum = (0..fours)
            .step_by(4)
            .fold(0.0, |sum, tap| sum + ((term(tap) + term(tap + 1)) + (term(tap + 2) + term(tap + 3))));
        (fours..taps).fold(sum, |sum, tap| sum + term(tap))
    }

    proptest! {
        #[test]
        fn every_sum_has_the_promised_order(
            (channels, taps, cells, numbers) in (1usize..40, 1usize..30, 1usize..40).prop_flat_map(
                |(channels, taps, cells)| {
                    let numbers = vec(-1.0f32..1.0, taps * (channels + cells));
                    (Just(channels), Just(taps), Just(cells), numbers)
                },
            )
        ) {
            let (kernels, windows) = numbers.split_at(taps * channels);
            let factors = Matrices { kernels, windows, taps, cells };
            let mut planes = vec![0.0; channels * cells];
            multiply_in_order(factors, &mut planes);
            for channel in 0..channels {
                for cell in 0..cells {
                    let expected = naive(factors, channel, cell);
                    prop_assert_eq!(planes[channel * cells + cell].to_bits(), expected.to_bits());
                }
            }
        }
    }
}
