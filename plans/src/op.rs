//! The closed list of operators: linear ones for the server, all others for the client.
//!
//! Tensors have no batch axis: an image is (channels, height, width), a vector is (features).

use serde::{Deserialize, Serialize};

/// A linear operator on integers, without its weights; a server stage evaluates one.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Linear {
    /// A two-dimensional convolution; weights are (out channels, in channels / groups, kernel height, kernel width).
    Conv(Conv),
    /// A matrix times a vector; weights are (outputs, inputs).
    Dense(Dense),
}

/// Shapes of a convolution. All pairs are (vertical, horizontal).
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Conv {
    /// Input channels, height, width.
    pub input: [usize; 3],
    /// Output channels, height, width.
    pub output: [usize; 3],
    /// Kernel height and width.
    pub kernel: [usize; 2],
    /// Distance between neighbouring windows.
    pub strides: [usize; 2],
    /// Zeros above and to the left; those below and to the right follow from the output shape.
    pub pads_before: [usize; 2],
    /// Distance between neighbouring taps of the kernel.
    pub dilations: [usize; 2],
    /// Channel groups; equal to the input channels for a depthwise convolution.
    pub groups: usize,
}

/// Shape of a dense layer.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Dense {
    /// Length of the input vector.
    pub inputs: usize,
    /// Length of the output vector.
    pub outputs: usize,
}

impl Linear {
    /// Shape of the tensor it reads.
    pub fn input_shape(&self) -> Vec<usize> {
        match self {
            Linear::Conv(conv) => conv.input.to_vec(),
            Linear::Dense(dense) => vec![dense.inputs],
        }
    }

    /// Shape of the tensor it writes.
    pub fn output_shape(&self) -> Vec<usize> {
        match self {
            Linear::Conv(conv) => conv.output.to_vec(),
            Linear::Dense(dense) => vec![dense.outputs],
        }
    }

    /// Shape of its weight tensor.
    pub fn weight_shape(&self) -> Vec<usize> {
        match self {
            Linear::Conv(conv) => {
                vec![conv.output[0], conv.input[0] / conv.groups, conv.kernel[0], conv.kernel[1]]
            }
            Linear::Dense(dense) => vec![dense.outputs, dense.inputs],
        }
    }

    /// Output channels: each has one weight scale and one bias.
    pub fn output_channels(&self) -> usize {
        self.output_shape()[0]
    }

    /// Multiplications of one evaluation in the clear, padding included.
    pub fn macs(&self) -> usize {
        let per_channel: usize = self.weight_shape()[1..].iter().product();
        per_channel * self.output_shape().iter().product::<usize>()
    }

    /// ONNX's name for it.
    pub fn kind(&self) -> &'static str {
        match self {
            Linear::Conv(_) => "Conv",
            Linear::Dense(_) => "Gemm",
        }
    }
}

/// An operator that the client computes in the clear, in `f32`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub enum ClientOp {
    /// max(x, 0).
    Relu,
    /// min(max(x, low), high).
    Clip {
        /// Lower bound.
        low: f32,
        /// Upper bound.
        high: f32,
    },
    /// The largest value of each window; padding never wins.
    MaxPool(Pool),
    /// The mean of each window.
    AveragePool {
        /// The windows.
        pool: Pool,
        /// Whether padding counts in the divisor.
        count_include_pad: bool,
    },
    /// The mean of each channel: (channels, height, width) to (channels, 1, 1).
    GlobalAveragePool,
    /// Multiplies and shifts each channel: a batch norm that no linear layer could take in.
    Affine {
        /// One factor a channel.
        scale: Vec<f32>,
        /// One summand a channel, added after the product.
        shift: Vec<f32>,
    },
    /// exp(x) over the sum of exp along one axis.
    Softmax {
        /// The axis, counted without the batch axis.
        axis: usize,
    },
    /// x less the logarithm of the sum of exp along one axis.
    LogSoftmax {
        /// The axis, counted without the batch axis.
        axis: usize,
    },
    /// A function of each number by itself.
    Function(Function),
    /// x where it is positive, elsewhere x times the slope of its channel.
    PRelu {
        /// One slope a channel.
        slopes: Vec<f32>,
    },
    /// Two tensors, number by number; an axis of length 1 meets each place of the other's.
    Combine(Arithmetic),
    /// Tensors one behind the other along one axis.
    Concat {
        /// The axis, counted without the batch axis.
        axis: usize,
    },
    /// A stretch of one axis; its length is that of the step's shape.
    Slice {
        /// The axis, counted without the batch axis.
        axis: usize,
        /// The first place that is kept.
        begin: usize,
    },
    /// The axes in another order.
    Transpose {
        /// Which axis of the input each axis of the output is.
        axes: Vec<usize>,
    },
    /// Numbers all around; how many behind follows from the step's shape.
    Pad {
        /// How many before, for each axis.
        before: Vec<usize>,
        /// The number.
        value: f32,
    },
    /// One number for all that differ along some axes, which then have length 1.
    Reduce {
        /// Which number.
        reduction: Reduction,
        /// The axes, ascending, counted without the batch axis.
        axes: Vec<usize>,
    },
    /// The same numbers in another shape, the one of the step that holds it.
    Reshape,
    /// Numbers that are always the same; it reads nothing.
    Constant {
        /// Row-major, in the shape of the step that holds it.
        values: Vec<f32>,
    },
}

