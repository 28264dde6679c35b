//! The client's operators, in `f32`, written for a small device: plain loops, nothing allocated but the output.
//!
//! Every sum runs in the order written here and no product is fused into it, so two machines that follow IEEE 754
//! agree in every bit. That is also why [`exp`] is our own: the one of a C library differs from the next.

use std::f64::consts::{LN_2, LOG2_E};

use multiversion::multiversion;

use crate::op::{ClientOp, Pool};

/// Computes one client operator.
///
/// `x` is row-major with `input_shape`, the result with `output_shape`, both without a batch axis. Pooling and
/// `GlobalAveragePool` take (channels, height, width); `Affine` takes channels first.
///
/// Where the arithmetic leaves a choice: `Relu` turns a NaN and -0 into +0; `Clip` lets a NaN pass; a NaN never wins a
/// `MaxPool`, and a window with nothing to win is -infinity; `Softmax` of a NaN, or of a +infinity, is NaN.
///
/// # Panics
/// If `x`, the shapes and the operator do not belong together.
pub fn client(op: &ClientOp, input_shape: &[usize], output_shape: &[usize], x: &[f32]) -> Vec<f32> {
    assert_eq!(x.len(), input_shape.iter().product::<usize>(), "inputs of a {}", op.kind());
    let length = output_shape.iter().product::<usize>();
    let output: Vec<f32> = match op {
        ClientOp::Relu => x.iter().map(|&value| if value > 0.0 { value } else { 0.0 }).collect(),
        ClientOp::Clip { low, high } => x.iter().map(|&value| clip(value, *low, *high)).collect(),
        ClientOp::MaxPool(pool) => max_pool(pool, image(input_shape), image(output_shape), x),
        ClientOp::AveragePool { pool, count_include_pad } => {
            average_pool(pool, *count_include_pad, image(input_shape), image(output_shape), x)
        }
        ClientOp::GlobalAveragePool => global_average_pool(image(input_shape), x),
        ClientOp::Affine { scale, shift } => affine(scale, shift, x),
        ClientOp::Softmax { axis } => softmax(*axis, input_shape, x),
        ClientOp::Reshape => x.to_vec(),
    };
    assert_eq!(output.len(), length, "outputs of a {}", op.kind());
    output
}

fn image(shape: &[usize]) -> [usize; 3] {
    shape.try_into().unwrap_or_else(|_| panic!("pooling takes (channels, height, width), not {shape:?}"))
}

fn clip(value: f32, low: f32, high: f32) -> f32 {
    let raised = if value < low { low } else { value };
    if raised > high { high } else { raised }
}

