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
    /// The same numbers in another shape, the one of the step that holds it.
    Reshape,
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
            ClientOp::Reshape => "Reshape",
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