impl ClientOp {
    /// ONNX's name for it.
    pub fn kind(&self) -> &'static str {
        match self {
            ClientOp::Relu => "Relu",
            ClientOp::Clip { .. } => "Clip",
            ClientOp::MaxPool(_) => "MaxPool",
            ClientOp::AveragePool { .. } => "AveragePool",
            ClientOp::GlobalAveragePool => "GlobalAveragePool",
            ClientOp::Affine { .. } => "BatchNormalization",
            ClientOp::Softmax { .. } => "Softmax",
            ClientOp::LogSoftmax { .. } => "LogSoftmax",
            ClientOp::Function(function) => function.kind(),
            ClientOp::PRelu { .. } => "PRelu",
            ClientOp::Combine(arithmetic) => arithmetic.kind(),
            ClientOp::Concat { .. } => "Concat",
            ClientOp::Slice { .. } => "Slice",
            ClientOp::Transpose { .. } => "Transpose",
            ClientOp::Pad { .. } => "Pad",
            ClientOp::Reduce { reduction, .. } => reduction.kind(),
            ClientOp::Reshape => "Reshape",
            ClientOp::Constant { .. } => "Constant",
        }
    }
}

/// A function of one number, as ONNX defines it.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[expect(missing_docs, reason = "ONNX's names, each with its own parameters")]
pub enum Function {
    Abs,
    Ceil,
    Celu {
        alpha: f32,
    },
    Elu {
        alpha: f32,
    },
    Erf,
    Exp,
    Floor,
    /// With the hyperbolic tangent in place of the error function, if `approximate`.
    Gelu {
        approximate: bool,
    },
    HardSigmoid {
        alpha: f32,
        beta: f32,
    },
    HardSwish,
    LeakyRelu {
        alpha: f32,
    },
    Log,
    Mish,
    Neg,
    Reciprocal,
    Round,
    Selu {
        alpha: f32,
        gamma: f32,
    },
    Sigmoid,
    Sign,
    Softplus,
    Softsign,
    Sqrt,
    Swish {
        alpha: f32,
    },
    Tanh,
    ThresholdedRelu {
        alpha: f32,
    },
}

impl Function {
    /// ONNX's name for it.
    pub fn kind(&self) -> &'static str {
        match self {
            Function::Abs => "Abs",
            Function::Ceil => "Ceil",
            Function::Celu { .. } => "Celu",
            Function::Elu { .. } => "Elu",
            Function::Erf => "Erf",
            Function::Exp => "Exp",
            Function::Floor => "Floor",
            Function::Gelu { .. } => "Gelu",
            Function::HardSigmoid { .. } => "HardSigmoid",
            Function::HardSwish => "HardSwish",
            Function::LeakyRelu { .. } => "LeakyRelu",
            Function::Log => "Log",
            Function::Mish => "Mish",
            Function::Neg => "Neg",
            Function::Reciprocal => "Reciprocal",
            Function::Round => "Round",
            Function::Selu { .. } => "Selu",
            Function::Sigmoid => "Sigmoid",
            Function::Sign => "Sign",
            Function::Softplus => "Softplus",
            Function::Softsign => "Softsign",
            Function::Sqrt => "Sqrt",
            Function::Swish { .. } => "Swish",
            Function::Tanh => "Tanh",
            Function::ThresholdedRelu { .. } => "ThresholdedRelu",
        }
    }

    /// Its parameters.
    pub fn parameters(&self) -> Vec<f32> {
        match *self {
            Function::Celu { alpha }
            | Function::Elu { alpha }
            | Function::LeakyRelu { alpha }
            | Function::Swish { alpha }
            | Function::ThresholdedRelu { alpha } => vec![alpha],
            Function::HardSigmoid { alpha, beta } => vec![alpha, beta],
            Function::Selu { alpha, gamma } => vec![alpha, gamma],
            Function::Abs
            | Function::Ceil
            | Function::Erf
            | Function::Exp
            | Function::Floor
            | Function::Gelu { .. }
            | Function::HardSwish
            | Function::Log
            | Function::Mish
            | Function::Neg
            | Function::Reciprocal
            | Function::Round
            | Function::Sigmoid
            | Function::Sign
            | Function::Softplus
            | Function::Softsign
            | Function::Sqrt
            | Function::Tanh => Vec::new(),
        }
    }
}

/// What becomes of two numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[expect(missing_docs, reason = "ONNX's names")]
pub enum Arithmetic {
    Add,
    Sub,
    Mul,
    Div,
    Max,
    Min,
}

impl Arithmetic {
    /// ONNX's name for it.
    pub fn kind(self) -> &'static str {
        match self {
            Arithmetic::Add => "Add",
            Arithmetic::Sub => "Sub",
            Arithmetic::Mul => "Mul",
            Arithmetic::Div => "Div",
            Arithmetic::Max => "Max",
            Arithmetic::Min => "Min",
        }
    }
}

/// What becomes of many numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[expect(missing_docs, reason = "ONNX's names")]
pub enum Reduction {
    Max,
    Min,
    Prod,
    Sum,
}

impl Reduction {
    /// ONNX's name for it.
    pub fn kind(self) -> &'static str {
        match self {
            Reduction::Max => "ReduceMax",
            Reduction::Min => "ReduceMin",
            Reduction::Prod => "ReduceProd",
            Reduction::Sum => "ReduceSum",
        }
    }
}

/// The windows of a pooling operator. All pairs are (vertical, horizontal).
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Pool {
    /// Window height and width.
    pub kernel: [usize; 2],
    /// Distance between neighbouring windows.
    pub strides: [usize; 2],
    /// Cells above and to the left of the image; those below and to the right follow from the output shape.
    pub pads_before: [usize; 2],
}
