//! One number for many, along axes: sums and their like, and softmax.

use super::Operand;
use super::exponential::{exp, log};
use crate::op::Reduction;

/// Computes exp(x - max) over its sum, which runs in the order of the axis.
pub(super) fn softmax(axis: usize, shape: &[usize], x: &[f32]) -> Vec<f32> {
    let mut output = x.to_vec();
    for line in lines(axis, shape) {
        let largest = largest(x, line.clone());
        let mut sum = 0.0;
        for index in line.clone() {
            output[index] = exp(f64::from(x[index]) - f64::from(largest)) as f32;
            sum += output[index];
        }
        line.for_each(|index| output[index] /= sum);
    }
    output
}

/// Computes x - max less the logarithm of the sum of their exponentials.
pub(super) fn log_softmax(axis: usize, shape: &[usize], x: &[f32]) -> Vec<f32> {
    let mut output = x.to_vec();
    for line in lines(axis, shape) {
        let largest = f64::from(largest(x, line.clone()));
        let sum = line.clone().fold(0.0, |sum, index| sum + exp(f64::from(x[index]) - largest));
        line.for_each(|index| output[index] = (f64::from(x[index]) - largest - log(sum)) as f32);
    }
    output
}

/// The places of each line along an axis.
fn lines(axis: usize, shape: &[usize]) -> impl Iterator<Item = impl Iterator<Item = usize> + Clone> {
    let length = shape[axis];
    let stride: usize = shape[axis + 1..].iter().product();
    let elements: usize = shape.iter().product();
    let firsts = (0..elements).filter(move |index| (index / stride).is_multiple_of(length));
    firsts.map(move |first| (0..length).map(move |step| first + step * stride))
}

fn largest(x: &[f32], line: impl Iterator<Item = usize>) -> f32 {
    line.fold(f32::NEG_INFINITY, |best, index| if x[index] > best { x[index] } else { best })
}

/// Reduces axes to length 1: in the order in which the numbers lie. A NaN never is the largest or the smallest.
pub(super) fn reduce(reduction: Reduction, axes: &[usize], input: Operand<'_>) -> Vec<f32> {
    let (start, step): (f32, fn(f32, f32) -> f32) = match reduction {
        Reduction::Sum => (0.0, |sum, x| sum + x),
        Reduction::Prod => (1.0, |product, x| product * x),
        Reduction::Max => (f32::NEG_INFINITY, |best, x| if x > best { x } else { best }),
        Reduction::Min => (f32::INFINITY, |best, x| if x < best { x } else { best }),
    };
    let kept = |(axis, &length): (usize, &usize)| if axes.contains(&axis) { 1 } else { length };
    let shape: Vec<usize> = input.shape.iter().enumerate().map(kept).collect();
    let mut output = vec![start; shape.iter().product()];
    let places = super::moves::places(Operand { shape: &shape, numbers: &[] }, input.shape);
    places.zip(input.numbers).for_each(|(place, &x)| output[place] = step(output[place], x));
    output
}

#[cfg(test)]
mod tests {
    use proptest::collection::vec;
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn axes_are_reduced() {
        let x = Operand { shape: &[2, 3], numbers: &[1.0, -2.0, 3.0, 4.0, 5.0, 6.0] };
        assert_eq!(reduce(Reduction::Sum, &[1], x), [2.0, 15.0]);
        assert_eq!(reduce(Reduction::Sum, &[0], x), [5.0, 3.0, 9.0]);
        assert_eq!(reduce(Reduction::Max, &[0, 1], x), [6.0]);
        assert_eq!(reduce(Reduction::Min, &[1], x), [-2.0, 4.0]);
        assert_eq!(reduce(Reduction::Prod, &[1], x), [-6.0, 120.0]);
    }

    #[test]
    fn log_softmax_is_the_logarithm_of_softmax() {
        let x = [1.0, 2.0, -3.0, 0.5];
        let logs = log_softmax(0, &[4], &x);
        for (log, probability) in logs.into_iter().zip(softmax(0, &[4], &x)) {
            assert!((log - probability.ln()).abs() < 1e-6);
        }
        assert_eq!(log_softmax(0, &[2], &[0.0, -1000.0]), [0.0, -1000.0]);
    }

    #[test]
    fn softmax_survives_large_inputs() {
        let softmax = |x: &[f32]| softmax(0, &[x.len()], x);
        assert_eq!(softmax(&[1e30, 1e30]), [0.5, 0.5]);
        assert_eq!(softmax(&[0.0, -1000.0, f32::NEG_INFINITY]), [1.0, 0.0, 0.0]);
        assert!(softmax(&[0.0, f32::NAN]).iter().all(|value| value.is_nan()));
    }

    proptest! {
        #[test]
        fn softmax_is_near_its_definition(x in vec(-30.0f32..30.0, 24), axis in 0usize..3) {
            let shape = [2, 3, 4];
            let stride: usize = shape[axis + 1..].iter().product();
            let output = softmax(axis, &shape, &x);
            for index in 0..x.len() {
                let first = index - index / stride % shape[axis] * stride;
                let line = (0..shape[axis]).map(|step| f64::from(x[first + step * stride]));
                let expected = f64::from(x[index]).exp() / line.map(f64::exp).sum::<f64>();
                prop_assert!((f64::from(output[index]) - expected).abs() <= 4e-7 * expected.max(1e-30));
            }
        }
    }
}
