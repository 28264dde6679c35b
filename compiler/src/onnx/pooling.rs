//! Pooling: what takes the largest or the mean of a window, or of a whole channel.

use chococ_plans::check::meaning::LARGEST_KERNEL;
use chococ_plans::op::{Arithmetic, ClientOp, Function, Pool, Reduction};
use tract_onnx::prelude::{OutletId, TypedNode};
use tract_onnx::tract_core::ops::binary::TypedBinOp;
use tract_onnx::tract_core::ops::cnn::{MaxPool, PoolSpec, SumPool};
use tract_onnx::tract_core::ops::nn::{Reduce, Reducer};

use super::layers::Windows;
use super::lower::{Lowering, Value};
use super::nodes::attribute;
use super::reason::Reason;
use crate::graph::Op;

impl Lowering<'_> {
    /// Translates a max pooling.
    pub(super) fn max_pool(&mut self, node: &TypedNode, pool: &MaxPool, view: Vec<usize>) -> Result<Value, Reason> {
        let (pool, windows) = self.pool(node.inputs[0], &pool.pool_spec)?;
        self.add_node(node, &node.inputs, Op::Client(ClientOp::MaxPool(pool)), windows.pooled(), view)
    }

    /// Translates an average pooling.
    pub(super) fn average_pool(&mut self, node: &TypedNode, pool: &SumPool, view: Vec<usize>) -> Result<Value, Reason> {
        if !pool.normalize {
            return Err(Reason::Operator);
        }
        let count_include_pad = pool.count_include_pad;
        let (pool, windows) = self.pool(node.inputs[0], &pool.pool_spec)?;
        if count_include_pad && !(0..2).all(|axis| windows.counts_even_padding(axis)) {
            return Err(Reason::UnevenPadding { pads: windows.pads() });
        }
        let op = Op::Client(ClientOp::AveragePool { pool, count_include_pad });
        self.add_node(node, &node.inputs, op, windows.pooled(), view)
    }

    fn pool(&mut self, reads: OutletId, spec: &PoolSpec) -> Result<(Pool, Windows), Reason> {
        let windows = self.windows(reads, spec)?;
        if windows.dilations != [1, 1] {
            return Err(Reason::Attribute {
                attribute: "dilations".into(),
                found: format!("{:?}", windows.dilations),
                needed: "only [1, 1] is".into(),
            });
        }
        if !(0..2).all(|axis| windows.meet_the_image(axis)) {
            return Err(windows.refusal());
        }
        let pool = Pool { kernel: windows.kernel, strides: windows.strides, pads_before: windows.pads_before };
        Ok((pool, windows))
    }

    /// Translates the mean or the maximum of each channel.
    ///
    /// tract writes a mean as a sum, then a division by the number of cells; the two are taken together.
    pub(super) fn reduce(&mut self, node: &TypedNode, reduce: &Reduce, view: Vec<usize>) -> Result<Value, Reason> {
        let reads = node.inputs[0];
        let before = self.value(reads)?.view;
        if before.len() != 4 || reduce.axes[..] != [2, 3] || !matches!(reduce.reducer, Reducer::Max | Reducer::Sum) {
            return self.reduce_axes(node, reduce, view);
        }
        let kernel = [before[2], before[3]];
        let op = match reduce.reducer {
            Reducer::Max => ClientOp::MaxPool(Pool { kernel, strides: [1, 1], pads_before: [0, 0] }),
            _ => match self.division_by(node, kernel[0] * kernel[1])? {
                Some(division) => {
                    self.absorbed.insert(division);
                    ClientOp::GlobalAveragePool
                }
                None => return self.reduce_axes(node, reduce, view),
            },
        };
        self.in_own_shape(reads)?;
        self.add(node, &[reads], op, view)
    }

    /// Translates a reduction along any axes but that of the batch.
    fn reduce_axes(&mut self, node: &TypedNode, reduce: &Reduce, view: Vec<usize>) -> Result<Value, Reason> {
        let before = self.value(node.inputs[0])?.view;
        let reduction = match reduce.reducer {
            Reducer::Max => Reduction::Max,
            Reducer::Min => Reduction::Min,
            Reducer::Prod => Reduction::Prod,
            Reducer::Sum => Reduction::Sum,
            _ => return Err(Reason::Operator),
        };
        let rank = self.in_own_shape(node.inputs[0])?.len();
        let batch_axes = before.len() - rank;
        // One image is the sum, and the largest, of a batch of one.
        let mut axes: Vec<usize> =
            reduce.axes.iter().filter(|&&axis| axis >= batch_axes).map(|axis| axis - batch_axes).collect();
        axes.sort_unstable();
        axes.dedup();
        self.add(node, &node.inputs, ClientOp::Reduce { reduction, axes }, view)
    }

    /// Translates a local response normalisation: x / (bias + alpha * m)^beta, where m is the mean of the squares of x in
    /// neighbouring channels, zeros beyond the last ones.
    pub(super) fn local_response(&mut self, node: &TypedNode, view: Vec<usize>) -> Result<Value, Reason> {
        let source = self.source(node)?;
        let float = |name: &str, default: f32| attribute(source, name).map_or(default, |attribute| attribute.f);
        let (alpha, beta, bias) = (float("alpha", 1e-4), float("beta", 0.75), float("bias", 1.0));
        let size = attribute(source, "size").map_or(0, |attribute| attribute.i);
        let refusal = |attribute: &str, found: String, needed: &str| {
            Err(Reason::Attribute { attribute: attribute.into(), found, needed: needed.into() })
        };
        let Some(size) = usize::try_from(size).ok().filter(|size| size % 2 == 1 && *size <= LARGEST_KERNEL) else {
            return refusal("size", size.to_string(), &format!("only odd numbers up to {LARGEST_KERNEL} are"));
        };
        if !(bias > 0.0 && alpha >= 0.0 && [alpha, beta, bias].iter().all(|number| number.is_finite())) {
            return refusal("alpha, bias", format!("{alpha}, {bias}"), "bias must be above 0, and alpha not below");
        }
        let reads = node.inputs[0];
        let shape = self.in_own_shape(reads)?;
        let value = self.value(reads)?;
        let [channels, ref rest @ ..] = shape[..] else { return Err(Reason::Operator) };
        let square = Op::Client(ClientOp::Combine(Arithmetic::Mul));
        let squares = self.behind(node, &[&value, &value], square.clone(), shape.clone());
        // Channels are the height of an image here; powers are what the logarithm makes products.
        let image = vec![1, channels, rest.iter().product()];
        let pool = Pool { kernel: [size, 1], strides: [1, 1], pads_before: [size / 2, 0] };
        let steps = [
            ClientOp::Reshape,
            ClientOp::AveragePool { pool, count_include_pad: true },
            ClientOp::Affine { scale: vec![alpha], shift: vec![bias] },
            ClientOp::Function(Function::Log),
            ClientOp::Affine { scale: vec![-beta], shift: vec![0.0] },
            ClientOp::Function(Function::Exp),
        ];
        let power = steps.into_iter().fold(squares, |value, step| self.after(node, value, step, image.clone()));
        let factors = self.after(node, power, ClientOp::Reshape, shape.clone());
        let result = self.behind(node, &[&value, &factors], square, shape);
        Ok(Value { node: result.node, view, viewed_by: self.name(node) })
    }

    /// Finds the node that divides a sum, and does nothing else with it, by the number of its terms.
    fn division_by(&self, sum: &TypedNode, terms: usize) -> Result<Option<usize>, Reason> {
        let [reader] = sum.outputs[0].successors[..] else { return Ok(None) };
        let outlet = OutletId::new(sum.id, 0);
        let is_answer = self.model.output_outlets().is_ok_and(|outputs| outputs.contains(&outlet));
        let division = &self.model.nodes()[reader.node];
        let Some(TypedBinOp(op, _)) = division.op_as::<TypedBinOp>().filter(|_| !is_answer) else { return Ok(None) };
        let Some(constant) = self.constant(division.inputs[1 - reader.slot])? else { return Ok(None) };
        let factor = match (op.name(), &constant.values[..]) {
            ("Div", [divisor]) if reader.slot == 0 => 1.0 / f64::from(*divisor),
            ("Mul", [factor]) => f64::from(*factor),
            _ => return Ok(None),
        };
        // A reciprocal stored in f32 is off by half a unit in its last place.
        let is_mean = (factor * terms as f64 - 1.0).abs() < f64::from(f32::EPSILON);
        Ok(is_mean.then_some(division.id))
    }
}

impl Windows {
    /// Shape of what a pooling makes.
    fn pooled(&self) -> Vec<usize> {
        vec![self.input[0], self.output[0], self.output[1]]
    }

    /// First cell of the last window, counted from the first cell of the padding.
    fn last_start(&self, axis: usize) -> usize {
        (self.output[axis] - 1) * self.strides[axis]
    }

    /// Says whether no window lies in the padding altogether: such a window has no largest value and no mean.
    fn meet_the_image(&self, axis: usize) -> bool {
        let (pad, length) = (self.pads_before[axis], self.input[axis + 1]);
        self.output[axis] > 0 && self.kernel[axis] > pad && self.last_start(axis) < pad + length
    }

    /// Says whether a divisor that takes the padding behind the image to be as wide as that before it is right.
    fn counts_even_padding(&self, axis: usize) -> bool {
        let image = self.pads_before[axis] + self.input[axis + 1];
        let end = self.last_start(axis) + self.kernel[axis];
        let (before, after) = (self.pads_before[axis], self.pads_after[axis]);
        before == after || (end <= image + before && end <= image + after)
    }
}
