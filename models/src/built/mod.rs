//! Networks that do not lie in this repository, built on the spot with random weights.

mod layers;
mod pictures;
mod write;

use layers::Layer;

/// A network in the shape of a well-known one: too large for a repository, or without images here to train it on.
///
/// **Its weights are random.** Bytes, times, noise and correctness can be measured with it; accuracy cannot, and what it
/// answers means nothing. The pictures of [`BuiltNetwork::inputs`] are made up as well.
///
/// ```
/// let network = chococ_models::built_named("resnet20_chain").expect("one of the built networks");
/// assert_eq!((network.input_shape, network.macs), ([3, 32, 32], 40_551_040));
/// let onnx: Vec<u8> = network.onnx();
/// let images: Vec<Vec<f32>> = network.inputs(2);
/// assert_eq!(images[0].len(), 3 * 32 * 32);
/// ```
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct BuiltNetwork {
    /// Its name.
    pub name: &'static str,
    /// One line on what it is.
    pub about: &'static str,
    /// Shape of its input: channels, height, width.
    pub input_shape: [usize; 3],
    /// Multiplications of one inference.
    pub macs: usize,
    /// Its weights, biases included.
    pub weights: usize,
    layers: &'static [Layer],
    /// Where its weights come from; each network has its own.
    seed: u64,
}

const COLOUR: [usize; 3] = [3, 32, 32];

const BUILT: [BuiltNetwork; 4] = [
    BuiltNetwork {
        name: "squeezenet",
        about: "a small SqueezeNet for CIFAR-10: 10 convolutions, 3x3 and 1x1",
        input_shape: COLOUR,
        macs: 32_604_160,
        weights: 244_874,
        layers: layers::SQUEEZENET,
        seed: 1,
    },
    BuiltNetwork {
        name: "resnet20_chain",
        about: "the 19 convolutions of ResNet-20 for CIFAR-10, in a chain without the additions",
        input_shape: COLOUR,
        macs: 40_551_040,
        weights: 269_034,
        layers: layers::RESNET20_CHAIN,
        seed: 2,
    },
    BuiltNetwork {
        name: "resnet20",
        about: "ResNet-20 for CIFAR-10, additions and all",
        input_shape: COLOUR,
        macs: 40_813_184,
        weights: 271_690,
        layers: layers::RESNET20,
        seed: 4,
    },
    BuiltNetwork {
        name: "vgg16",
        about: "VGG16 for CIFAR-10: 13 convolutions 3x3 and 2 dense layers",
        input_shape: COLOUR,
        macs: 313_263_360,
        weights: 14_781_642,
        layers: layers::VGG16,
        seed: 3,
    },
];

/// All networks that are built on the spot, the smallest first.
pub fn built() -> &'static [BuiltNetwork] {
    &BUILT
}

/// The built network of that name.
pub fn built_named(name: &str) -> Option<&'static BuiltNetwork> {
    BUILT.iter().find(|network| network.name == name)
}

impl BuiltNetwork {
    /// Builds its ONNX file: opset 13, one input `x` of 1 x [`Self::input_shape`], one output `logits` of 1 x 10.
    ///
    /// Every convolution of a chain, and every dense layer but the last, is followed by a ReLU. Weights are normal with
    /// variance 2 / (inputs of a unit), which keeps activations of one size through any number of ReLUs (He et al.,
    /// "Delving Deep into Rectifiers", 2015, section 2.2); biases are normal with standard deviation 0.05. The same
    /// bytes on every machine; 4 a weight, and a few thousand.
    pub fn onnx(&self) -> Vec<u8> {
        write::onnx(self.input_shape, self.layers, self.seed)
    }

