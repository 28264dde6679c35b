//! Arithmetic with constants, number by number: bias, batch norm, scaling, clipping.

use chococ_plans::op::{Arithmetic, ClientOp};
use tract_onnx::prelude::{OutletId, TypedNode};
use tract_onnx::tract_core::ops::binary::TypedBinOp;

use super::lower::{Constant, Lowering, Value};
use super::reason::Reason;
use crate::graph::Op;

impl Lowering<'_> {
    /// Translates a binary operator.
    ///
    /// With one number a channel on one side, it acts on the numbers where they are: a change of shape before it is put
    /// off until after it. All else is done on tensors in the shapes that tract sees.
    pub(super) fn binary(&mut self, node: &TypedNode, binary: &TypedBinOp, view: Vec<usize>) -> Result<Value, Reason> {
        let &[left, right] = &node.inputs[..] else { return Err(Reason::Operator) };
        if binary.0.name() == "Pow" {
            return self.power(node, view);
        }
        let (reads, constant, is_left) = match (self.constant(left)?, self.constant(right)?) {
            (None, Some(constant)) => (left, constant, false),
            (Some(constant), None) => (right, constant, true),
            _ => return self.combine(node, binary.0.name(), view),
        };
        let name = binary.0.name();
        let op = match self.value(reads)?.view == view {
            false => None,
            true if matches!(name, "Max" | "Min") => clip(name, &constant)?,
            true => match self.per_channel(reads, &constant)? {
                Some(numbers) => affine(name, numbers, is_left)?,
                None => None,
            },
        };
        let Some(op) = op else { return self.combine(node, name, view) };
        let shape = self.shape(self.value(reads)?.node).to_vec();
        self.add_node(node, &[reads], Op::Client(op), shape, view)
    }

    /// Translates a binary operator on two tensors, either of which may be constant.
    fn combine(&mut self, node: &TypedNode, name: &str, view: Vec<usize>) -> Result<Value, Reason> {
        let arithmetic = match name {
            "Add" => Arithmetic::Add,
            "Sub" => Arithmetic::Sub,
            "Mul" => Arithmetic::Mul,
            "Div" => Arithmetic::Div,
            "Max" => Arithmetic::Max,
            "Min" => Arithmetic::Min,
            _ => return Err(Reason::Operator),
        };
        for &input in &node.inputs {
            self.operand(node, input)?;
        }
        self.add(node, &node.inputs, ClientOp::Combine(arithmetic), view)
    }

    /// Reads a constant as one number for each channel of the value that it meets.
    ///
    /// Channels are those of the node that holds the value; if the constant differs inside one of those, the shape
    /// that tract sees is taken on, and its first axis has the channels.
    ///
    /// None if the constant differs inside the channels of either.
    pub(super) fn per_channel(&mut self, reads: OutletId, constant: &Constant) -> Result<Option<Vec<f32>>, Reason> {
        let value = self.value(reads)?;
        let channels = self.shape(value.node).first().copied().unwrap_or(1);
        if let Some(numbers) = channel_numbers(constant, &value.view, channels) {
            return Ok(Some(numbers));
        }
        let shape = self.in_own_shape(reads)?;
        let channels = shape.first().copied().unwrap_or(1);
        Ok(channel_numbers(constant, &value.view, channels))
    }
}

/// Spreads a constant over a tensor of shape `view` and cuts that into `channels` runs of equal length.
///
/// None if the constant differs inside a run.
fn channel_numbers(constant: &Constant, view: &[usize], channels: usize) -> Option<Vec<f32>> {
    if let [number] = constant.values[..] {
        return Some(vec![number; channels]);
    }
    let length: usize = view.iter().product::<usize>() / channels;
    let mut numbers = Vec::with_capacity(channels);
    for (position, number) in spread(constant, view).enumerate() {
        match position % length {
            0 => numbers.push(number),
            _ if numbers.last() != Some(&number) => return None,
            _ => {}
        }
    }
    Some(numbers)
}

