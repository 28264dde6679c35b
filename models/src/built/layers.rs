//! The shapes of the built networks, layer by layer.

/// A layer, or a block of them; what it reads is what the one before it gives.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Layer {
    /// A square convolution with bias and then a ReLU; padded so that stride 1 keeps the image's size.
    Conv {
        /// Side length of the kernel: odd.
        kernel: usize,
        /// Output channels.
        channels: usize,
        /// Stride in both directions.
        stride: usize,
    },
    /// Two 3 x 3 convolutions, the first with a ReLU, and what they read added to what they give; then a ReLU. Where
    /// the image or the channels change, what they read goes through a 1 x 1 convolution first.
    Residual {
        /// Output channels.
        channels: usize,
        /// Stride of the first convolution.
        stride: usize,
    },
    /// The largest of each 2 x 2 pixels.
    MaxPool,
    /// The mean of each channel.
    GlobalAverage,
    /// A dense layer with bias, and then a ReLU unless it is the last layer.
    Dense {
        /// Outputs.
        units: usize,
    },
}

use Layer::{GlobalAverage, MaxPool};

const fn conv(kernel: usize, channels: usize) -> Layer {
    Layer::Conv { kernel, channels, stride: 1 }
}

/// A convolution that halves the image.
const fn halving(kernel: usize, channels: usize) -> Layer {
    Layer::Conv { kernel, channels, stride: 2 }
}

const fn dense(units: usize) -> Layer {
    Layer::Dense { units }
}

const fn residual(channels: usize, stride: usize) -> Layer {
    Layer::Residual { channels, stride }
}

/// A small SqueezeNet for CIFAR-10: each pair of convolutions squeezes by 1 x 1 and expands by 3 x 3.
///
/// Unlike the original (Iandola et al., "SqueezeNet", 2016), it has no 1 x 1 convolutions beside the 3 x 3 ones, so that it
/// is a chain; as there, the last convolution has a ReLU as well.
pub(super) const SQUEEZENET: &[Layer] = &[
    conv(3, 64),
    MaxPool,
    conv(1, 32),
    conv(3, 128),
    conv(1, 32),
    conv(3, 128),
    MaxPool,
    conv(1, 32),
    conv(3, 256),
    conv(1, 32),
    conv(3, 256),
    conv(1, 10),
    GlobalAverage,
];

/// ResNet-20 for CIFAR-10 (He et al., "Deep Residual Learning", 2016, section 4.2), without its additions.
pub(super) const RESNET20_CHAIN: &[Layer] = &[
    conv(3, 16),
    conv(3, 16),
    conv(3, 16),
    conv(3, 16),
    conv(3, 16),
    conv(3, 16),
    conv(3, 16),
    halving(3, 32),
    conv(3, 32),
    conv(3, 32),
    conv(3, 32),
    conv(3, 32),
    conv(3, 32),
    halving(3, 64),
    conv(3, 64),
    conv(3, 64),
    conv(3, 64),
    conv(3, 64),
    conv(3, 64),
    GlobalAverage,
    dense(10),
];

/// ResNet-20 for CIFAR-10 (He et al., "Deep Residual Learning", 2016, section 4.2); its batch norms are folded. Where
/// blocks change shape, a 1 x 1 convolution leads around them (there: option B).
pub(super) const RESNET20: &[Layer] = &[
    conv(3, 16),
    residual(16, 1),
    residual(16, 1),
    residual(16, 1),
    residual(32, 2),
    residual(32, 1),
    residual(32, 1),
    residual(64, 2),
    residual(64, 1),
    residual(64, 1),
    GlobalAverage,
    dense(10),
];

/// VGG16 (Simonyan and Zisserman, 2015, column D) for CIFAR-10: a fifth pool leaves 512 numbers for the dense layers.
pub(super) const VGG16: &[Layer] = &[
    conv(3, 64),
    conv(3, 64),
    MaxPool,
    conv(3, 128),
    conv(3, 128),
    MaxPool,
    conv(3, 256),
    conv(3, 256),
    conv(3, 256),
    MaxPool,
    conv(3, 512),
    conv(3, 512),
    conv(3, 512),
    MaxPool,
    conv(3, 512),
    conv(3, 512),
    conv(3, 512),
    MaxPool,
    dense(128),
    dense(10),
];