    /// Makes up pictures, in [0, 1] and row-major in [`Self::input_shape`]: a colour gradient with a few soft blobs each.
    ///
    /// They stand for photographs of the same size, and are smooth as those are, but show nothing. The same ones on every
    /// machine and for every network; fewer are the first of more.
    pub fn inputs(&self, count: usize) -> Vec<Vec<f32>> {
        pictures::pictures(self.input_shape, count)
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use prost::Message;
    use tract_onnx::pb::{GraphProto, ModelProto, NodeProto};
    use tract_onnx::prelude::*;

    use super::*;

    /// The shape that a file ends with, and what it took to get there.
    #[derive(Debug, PartialEq)]
    struct Walk {
        shape: Vec<usize>,
        macs: usize,
        weights: usize,
    }

    /// Follows the shapes of a file from node to node, from its attributes and its initialisers alone.
    fn walk(graph: &GraphProto, input_shape: [usize; 3]) -> Walk {
        let mut walk = Walk { shape: Vec::new(), macs: 0, weights: 0 };
        let mut shapes = BTreeMap::from([("x".to_owned(), input_shape.to_vec())]);
        for node in &graph.node {
            let shape = walk.node(node, graph, &shapes);
            shapes.insert(node.output[0].clone(), shape);
        }
        walk.shape = shapes[&graph.output[0].name].clone();
        walk
    }

    impl Walk {
        fn node(&mut self, node: &NodeProto, graph: &GraphProto, shapes: &BTreeMap<String, Vec<usize>>) -> Vec<usize> {
            let ints = |name: &str| {
                let attribute = node.attribute.iter().find(|attribute| attribute.name == name);
                let ints = attribute.unwrap_or_else(|| panic!("{} has {name}", node.name)).ints.clone();
                ints.into_iter().map(|int| int as usize).collect::<Vec<usize>>()
            };
            let shrunk = |length, kernel, stride, pads| (length + pads - kernel) / stride + 1;
            let before = shapes[&node.input[0]].clone();
            let stored = node.input[1..].iter().filter(|name| !shapes.contains_key(*name));
            let dims: Vec<Vec<usize>> = stored.map(|name| dims(graph, name)).collect();
            if matches!(node.op_type.as_str(), "Conv" | "Gemm") {
                self.weights += dims.iter().map(|dims| dims.iter().product::<usize>()).sum::<usize>();
            }
            match node.op_type.as_str() {
                "Conv" => {
                    let (kernel, pads, strides) = (ints("kernel_shape"), ints("pads"), ints("strides"));
                    assert_eq!(dims[0], [dims[0][0], before[0], kernel[0], kernel[1]]);
                    assert_eq!(dims[1], [dims[0][0]]);
                    let [height, width] =
                        [0, 1].map(|at| shrunk(before[1 + at], kernel[at], strides[at], pads[at] + pads[at + 2]));
                    self.macs += dims[0].iter().product::<usize>() * height * width;
                    vec![dims[0][0], height, width]
                }
                "Gemm" => {
                    assert_eq!((dims[0][1], dims[1][0]), (before[0], dims[0][0]));
                    assert_eq!(before.len(), 1);
                    self.macs += dims[0].iter().product::<usize>();
                    vec![dims[0][0]]
                }
                "MaxPool" => {
                    let (kernel, strides) = (ints("kernel_shape"), ints("strides"));
                    let [height, width] = [0, 1].map(|at| shrunk(before[1 + at], kernel[at], strides[at], 0));
                    vec![before[0], height, width]
                }
                "GlobalAveragePool" => vec![before[0], 1, 1],
                "Flatten" => vec![before.iter().product()],
                "Add" => {
                    assert_eq!(before, shapes[&node.input[1]]);
                    before
                }
                "Relu" => before,
                other => panic!("{other} in {}", node.name),
            }
        }
    }

    fn dims(graph: &GraphProto, name: &str) -> Vec<usize> {
        let tensor = graph.initializer.iter().find(|tensor| tensor.name == name);
        let tensor = tensor.unwrap_or_else(|| panic!("no initialiser {name}"));
        let dims: Vec<usize> = tensor.dims.iter().map(|&dim| dim as usize).collect();
        assert_eq!(tensor.raw_data.len(), 4 * dims.iter().product::<usize>(), "numbers of {name}");
        dims
    }

    fn graph(network: &BuiltNetwork) -> GraphProto {
        ModelProto::decode(&network.onnx()[..]).expect("written here").graph.expect("written here")
    }

    #[test]
    fn files_have_the_multiplications_and_weights_of_the_table() {
        for network in built() {
            let walk = walk(&graph(network), network.input_shape);
            let expected = Walk { shape: vec![10], macs: network.macs, weights: network.weights };
            assert_eq!(walk, expected, "{}", network.name);
        }
    }

    #[test]
    fn layers_are_counted() {
        let count = |name: &str, operator: &str| {
            let graph = graph(built_named(name).expect("in the table"));
            graph.node.iter().filter(|node| node.op_type == operator).count()
        };
        let operators = ["Conv", "Gemm", "Relu", "MaxPool", "GlobalAveragePool"];
        for (name, expected) in [
            ("squeezenet", [10, 0, 10, 2, 1]),
            ("resnet20_chain", [19, 1, 19, 0, 1]),
            ("resnet20", [21, 1, 19, 0, 1]),
            ("vgg16", [13, 2, 14, 5, 0]),
        ] {
            assert_eq!(operators.map(|operator| count(name, operator)), expected, "{name}");
        }
    }

    #[test]
    fn every_network_is_found_by_its_name() {
        assert!(built().iter().all(|network| built_named(network.name) == Some(network)));
        assert!(built().windows(2).all(|pair| pair[0].macs < pair[1].macs), "the smallest first");
        assert_eq!(built_named("lenet5_large"), None, "that one lies in a file");
    }

    /// Runs a network by tract.
    fn logits(network: &BuiltNetwork, inputs: &[Vec<f32>]) -> Vec<Vec<f32>> {
        let model = onnx().model_for_read(&mut &network.onnx()[..]).expect("tract reads it");
        let runnable = model.into_optimized().expect("shapes are right").into_runnable().expect("tract runs it");
        let [channels, height, width] = network.input_shape;
        let run = |input: &Vec<f32>| {
            let x = Tensor::from_shape(&[1, channels, height, width], input).expect("numbers for the shape");
            let output = runnable.run(tvec!(x.into_tvalue())).expect("tract runs it");
            assert_eq!(output[0].shape(), [1, 10]);
            output[0].try_as_plain_ram().expect("floats").as_slice::<f32>().expect("floats").to_vec()
        };
        inputs.iter().map(run).collect()
    }

    #[test]
    fn activations_neither_vanish_nor_explode_nor_forget_the_picture() {
        for network in built().iter().filter(|network| network.name != "vgg16") {
            let logits = logits(network, &network.inputs(3));
            let largest = logits.concat().into_iter().fold(0f32, |largest, logit| largest.max(logit.abs()));
            assert!((0.01..100.0).contains(&largest), "{}: {largest}", network.name);
            let apart = logits[0].iter().zip(&logits[1]).map(|(a, b)| (a - b).abs()).fold(0f32, f32::max);
            assert!(apart > 0.01 * largest, "{}: {logits:?}", network.name);
        }
    }

    #[test]
    fn a_network_is_always_the_same() {
        let network = built_named("resnet20_chain").expect("in the table");
        assert_eq!(network.onnx(), network.onnx());
        // Its first weights, as they must be everywhere.
        let weights = &graph(network).initializer[0].raw_data;
        let first: Vec<f32> = weights.chunks(4).take(3).map(|b| f32::from_le_bytes(b.try_into().expect("4"))).collect();
        assert_eq!(first, [0.14172658, -0.16632016, -0.07580734]);
    }
}
