//! Operators that move numbers and change none.

use super::Operand;

/// Where the numbers of a tensor lie that fill `shape`, in its order; an axis of length 1 is repeated.
///
/// # Panics
/// If the ranks differ, or a length is neither 1 nor the one asked for.
pub(super) fn places(operand: Operand<'_>, shape: &[usize]) -> impl Iterator<Item = usize> {
    assert_eq!(operand.shape.len(), shape.len(), "both tensors have as many axes");
    let axes = operand.shape.iter().zip(shape).zip(strides(operand.shape));
    let steps = axes.map(|((&length, &asked), stride)| {
        assert!(length == asked || length == 1, "{:?} does not fill {shape:?}", operand.shape);
        if length == 1 { 0 } else { stride }
    });
    walk(shape.to_vec(), steps.collect(), 0)
}

/// Places from one number to the next along each axis of a row-major tensor.
fn strides(shape: &[usize]) -> Vec<usize> {
    let mut strides = vec![1; shape.len()];
    for axis in (1..shape.len()).rev() {
        strides[axis - 1] = strides[axis] * shape[axis];
    }
    strides
}

/// Lists places from `first` on, the last axis fastest.
fn walk(shape: Vec<usize>, steps: Vec<usize>, first: usize) -> impl Iterator<Item = usize> {
    let mut index = vec![0; shape.len()];
    let mut place = first;
    (0..shape.iter().product()).map(move |_| {
        let here = place;
        for axis in (0..shape.len()).rev() {
            index[axis] += 1;
            place += steps[axis];
            if index[axis] < shape[axis] {
                break;
            }
            index[axis] = 0;
            place -= steps[axis] * shape[axis];
        }
        here
    })
}

/// Puts tensors one behind the other along an axis.
pub(super) fn concat(axis: usize, inputs: &[Operand<'_>]) -> Vec<f32> {
    let first = inputs.first().expect("something is put together").shape;
    let outer: usize = first[..axis].iter().product();
    let run = |input: &Operand<'_>| input.numbers.len() / outer;
    let mut output = Vec::with_capacity(inputs.iter().map(|input| input.numbers.len()).sum());
    for row in 0..outer {
        inputs.iter().for_each(|input| output.extend_from_slice(&input.numbers[row * run(input)..][..run(input)]));
    }
    output
}

/// Takes a stretch of an axis.
pub(super) fn slice(axis: usize, begin: usize, input: Operand<'_>, output_shape: &[usize]) -> Vec<f32> {
    let inner: usize = input.shape[axis + 1..].iter().product();
    let rows = input.numbers.chunks_exact(inner * input.shape[axis]);
    rows.flat_map(|row| &row[begin * inner..][..output_shape[axis] * inner]).copied().collect()
}

/// Puts axes in another order.
pub(super) fn transpose(axes: &[usize], input: Operand<'_>) -> Vec<f32> {
    let strides = strides(input.shape);
    let shape = axes.iter().map(|&axis| input.shape[axis]).collect();
    let steps = axes.iter().map(|&axis| strides[axis]).collect();
    walk(shape, steps, 0).map(|place| input.numbers[place]).collect()
}

/// Puts a number all around.
pub(super) fn pad(before: &[usize], value: f32, input: Operand<'_>, output_shape: &[usize]) -> Vec<f32> {
    let mut output = vec![value; output_shape.iter().product()];
    let strides = strides(output_shape);
    let first = before.iter().zip(&strides).map(|(before, stride)| before * stride).sum();
    for (place, &number) in walk(input.shape.to_vec(), strides, first).zip(input.numbers) {
        output[place] = number;
    }
    output
}

#[cfg(test)]
mod tests {
    use super::*;

    const X: Operand<'_> = Operand { shape: &[2, 3], numbers: &[1.0, 2.0, 3.0, 4.0, 5.0, 6.0] };

    #[test]
    fn numbers_are_moved_where_they_belong() {
        let row = Operand { shape: &[1, 3], numbers: &[7.0, 8.0, 9.0] };
        assert_eq!(concat(0, &[X, row]), [1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0, 8.0, 9.0]);
        let column = Operand { shape: &[2, 1], numbers: &[7.0, 8.0] };
        assert_eq!(concat(1, &[X, column]), [1.0, 2.0, 3.0, 7.0, 4.0, 5.0, 6.0, 8.0]);
        assert_eq!(slice(1, 1, X, &[2, 2]), [2.0, 3.0, 5.0, 6.0]);
        assert_eq!(slice(0, 1, X, &[1, 3]), [4.0, 5.0, 6.0]);
        assert_eq!(transpose(&[1, 0], X), [1.0, 4.0, 2.0, 5.0, 3.0, 6.0]);
        assert_eq!(pad(&[0, 1], -1.0, X, &[3, 4]), [-1.0, 1.0, 2.0, 3.0, -1.0, 4.0, 5.0, 6.0, -1.0, -1.0, -1.0, -1.0]);
        assert_eq!(places(column, &[2, 3]).collect::<Vec<_>>(), [0, 0, 0, 1, 1, 1]);
        assert_eq!(places(row, &[2, 3]).collect::<Vec<_>>(), [0, 1, 2, 0, 1, 2]);
    }
}