/// Lists a constant's numbers, repeated along its axes of length 1, to fill `view`; both have the same rank.
fn spread<'a>(constant: &'a Constant, view: &'a [usize]) -> impl Iterator<Item = f32> + 'a {
    let mut strides = vec![0; view.len()];
    let mut stride = 1;
    for (axis, &dim) in constant.shape.iter().enumerate().rev() {
        strides[axis] = if dim == 1 { 0 } else { stride };
        stride *= dim;
    }
    let mut place = vec![0; view.len()];
    let mut offset = 0;
    (0..view.iter().product()).map(move |_| {
        let number = constant.values[offset];
        for axis in (0..view.len()).rev() {
            place[axis] += 1;
            offset += strides[axis];
            if place[axis] < view[axis] {
                break;
            }
            offset -= strides[axis] * view[axis];
            place[axis] = 0;
        }
        number
    })
}

/// Writes x op constant, or constant op x, as scale * x + shift, if that is what it is.
fn affine(name: &str, numbers: Vec<f32>, constant_is_left: bool) -> Result<Option<ClientOp>, Reason> {
    if numbers.iter().any(|number| !number.is_finite()) {
        return Err(Reason::NotFinite);
    }
    let all = |number: f32| vec![number; numbers.len()];
    let (scale, shift) = match (name, constant_is_left) {
        ("Add", _) => (all(1.0), numbers),
        ("Mul", _) => (numbers.clone(), all(0.0)),
        ("Sub", false) => (all(1.0), numbers.iter().map(|number| -number).collect()),
        ("Sub", true) => (all(-1.0), numbers),
        ("Div", false) if numbers.contains(&0.0) => return Err(Reason::NotFinite),
        ("Div", false) if numbers.iter().any(|number| !(1.0 / number).is_finite()) => return Ok(None),
        ("Div", false) => (numbers.iter().map(|number| 1.0 / number).collect(), all(0.0)),
        _ => return Ok(None),
    };
    Ok(Some(ClientOp::Affine { scale, shift }))
}

/// Writes the larger, or the smaller, of x and a number as a clip with one bound, if there is one number.
fn clip(name: &str, constant: &Constant) -> Result<Option<ClientOp>, Reason> {
    if constant.values.iter().any(|value| value.is_nan()) {
        return Err(Reason::NotFinite);
    }
    let bound = constant.values.first().copied().filter(|first| constant.values.iter().all(|value| value == first));
    // Infinity stands for no bound.
    let Some(bound) = bound.map(|bound| bound.clamp(f32::MIN, f32::MAX)) else { return Ok(None) };
    Ok(Some(match name {
        "Max" => ClientOp::Clip { low: bound, high: f32::MAX },
        _ => ClientOp::Clip { low: f32::MIN, high: bound },
    }))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn constant(shape: &[usize], values: &[f32]) -> Constant {
        Constant { shape: shape.to_vec(), values: values.to_vec() }
    }

    #[test]
    fn one_number_a_channel() {
        let bias = constant(&[1, 2, 1, 1], &[5.0, 6.0]);
        assert_eq!(channel_numbers(&bias, &[1, 2, 2, 2], 2), Some(vec![5.0, 6.0]));
        assert_eq!(channel_numbers(&bias, &[1, 2, 2, 2], 1), None);
        assert_eq!(channel_numbers(&constant(&[1], &[7.0]), &[1, 2, 3], 2), Some(vec![7.0, 7.0]));
    }

    #[test]
    fn a_full_constant_may_still_be_even_inside_channels() {
        let full = constant(&[1, 2, 1, 2], &[5.0, 5.0, 6.0, 6.0]);
        assert_eq!(channel_numbers(&full, &[1, 2, 1, 2], 2), Some(vec![5.0, 6.0]));
        let last_axis = constant(&[1, 1, 1, 2], &[5.0, 6.0]);
        assert_eq!(channel_numbers(&last_axis, &[1, 1, 1, 2], 2), Some(vec![5.0, 6.0]));
        assert_eq!(channel_numbers(&last_axis, &[1, 2, 1, 2], 2), None);
    }
}