fn max_pool(pool: &Pool, input: [usize; 3], output: [usize; 3], x: &[f32]) -> Vec<f32> {
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
fn average_pool(pool: &Pool, count_include_pad: bool, input: [usize; 3], output: [usize; 3], x: &[f32]) -> Vec<f32> {
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

fn global_average_pool([channels, height, width]: [usize; 3], x: &[f32]) -> Vec<f32> {
    let cells = height * width;
    let mean = |channel: usize| {
        let plane = &x[channel * cells..][..cells];
        plane.iter().fold(0.0, |sum, value| sum + value) / cells as f32
    };
    (0..channels).map(mean).collect()
}

fn affine(scale: &[f32], shift: &[f32], x: &[f32]) -> Vec<f32> {
    assert!(scale.len() == shift.len() && x.len().is_multiple_of(scale.len()), "a factor and a summand a channel");
    let mut output = Vec::with_capacity(x.len());
    let plane = (x.len() / scale.len().max(1)).max(1);
    for ((channel, factor), summand) in x.chunks_exact(plane).zip(scale).zip(shift) {
        output.extend(channel.iter().map(|value| value * factor + summand));
    }
    output
}

/// exp(x - max) over its sum, which runs in the order of the axis.
fn softmax(axis: usize, shape: &[usize], x: &[f32]) -> Vec<f32> {
    let mut output = x.to_vec();
    let length = shape[axis];
    let stride: usize = shape[axis + 1..].iter().product();
    for first in (0..x.len()).filter(|index| (index / stride).is_multiple_of(length)) {
        let line = || (0..length).map(|step| first + step * stride);
        let largest = line().fold(f32::NEG_INFINITY, |best, index| if x[index] > best { x[index] } else { best });
        let mut sum = 0.0;
        for index in line() {
            output[index] = exp(f64::from(x[index]) - f64::from(largest));
            sum += output[index];
        }
        line().for_each(|index| output[index] /= sum);
    }
    output
}

/// Computes e^x for x <= 0, to within one unit in the last place, with additions and products only.
///
/// e^x = 2^k * e^r with k the integer nearest to x / ln 2 and |r| <= ln(2)/2; in `f64` the Taylor series up to
/// r^11/11! errs by less than 2^-46, far below the rounding to `f32`.
fn exp(x: f64) -> f32 {
    // Half the smallest subnormal is about e^-103.97: everything below rounds to zero. A NaN goes on and stays one.
    if x < -104.0 {
        return 0.0;
    }
    let k = (x * LOG2_E).round_ties_even();
    let r = x - k * LN_2;
    let series = (1..=11).rev().fold(1.0, |series, n| 1.0 + r / f64::from(n) * series);
    // 2^k is a normal f64, since -151 <= k <= 0; its exponent field is k + 1023.
    (series * f64::from_bits(((k as i64 + 1023) as u64) << 52)) as f32
}

#[cfg(test)]
mod tests {
    use proptest::collection::vec;
    use proptest::prelude::*;

    use super::*;

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
            let largest = client(&ClientOp::MaxPool(pool.clone()), &input, &output, &x);
            let mean = |count_include_pad| {
                client(&ClientOp::AveragePool { pool: pool.clone(), count_include_pad }, &input, &output, &x)
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
        fn softmax_is_near_its_definition(x in vec(-30.0f32..30.0, 24), axis in 0usize..3) {
            let shape = [2, 3, 4];
            let stride: usize = shape[axis + 1..].iter().product();
            let output = client(&ClientOp::Softmax { axis }, &shape, &shape, &x);
            for index in 0..x.len() {
                let first = index - index / stride % shape[axis] * stride;
                let line = (0..shape[axis]).map(|step| f64::from(x[first + step * stride]));
                let expected = f64::from(x[index]).exp() / line.map(f64::exp).sum::<f64>();
                prop_assert!((f64::from(output[index]) - expected).abs() <= 4e-7 * expected.max(1e-30));
            }
        }
    }

    #[test]
    fn relu_and_clip_follow_the_documented_corners() {
        let x = [-1.0, -0.0, 2.0, f32::NAN, f32::INFINITY, f32::NEG_INFINITY];
        let relu = client(&ClientOp::Relu, &[6], &[6], &x);
        assert_eq!(relu, [0.0, 0.0, 2.0, 0.0, f32::INFINITY, 0.0]);
        assert!(relu.iter().all(|value| value.is_sign_positive()));
        let clip = client(&ClientOp::Clip { low: -0.5, high: 6.0 }, &[6], &[6], &x);
        assert_eq!(clip[..3], [-0.5, 0.0, 2.0]);
        assert!(clip[3].is_nan());
        assert_eq!(clip[4..], [6.0, -0.5]);
        let crossed = client(&ClientOp::Clip { low: 3.0, high: 1.0 }, &[1], &[1], &[2.0]);
        assert_eq!(crossed, [1.0], "min(max(x, low), high)");
    }

    #[test]
    fn padding_never_wins_a_max_pool() {
        let pool = ClientOp::MaxPool(square(3, 1, 1));
        assert_eq!(client(&pool, &[1, 2, 2], &[1, 2, 2], &[-4.0, -3.0, -2.0, -1.0]), [-1.0; 4]);
    }

    /// From ONNX's own node tests: maxpool_2d_ceil and averagepool_2d_ceil.
    #[test]
    fn windows_over_the_end_count_real_cells() {
        let x = counting(16);
        let largest = client(&ClientOp::MaxPool(square(3, 2, 0)), &[1, 4, 4], &[1, 2, 2], &x);
        assert_eq!(largest, [11.0, 12.0, 15.0, 16.0]);
        for count_include_pad in [false, true] {
            let mean = ClientOp::AveragePool { pool: square(3, 2, 0), count_include_pad };
            assert_eq!(client(&mean, &[1, 4, 4], &[1, 2, 2], &x), [6.0, 7.5, 12.0, 13.5]);
        }
    }

    /// From ONNX's own node tests: averagepool_2d_precomputed_pads_count_include_pad, and its twin without.
    #[test]
    fn padding_counts_when_it_is_asked_to() {
        let mean = |count_include_pad| {
            let op = ClientOp::AveragePool { pool: square(5, 1, 2), count_include_pad };
            client(&op, &[1, 5, 5], &[1, 5, 5], &counting(25))
        };
        assert_eq!(mean(true)[..5], [2.52, 3.6, 4.8, 4.08, 3.24]);
        assert_eq!(mean(false)[..5], [7.0, 7.5, 8.0, 8.5, 9.0]);
    }

    proptest! {
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
    fn channels_keep_to_themselves() {
        let x = counting(8);
        assert_eq!(client(&ClientOp::GlobalAveragePool, &[2, 2, 2], &[2, 1, 1], &x), [2.5, 6.5]);
        let affine = ClientOp::Affine { scale: vec![2.0, -1.0], shift: vec![0.5, 10.0] };
        let expected = [2.5, 4.5, 6.5, 8.5, 5.0, 4.0, 3.0, 2.0];
        assert_eq!(client(&affine, &[2, 2, 2], &[2, 2, 2], &x), expected);
        assert_eq!(client(&ClientOp::Reshape, &[2, 2, 2], &[8], &x), x);
    }

    #[test]
    fn softmax_survives_large_inputs() {
        let softmax = |x: &[f32]| client(&ClientOp::Softmax { axis: 0 }, &[x.len()], &[x.len()], x);
        assert_eq!(softmax(&[1e30, 1e30]), [0.5, 0.5]);
        assert_eq!(softmax(&[0.0, -1000.0, f32::NEG_INFINITY]), [1.0, 0.0, 0.0]);
        assert!(softmax(&[0.0, f32::NAN]).iter().all(|value| value.is_nan()));
    }

    #[test]
    fn exp_is_within_one_unit_in_the_last_place() {
        for x in (0..150_000).map(|step| f64::from(step) * -0.0007) {
            let (ours, exact) = (exp(x), x.exp());
            let unit = f64::from(ours.next_up()) - f64::from(ours);
            assert!((f64::from(ours) - exact).abs() <= unit, "exp({x}) = {ours:e}, not {exact:e}");
        }
        assert_eq!([exp(0.0), exp(-0.0), exp(f64::NEG_INFINITY)], [1.0, 1.0, 0.0]);
    }

    #[test]
    #[should_panic(expected = "outputs of a Relu")]
    fn a_shape_that_does_not_fit_is_a_bug() {
        client(&ClientOp::Relu, &[2], &[3], &[0.0; 2]);
    }
}
