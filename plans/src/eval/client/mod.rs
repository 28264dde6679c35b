//! The client's operators, in `f32`, written for a small device: plain loops, nothing allocated but the output.
//!
//! Every sum runs in the order written here and no product is fused into it, so two machines that follow IEEE 754
//! agree in every bit. That is also why [`exponential`] is our own: the one of a C library differs from the next.

mod exponential;
mod functions;
mod moves;
mod pooling;
mod reduction;

use crate::op::{Arithmetic, ClientOp};

pub use functions::is_never_negative;

/// A tensor that an operator reads.
#[derive(Clone, Copy, Debug)]
pub struct Operand<'a> {
    /// Without a batch axis.
    pub shape: &'a [usize],
    /// Row-major.
    pub numbers: &'a [f32],
}

/// Computes one client operator, given as many tensors as it reads.
///
/// Tensors have no batch axis. Pooling and `GlobalAveragePool` take (channels, height, width); `Affine` and `PRelu` take
/// channels first.
///
/// Where the arithmetic leaves a choice: `Relu` turns a NaN and -0 into +0; `Clip` lets a NaN pass; a NaN never wins a
/// `MaxPool`, a `Max` or a `Min`, and a window with nothing to win is -infinity; `Softmax` of a NaN, or of a +infinity, is
/// NaN.
///
/// # Panics
/// If the tensors, the shape and the operator do not belong together.
pub fn client(op: &ClientOp, inputs: &[Operand<'_>], output_shape: &[usize]) -> Vec<f32> {
    for input in inputs {
        assert_eq!(input.numbers.len(), input.shape.iter().product::<usize>(), "inputs of a {}", op.kind());
    }
    let output = match (op, inputs) {
        (ClientOp::Combine(arithmetic), &[left, right]) => combine(*arithmetic, left, right, output_shape),
        (ClientOp::Concat { axis }, _) => moves::concat(*axis, inputs),
        (ClientOp::Constant { values }, []) => values.clone(),
        (_, &[input]) => of_one(op, input, output_shape),
        _ => panic!("a {} does not read {} tensors", op.kind(), inputs.len()),
    };
    assert_eq!(output.len(), output_shape.iter().product::<usize>(), "outputs of a {}", op.kind());
    output
}

/// Computes an operator that reads one tensor.
fn of_one(op: &ClientOp, input: Operand<'_>, output_shape: &[usize]) -> Vec<f32> {
    let Operand { shape, numbers: x } = input;
    match op {
        ClientOp::Relu => x.iter().map(|&value| if value > 0.0 { value } else { 0.0 }).collect(),
        ClientOp::Clip { low, high } => x.iter().map(|&value| clip(value, *low, *high)).collect(),
        ClientOp::MaxPool(pool) => pooling::max_pool(pool, image(shape), image(output_shape), x),
        ClientOp::AveragePool { pool, count_include_pad } => {
            pooling::average_pool(pool, *count_include_pad, image(shape), image(output_shape), x)
        }
        ClientOp::GlobalAveragePool => pooling::global_average_pool(image(shape), x),
        ClientOp::Affine { scale, shift } => affine(scale, shift, x),
        ClientOp::PRelu { slopes } => p_relu(slopes, x),
        ClientOp::Softmax { axis } => reduction::softmax(*axis, shape, x),
        ClientOp::LogSoftmax { axis } => reduction::log_softmax(*axis, shape, x),
        ClientOp::Function(function) => functions::map(*function, x),
        ClientOp::Reshape => x.to_vec(),
        ClientOp::Slice { axis, begin } => moves::slice(*axis, *begin, input, output_shape),
        ClientOp::Transpose { axes } => moves::transpose(axes, input),
        ClientOp::Pad { before, value } => moves::pad(before, *value, input, output_shape),
        ClientOp::Reduce { reduction, axes } => reduction::reduce(*reduction, axes, input),
        ClientOp::Combine(_) | ClientOp::Concat { .. } | ClientOp::Constant { .. } => {
            panic!("a {} does not read one tensor", op.kind())
        }
    }
}

fn image(shape: &[usize]) -> [usize; 3] {
    shape.try_into().unwrap_or_else(|_| panic!("pooling takes (channels, height, width), not {shape:?}"))
}

fn clip(value: f32, low: f32, high: f32) -> f32 {
    let raised = if value < low { low } else { value };
    if raised > high { high } else { raised }
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

fn p_relu(slopes: &[f32], x: &[f32]) -> Vec<f32> {
    assert!(x.len().is_multiple_of(slopes.len()), "a slope a channel");
    let plane = (x.len() / slopes.len().max(1)).max(1);
    let channels = x.chunks_exact(plane).zip(slopes);
    channels.flat_map(|(channel, slope)| channel.iter().map(move |x| if *x < 0.0 { x * slope } else { *x })).collect()
}

/// Combines two tensors; an axis of length 1 is repeated.
fn combine(arithmetic: Arithmetic, left: Operand<'_>, right: Operand<'_>, output_shape: &[usize]) -> Vec<f32> {
    let pairs = |apply: fn(f32, f32) -> f32| -> Vec<f32> {
        if left.shape == right.shape {
            return left.numbers.iter().zip(right.numbers).map(|(&a, &b)| apply(a, b)).collect();
        }
        let places = moves::places(left, output_shape).zip(moves::places(right, output_shape));
        places.map(|(a, b)| apply(left.numbers[a], right.numbers[b])).collect()
    };
    match arithmetic {
        Arithmetic::Add => pairs(|a, b| a + b),
        Arithmetic::Sub => pairs(|a, b| a - b),
        Arithmetic::Mul => pairs(|a, b| a * b),
        Arithmetic::Div => pairs(|a, b| a / b),
        Arithmetic::Max => pairs(|a, b| if b > a || a.is_nan() { b } else { a }),
        Arithmetic::Min => pairs(|a, b| if b < a || a.is_nan() { b } else { a }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// An operator that reads one tensor.
    fn run(op: &ClientOp, input_shape: &[usize], output_shape: &[usize], x: &[f32]) -> Vec<f32> {
        client(op, &[Operand { shape: input_shape, numbers: x }], output_shape)
    }

    #[test]
    fn relu_and_clip_follow_the_documented_corners() {
        let x = [-1.0, -0.0, 2.0, f32::NAN, f32::INFINITY, f32::NEG_INFINITY];
        let relu = run(&ClientOp::Relu, &[6], &[6], &x);
        assert_eq!(relu, [0.0, 0.0, 2.0, 0.0, f32::INFINITY, 0.0]);
        assert!(relu.iter().all(|value| value.is_sign_positive()));
        let clip = run(&ClientOp::Clip { low: -0.5, high: 6.0 }, &[6], &[6], &x);
        assert_eq!(clip[..3], [-0.5, 0.0, 2.0]);
        assert!(clip[3].is_nan());
        assert_eq!(clip[4..], [6.0, -0.5]);
        let crossed = run(&ClientOp::Clip { low: 3.0, high: 1.0 }, &[1], &[1], &[2.0]);
        assert_eq!(crossed, [1.0], "min(max(x, low), high)");
    }

    #[test]
    fn channels_keep_to_themselves() {
        let x = [1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0, 8.0];
        assert_eq!(run(&ClientOp::GlobalAveragePool, &[2, 2, 2], &[2, 1, 1], &x), [2.5, 6.5]);
        let affine = ClientOp::Affine { scale: vec![2.0, -1.0], shift: vec![0.5, 10.0] };
        let expected = [2.5, 4.5, 6.5, 8.5, 5.0, 4.0, 3.0, 2.0];
        assert_eq!(run(&affine, &[2, 2, 2], &[2, 2, 2], &x), expected);
        assert_eq!(run(&ClientOp::Reshape, &[2, 2, 2], &[8], &x), x);
    }

    #[test]
    fn two_tensors_are_combined_number_by_number() {
        let left = Operand { shape: &[2, 2], numbers: &[1.0, 2.0, 3.0, f32::NAN] };
        let right = Operand { shape: &[2, 1], numbers: &[2.0, 4.0] };
        let combine = |arithmetic| client(&ClientOp::Combine(arithmetic), &[left, right], &[2, 2]);
        assert_eq!(combine(Arithmetic::Add)[..3], [3.0, 4.0, 7.0]);
        assert_eq!(combine(Arithmetic::Sub)[..3], [-1.0, 0.0, -1.0]);
        assert_eq!(combine(Arithmetic::Mul)[..3], [2.0, 4.0, 12.0]);
        assert_eq!(combine(Arithmetic::Div)[..3], [0.5, 1.0, 0.75]);
        assert_eq!(combine(Arithmetic::Max), [2.0, 2.0, 4.0, 4.0], "a NaN never wins");
        assert_eq!(combine(Arithmetic::Min), [1.0, 2.0, 3.0, 4.0]);
        let slopes = ClientOp::PRelu { slopes: vec![0.5, 2.0] };
        assert_eq!(run(&slopes, &[2, 2], &[2, 2], &[-1.0, 1.0, -1.0, 1.0]), [-0.5, 1.0, -2.0, 1.0]);
    }

    #[test]
    #[should_panic(expected = "a Relu does not read 2 tensors")]
    fn an_operator_that_reads_too_much_is_a_bug() {
        let x = Operand { shape: &[1], numbers: &[1.0] };
        client(&ClientOp::Relu, &[x, x], &[1]);
    }

    #[test]
    #[should_panic(expected = "outputs of a Relu")]
    fn a_shape_that_does_not_fit_is_a_bug() {
        run(&ClientOp::Relu, &[2], &[3], &[0.0; 2]);
    }
}
