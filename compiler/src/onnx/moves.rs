//! Operators that move numbers: slices, concatenation, padding, axes in another order.

use chococ_plans::check::meaning::MOST_AXES;
use chococ_plans::op::ClientOp;
use tract_onnx::prelude::TypedNode;
use tract_onnx::tract_core::ops::array::{Pad, PadMode, Slice, StridedSlice, TypedConcat};
use tract_onnx::tract_core::ops::change_axes::AxisOp;

use super::constants::LARGEST_TENSOR;
use super::lower::{Lowering, Value};
use super::nodes::attribute;
use super::reason::Reason;
use crate::graph::Op;

/// How often a resizing may repeat a number along an axis.
const MOST_REPEATS: usize = 64;

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
        let mode = |found: &str| {
            let needed = "only `constant` is".into();
            Err(Reason::Attribute { attribute: "mode".into(), found: found.into(), needed })
        };
        let value = match &pad.mode {
            PadMode::Constant(value) => value,
            PadMode::Reflect => return mode("reflect"),
            PadMode::Edge => return mode("edge"),
        };
        // tract reads what is below 0 as a number that wraps.
        if pad.pads.iter().any(|&(before, behind)| before.max(behind) > LARGEST_TENSOR as usize) {
            let needed = "none may be below 0; what cuts is a Slice".into();
            return Err(Reason::Attribute { attribute: "pads".into(), found: "a number below 0".into(), needed });
        }
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

    /// Translates a resizing that repeats every number a whole number of times: by the nearest, enlarging.
    pub(super) fn resize(&mut self, node: &TypedNode, view: Vec<usize>) -> Result<Value, Reason> {
        let before = self.value(node.inputs[0])?.view;
        let times = self.repeats(node, &before, &view)?;
        let own = self.in_own_shape(node.inputs[0])?;
        let batch_axes = before.len() - own.len();
        if times[..batch_axes].iter().any(|&times| times != 1) {
            return Err(Reason::BatchLost { shape: view });
        }
        let mut value = self.value(node.inputs[0])?;
        let mut shape = own;
        for axis in 0..shape.len() {
            let times = times[batch_axes + axis];
            if times > 1 {
                let [outer, inner] = [&shape[..=axis], &shape[axis + 1..]].map(|axes| axes.iter().product());
                let apart = self.after(node, value, ClientOp::Reshape, vec![outer, 1, inner]);
                let concat = Op::Client(ClientOp::Concat { axis: 1 });
                value = self.behind(node, &vec![&apart; times], concat, vec![outer, times, inner]);
                shape[axis] *= times;
            }
        }
        Ok(Value { node: value.node, view, viewed_by: self.name(node) })
    }

    /// How often a resizing repeats the numbers along each axis.
    ///
    /// Coordinate i of the result is i / s, or (i + 1/2) / s - 1/2, in what it reads. The floor of the first and the
    /// nearest integer to the second, which is never halfway between two, are both the whole part of i / s.
    fn repeats(&self, node: &TypedNode, before: &[usize], view: &[usize]) -> Result<Vec<usize>, Reason> {
        let source = self.source(node)?;
        let text = |name: &str, default: &str| {
            attribute(source, name).map_or(default.to_string(), |found| String::from_utf8_lossy(&found.s).into_owned())
        };
        let refusal = |attribute: &str, found: String, needed: &str| {
            Err(Reason::Attribute { attribute: attribute.into(), found, needed: needed.into() })
        };
        if text("mode", "nearest") != "nearest" {
            return refusal("mode", text("mode", "nearest"), "only `nearest` is");
        }
        // Without this attribute, files before opset 11 mean another thing than later ones.
        let coordinates = text("coordinate_transformation_mode", "not given");
        let rounding = text("nearest_mode", "round_prefer_floor");
        match (coordinates.as_str(), rounding.as_str()) {
            ("asymmetric", "floor") | ("half_pixel", "round_prefer_floor" | "round_prefer_ceil") => {}
            ("asymmetric" | "half_pixel", _) => {
                return refusal("nearest_mode", rounding, "`asymmetric` needs `floor`, and `half_pixel` a rounding");
            }
            _ => {
                let needed = "only `asymmetric` and `half_pixel` are";
                return refusal("coordinate_transformation_mode", coordinates, needed);
            }
        }
        if let Some(axes) = attribute(source, "axes") {
            return refusal("axes", format!("{:?}", axes.ints), "all axes must be listed by leaving it out");
        }
        let whole = before.iter().zip(view).all(|(before, after)| after.is_multiple_of(*before));
        let times: Vec<usize> = before.iter().zip(view).map(|(before, after)| after / before).collect();
        let mut asked = false;
        for &input in &node.inputs[1..] {
            let tensor = || self.model.outlet_label(input).unwrap_or("scales").to_string();
            let numbers = self.constant(input)?.ok_or_else(|| Reason::NotConstant { tensor: tensor() })?.values;
            if numbers.len() != before.len() {
                continue;
            }
            let are = |wanted: &[usize]| numbers.iter().zip(wanted).all(|(found, wanted)| *found == *wanted as f32);
            if !whole || !(are(&times) || are(view)) || times.iter().any(|&times| times > MOST_REPEATS) {
                let needed = format!("only whole factors up to {MOST_REPEATS} are");
                return refusal("scales", format!("{numbers:?}"), &needed);
            }
            asked = true;
        }
        if asked { Ok(times) } else { Err(Reason::Operator) }
    }

    /// An axis of tract's among those of a tensor without a batch axis.
    pub(super) fn own_axis(&self, axis: usize, view: &[usize], rank: usize) -> Result<usize, Reason> {
        axis.checked_sub(view.len() - rank).ok_or_else(|| Reason::BatchLost { shape: view.to_vec() })
    }
}
