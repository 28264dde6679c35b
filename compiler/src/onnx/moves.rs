//! Operators that move numbers: slices, concatenation, padding, axes in another order.

use chococ_plans::op::ClientOp;
use tract_onnx::prelude::TypedNode;
use tract_onnx::tract_core::ops::array::{Pad, PadMode, Slice, StridedSlice, TypedConcat};
use tract_onnx::tract_core::ops::change_axes::AxisOp;

use super::lower::{Lowering, MOST_AXES, Value};
use super::reason::Reason;
use crate::graph::Op;

impl Lowering<'_> {
    /// Translates a concatenation.
    pub(super) fn concat(&mut self, node: &TypedNode, concat: &TypedConcat, view: Vec<usize>) -> Result<Value, Reason> {
        let mut shapes = Vec::new();
        for &input in &node.inputs {
            shapes.push(self.operand(node, input)?);
        }
        let axis = self.own_axis(concat.axis, &view, shapes.first().map_or(0, Vec::len))?;
        self.add(node, &node.inputs, ClientOp::Concat { axis }, view)
    }

    /// Translates a slice; one that takes all is none.
    pub(super) fn slice(&mut self, node: &TypedNode, slice: &Slice, view: Vec<usize>) -> Result<Value, Reason> {
        let begin = slice.start.to_i64().ok().and_then(|begin| usize::try_from(begin).ok());
        let begin = begin.ok_or_else(|| Reason::Shape { message: "its beginning is not fixed".into() })?;
        self.slices(node, &[(slice.axis, begin)], view)
    }

    /// Translates slices of several axes, whose bounds are constants.
    pub(super) fn strided_slice(
        &mut self,
        node: &TypedNode,
        slice: &StridedSlice,
        view: Vec<usize>,
    ) -> Result<Value, Reason> {
        let before = self.value(node.inputs[0])?.view;
        let integers = |slot: usize| -> Result<Vec<i64>, Reason> {
            let tensor = || self.model.outlet_label(node.inputs[slot]).unwrap_or("a bound").to_string();
            let constant = self.constant(node.inputs[slot])?.ok_or_else(|| Reason::NotConstant { tensor: tensor() })?;
            Ok(constant.values.into_iter().map(|number| number as i64).collect())
        };
        let begins = integers(1)?;
        let axes = match slice.optional_axes_input {
            Some(slot) => integers(slot)?,
            None => (0..begins.len() as i64).collect(),
        };
        if let Some(slot) = slice.optional_steps_input {
            let steps = integers(slot)?;
            if steps.iter().any(|&step| step != 1) {
                let needed = "only steps of 1 are".into();
                return Err(Reason::Attribute { attribute: "steps".into(), found: format!("{steps:?}"), needed });
            }
        }
        let within =
            |number: i64, length: usize| if number < 0 { number.saturating_add(length as i64) } else { number };
        let place = |(&axis, &begin): (&i64, &i64)| {
            let axis = usize::try_from(within(axis, before.len())).ok().filter(|&axis| axis < before.len())?;
            let begin = within(begin, before[axis]).clamp(0, before[axis] as i64) as usize;
            Some((axis, begin))
        };
        let slices: Option<Vec<(usize, usize)>> = axes.iter().zip(&begins).map(place).collect();
        self.slices(node, &slices.ok_or(Reason::Operator)?, view)
    }

    /// Takes from each axis of a list the part of the length that the result has, from a first place on.
    fn slices(&mut self, node: &TypedNode, slices: &[(usize, usize)], view: Vec<usize>) -> Result<Value, Reason> {
        let before = self.value(node.inputs[0])?.view;
        if before == view {
            return self.passed_on(node, view);
        }
        let mut shape = self.in_own_shape(node.inputs[0])?;
        let rank = shape.len();
        let mut value = self.value(node.inputs[0])?;
        for &(axis, begin) in slices.iter().filter(|&&(axis, _)| view[axis] != before[axis]) {
            let own = self.own_axis(axis, &before, rank)?;
            shape[own] = view[axis];
            value = self.after(node, value, ClientOp::Slice { axis: own, begin }, shape.clone());
        }
        Ok(Value { view, ..value })
    }

    /// Translates a padding with one number.
    pub(super) fn pad(&mut self, node: &TypedNode, pad: &Pad, view: Vec<usize>) -> Result<Value, Reason> {
        let PadMode::Constant(value) = &pad.mode else {
            let needed = "only `constant` is".into();
            return Err(Reason::Attribute { attribute: "mode".into(), found: "reflect or edge".into(), needed });
        };
        let value = value.cast_to_scalar::<f32>().map_err(|error| Reason::Shape { message: error.to_string() })?;
        if !value.is_finite() {
            return Err(Reason::NotFinite);
        }
        let rank = self.in_own_shape(node.inputs[0])?.len();
        let batch_axes = pad.pads.len() - rank;
        if pad.pads[..batch_axes].iter().any(|&pads| pads != (0, 0)) {
            return Err(Reason::BatchLost { shape: view });
        }
        let before = pad.pads[batch_axes..].iter().map(|&(before, _)| before).collect();
        self.add(node, &node.inputs, ClientOp::Pad { before, value }, view)
    }

    /// Translates a change of axes: of the shape alone, or of the order of the numbers.
    pub(super) fn change_axes(&mut self, node: &TypedNode, axes: &AxisOp, view: Vec<usize>) -> Result<Value, Reason> {
        let AxisOp::Move(from, to) = *axes else { return self.passed_on(node, view) };
        let before = self.value(node.inputs[0])?.view;
        let crossed = &before[from.min(to)..=from.max(to)];
        let moved_over = if from < to { &crossed[1..] } else { &crossed[..crossed.len() - 1] };
        if before[from] == 1 || moved_over.iter().all(|&length| length == 1) {
            return self.passed_on(node, view);
        }
        let mut order: Vec<usize> = (0..before.len()).collect();
        let axis = order.remove(from);
        order.insert(to, axis);
        if before.len() > MOST_AXES + 1 {
            return self.move_one(node, (from, to), &before, view);
        }
        let rank = self.in_own_shape(node.inputs[0])?.len();
        let batch_axes = before.len() - rank;
        if order[..batch_axes].iter().copied().ne(0..batch_axes) {
            return Err(Reason::MovesData { from: before, to: view });
        }
        let axes = order[batch_axes..].iter().map(|axis| axis - batch_axes).collect();
        self.add(node, &node.inputs, ClientOp::Transpose { axes }, view)
    }

    /// Moves one axis of a tensor that has more than a plan's may have: two neighbouring runs of axes change places.
    fn move_one(
        &mut self,
        node: &TypedNode,
        (from, to): (usize, usize),
        before: &[usize],
        view: Vec<usize>,
    ) -> Result<Value, Reason> {
        let (first, last) = (from.min(to), from.max(to));
        if first == 0 || before[0] != 1 {
            return Err(Reason::MovesData { from: before.to_vec(), to: view });
        }
        let middle = if from < to { first + 1 } else { last };
        let length = |axes: &[usize]| axes.iter().product();
        let runs: [usize; 4] = [
            length(&before[1..first]),
            length(&before[first..middle]),
            length(&before[middle..=last]),
            length(&before[last + 1..]),
        ];
        let value = self.value(node.inputs[0])?;
        self.reshape(node.inputs[0], value, runs.to_vec());
        let op = Op::Client(ClientOp::Transpose { axes: vec![0, 2, 1, 3] });
        self.add_node(node, &node.inputs, op, vec![runs[0], runs[2], runs[1], runs[3]], view)
    }

    /// An axis of tract's among those of a tensor without a batch axis.
    pub(super) fn own_axis(&self, axis: usize, view: &[usize], rank: usize) -> Result<usize, Reason> {
        axis.checked_sub(view.len() - rank).ok_or_else(|| Reason::BatchLost { shape: view.to_vec() })
    }
}
