//! End to end: compiled networks, run under encryption, give what the integer graph gives, integer for integer.

use chococ_compiler::graph::{Graph, Node, Op};
use chococ_compiler::{Options, compile_graph};
use chococ_plans::op::{ClientOp, Conv, Dense, Linear, Pool};
use chococ_plans::packing::{Alignment, PackingKind};
use chococ_tests::{Pair, compare, compiled, images, model};
use petgraph::graph::DiGraph;
use proptest::prelude::*;

fn digits_agree(name: &str, packing: Option<PackingKind>, digits: std::ops::Range<usize>) {
    let compiled = compiled(name, 4, packing);
    let mut pair = Pair::new(&compiled, 1);
    assert_eq!(pair.galois_keys.len(), compiled.plan.galois_bytes(), "Galois keys, as the plan counts them");
    let samples = images(model(name), true, digits.end);
    for (index, image) in samples.inputs.iter().enumerate().skip(digits.start) {
        let run = pair.run(image);
        compare(&compiled, image, &run).unwrap_or_else(|problem| panic!("{name}, image {index}: {problem}"));
    }
}

#[test]
fn ten_digits_through_lenet5_large() {
    digits_agree("lenet5_large", None, 0..10);
}

#[test]
#[ignore = "takes a minute"]
fn a_hundred_digits_through_lenet5_large() {
    digits_agree("lenet5_large", None, 1000..1100);
}

#[test]
fn an_image_through_every_network_in_each_packing() {
    for model in chococ_models::all() {
        for packing in PackingKind::ALL {
            digits_agree(model.name, Some(packing), 10..11);
        }
    }
}

#[test]
fn an_image_through_every_other_network() {
    for model in chococ_models::all().iter().filter(|model| model.name != "lenet5_large") {
        digits_agree(model.name, None, 0..2);
    }
}

/// What the paper credits to rotational redundancy: the masked baseline needs a residue more.
#[test]
fn masks_cost_a_residue() {
    let residues = |alignment| -> Vec<usize> {
        let plan = compiled("lenet5_large", 4, Some(PackingKind::Slots(alignment))).plan;
        let convs = plan.server_stages().filter(|stage| stage.layer.operator.kind() == "Conv");
        convs.map(|stage| plan.key_sets[stage.key_set].parameters.ciphertext_primes.len()).collect()
    };
    assert_eq!(residues(Alignment::Rotational), [2, 2]);
    assert_eq!(residues(Alignment::Masked), [3, 3]);
}

/// One linear layer, and what the client does next.
#[derive(Clone, Debug)]
enum Layer {
    Conv { outputs: usize, kernel: usize, stride: usize, pad: usize, grouped: bool },
    Pool,
    Dense { outputs: usize },
}

fn layers() -> impl Strategy<Value = (usize, usize, Vec<Layer>)> {
    let conv = (1usize..5, 1usize..4, 1usize..3, 0usize..2, any::<bool>()).prop_map(
        |(outputs, kernel, stride, pad, grouped)| Layer::Conv {
            outputs,
            kernel,
            stride,
            pad: pad.min(kernel - 1),
            grouped,
        },
    );
    let spatial = prop::collection::vec(prop_oneof![3 => conv, 1 => Just(Layer::Pool)], 0..3);
    let dense = prop::collection::vec((1usize..12).prop_map(|outputs| Layer::Dense { outputs }), 0..3);
    (1usize..4, 4usize..10, spatial, dense).prop_filter_map(
        "a network has a layer",
        |(channels, side, spatial, dense)| {
            let layers: Vec<Layer> = spatial.into_iter().chain(dense).collect();
            layers.iter().any(|layer| !matches!(layer, Layer::Pool)).then_some((channels, side, layers))
        },
    )
}

/// A chain of layers with a ReLU behind each linear one, weights drawn from `seed`.
fn network(channels: usize, side: usize, layers: &[Layer], seed: u64) -> Graph {
    let mut state = seed;
    let mut draw = |count: usize| -> Vec<f32> {
        let mut next = || {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            (state >> 40) as f32 / (1 << 23) as f32 - 1.0
        };
        (0..count).map(|_| next()).collect()
    };
    let mut nodes = DiGraph::new();
    let input = nodes.add_node(Node { name: "input".to_owned(), op: Op::Input, shape: vec![channels, side, side] });
    let mut last = input;
    let mut push = |op: Op, shape: Vec<usize>| {
        let name = format!("{}{}", op.kind().to_lowercase(), nodes.node_count());
        let node = nodes.add_node(Node { name, op, shape });
        nodes.add_edge(last, node, 0);
        last = node;
    };
    let mut shape = vec![channels, side, side];
    for layer in layers {
        let operator = match *layer {
            Layer::Pool if shape[1] >= 2 => {
                let pool = Pool { kernel: [2, 2], strides: [2, 2], pads_before: [0, 0] };
                shape = vec![shape[0], shape[1] / 2, shape[2] / 2];
                push(Op::Client(ClientOp::MaxPool(pool)), shape.clone());
                continue;
            }
            Layer::Pool => continue,
            Layer::Conv { outputs, kernel, stride, pad, grouped } => {
                let kernel = kernel.min(shape[1]);
                let pad = pad.min(kernel - 1);
                let groups = if grouped { shape[0] } else { 1 };
                let out = (shape[1] + 2 * pad - kernel) / stride + 1;
                Linear::Conv(Conv {
                    input: [shape[0], shape[1], shape[2]],
                    output: [outputs * groups, out, out],
                    kernel: [kernel; 2],
                    strides: [stride; 2],
                    pads_before: [pad; 2],
                    dilations: [1; 2],
                    groups,
                })
            }
            Layer::Dense { outputs } => {
                let inputs = shape.iter().product();
                if shape.len() > 1 {
                    push(Op::Client(ClientOp::Reshape), vec![inputs]);
                }
                Linear::Dense(Dense { inputs, outputs })
            }
        };
        shape = operator.output_shape();
        let weights = draw(operator.weight_shape().iter().product());
        let bias = draw(operator.output_channels());
        push(Op::Linear { operator, weights, bias }, shape.clone());
        push(Op::Client(ClientOp::Relu), shape.clone());
    }
    Graph { nodes, input, output: last }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 16, failure_persistence: None, ..Default::default() })]

    #[test]
    fn random_networks_in_each_packing((channels, side, layers) in layers(), seed in any::<u64>()) {
        let graph = network(channels, side, &layers, seed);
        for packing in PackingKind::ALL {
            let options = Options {
                packing: Some(packing),
                ..Options::new("random.onnx".to_owned(), "random.safetensors".to_owned())
            };
            let compiled = compile_graph(&graph, String::new(), &options, &|_| {})
                .map_err(|error| TestCaseError::fail(format!("{error}\n{graph:?}")))?;
            for stage in compiled.plan.server_stages() {
                prop_assert_eq!(stage.packing.kind(), packing);
            }
            let input: Vec<f32> = (0..channels * side * side).map(|i| ((i * 37 + 11) % 64) as f32 / 64.0).collect();
            let run = Pair::new(&compiled, seed).run(&input);
            compare(&compiled, &input, &run).map_err(|problem| TestCaseError::fail(format!("{packing}: {problem}")))?;
        }
    }
}
