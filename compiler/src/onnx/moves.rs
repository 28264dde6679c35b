//! Operators that move numbers: slices, concatenation, padding, axes in another order.

use chococ_plans::op::ClientOp;
use tract_onnx::prelude::TypedNode;
use tract_onnx::tract_core::ops::array::{Pad, PadMode, Slice, TypedConcat};
use tract_onnx::tract_core::ops::change_axes::AxisOp;

use super::lower::{Lowering, Value};
use super::reason::Reason;

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
        let before = self.value(node.inputs[0])?.view;
        if before == view {
            return self.passed_on(node, view);
        }
        let rank = self.in_own_shape(node.inputs[0])?.len();
        let begin = slice
            .start
            .to_i64()
            .ok()
            .and_then(|begin| usize::try_from(begin).ok())
            .ok_or_else(|| Reason::Shape { message: "its beginning is not fixed".into() })?;
        let axis = self.own_axis(slice.axis, &before, rank)?;
        self.add(node, &node.inputs, ClientOp::Slice { axis, begin }, view)
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
        let rank = self.in_own_shape(node.inputs[0])?.len();
        let batch_axes = before.len() - rank;
        if order[..batch_axes].iter().copied().ne(0..batch_axes) {
            return Err(Reason::MovesData { from: before, to: view });
        }
        let axes = order[batch_axes..].iter().map(|axis| axis - batch_axes).collect();
        self.add(node, &node.inputs, ClientOp::Transpose { axes }, view)
    }

    /// An axis of tract's among those of a tensor without a batch axis.
    pub(super) fn own_axis(&self, axis: usize, view: &[usize], rank: usize) -> Result<usize, Reason> {
        axis.checked_sub(view.len() - rank).ok_or_else(|| Reason::BatchLost { shape: view.to_vec() })
    }
}
