//! Convolutions and matrix products: what becomes a linear layer.

use chococ_plans::check::meaning::{LARGEST_KERNEL, MOST_AXES};
use chococ_plans::op::{self, ClientOp, Dense, Linear};
use tract_onnx::prelude::{OutletId, TypedNode};
use tract_onnx::tract_core::ops::cnn::{Conv, KernelFormat, PoolSpec};
use tract_onnx::tract_core::ops::einsum::EinSum;
use tract_onnx::tract_core::ops::nn::DataFormat;

use super::lower::{Constant, Lowering, Value};
use super::reason::Reason;
use crate::graph::Op;

/// Where the windows of a convolution or a pooling lie. All pairs are (vertical, horizontal).
pub(super) struct Windows {
    /// Channels, height, width of what they read.
    pub(super) input: [usize; 3],
    /// Height and width of what they define.
    pub(super) output: [usize; 2],
    pub(super) kernel: [usize; 2],
    pub(super) strides: [usize; 2],
    pub(super) dilations: [usize; 2],
    pub(super) pads_before: [usize; 2],
    pub(super) pads_after: [usize; 2],
}

impl Windows {
    /// Top, left, bottom, right, as ONNX writes it.
    pub(super) fn pads(&self) -> [usize; 4] {
        [self.pads_before[0], self.pads_before[1], self.pads_after[0], self.pads_after[1]]
    }

    /// The refusal of windows that do not fit the image.
    pub(super) fn refusal(&self) -> Reason {
        Reason::Window {
            kernel: self.kernel,
            dilations: self.dilations,
            pads: self.pads(),
            image: [self.input[1], self.input[2]],
        }
    }
}

