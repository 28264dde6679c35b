//! Checks what a plan computes: values, shapes, numbers. After this, its meaning can be evaluated without surprises.

use std::collections::{BTreeMap, BTreeSet};

use crate::check::{PlanError, client};
use crate::network::{LinearLayer, ValueId};
use crate::op::{Conv, Linear};
use crate::plan::{Plan, Quantization, Stage};

/// Elements that a tensor, of activations or weights, may have: the 103 million weights of VGG16's largest layer fit.
pub const LARGEST_TENSOR: usize = 1 << 27;

/// Axes that a tensor may have, beside that of the batch.
pub const MOST_AXES: usize = 4;

/// A dimension, stride, pad or dilation that no product with another overflows.
pub(super) const LARGEST_SIZE: usize = 1 << 20;

/// Taps of a kernel, each of which is a rotation, and phases of an image.
pub const LARGEST_KERNEL: usize = 1 << 10;

/// Bits that a code, and a range of accumulators, may take.
const LARGEST_CODE: i32 = 1 << 16;
const LARGEST_RANGE: i64 = 1 << 40;

pub(super) fn check(plan: &Plan) -> Result<(), PlanError> {
    tensor("input", &plan.input_shape)?;
    let widths = [plan.quantization.activation_bits, plan.quantization.weight_bits];
    if widths.iter().any(|bits| !(2..=8).contains(bits)) {
        let problem = format!("{} activation bits and {} weight bits are not within 2..=8", widths[0], widths[1]);
        return Err(PlanError::Operator { stage: "quantization".to_owned(), problem });
    }
    let mut shapes = BTreeMap::from([(ValueId(0), plan.input_shape.clone())]);
    let mut layers = BTreeSet::new();
    for stage in &plan.stages {
        match stage {
            Stage::Client(steps) => {
                for step in steps {
                    let stage = format!("step `{}`", step.name);
                    let inputs: Vec<Vec<usize>> =
                        step.inputs.iter().map(|&input| read(&stage, &shapes, input)).collect::<Result<_, _>>()?;
                    tensor(&stage, &step.shape)?;
                    client::check(step, &inputs)
                        .map_err(|problem| PlanError::Operator { stage: stage.clone(), problem })?;
                    define(&stage, &mut shapes, step.output, step.shape.clone())?;
                }
            }
            Stage::Server(server) => {
                let layer = &server.layer;
                let stage = format!("stage `{}`", layer.name);
                let input = read(&stage, &shapes, layer.input)?;
                let wrong = |problem| PlanError::Operator { stage: stage.clone(), problem };
                if !layers.insert(layer.name.as_str()) {
                    return Err(wrong("its name occurs twice".to_owned()));
                }
                linear_layer(layer, &input).map_err(wrong)?;
                bits(layer, &plan.quantization).map_err(wrong)?;
                define(&stage, &mut shapes, layer.output, layer.operator.output_shape())?;
            }
        }
    }
    read("output", &shapes, plan.output).map(|_| ())
}

fn tensor(what: &str, shape: &[usize]) -> Result<(), PlanError> {
    let elements = shape.iter().try_fold(1usize, |product, &size| product.checked_mul(size));
    match elements {
        Some(1..=LARGEST_TENSOR) if (1..=MOST_AXES).contains(&shape.len()) => Ok(()),
        _ => Err(PlanError::Shape { what: what.to_owned(), shape: shape.to_vec() }),
    }
}

fn read(stage: &str, shapes: &BTreeMap<ValueId, Vec<usize>>, value: ValueId) -> Result<Vec<usize>, PlanError> {
    let problem = "is read before it is defined";
    shapes.get(&value).cloned().ok_or(PlanError::Value { stage: stage.to_owned(), value: value.0, problem })
}

fn define(
    stage: &str,
    shapes: &mut BTreeMap<ValueId, Vec<usize>>,
    value: ValueId,
    shape: Vec<usize>,
) -> Result<(), PlanError> {
    tensor(stage, &shape)?;
    match shapes.insert(value, shape) {
        None => Ok(()),
        Some(_) => Err(PlanError::Value { stage: stage.to_owned(), value: value.0, problem: "is defined twice" }),
    }
}

