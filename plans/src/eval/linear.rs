//! Convolutions and dense layers: exact on integers, and on floats the same on every machine.
//!
//! A convolution becomes a matrix product (im2col), once a group. For integers the product is ndarray's, since no order
//! of sums can change an exact result; for floats it is our own, in an order that no machine changes, so that a model
//! quantised on one gives the plan that it gives on another.

use std::borrow::Cow;
use std::num::Wrapping;

use ndarray::{ArrayView1, ArrayView2, ArrayViewMut2, LinalgScalar, linalg};

use super::ordered::{Matrices, multiply_in_order};
use crate::network::LayerWeights;
use crate::op::{Conv, Dense, Linear};

/// Largest sum of |weight * code| that single precision carries exactly; see [`exact_carrier`].
const F32_EXACT: u128 = 1 << 24;
/// The same for double precision.
const F64_EXACT: u128 = 1 << 53;

/// The number type that carries an integer product.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Carrier {
    Single,
    Double,
    Integer,
}

/// Computes the accumulators of a linear layer, weights * codes + bias, exactly.
///
/// `codes` has the layer's input shape and the result its output shape, both row-major, channels first. Exact
/// whenever every accumulator fits an `i64`, which the range proof of a checked plan grants with room to spare.
///
/// # Panics
/// If a length does not fit the operator.
pub fn linear_integers(operator: &Linear, weights: &LayerWeights, codes: &[i32]) -> Vec<i64> {
    assert_lengths(operator, weights.weights.len(), weights.bias.len(), codes.len());
    let mut accumulators = match exact_carrier(operator, &weights.weights, codes) {
        Carrier::Single => through(operator, &weights.weights, codes, |code| code as f32, |sum| sum as i64),
        Carrier::Double => through(operator, &weights.weights, codes, f64::from, |sum| sum as i64),
        // Wrapping sums are sums modulo 2^64: whatever a partial sum does, a total that fits comes out right.
        Carrier::Integer => through(operator, &weights.weights, codes, |code| Wrapping(i64::from(code)), |sum| sum.0),
    };
    add_per_channel(&mut accumulators, &weights.bias, i64::wrapping_add);
    accumulators
}

/// Computes a linear layer in single precision: weights * x + bias.
///
/// `x` has the layer's input shape and the result its output shape, both row-major, channels first; `bias` has one
/// number an output channel. The order of the sums is fixed, and no product is fused with a sum.
///
/// # Panics
/// If a length does not fit the operator.
pub fn linear_floats(operator: &Linear, weights: &[f32], bias: &[f32], x: &[f32]) -> Vec<f32> {
    assert_lengths(operator, weights.len(), bias.len(), x.len());
    let mut real = match operator {
        Linear::Conv(conv) => convolve(conv, weights, x, |kernels, windows, taps, cells, planes| {
            multiply_in_order(Matrices { kernels, windows, taps, cells }, planes);
        }),
        Linear::Dense(dense) => weights.chunks_exact(dense.inputs).map(|row| dot_in_order(row, x)).collect(),
    };
    add_per_channel(&mut real, bias, |value, shift| value + shift);
    real
}

fn assert_lengths(operator: &Linear, weights: usize, bias: usize, input: usize) {
    let expected = |shape: Vec<usize>| shape.iter().product::<usize>();
    assert_eq!(weights, expected(operator.weight_shape()), "weights of a {}", operator.kind());
    assert_eq!(bias, operator.output_channels(), "biases of a {}", operator.kind());
    assert_eq!(input, expected(operator.input_shape()), "inputs of a {}", operator.kind());
}

/// Picks the cheapest number type that computes this product exactly.
///
/// Any partial sum of an output, in any order and with or without fused products, is an integer of magnitude at
/// most sum|w| * max|code|. Below 2^24 (2^53) a float of 24 (53) significant bits represents every such integer, so
/// no step rounds. The operands themselves are below the bound too, unless they only ever meet zeros.
fn exact_carrier(operator: &Linear, weights: &[i32], codes: &[i32]) -> Carrier {
    let largest_code = codes.iter().map(|code| code.unsigned_abs()).max().unwrap_or(0);
    let per_channel = weights.len() / operator.output_channels().max(1);
    let largest_sum = weights
        .chunks(per_channel.max(1))
        .map(|channel| channel.iter().map(|weight| u64::from(weight.unsigned_abs())).sum::<u64>())
        .max()
        .unwrap_or(0);
    match u128::from(largest_sum) * u128::from(largest_code) {
        bound if bound < F32_EXACT => Carrier::Single,
        bound if bound < F64_EXACT => Carrier::Double,
        _ => Carrier::Integer,
    }
}

