//! Checks the client's operators: that shapes and numbers belong together.

use crate::check::meaning::LARGEST_SIZE;
use crate::network::ClientStep;
use crate::op::{ClientOp, Pool};

/// Checks one step, given the shapes of what it reads.
pub(super) fn check(step: &ClientStep, inputs: &[Vec<usize>]) -> Result<(), String> {
    let kind = step.op.kind();
    match (&step.op, inputs) {
        (ClientOp::Combine(_), [left, right]) => {
            let fits = left.len() == right.len() && left.len() == step.shape.len();
            let each = |(axis, &length): (usize, &usize)| {
                let [left, right] = [left[axis], right[axis]];
                length == left.max(right) && [left, right].iter().all(|&side| side == 1 || side == length)
            };
            match fits && step.shape.iter().enumerate().all(each) {
                true => Ok(()),
                false => Err(format!("{kind} turns {left:?} and {right:?} into {:?}", step.shape)),
            }
        }
        (ClientOp::Concat { axis }, [first, ..]) => {
            let alike = |shape: &Vec<usize>| {
                shape.len() == first.len()
                    && shape.iter().zip(first).enumerate().all(|(at, (a, b))| at == *axis || a == b)
            };
            let mut joined = first.clone();
            if *axis < first.len() && inputs.iter().all(alike) {
                joined[*axis] = inputs.iter().fold(0, |sum, shape| shape[*axis].saturating_add(sum));
                if joined == step.shape {
                    return Ok(());
                }
            }
            Err(format!("Concat along axis {axis} turns {inputs:?} into {:?}", step.shape))
        }
        (ClientOp::Constant { values }, []) => {
            let holds = values.len() == step.shape.iter().product::<usize>() && values.iter().all(|x| x.is_finite());
            if holds { Ok(()) } else { Err(format!("a constant of {} numbers for {:?}", values.len(), step.shape)) }
        }
        (_, [input]) => of_one(step, input),
        _ => Err(format!("{kind} of {} tensors", inputs.len())),
    }
}

/// Checks a step that reads one tensor.
fn of_one(step: &ClientStep, input: &[usize]) -> Result<(), String> {
    let kind = step.op.kind();
    let becomes = || format!("{kind} turns {input:?} into {:?}", step.shape);
    let same = || if step.shape == input { Ok(()) } else { Err(becomes()) };
    let channels = input.first().copied().unwrap_or(0);
    let each_channel = |what: &str, numbers: &[f32]| match () {
        () if numbers.len() != channels => Err(format!("{} {what} for {channels} channels", numbers.len())),
        () if !numbers.iter().all(|x| x.is_finite()) => Err(format!("one of its {what} is not finite")),
        () => Ok(()),
    };
    match &step.op {
        ClientOp::Relu => same(),
        ClientOp::Clip { low, high } if low <= high => same(),
        ClientOp::Clip { low, high } => Err(format!("clips to [{low}, {high}]")),
        ClientOp::MaxPool(pool) | ClientOp::AveragePool { pool, .. } => windows(pool, input, &step.shape),
        ClientOp::GlobalAveragePool => match (input, step.shape.as_slice()) {
            ([channels, _, _], [out, 1, 1]) if channels == out => Ok(()),
            _ => Err(becomes()),
        },
        ClientOp::Affine { scale, shift } => {
            each_channel("factors", scale)?;
            each_channel("summands", shift)?;
            same()
        }
        ClientOp::PRelu { slopes } => {
            each_channel("slopes", slopes)?;
            same()
        }
        ClientOp::Function(function) => match function.parameters().iter().all(|number| number.is_finite()) {
            true => same(),
            false => Err(format!("a parameter of {kind} is not finite")),
        },
        ClientOp::Softmax { axis } | ClientOp::LogSoftmax { axis } if *axis < input.len() => same(),
        ClientOp::Softmax { axis } | ClientOp::LogSoftmax { axis } => {
            Err(format!("{kind} along axis {axis} of {input:?}"))
        }
        ClientOp::Reshape => match step.shape.iter().product::<usize>() == input.iter().product::<usize>() {
            true => Ok(()),
            false => Err(format!("cannot turn {input:?} into {:?}", step.shape)),
        },
        ClientOp::Slice { axis, begin } => {
            let kept = input.len() == step.shape.len()
                && input.iter().zip(&step.shape).enumerate().all(|(at, (&all, &some))| match at == *axis {
                    true => begin.checked_add(some).is_some_and(|end| end <= all),
                    false => all == some,
                });
            if kept && *axis < input.len() { Ok(()) } else { Err(format!("{} from {begin} on axis {axis}", becomes())) }
        }
        ClientOp::Transpose { axes } => {
            let mut sorted = axes.clone();
            sorted.sort_unstable();
            let moved = sorted.iter().copied().eq(0..input.len())
                && axes.iter().map(|&axis| input[axis]).eq(step.shape.iter().copied());
            if moved { Ok(()) } else { Err(becomes()) }
        }
        ClientOp::Pad { before, value } => {
            let holds = before.len() == input.len()
                && step.shape.len() == input.len()
                && (0..input.len())
                    .all(|axis| before[axis].checked_add(input[axis]).is_some_and(|end| end <= step.shape[axis]));
            if holds && value.is_finite() {
                Ok(())
            } else {
                Err(format!("{} with {value} {before:?} before", becomes()))
            }
        }
        ClientOp::Reduce { axes, .. } => {
            let reduced = axes.is_sorted_by(|a, b| a < b)
                && axes.last().is_none_or(|&last| last < input.len())
                && input.len() == step.shape.len()
                && (0..input.len()).all(|axis| step.shape[axis] == if axes.contains(&axis) { 1 } else { input[axis] });
            if reduced { Ok(()) } else { Err(format!("{} along axes {axes:?}", becomes())) }
        }
        ClientOp::Combine(_) | ClientOp::Concat { .. } | ClientOp::Constant { .. } => {
            Err(format!("{kind} of one tensor"))
        }
    }
}

/// Every window of a pool must hold a pixel.
fn windows(pool: &Pool, input: &[usize], output: &[usize]) -> Result<(), String> {
    let (&[channels, height, width], &[out_channels, out_height, out_width]) = (input, output) else {
        return Err(format!("pooling turns {input:?} into {output:?}"));
    };
    if channels != out_channels {
        return Err(format!("pooling turns {channels} channels into {out_channels}"));
    }
    for (axis, (size, out)) in [(height, out_height), (width, out_width)].into_iter().enumerate() {
        let (kernel, stride, pad) = (pool.kernel[axis], pool.strides[axis], pool.pads_before[axis]);
        let sized = [size, out, kernel, stride].iter().all(|n| (1..=LARGEST_SIZE).contains(n));
        if !sized || pad >= kernel || (out - 1) * stride >= size + pad {
            return Err(format!("windows of {kernel}, stride {stride}, padding {pad} do not cover {size} in {out}"));
        }
    }
    Ok(())
}