impl Lowering<'_> {
    /// Reads the geometry of windows over an image, and makes the image have three axes: a signal is one of height 1.
    pub(super) fn windows(&mut self, reads: OutletId, spec: &PoolSpec) -> Result<Windows, Reason> {
        let shape = self.in_own_shape(reads)?;
        let axes = spec.kernel_shape.len();
        let (channels, image) = match shape[..] {
            [channels, ref image @ ..] if spec.data_format == DataFormat::NCHW && image.len() == axes => {
                (channels, image)
            }
            _ => return Err(Reason::SpatialAxes { axes: shape.len().saturating_sub(1) }),
        };
        if !(1..=2).contains(&axes) {
            return Err(Reason::SpatialAxes { axes });
        }
        let computed = spec.computed_padding(image);
        // A signal is an image of height 1.
        let pair = |of: &dyn Fn(usize) -> usize, height: usize| match axes {
            1 => [height, of(0)],
            _ => [of(0), of(1)],
        };
        let [height, width] = pair(&|axis| image[axis], 1);
        let kernel = pair(&|axis| spec.kernel_shape[axis], 1);
        let windows = Windows {
            input: [channels, height, width],
            output: pair(&|axis| computed[axis].convoluted, 1),
            kernel,
            strides: pair(&|axis| spec.stride(axis), 1),
            dilations: pair(&|axis| spec.dilation(axis), 1),
            pads_before: pair(&|axis| computed[axis].pad_before, 0),
            pads_after: pair(&|axis| computed[axis].pad_after, 0),
        };
        let input = windows.input;
        let value = self.value(reads)?;
        self.reshape(reads, value, input.to_vec());
        let fits = (0..2).all(|axis| {
            let field = kernel[axis].saturating_sub(1) * windows.dilations[axis] + 1;
            kernel[axis] > 0 && field <= input[axis + 1] + windows.pads_before[axis] + windows.pads_after[axis]
        });
        if !fits {
            return Err(windows.refusal());
        }
        Ok(windows)
    }

    /// Translates a convolution.
    pub(super) fn conv(&mut self, node: &TypedNode, conv: &Conv, view: Vec<usize>) -> Result<Value, Reason> {
        if conv.q_params.is_some() || conv.kernel_fmt != KernelFormat::OIHW {
            return Err(Reason::Operator);
        }
        let windows = self.windows(node.inputs[0], &conv.pool_spec)?;
        let product = |[vertical, horizontal]: [usize; 2]| vertical.saturating_mul(horizontal);
        if product(windows.kernel).max(product(windows.strides)) > LARGEST_KERNEL {
            return Err(windows.refusal());
        }
        let outputs = conv.output_channels();
        for channels in [windows.input[0], outputs] {
            if conv.group == 0 || channels % conv.group != 0 {
                return Err(Reason::Groups { channels, groups: conv.group });
            }
        }
        let weights = self.weights(node.inputs[1])?.values;
        let bias = match self.weights(node.inputs[2])?.values {
            bias if bias.len() == 1 => vec![bias[0]; outputs],
            bias => bias,
        };
        let operator = Linear::Conv(op::Conv {
            input: windows.input,
            output: [outputs, windows.output[0], windows.output[1]],
            kernel: windows.kernel,
            strides: windows.strides,
            pads_before: windows.pads_before,
            dilations: windows.dilations,
            groups: conv.group,
        });
        let shape = operator.output_shape();
        self.add_node(node, &node.inputs[..1], Op::Linear { operator, weights, bias }, shape, view)
    }

    /// Translates a product with one matrix, however its axes lie: of one vector, or of many.
    pub(super) fn product(&mut self, node: &TypedNode, product: &EinSum, view: Vec<usize>) -> Result<Value, Reason> {
        let &[left, right] = &node.inputs[..] else { return Err(Reason::Operator) };
        if product.q_params.is_some() {
            return Err(Reason::Operator);
        }
        let variable = usize::from(self.constant(left)?.is_some());
        let (reads, matrix) = if variable == 0 { (left, right) } else { (right, left) };
        let matrix = self.weights(matrix)?;
        let axes = matrix_axes(product, variable, &self.value(reads)?.view, &matrix)?;
        if !axes.free.is_empty() {
            return self.product_of_many(node, reads, &axes, &matrix, view);
        }
        let weights = axes.matrix_of(&matrix);
        let dense = Dense { inputs: axes.length(&matrix, &axes.summed), outputs: axes.length(&matrix, &axes.kept) };
        let (bias, shape) = (vec![0.0; dense.outputs], vec![dense.outputs]);
        self.flatten(node, reads, dense.inputs)?;
        let operator = Linear::Dense(dense);
        self.add_node(node, &[reads], Op::Linear { operator, weights, bias }, shape, view)
    }

    /// Translates a product of one matrix and many vectors: a convolution with a kernel of one pixel over an image of
    /// height 1, whose columns are the vectors.
    fn product_of_many(
        &mut self,
        node: &TypedNode,
        reads: OutletId,
        axes: &MatrixAxes,
        matrix: &Constant,
        view: Vec<usize>,
    ) -> Result<Value, Reason> {
        let before = self.value(reads)?.view;
        let own = self.in_own_shape(reads)?;
        let batch_axes = before.len() - own.len();
        // The vectors' own axis, or axes, first; then those that tell the vectors apart; then those of length 1.
        let mut order: Vec<usize> = axes.vector.iter().chain(axes.free.iter().map(|(_, axis)| axis)).copied().collect();
        order.extend((0..before.len()).filter(|axis| !order.contains(axis)).collect::<Vec<_>>());
        let order: Vec<usize> =
            order.into_iter().filter(|&axis| axis >= batch_axes).map(|axis| axis - batch_axes).collect();
        let value = self.value(reads)?;
        let value = self.in_order(node, value, &own, order)?;
        let inputs = axes.length(matrix, &axes.summed);
        let outputs = axes.length(matrix, &axes.kept);
        let vectors: Vec<usize> = axes.free.iter().map(|&(_, axis)| before[axis]).collect();
        let columns = vectors.iter().product();
        let value = self.after(node, value, ClientOp::Reshape, vec![inputs, 1, columns]);
        let operator = Linear::Conv(op::Conv {
            input: [inputs, 1, columns],
            output: [outputs, 1, columns],
            kernel: [1, 1],
            strides: [1, 1],
            pads_before: [0, 0],
            dilations: [1, 1],
            groups: 1,
        });
        let (weights, bias) = (axes.matrix_of(matrix), vec![0.0; outputs]);
        let shape = operator.output_shape();
        let value = self.behind(node, &[&value], Op::Linear { operator, weights, bias }, shape);
        // What the result keeps of the matrix stands first now, and belongs wherever the result has it.
        let kept = axes.kept.iter().map(|&axis| matrix.shape[axis]);
        let shape: Vec<usize> = kept.chain(vectors).collect();
        let places: Vec<usize> =
            axes.kept_in_result.iter().copied().chain(axes.free.iter().map(|&(place, _)| place)).collect();
        let mut order: Vec<usize> = (0..places.len()).collect();
        order.sort_by_key(|&axis| places[axis]);
        let value = self.after(node, value, ClientOp::Reshape, shape.clone());
        let value = self.in_order(node, value, &shape, order)?;
        Ok(Value { node: value.node, view, viewed_by: self.name(node) })
    }

    /// Brings a value's axes into another order, if it is another.
    fn in_order(
        &mut self,
        node: &TypedNode,
        value: Value,
        shape: &[usize],
        order: Vec<usize>,
    ) -> Result<Value, Reason> {
        if order.iter().copied().eq(0..shape.len()) {
            return Ok(value);
        }
        if shape.len() > MOST_AXES {
            return Err(Reason::ManyMatrices { shape: shape.to_vec() });
        }
        let moved = order.iter().map(|&axis| shape[axis]).collect();
        Ok(self.after(node, value, ClientOp::Transpose { axes: order }, moved))
    }
}

