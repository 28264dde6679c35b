//! Writes layers as an ONNX file, with random weights.

use super::layers::Layer;
use crate::builder::Builder;
use crate::random::Random;

/// Standard deviation of biases: small beside activations, whose mean square is that of the picture, about 1/3.
const BIAS_DEVIATION: f32 = 0.05;

/// A file under construction: a tensor is named for the node that gives it.
struct Chain {
    builder: Builder,
    random: Random,
    /// The tensor at the end.
    tensor: String,
    /// Its shape without the batch axis: (channels, height, width), or one axis.
    shape: Vec<usize>,
    /// Nodes of each kind so far: convolutions, pools, dense layers.
    count: [usize; 3],
}

/// The ONNX file of these layers, which weights from `seed` fill; its answer is `logits`, of one axis beside the batch.
pub(super) fn onnx(input_shape: [usize; 3], layers: &[Layer], seed: u64) -> Vec<u8> {
    let dims: Vec<i64> = [1].into_iter().chain(input_shape.map(|length| length as i64)).collect();
    let mut chain = Chain {
        builder: Builder::new(&dims),
        random: Random::new(seed),
        tensor: "x".to_owned(),
        shape: input_shape.to_vec(),
        count: [0; 3],
    };
    let (last, others) = layers.split_last().expect("every network has layers");
    for layer in others {
        chain = chain.layer(*layer);
        if matches!(layer, Layer::Dense { .. }) {
            chain = chain.relu();
        }
    }
    chain = chain.layer(*last).flatten();
    // The last node gives the answer, under the answer's name.
    let output = "logits";
    let node = chain.builder.graph().node.last_mut().expect("every layer is a node");
    node.output = vec![output.to_owned()];
    chain.builder.bytes(output)
}

impl Chain {
    fn layer(self, layer: Layer) -> Chain {
        match layer {
            Layer::Conv { kernel, channels, stride } => self.conv(kernel, channels, stride).relu(),
            Layer::Residual { channels, stride } => self.residual(channels, stride).relu(),
            Layer::MaxPool => self.max_pool(),
            Layer::GlobalAverage => self.global_average(),
            Layer::Dense { units } => self.flatten().dense(units),
        }
    }

    fn residual(self, channels: usize, stride: usize) -> Chain {
        let (before, shape) = (self.tensor.clone(), self.shape.clone());
        let mut chain = self.conv(3, channels, stride).relu().conv(3, channels, 1);
        let (branch, reached) = (chain.tensor.clone(), chain.shape.clone());
        (chain.tensor, chain.shape) = (before, shape);
        if chain.shape != reached {
            chain = chain.conv(1, channels, stride);
        }
        chain.add(&branch)
    }

    /// Adds another tensor of the same shape to the one at the end.
    fn add(mut self, other: &str) -> Chain {
        let name = format!("{}.add", self.tensor);
        self.builder = self.builder.node(&name, "Add", &[&self.tensor, other], &name);
        self.tensor = name;
        self
    }

    fn conv(mut self, kernel: usize, channels: usize, stride: usize) -> Chain {
        self.count[0] += 1;
        let dims = [channels, self.shape[0], kernel, kernel];
        let (side, pad) = ([kernel as i64; 2], [(kernel / 2) as i64; 4]);
        let name = format!("conv{}", self.count[0]);
        let mut chain = self.linear(&name, "Conv", &dims);
        let builder = chain.builder.ints("kernel_shape", &side).ints("pads", &pad);
        chain.builder = builder.ints("strides", &[stride as i64; 2]);
        // With an odd kernel and half of it as padding, a stride reads every stride-th pixel from the first.
        let [height, width] = [1, 2].map(|axis| chain.shape[axis].div_ceil(stride));
        chain.shape = vec![channels, height, width];
        chain
    }

    fn dense(mut self, units: usize) -> Chain {
        self.count[2] += 1;
        let name = format!("fc{}", self.count[2]);
        let dims = [units, self.shape[0]];
        let mut chain = self.linear(&name, "Gemm", &dims);
        chain.builder = chain.builder.int("transB", 1);
        chain.shape = vec![units];
        chain
    }

    /// Adds a node with weights of shape `dims`, outputs first, and a bias.
    fn linear(mut self, name: &str, operator: &str, dims: &[usize]) -> Chain {
        let (outputs, inputs) = (dims[0], dims[1..].iter().product::<usize>());
        // Square roots are rounded correctly everywhere, as divisions are.
        let deviation = (2.0 / inputs as f32).sqrt();
        let weights: Vec<f32> = (0..outputs * inputs).map(|_| self.random.normal() * deviation).collect();
        let biases: Vec<f32> = (0..outputs).map(|_| self.random.normal() * BIAS_DEVIATION).collect();
        let (weight, bias) = (format!("{name}.weight"), format!("{name}.bias"));
        let dims: Vec<i64> = dims.iter().map(|&length| length as i64).collect();
        let builder = self.builder.weights(&weight, &dims, &weights).weights(&bias, &dims[..1], &biases);
        self.builder = builder.node(name, operator, &[&self.tensor, &weight, &bias], name);
        self.tensor = name.to_owned();
        self
    }

    /// Adds a node that reads nothing but the tensor at the end.
    fn simple(mut self, name: String, operator: &str) -> Chain {
        self.builder = self.builder.node(&name, operator, &[&self.tensor], &name);
        self.tensor = name;
        self
    }

    fn relu(self) -> Chain {
        let name = format!("{}.relu", self.tensor);
        self.simple(name, "Relu")
    }

    fn max_pool(mut self) -> Chain {
        self.count[1] += 1;
        let name = format!("pool{}", self.count[1]);
        let mut chain = self.simple(name, "MaxPool");
        chain.builder = chain.builder.ints("kernel_shape", &[2, 2]).ints("strides", &[2, 2]);
        chain.shape = vec![chain.shape[0], chain.shape[1] / 2, chain.shape[2] / 2];
        chain
    }

    fn global_average(self) -> Chain {
        let mut chain = self.simple("average".to_owned(), "GlobalAveragePool");
        chain.shape = vec![chain.shape[0], 1, 1];
        chain
    }

    /// Makes one axis of several; one axis stays as it is.
    fn flatten(self) -> Chain {
        if self.shape.len() == 1 {
            return self;
        }
        let mut chain = self.simple("flatten".to_owned(), "Flatten");
        chain.shape = vec![chain.shape.iter().product()];
        chain
    }
}