fn linear_layer(layer: &LinearLayer, input: &[usize]) -> Result<(), String> {
    if layer.operator.input_shape() != input {
        return Err(format!("it takes {:?}, the value is {input:?}", layer.operator.input_shape()));
    }
    match &layer.operator {
        Linear::Conv(conv) => convolution(conv)?,
        Linear::Dense(dense) if dense.inputs > 0 && dense.outputs > 0 => {}
        Linear::Dense(dense) => return Err(format!("{} inputs and {} outputs", dense.inputs, dense.outputs)),
    }
    let weights = layer.operator.weight_shape().iter().try_fold(1usize, |product, &size| product.checked_mul(size));
    if weights.is_none_or(|weights| weights > LARGEST_TENSOR) {
        return Err("too many weights".to_owned());
    }
    let quantizer = &layer.quantizer;
    let codes = -LARGEST_CODE <= quantizer.low && quantizer.low <= 0 && 0 <= quantizer.high;
    if !codes || quantizer.high > LARGEST_CODE || quantizer.low == quantizer.high {
        return Err(format!("codes from {} to {}", quantizer.low, quantizer.high));
    }
    if !(2..=8).contains(&layer.weight_bits) {
        return Err(format!("weights of {} bits", layer.weight_bits));
    }
    let channels = layer.operator.output_channels();
    if layer.output_scales.len() != channels || layer.output_ranges.len() != channels {
        return Err(format!("scales or ranges are not one for each of {channels} output channels"));
    }
    let scales = layer.output_scales.iter().chain([&quantizer.scale]);
    if let Some(scale) = scales.into_iter().find(|scale| !(scale.is_finite() && **scale > 0.0)) {
        return Err(format!("a scale of {scale}"));
    }
    let bounded = |n: &i64| n.unsigned_abs() <= LARGEST_RANGE.unsigned_abs();
    match layer.output_ranges.iter().find(|(low, high)| low > high || !bounded(low) || !bounded(high)) {
        Some(range) => Err(format!("a range of {range:?}")),
        None => Ok(()),
    }
}

/// A layer has the bits that the plan says its network was quantised to.
fn bits(layer: &LinearLayer, quantization: &Quantization) -> Result<(), String> {
    let values = layer.quantizer.high.abs_diff(layer.quantizer.low);
    if values >> quantization.activation_bits != 0 || layer.weight_bits != quantization.weight_bits {
        return Err(format!(
            "codes from {} to {} and weights of {} bits, where the plan says {} and {} bits",
            layer.quantizer.low,
            layer.quantizer.high,
            layer.weight_bits,
            quantization.activation_bits,
            quantization.weight_bits
        ));
    }
    Ok(())
}

fn convolution(conv: &Conv) -> Result<(), String> {
    let sizes = [&conv.input[..], &conv.output, &conv.kernel, &conv.strides, &conv.dilations, &[conv.groups]].concat();
    if sizes.iter().any(|n| !(1..=LARGEST_SIZE).contains(n)) || conv.pads_before.iter().any(|&n| n > LARGEST_SIZE) {
        return Err("a size is zero or too large".to_owned());
    }
    if [conv.kernel, conv.strides].iter().any(|[vertical, horizontal]| vertical * horizontal > LARGEST_KERNEL) {
        return Err(format!("a kernel of {:?} with strides {:?} is too large", conv.kernel, conv.strides));
    }
    if !conv.input[0].is_multiple_of(conv.groups) || !conv.output[0].is_multiple_of(conv.groups) {
        return Err(format!("{} groups do not divide its channels", conv.groups));
    }
    for axis in 0..2 {
        let (size, out) = (conv.input[axis + 1], conv.output[axis + 1]);
        let reach = conv.dilations[axis] * conv.kernel[axis];
        let last = (out - 1) * conv.strides[axis];
        if reach > LARGEST_SIZE || last > LARGEST_SIZE {
            return Err(format!("{out} outputs from {size} inputs along axis {axis}"));
        }
    }
    Ok(())
}