/// Computes an integer product in numbers of type T.
fn through<T: LinalgScalar>(
    operator: &Linear,
    weights: &[i32],
    codes: &[i32],
    enter: impl Fn(i32) -> T,
    leave: impl Fn(T) -> i64,
) -> Vec<i64> {
    let weights: Vec<T> = weights.iter().map(|&weight| enter(weight)).collect();
    let codes: Vec<T> = codes.iter().map(|&code| enter(code)).collect();
    product(operator, &weights, &codes).into_iter().map(leave).collect()
}

/// Adds to each output channel, a run of equal length, a number of its own.
fn add_per_channel<T: Copy>(output: &mut [T], bias: &[T], add: impl Fn(T, T) -> T) {
    let plane = (output.len() / bias.len().max(1)).max(1);
    for (channel, &shift) in output.chunks_mut(plane).zip(bias) {
        channel.iter_mut().for_each(|value| *value = add(*value, shift));
    }
}

/// Computes weights * x, in whatever order is fastest.
fn product<T: LinalgScalar>(operator: &Linear, weights: &[T], x: &[T]) -> Vec<T> {
    match operator {
        Linear::Conv(conv) => convolve(conv, weights, x, |kernels, windows, taps, cells, planes| {
            let kernels = ArrayView2::from_shape((planes.len() / cells, taps), kernels).expect("a row an output");
            let windows = ArrayView2::from_shape((taps, cells), windows).expect("a column an output cell");
            let mut planes = ArrayViewMut2::from_shape((planes.len() / cells, cells), planes).expect("as large");
            linalg::general_mat_mul(T::one(), &kernels, &windows, T::zero(), &mut planes);
        }),
        Linear::Dense(dense) => multiply(dense, weights, x),
    }
}

/// Sums a product in sixteen strands, then the strands from the first to the last.
fn dot_in_order(row: &[f32], x: &[f32]) -> f32 {
    let mut strands = [0.0; 16];
    let (row_chunks, row_rest) = row.as_chunks::<16>();
    let (x_chunks, x_rest) = x.as_chunks::<16>();
    for (weights, values) in row_chunks.iter().zip(x_chunks) {
        for lane in 0..16 {
            strands[lane] += weights[lane] * values[lane];
        }
    }
    let rest: f32 = row_rest.iter().zip(x_rest).map(|(weight, value)| weight * value).sum();
    strands.iter().sum::<f32>() + rest
}

fn multiply<T: LinalgScalar>(dense: &Dense, weights: &[T], x: &[T]) -> Vec<T> {
    let matrix = ArrayView2::from_shape((dense.outputs, dense.inputs), weights).expect("lengths were asserted");
    matrix.dot(&ArrayView1::from(x)).into_raw_vec_and_offset().0
}

/// Multiplies, group by group, the kernels (a row an output channel) by the windows (a column an output cell):
/// `multiply` is given both, the number of taps and of cells, and the planes to fill, which hold zeros.
fn convolve<T: LinalgScalar>(
    conv: &Conv,
    weights: &[T],
    x: &[T],
    multiply: impl Fn(&[T], &[T], usize, usize, &mut [T]),
) -> Vec<T> {
    let [channels_in, height, width] = conv.input;
    let [channels_out, rows, columns] = conv.output;
    let cells = rows * columns;
    let (group_in, group_out) = (channels_in / conv.groups, channels_out / conv.groups);
    let taps = group_in * conv.kernel[0] * conv.kernel[1];
    let mut output = vec![T::zero(); channels_out * cells];
    if output.is_empty() || x.is_empty() || taps == 0 {
        return output;
    }
    let images = x.chunks_exact(group_in * height * width);
    let kernels = weights.chunks_exact(group_out * taps);
    for ((image, kernels), planes) in images.zip(kernels).zip(output.chunks_exact_mut(group_out * cells)) {
        multiply(kernels, &windows(conv, image), taps, cells, planes);
    }
    output
}

/// Lays out an image, or one group of its channels, as (channel and tap) x (output cell); cells outside are zero.
fn windows<'a, T: LinalgScalar>(conv: &Conv, image: &'a [T]) -> Cow<'a, [T]> {
    let [_, height, width] = conv.input;
    let [_, rows, columns] = conv.output;
    let [kernel_height, kernel_width] = conv.kernel;
    let one_to_one = conv.kernel == [1, 1] && conv.strides == [1, 1] && conv.pads_before == [0, 0];
    if one_to_one && [rows, columns] == [height, width] {
        return Cow::Borrowed(image);
    }
    let planes = image.chunks_exact(height * width);
    let mut windows = vec![T::zero(); planes.len() * kernel_height * kernel_width * rows * columns];
    let mut tap_rows = windows.chunks_exact_mut(columns);
    for plane in planes {
        for tap_row in 0..kernel_height {
            for tap_column in 0..kernel_width {
                // Output columns [first, end) read inside the image; the others keep their zeros.
                let (first, end, start) = inside(conv, 1, tap_column);
                for row in 0..rows {
                    let target = tap_rows.next().expect("one run of columns a channel, tap and row");
                    let Some(source_row) =
                        (row * conv.strides[0] + tap_row * conv.dilations[0]).checked_sub(conv.pads_before[0])
                    else {
                        continue;
                    };
                    if source_row >= height || first >= end {
                        continue;
                    }
                    let source = &plane[source_row * width + start..(source_row + 1) * width];
                    match conv.strides[1] {
                        1 => target[first..end].copy_from_slice(&source[..end - first]),
                        stride => target[first..end]
                            .iter_mut()
                            .zip(source.iter().step_by(stride))
                            .for_each(|(cell, &value)| *cell = value),
                    }
                }
            }
        }
    }
    Cow::Owned(windows)
}