/// The matrix's axes, by their part in the product.
struct MatrixAxes {
    /// Those summed over, in the order of the vector's axes.
    summed: Vec<usize>,
    /// The vector's axes that are summed over, in the same order.
    vector: Vec<usize>,
    /// Those that the result keeps, in its order.
    kept: Vec<usize>,
    /// Where the result has them.
    kept_in_result: Vec<usize>,
    /// Axes along which there are several vectors: where the result has each, and where the tensor of vectors does.
    free: Vec<(usize, usize)>,
}

/// Sorts the axes of a product of a tensor with a constant, which must be the same for all of it.
fn matrix_axes(product: &EinSum, variable: usize, view: &[usize], matrix: &Constant) -> Result<MatrixAxes, Reason> {
    let refusal = || Reason::ManyMatrices { shape: view.to_vec() };
    let (mut summed, mut kept, mut free) = (Vec::new(), Vec::new(), Vec::new());
    for axis in product.axes.iter_all_axes() {
        let [of_vector, of_matrix, of_result] =
            [&axis.inputs[variable], &axis.inputs[1 - variable], &axis.outputs[0]].map(|positions| positions.to_vec());
        if of_vector.len() > 1 || of_matrix.len() > 1 || of_result.len() > 1 {
            return Err(Reason::Operator);
        }
        match (of_vector.first(), of_matrix.first(), of_result.first()) {
            (Some(&v), Some(&m), None) if view[v] == matrix.shape[m] => summed.push((v, m)),
            (None, Some(&m), Some(&r)) => kept.push((r, m)),
            // A vector repeated for several matrices: more outputs.
            (Some(&v), Some(&m), Some(&r)) if view[v] == 1 => kept.push((r, m)),
            (Some(&v), None, _) if view[v] == 1 => {}
            (Some(&v), None, Some(&r)) => free.push((r, v)),
            (None, Some(&m), None) if matrix.shape[m] == 1 => {}
            (None, None, _) => {}
            _ => return Err(refusal()),
        }
    }
    summed.sort_unstable();
    kept.sort_unstable();
    free.sort_unstable();
    let ((vector, summed), (kept_in_result, kept)) = (summed.into_iter().unzip(), kept.into_iter().unzip());
    Ok(MatrixAxes { summed, vector, kept, kept_in_result, free })
}

impl MatrixAxes {
    fn length(&self, matrix: &Constant, axes: &[usize]) -> usize {
        axes.iter().map(|&axis| matrix.shape[axis]).product()
    }

    /// The numbers of the constant as (outputs, inputs), row-major.
    fn matrix_of(&self, matrix: &Constant) -> Vec<f32> {
        let kept = offsets(&matrix.shape, &self.kept);
        let summed = offsets(&matrix.shape, &self.summed);
        kept.iter().flat_map(|row| summed.iter().map(move |column| matrix.values[row + column])).collect()
    }
}

/// Lists where in a row-major tensor the elements lie that differ along the given axes only, the last axis fastest.
fn offsets(shape: &[usize], axes: &[usize]) -> Vec<usize> {
    axes.iter().fold(vec![0], |offsets, &axis| {
        let stride: usize = shape[axis + 1..].iter().product();
        offsets.iter().flat_map(|offset| (0..shape[axis]).map(move |step| offset + step * stride)).collect()
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn offsets_run_with_the_last_axis_fastest() {
        assert_eq!(offsets(&[2, 3], &[0, 1]), [0, 1, 2, 3, 4, 5]);
        assert_eq!(offsets(&[2, 3], &[1, 0]), [0, 3, 1, 4, 2, 5]);
        assert_eq!(offsets(&[2, 3, 4], &[1]), [0, 4, 8]);
        assert_eq!(offsets(&[2, 3], &[]), [0]);
    }
}
