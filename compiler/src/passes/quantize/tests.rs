//! Laws of the pass as a whole, on small networks with made-up weights.

use chococ_plans::op::{ClientOp, Conv, Dense, Pool};
use petgraph::graph::DiGraph;

use super::*;
use crate::graph::Node;

/// The same numbers in [-0.5, 0.5) for the same seed.
fn numbers(count: usize, seed: u64) -> Vec<f32> {
    Calibration::uniform(&[count], 1, seed).inputs[0].iter().map(|x| x - 0.5).collect()
}

fn real_inputs(shape: &[usize], count: usize, seed: u64) -> Calibration {
    Calibration::new(Calibration::uniform(shape, count, seed).inputs)
}

fn chain_of(input_shape: &[usize], operators: Vec<(&str, Op, Vec<usize>)>) -> Graph {
    let mut nodes = DiGraph::new();
    let input = nodes.add_node(Node { name: "image".into(), op: Op::Input, shape: input_shape.to_vec() });
    let mut output = input;
    for (name, op, shape) in operators {
        let node = nodes.add_node(Node { name: name.into(), op, shape });
        nodes.add_edge(output, node, 0);
        output = node;
    }
    Graph { nodes, input, output }
}

fn dense(inputs: usize, outputs: usize, weights: Vec<f32>, bias: Vec<f32>) -> Op {
    Op::Linear { operator: Linear::Dense(Dense { inputs, outputs }), weights, bias }
}

/// Conv 3x3, Relu, MaxPool, depthwise Conv, Relu, Flatten, Gemm on one channel of 6 x 6.
fn network(seed: u64) -> Graph {
    let conv = |input, output, groups| Conv {
        input,
        output,
        kernel: [3, 3],
        strides: [1, 1],
        pads_before: [1, 1],
        dilations: [1, 1],
        groups,
    };
    let first = Linear::Conv(conv([1, 6, 6], [4, 6, 6], 1));
    let depthwise = Linear::Conv(conv([4, 3, 3], [4, 3, 3], 4));
    let linear = |operator, taps, seed| Op::Linear {
        operator,
        weights: numbers(taps, seed),
        bias: numbers(4, seed + 1).iter().map(|b| b + 0.3).collect(),
    };
    let pool = Pool { kernel: [2, 2], strides: [2, 2], pads_before: [0, 0] };
    chain_of(
        &[1, 6, 6],
        vec![
            ("conv1", linear(first, 36, seed), vec![4, 6, 6]),
            ("relu1", Op::Client(ClientOp::Relu), vec![4, 6, 6]),
            ("pool", Op::Client(ClientOp::MaxPool(pool)), vec![4, 3, 3]),
            ("conv2", linear(depthwise, 36, seed + 2), vec![4, 3, 3]),
            ("relu2", Op::Client(ClientOp::Relu), vec![4, 3, 3]),
            ("flatten", Op::Client(ClientOp::Reshape), vec![36]),
            ("fc", dense(36, 5, numbers(180, seed + 4), numbers(5, seed + 5)), vec![5]),
        ],
    )
}

fn bits(activation: u32, weight: u32) -> Bits {
    Bits { activation, weight }
}

#[test]
fn more_bits_come_nearer_and_eight_are_close() {
    for seed in [10, 20, 30] {
        let graph = network(seed);
        let calibration = real_inputs(&[1, 6, 6], 60, seed + 7);
        let error = |width| quantize(&graph, &calibration, bits(width, width)).unwrap().1.relative_output_error;
        assert!(error(8) < error(4) && error(4) < error(2));
        assert!(error(8) < 1e-4, "{}", error(8));

        let (quantized, _) = quantize(&graph, &calibration, bits(8, 8)).unwrap();
        let fresh = real_inputs(&[1, 6, 6], 40, seed + 8).inputs;
        assert!(fresh.iter().all(|x| quantized.eval_floats(x) == graph.answer(x)));
        // Fresh inputs may leave the range that was seen, and are clipped: so the mean is small, not each difference.
        let difference = |x: &Vec<f32>| mean_squared_difference(&quantized.eval(x).output, &graph.answer(x));
        let mean = fresh.iter().map(difference).sum::<f64>() / 40.0;
        assert!(mean < 1e-3, "{mean}");
    }
}