/// Along an axis, finds the outputs [first, end) whose given tap falls inside the image, and where the first reads.
fn inside(conv: &Conv, axis: usize, tap: usize) -> (usize, usize, usize) {
    let (stride, pad) = (conv.strides[axis], conv.pads_before[axis]);
    let (length, outputs) = (conv.input[axis + 1], conv.output[axis + 1]);
    let offset = tap * conv.dilations[axis];
    let first = pad.saturating_sub(offset).div_ceil(stride).min(outputs);
    // The last inside is the largest o with o * stride + offset - pad <= length - 1.
    let end = (length + pad).saturating_sub(offset).div_ceil(stride).min(outputs);
    let start = (first * stride + offset).saturating_sub(pad).min(length);
    (first, end, start)
}

#[cfg(test)]
mod tests {
    use proptest::collection::vec;
    use proptest::prelude::*;

    use super::*;

    /// The definition, tap by tap: obviously right, and slow.
    fn naive(operator: &Linear, weights: &LayerWeights, codes: &[i32]) -> Vec<i64> {
        let conv = match operator {
            Linear::Conv(conv) => conv.clone(),
            Linear::Dense(dense) => as_conv(dense),
        };
        let [_, height, width] = conv.input;
        let [channels_out, rows, columns] = conv.output;
        let (group_in, group_out) = (conv.input[0] / conv.groups, channels_out / conv.groups);
        let mut output = Vec::new();
        for channel in 0..channels_out {
            for (row, column) in (0..rows).flat_map(|row| (0..columns).map(move |column| (row, column))) {
                let mut sum = weights.bias[channel];
                for input in 0..group_in {
                    for tap in 0..conv.kernel[0] * conv.kernel[1] {
                        let (tap_row, tap_column) = (tap / conv.kernel[1], tap % conv.kernel[1]);
                        let at = |axis: usize, cell: usize, tap: usize| {
                            (cell * conv.strides[axis] + tap * conv.dilations[axis]) as isize
                                - conv.pads_before[axis] as isize
                        };
                        let (y, x) = (at(0, row, tap_row), at(1, column, tap_column));
                        if y < 0 || x < 0 || y >= height as isize || x >= width as isize {
                            continue;
                        }
                        let plane = channel / group_out * group_in + input;
                        let code = codes[(plane * height + y as usize) * width + x as usize];
                        let weight =
                            weights.weights[(channel * group_in + input) * conv.kernel[0] * conv.kernel[1] + tap];
                        sum += i64::from(code) * i64::from(weight);
                    }
                }
                output.push(sum);
            }
        }
        output
    }

    fn as_conv(dense: &Dense) -> Conv {
        Conv {
            input: [dense.inputs, 1, 1],
            output: [dense.outputs, 1, 1],
            kernel: [1, 1],
            strides: [1, 1],
            pads_before: [0, 0],
            dilations: [1, 1],
            groups: 1,
        }
    }

    fn dense(inputs: usize, outputs: usize) -> Linear {
        Linear::Dense(Dense { inputs, outputs })
    }

    /// Convolutions of all kinds: the output is sometimes smaller or larger than what the windows suggest.
    fn convs() -> impl Strategy<Value = Linear> {
        let pair = |range: std::ops::Range<usize>| [range.clone(), range];
        let groups = prop_oneof![Just((1, 3, 2)), Just((2, 2, 1)), Just((4, 1, 1)), Just((3, 1, 2))];
        (groups, pair(1..8), pair(1..7), pair(1..4), pair(1..4), pair(0..4), pair(1..4)).prop_map(
            |((groups, group_in, group_out), size, cells, kernel, strides, pads_before, dilations)| {
                Linear::Conv(Conv {
                    input: [groups * group_in, size[0], size[1]],
                    output: [groups * group_out, cells[0], cells[1]],
                    kernel,
                    strides,
                    pads_before,
                    dilations,
                    groups,
                })
            },
        )
    }

