//! The largest number of each window, or their mean.

use multiversion::multiversion;

use crate::op::Pool;

pub(super) fn max_pool(pool: &Pool, input: [usize; 3], output: [usize; 3], x: &[f32]) -> Vec<f32> {
    if *pool == (Pool { kernel: [2, 2], strides: [2, 2], pads_before: [0, 0] })
        && input == [output[0], 2 * output[1], 2 * output[2]]
    {
        let mut pooled = vec![0.0; output.iter().product()];
        max_pool_squares(input[2], x, &mut pooled);
        return pooled;
    }
    pooled(pool, input, output, x, |window| {
        window.fold_cells(f32::NEG_INFINITY, |best, value| if value > best { value } else { best })
    })
}

/// The largest of each square of four, in rows of even length: as windows in general, in the same order.
#[multiversion(targets("x86_64+avx512f+avx512dq+avx512vl", "x86_64+avx2"))]
fn max_pool_squares(width: usize, x: &[f32], pooled: &mut [f32]) {
    if width == 0 {
        return;
    }
    for (rows, pooled) in x.chunks_exact(2 * width).zip(pooled.chunks_exact_mut(width / 2)) {
        let (upper, lower) = rows.split_at(width);
        let squares = upper.as_chunks::<2>().0.iter().zip(lower.as_chunks::<2>().0);
        for (largest, (&[a, b], &[c, d])) in pooled.iter_mut().zip(squares) {
            let mut best = if a > f32::NEG_INFINITY { a } else { f32::NEG_INFINITY };
            best = if b > best { b } else { best };
            best = if c > best { c } else { best };
            *largest = if d > best { d } else { best };
        }
    }
}

/// The mean of each window, summed row by row.
///
/// Without `count_include_pad` the divisor is the number of cells inside the image. With it, padding counts as well:
/// as many cells behind the image as there are before it. What lies beyond, where a window hangs over the end for
/// `ceil_mode`, never counts; ONNX says the same since opset 19. A window without any cell that counts is 0.
pub(super) fn average_pool(
    pool: &Pool,
    count_include_pad: bool,
    input: [usize; 3],
    output: [usize; 3],
    x: &[f32],
) -> Vec<f32> {
    pooled(pool, input, output, x, |window| {
        let cells = if count_include_pad { window.padded_cells(pool) } else { window.cells() };
        let sum = window.fold_cells(0.0, |sum, value| sum + value);
        if cells == 0 { 0.0 } else { sum / cells as f32 }
    })
}

/// One window of one channel.
struct Window<'a> {
    plane: &'a [f32],
    /// Height and width of the plane.
    size: [usize; 2],
    /// Where the window begins, counted from the first cell of the padding.
    corner: [usize; 2],
    /// The part inside the image: first and end, for rows and for columns.
    rows: [usize; 2],
    columns: [usize; 2],
}

impl Window<'_> {
    fn fold_cells(&self, start: f32, step: impl Fn(f32, f32) -> f32) -> f32 {
        let mut value = start;
        for row in self.rows[0]..self.rows[1] {
            let cells = &self.plane[row * self.size[1]..][self.columns[0]..self.columns[1]];
            value = cells.iter().fold(value, |value, &cell| step(value, cell));
        }
        value
    }

    fn cells(&self) -> usize {
        (self.rows[1] - self.rows[0]) * (self.columns[1] - self.columns[0])
    }

    fn padded_cells(&self, pool: &Pool) -> usize {
        let along = |axis: usize| {
            let padded = self.size[axis] + 2 * pool.pads_before[axis];
            pool.kernel[axis].min(padded.saturating_sub(self.corner[axis]))
        };
        along(0) * along(1)
    }
}

/// Reduces every window of every channel.
fn pooled(
    pool: &Pool,
    [channels, height, width]: [usize; 3],
    [channels_out, rows, columns]: [usize; 3],
    x: &[f32],
    reduce: impl Fn(&Window) -> f32,
) -> Vec<f32> {
    assert_eq!(channels, channels_out, "pooling keeps the channels");
    // From `start`, counted from the first cell of the padding, to the cells it covers inside the image.
    let inside = |axis: usize, start: usize, length: usize| {
        let pad = pool.pads_before[axis];
        let end = (start + pool.kernel[axis]).saturating_sub(pad).min(length);
        [start.saturating_sub(pad).min(end), end]
    };
    let mut output = Vec::with_capacity(channels * rows * columns);
    for channel in 0..channels {
        let plane = &x[channel * height * width..][..height * width];
        for row in 0..rows {
            for column in 0..columns {
                let corner = [row * pool.strides[0], column * pool.strides[1]];
                output.push(reduce(&Window {
                    plane,
                    size: [height, width],
                    corner,
                    rows: inside(0, corner[0], height),
                    columns: inside(1, corner[1], width),
                }));
            }
        }
    }
    output
}

pub(super) fn global_average_pool([channels, height, width]: [usize; 3], x: &[f32]) -> Vec<f32> {
    let cells = height * width;
    let mean = |channel: usize| {
        let plane = &x[channel * cells..][..cells];
        plane.iter().fold(0.0, |sum, value| sum + value) / cells as f32
    };
    (0..channels).map(mean).collect()
}

#[cfg(test)]
mod tests {
    use proptest::collection::vec;
    use proptest::prelude::*;

    use super::super::{Operand, client};
    use super::*;
    use crate::op::ClientOp;

    /// An operator that reads one tensor.
    fn run(op: &ClientOp, input_shape: &[usize], output_shape: &[usize], x: &[f32]) -> Vec<f32> {
        client(op, &[Operand { shape: input_shape, numbers: x }], output_shape)
    }