#[test]
fn what_the_pass_computed_is_what_eval_computes() {
    let graph = network(40);
    let calibration = real_inputs(&[1, 6, 6], 50, 1);
    let (quantized, report) = quantize(&graph, &calibration, Bits::default()).unwrap();
    let errors =
        calibration.inputs.iter().map(|x| mean_squared_difference(&quantized.eval(x).output, &graph.answer(x)));
    assert_eq!(errors.sum::<f64>() / 50.0, report.output_error);
    assert_eq!(report.layers.iter().map(|layer| &*layer.name).collect::<Vec<_>>(), ["conv1", "conv2", "fc"]);
}

#[test]
fn accumulators_stay_in_their_ranges_whatever_the_input() {
    let (quantized, _) = quantize(&network(50), &real_inputs(&[1, 6, 6], 50, 1), bits(4, 3)).unwrap();
    let fresh = real_inputs(&[1, 6, 6], 30, 2).inputs;
    let extremal = (0..30).map(|seed| numbers(36, seed).iter().map(|x| x * 1e9).collect());
    for x in fresh.into_iter().chain(extremal) {
        let trace = quantized.eval(&x);
        for layer in quantized.layers() {
            let sums = &trace.accumulators[&layer.name];
            for (channel, (low, high)) in
                sums.chunks_exact(sums.len() / layer.output_ranges.len()).zip(&layer.output_ranges)
            {
                assert!(channel.iter().all(|sum| (low..=high).contains(&sum)));
            }
        }
    }
}

#[test]
fn threads_have_no_say() {
    let graph = network(60);
    let calibration = real_inputs(&[1, 6, 6], 90, 1);
    let on = |threads| {
        let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
        pool.install(|| quantize(&graph, &calibration, Bits::default()).unwrap())
    };
    assert_eq!(on(1), on(3));
}

#[test]
fn bias_correction_gives_each_channel_the_mean_of_the_float_network() {
    let graph = network(70);
    let calibration = real_inputs(&[1, 6, 6], 80, 1);
    let (quantized, _) = quantize(&graph, &calibration, bits(3, 3)).unwrap();
    let mean = |answers: Vec<Vec<f32>>, channel: usize| answers.iter().map(|y| y[channel]).sum::<f32>() / 80.0;
    let scales = &quantized.layers().last().unwrap().output_scales;
    for channel in 0..5 {
        let float = mean(calibration.inputs.iter().map(|x| graph.answer(x)).collect(), channel);
        let integer = mean(calibration.inputs.iter().map(|x| quantized.eval(x).output).collect(), channel);
        assert!((float - integer).abs() <= 0.5 * scales[channel] + 1e-5, "{float} {integer}");
    }
}

#[test]
fn a_channel_that_never_fires_gets_no_weight_and_takes_no_range() {
    // Input 2 is always 0, and its weights would leave nothing for the others; output 1 sees nothing else.
    let weights = vec![0.5, -0.25, 1e12, 0.0, 0.0, 1e12];
    let graph = chain_of(&[3], vec![("fc", dense(3, 2, weights, vec![0.125, -0.3]), vec![2])]);
    let mut calibration = real_inputs(&[3], 200, 1);
    calibration.inputs.iter_mut().for_each(|x| x[2] = 0.0);
    let (quantized, report) = quantize(&graph, &calibration, Bits::default()).unwrap();
    let layer = &report.layers[0];
    assert_eq!((layer.silent_channels, layer.constant_channels), (1, 1));
    assert_eq!(quantized.weights["fc"].weights[2..], [0, 0, 0, 0]);
    assert!(report.output_error < 1e-3, "{}", report.output_error);
    assert_eq!(quantized.eval(&[0.3, 0.9, 0.7]).output[1], -0.3);
    assert_eq!(quantized.float_weights["fc"].0[2], 1e12);
}