    fn operators() -> impl Strategy<Value = Linear> {
        prop_oneof![3 => convs(), 1 => (1usize..40, 1usize..12).prop_map(|(inputs, outputs)| dense(inputs, outputs))]
    }

    /// An operator with weights, biases and codes of up to the given magnitudes.
    fn layers(weight: i32, code: i32) -> impl Strategy<Value = (Linear, LayerWeights, Vec<i32>)> {
        operators().prop_flat_map(move |operator| {
            let length = |shape: Vec<usize>| shape.iter().product::<usize>();
            let weights = vec(-weight..=weight, length(operator.weight_shape()));
            let bias = vec(-1000i64..1000, operator.output_channels());
            let codes = vec(-code..=code, length(operator.input_shape()));
            (Just(operator), weights, bias, codes)
                .prop_map(|(operator, weights, bias, codes)| (operator, LayerWeights { weights, bias }, codes))
        })
    }

    proptest! {
        #[test]
        fn integers_match_the_definition((operator, weights, codes) in layers(7, 15)) {
            prop_assert_eq!(exact_carrier(&operator, &weights.weights, &codes), Carrier::Single);
            prop_assert_eq!(linear_integers(&operator, &weights, &codes), naive(&operator, &weights, &codes));
        }

        #[test]
        fn wide_integers_match_the_definition((operator, weights, codes) in layers(1 << 14, 1 << 14)) {
            prop_assert_eq!(linear_integers(&operator, &weights, &codes), naive(&operator, &weights, &codes));
        }

        #[test]
        fn every_carrier_gives_the_same_integers((operator, weights, codes) in layers(127, 255)) {
            let single = through(&operator, &weights.weights, &codes, |code| code as f32, |sum| sum as i64);
            let double = through(&operator, &weights.weights, &codes, f64::from, |sum| sum as i64);
            let integer =
                through(&operator, &weights.weights, &codes, |code| Wrapping(i64::from(code)), |sum| sum.0);
            prop_assert_eq!(&single, &integer);
            prop_assert_eq!(&double, &integer);
        }

        #[test]
        fn floats_that_are_integers_match_the_integers((operator, weights, codes) in layers(7, 15)) {
            let real = |codes: &[i32]| codes.iter().map(|&code| code as f32).collect::<Vec<_>>();
            let bias: Vec<f32> = weights.bias.iter().map(|&bias| bias as f32).collect();
            let floats = linear_floats(&operator, &real(&weights.weights), &bias, &real(&codes));
            let integers: Vec<f32> = naive(&operator, &weights, &codes).iter().map(|&sum| sum as f32).collect();
            prop_assert_eq!(floats, integers);
        }
    }

    #[test]
    fn sums_from_2_to_the_24_on_take_double_precision() {
        let operator = dense(2, 1);
        let sum_of = |weights: [i32; 2], codes: [i32; 2]| {
            let layer = LayerWeights { weights: weights.to_vec(), bias: vec![0] };
            (exact_carrier(&operator, &weights, &codes), linear_integers(&operator, &layer, &codes)[0])
        };
        assert_eq!(sum_of([(1 << 24) - 2, 1], [1, 1]), (Carrier::Single, (1 << 24) - 1));
        assert_eq!(sum_of([1 << 24, 1], [1, 1]), (Carrier::Double, (1 << 24) + 1));
        assert_eq!(sum_of([-(1 << 24), -1], [1, 1]), (Carrier::Double, -(1 << 24) - 1));
        assert_eq!(sum_of([i32::MIN, 1], [0, 0]), (Carrier::Single, 0));
    }

    #[test]
    fn sums_from_2_to_the_53_on_stay_integers() {
        let operator = dense(3, 1);
        let codes = [i32::MIN, i32::MIN, 1];
        let layer = LayerWeights { weights: vec![i32::MIN, i32::MAX, 1], bias: vec![-5] };
        assert_eq!(exact_carrier(&operator, &layer.weights, &codes), Carrier::Integer);
        assert_eq!(linear_integers(&operator, &layer, &codes), [(1i64 << 31) + 1 - 5]);
    }

    #[test]
    fn a_partial_sum_may_leave_64_bits_if_the_total_does_not() {
        let operator = dense(3, 1);
        let layer = LayerWeights { weights: vec![i32::MIN; 3], bias: vec![-(1 << 62)] };
        // 2^62 + 2^62 is past the largest i64; the last product and the bias bring it back.
        let sums = linear_integers(&operator, &layer, &[i32::MIN, i32::MIN, i32::MAX]);
        assert_eq!(sums, [1i64 << 31]);
    }

    #[test]
    #[should_panic(expected = "inputs of a Gemm")]
    fn an_input_of_another_length_is_a_bug() {
        linear_floats(&dense(3, 1), &[1.0; 3], &[0.0], &[1.0; 2]);
    }
}