    fn square(kernel: usize, stride: usize, pad: usize) -> Pool {
        Pool { kernel: [kernel; 2], strides: [stride; 2], pads_before: [pad; 2] }
    }

    fn counting(cells: usize) -> Vec<f32> {
        (1..=cells).map(|value| value as f32).collect()
    }

    /// The values inside one window, in order, and how many cells of it count with the padding.
    fn naive_window(pool: &Pool, [height, width]: [usize; 2], plane: &[f32], at: [usize; 2]) -> (Vec<f32>, usize) {
        let (mut values, mut padded) = (Vec::new(), 0);
        for row in 0..pool.kernel[0] {
            for column in 0..pool.kernel[1] {
                let y = (at[0] * pool.strides[0] + row) as isize - pool.pads_before[0] as isize;
                let x = (at[1] * pool.strides[1] + column) as isize - pool.pads_before[1] as isize;
                if y < (height + pool.pads_before[0]) as isize && x < (width + pool.pads_before[1]) as isize {
                    padded += 1;
                }
                if (0..height as isize).contains(&y) && (0..width as isize).contains(&x) {
                    values.push(plane[y as usize * width + x as usize]);
                }
            }
        }
        (values, padded)
    }

    fn pools() -> impl Strategy<Value = (Pool, [usize; 3], [usize; 3], Vec<f32>)> {
        let pair = |range: std::ops::Range<usize>| [range.clone(), range];
        (pair(1..5), pair(1..4), pair(0..4), 1usize..4, pair(1..7), pair(1..6)).prop_flat_map(
            |(kernel, strides, pads_before, channels, size, cells)| {
                let x = vec(-100.0f32..100.0, channels * size[0] * size[1]);
                let shapes = ([channels, size[0], size[1]], [channels, cells[0], cells[1]]);
                x.prop_map(move |x| (Pool { kernel, strides, pads_before }, shapes.0, shapes.1, x))
            },
        )
    }

    proptest! {
        #[test]
        fn pools_match_their_definition((pool, input, output, x) in pools()) {
            let largest = run(&ClientOp::MaxPool(pool.clone()), &input, &output, &x);
            let mean = |count_include_pad| {
                run(&ClientOp::AveragePool { pool: pool.clone(), count_include_pad }, &input, &output, &x)
            };
            let (inner, padded) = (mean(false), mean(true));
            let [_, rows, columns] = output;
            for index in 0..largest.len() {
                let plane = &x[index / (rows * columns) * input[1] * input[2]..];
                let at = [index / columns % rows, index % columns];
                let (values, count) = naive_window(&pool, [input[1], input[2]], plane, at);
                let sum = values.iter().fold(0.0, |sum, value| sum + value);
                prop_assert_eq!(largest[index], values.iter().copied().fold(f32::NEG_INFINITY, f32::max));
                prop_assert_eq!(inner[index], if values.is_empty() { 0.0 } else { sum / values.len() as f32 });
                prop_assert_eq!(padded[index], if count == 0 { 0.0 } else { sum / count as f32 });
            }
        }

        #[test]
        fn squares_are_pooled_as_windows_in_general(rows in 0usize..5, columns in 0usize..20, seed: u32) {
            let values = [0.0, -0.0, 1.5, f32::NAN, -2.0, f32::NEG_INFINITY, 1.25];
            let mut state = seed;
            let x: Vec<f32> = (0..2 * 4 * rows * columns)
                .map(|_| {
                    state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
                    values[(state >> 16) as usize % values.len()]
                })
                .collect();
            let (input, output) = ([2, 2 * rows, 2 * columns], [2, rows, columns]);
            let general = pooled(&square(2, 2, 0), input, output, &x, |window| {
                window.fold_cells(f32::NEG_INFINITY, |best, value| if value > best { value } else { best })
            });
            let found = max_pool(&square(2, 2, 0), input, output, &x);
            let bits = |values: Vec<f32>| values.into_iter().map(f32::to_bits).collect::<Vec<_>>();
            prop_assert_eq!(bits(found), bits(general));
        }
    }

    #[test]
    fn padding_never_wins_a_max_pool() {
        let pool = ClientOp::MaxPool(square(3, 1, 1));
        assert_eq!(run(&pool, &[1, 2, 2], &[1, 2, 2], &[-4.0, -3.0, -2.0, -1.0]), [-1.0; 4]);
    }

    /// From ONNX's own node tests: maxpool_2d_ceil and averagepool_2d_ceil.
    #[test]
    fn windows_over_the_end_count_real_cells() {
        let x = counting(16);
        let largest = run(&ClientOp::MaxPool(square(3, 2, 0)), &[1, 4, 4], &[1, 2, 2], &x);
        assert_eq!(largest, [11.0, 12.0, 15.0, 16.0]);
        for count_include_pad in [false, true] {
            let mean = ClientOp::AveragePool { pool: square(3, 2, 0), count_include_pad };
            assert_eq!(run(&mean, &[1, 4, 4], &[1, 2, 2], &x), [6.0, 7.5, 12.0, 13.5]);
        }
    }

    /// From ONNX's own node tests: averagepool_2d_precomputed_pads_count_include_pad, and its twin without.
    #[test]
    fn padding_counts_when_it_is_asked_to() {
        let mean = |count_include_pad| {
            let op = ClientOp::AveragePool { pool: square(5, 1, 2), count_include_pad };
            run(&op, &[1, 5, 5], &[1, 5, 5], &counting(25))
        };
        assert_eq!(mean(true)[..5], [2.52, 3.6, 4.8, 4.08, 3.24]);
        assert_eq!(mean(false)[..5], [7.0, 7.5, 8.0, 8.5, 9.0]);
    }
}