#[test]
fn silence_of_few_or_made_up_inputs_is_not_believed() {
    let graph = chain_of(&[2], vec![("fc", dense(2, 1, vec![0.5, 0.5], vec![0.0]), vec![1])]);
    let mut made_up = Calibration::uniform(&[2], 200, 1);
    made_up.inputs.iter_mut().for_each(|x| x[1] = 0.0);
    let few = Calibration::new(made_up.inputs[..20].to_vec());
    for calibration in [made_up, few] {
        let (quantized, report) = quantize(&graph, &calibration, Bits::default()).unwrap();
        assert_eq!(quantized.weights["fc"].weights, [7, 7]);
        assert_eq!(report.layers[0].silent_channels, 0);
        assert_eq!(report.notices.len(), 1);
    }
}

#[test]
fn inputs_of_nothing_but_zeros_give_numbers() {
    let calibration = Calibration::new(vec![vec![0.0; 36]; 120]);
    let (quantized, report) = quantize(&network(80), &calibration, Bits::default()).unwrap();
    assert!(report.relative_output_error.is_finite());
    assert!(quantized.eval(&[0.7; 36]).output.iter().all(|y| y.is_finite()));
}

#[test]
fn codes_are_unsigned_only_where_nothing_can_be_negative() {
    let signs = |operators, inputs: Calibration| {
        let shape = [inputs.inputs[0].len()];
        let (quantized, _) = quantize(&chain_of(&shape, operators), &inputs, Bits::default()).unwrap();
        quantized.layers().map(|layer| (layer.quantizer.low, layer.quantizer.high)).collect::<Vec<_>>()
    };
    let fc = |name| (name, dense(2, 2, vec![1.0, 0.5, 0.25, 1.0], vec![0.0, 0.0]), vec![2]);
    let relu = || ("relu", Op::Client(ClientOp::Relu), vec![2]);
    let affine = ClientOp::Affine { scale: vec![1.0, 1.0], shift: vec![-0.001, 2.0] };
    let positive = Calibration::new(vec![vec![0.5, 0.75]; 40]);
    let negative = Calibration::new(vec![vec![0.5, -0.75]; 40]);

    assert_eq!(signs(vec![fc("a"), relu(), fc("b")], positive.clone()), [(0, 15), (0, 15)]);
    assert_eq!(signs(vec![fc("a"), relu(), fc("b")], negative), [(-8, 7), (0, 15)]);
    // Never negative on these inputs, but it could be: so both are signed.
    assert_eq!(signs(vec![fc("a"), fc("b")], positive.clone()), [(0, 15), (-8, 7)]);
    let normalised = vec![relu(), ("norm", Op::Client(affine), vec![2]), fc("b")];
    assert_eq!(signs(normalised, positive), [(-8, 7)]);
}

#[test]
fn what_cannot_be_quantised_is_refused_by_name() {
    let fc = |weights: [f32; 2]| ("fc", dense(2, 1, weights.to_vec(), vec![0.0]), vec![1]);
    let refuse = |operators, bits| {
        quantize(&chain_of(&[2], operators), &real_inputs(&[2], 40, 1), bits).unwrap_err().to_string()
    };
    assert!(refuse(vec![fc([1.0, 1.0])], bits(9, 4)).starts_with("activation codes of 9 bits are not supported"));
    assert!(refuse(vec![fc([1.0, 1.0])], bits(4, 1)).starts_with("weight codes of 1 bits are not supported"));
    assert!(refuse(vec![fc([1.0, f32::NAN])], bits(4, 4)).starts_with("node `fc` (Gemm): its weights"));
    let twins = vec![("fc", dense(2, 2, vec![1.0; 4], vec![0.0; 2]), vec![2]), fc([1.0, 1.0])];
    assert!(refuse(twins, bits(4, 4)).starts_with("two linear layers are named `fc`"));
    let huge_bias = ("fc", dense(2, 1, vec![1e-6, 1e-6], vec![1e9]), vec![1]);
    assert!(
        refuse(vec![huge_bias], bits(4, 4)).starts_with("node `fc` (Gemm): accumulators of output channel 0 lie in")
    );
}
