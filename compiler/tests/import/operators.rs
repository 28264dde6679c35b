//! Every operator, with every combination of its attributes that is supported, against tract on random numbers.

use chococ_compiler::graph::{Graph, Op};
use chococ_compiler::onnx;
use chococ_compiler::passes::fold_batch_norm::fold_batch_norm;
use chococ_plans::op::{ClientOp, Linear};
use proptest::prelude::*;

use super::{import, kinds, same_as_tract};
use chococ_models::builder::{Builder, numbers};

#[derive(Clone, Debug)]
struct Window {
    channels: usize,
    image: [usize; 2],
    kernel: [usize; 2],
    strides: [usize; 2],
    dilations: [usize; 2],
    pads: [usize; 4],
    auto_pad: Option<&'static str>,
}

impl Window {
    fn fits(&self) -> bool {
        let padded = |axis: usize| match self.auto_pad {
            Some("VALID") => self.image[axis],
            Some(_) => usize::MAX,
            None => self.image[axis] + self.pads[axis] + self.pads[axis + 2],
        };
        (0..2).all(|axis| (self.kernel[axis] - 1) * self.dilations[axis] < padded(axis))
    }

    fn attributes(&self, builder: Builder) -> Builder {
        let list = |numbers: &[usize]| numbers.iter().map(|&number| number as i64).collect::<Vec<_>>();
        let builder = builder.ints("kernel_shape", &list(&self.kernel)).ints("strides", &list(&self.strides));
        let builder = match self.dilations {
            [1, 1] => builder,
            dilations => builder.ints("dilations", &list(&dilations)),
        };
        match self.auto_pad {
            Some(auto_pad) => builder.string("auto_pad", auto_pad),
            None => builder.ints("pads", &list(&self.pads)),
        }
    }

    fn shape(&self) -> [usize; 4] {
        [1, self.channels, self.image[0], self.image[1]]
    }

    fn builder(&self) -> Builder {
        Builder::new(&self.shape().map(|length| length as i64))
    }
}

fn window(largest_pad: usize, dilated: bool) -> impl Strategy<Value = Window> {
    let pair = |low: usize, high: usize| prop::array::uniform2(low..=high);
    let auto_pad = prop_oneof![
        4 => Just(None),
        1 => prop::sample::select(vec![Some("SAME_UPPER"), Some("SAME_LOWER"), Some("VALID")]),
    ];
    let dilation = if dilated { 3 } else { 1 };
    let sizes = (1usize..=6, pair(3, 9), pair(1, 4), pair(1, 3), pair(1, dilation));
    (sizes, prop::array::uniform4(0..=largest_pad), auto_pad)
        .prop_map(|((channels, image, kernel, strides, dilations), pads, auto_pad)| Window {
            channels,
            image,
            kernel,
            strides,
            dilations,
            pads,
            auto_pad,
        })
        .prop_filter("the window fits the image", Window::fits)
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 96, ..ProptestConfig::default() })]

    #[test]
    fn convolutions(window in window(3, true), multiple in 1usize..=3, grouped in any::<bool>(), biased in any::<bool>()) {
        let groups = if grouped { window.channels } else { 1 };
        let outputs = groups * multiple;
        let weights = outputs * window.channels / groups * window.kernel[0] * window.kernel[1];
        let dims = [outputs, window.channels / groups, window.kernel[0], window.kernel[1]].map(|dim| dim as i64);
        let builder = window
            .builder()
            .weights("w", &dims, &numbers(weights, 7))
            .weights("b", &[outputs as i64], &numbers(outputs, 8))
            .node("conv", "Conv", if biased { &["x", "w", "b"] } else { &["x", "w"] }, "y")
            .int("group", groups as i64);
        let graph = same_as_tract(&window.attributes(builder).bytes("y"), &window.shape());
        prop_assert_eq!(kinds(&graph), ["Input", "Conv"]);
        prop_assert_eq!(&graph.nodes[graph.output].name, "conv");
    }

    #[test]
    fn max_pools(window in window(1, false), ceil in any::<bool>()) {
        prop_assume!(window.kernel.iter().all(|&length| length > 1));
        let builder = window.builder().node("pool", "MaxPool", &["x"], "y").int("ceil_mode", i64::from(ceil));
        let graph = same_as_tract(&window.attributes(builder).bytes("y"), &window.shape());
        prop_assert_eq!(kinds(&graph), ["Input", "MaxPool"]);
    }

    #[test]
    fn average_pools(window in window(1, false), include_pad in any::<bool>(), ceil in any::<bool>()) {
        prop_assume!(window.kernel.iter().all(|&length| length > 1));
        let builder = window
            .builder()
            .node("pool", "AveragePool", &["x"], "y")
            .int("count_include_pad", i64::from(include_pad))
            .int("ceil_mode", i64::from(ceil));
        let model = window.attributes(builder).bytes("y");
        match onnx::import(&model, &mut Vec::new()) {
            Ok(_) => drop(same_as_tract(&model, &window.shape())),
            // Only uneven padding that counts may be refused.
            Err(error) => prop_assert!(include_pad && error.to_string().contains("must equal"), "{}", error),
        }
    }

    #[test]
    fn gemms(
        inputs in 1usize..=9, outputs in 1usize..=9, transposed in any::<bool>(), alpha in 0.5f32..2.0,
        beta in -1.0f32..1.0, bias in 0usize..4,
    ) {
        let dims = if transposed { [outputs, inputs] } else { [inputs, outputs] }.map(|dim| dim as i64);
        let bias_dims: [&[i64]; 4] = [&[], &[1], &[outputs as i64], &[1, outputs as i64]];
        let builder = Builder::new(&[1, inputs as i64])
            .weights("w", &dims, &numbers(inputs * outputs, 1))
            .weights("c", bias_dims[bias], &numbers(if bias < 2 { 1 } else { outputs }, 2))
            .node("fc", "Gemm", &["x", "w", "c"], "y")
            .int("transB", i64::from(transposed))
            .float("alpha", alpha)
            .float("beta", beta);
        let graph = same_as_tract(&builder.bytes("y"), &[1, inputs]);
        prop_assert_eq!(kinds(&graph), ["Input", "Gemm"]);
    }
}

#[test]
fn products_with_a_column() {
    let column_first = Builder::new(&[1, 4])
        .integers("shape", &[4, 1])
        .node("flip", "Reshape", &["x", "shape"], "column")
        .weights("w", &[4, 3], &numbers(12, 1))
        .node("fc", "Gemm", &["column", "w"], "y")
        .int("transA", 1);
    assert_eq!(kinds(&same_as_tract(&column_first.bytes("y"), &[1, 4])), ["Input", "Gemm"]);
    let matrix_first = Builder::new(&[1, 4])
        .weights("w", &[3, 4], &numbers(12, 1))
        .node("fc", "Gemm", &["w", "x"], "z")
        .int("transB", 1)
        .node("row", "Transpose", &["z"], "y")
        .ints("perm", &[1, 0]);
    assert_eq!(kinds(&same_as_tract(&matrix_first.bytes("y"), &[1, 4])), ["Input", "Gemm"]);
}

#[test]
fn matmul_takes_in_its_bias() {
    for dims in [vec![3], vec![1, 3], vec![1], vec![]] {
        let length = dims.iter().product::<i64>() as usize;
        let model = Builder::new(&[1, 4])
            .weights("w", &[4, 3], &numbers(12, 1))
            .weights("b", &dims, &numbers(length, 2))
            .node("product", "MatMul", &["x", "w"], "p")
            .node("bias", "Add", &["b", "p"], "y");
        let graph = same_as_tract(&model.bytes("y"), &[1, 4]);
        assert_eq!(kinds(&graph), ["Input", "Gemm"], "bias of shape {dims:?}");
        assert_eq!(graph.nodes[graph.output].name, "product");
    }
}

#[test]
fn matmul_over_the_last_axis_of_many() {
    let model = Builder::new(&[1, 1, 1, 4])
        .weights("w", &[4, 3], &numbers(12, 1))
        .weights("b", &[3], &numbers(3, 2))
        .node("product", "MatMul", &["x", "w"], "p")
        .node("bias", "Add", &["p", "b"], "q")
        .node("relu", "Relu", &["q"], "y");
    let graph = same_as_tract(&model.bytes("y"), &[1, 1, 1, 4]);
    assert_eq!(kinds(&graph), ["Input", "Reshape", "Gemm", "Relu", "Reshape"]);
    assert_eq!(graph.nodes[graph.output].shape, [1, 1, 3]);
}

#[test]
fn weights_may_be_computed() {
    let model = Builder::new(&[1, 4])
        .weights("w", &[3, 4], &numbers(12, 1))
        .weights("half", &[1], &[0.5])
        .node("transpose", "Transpose", &["w"], "wt")
        .ints("perm", &[1, 0])
        .node("scale", "Mul", &["wt", "half"], "ws")
        .node("product", "MatMul", &["x", "ws"], "y");
    assert_eq!(kinds(&same_as_tract(&model.bytes("y"), &[1, 4])), ["Input", "Gemm"]);
}

fn batch_norm(builder: Builder, name: &str, channels: usize, input: &str, output: &str) -> Builder {
    let positive = |seed| numbers(channels, seed).iter().map(|number| number.abs() + 0.2).collect::<Vec<_>>();
    let named = |parameter: &str| format!("{name}.{parameter}");
    let (scale, shift, mean, variance) = (named("scale"), named("shift"), named("mean"), named("variance"));
    builder
        .weights(&scale, &[channels as i64], &numbers(channels, 1))
        .weights(&shift, &[channels as i64], &numbers(channels, 2))
        .weights(&mean, &[channels as i64], &numbers(channels, 3))
        .weights(&variance, &[channels as i64], &positive(4))
        .node(name, "BatchNormalization", &[input, &scale, &shift, &mean, &variance], output)
        .float("epsilon", 1e-3)
}

#[test]
fn batch_norm_is_affine_and_folds() {
    let conv =
        Builder::new(&[1, 2, 5, 5]).weights("w", &[3, 2, 3, 3], &numbers(54, 9)).node("conv", "Conv", &["x", "w"], "c");
    let model = batch_norm(conv, "norm", 3, "c", "y").bytes("y");
    let graph = same_as_tract(&model, &[1, 2, 5, 5]);
    assert_eq!(kinds(&graph), ["Input", "Conv", "BatchNormalization"]);
    assert_eq!(kinds(&fold_batch_norm(graph)), ["Input", "Conv"]);
    let vector = batch_norm(Builder::new(&[1, 6]), "norm", 6, "x", "y").bytes("y");
    assert_eq!(kinds(&same_as_tract(&vector, &[1, 6])), ["Input", "BatchNormalization"]);
}

#[test]
fn batch_norm_folds_forward_where_nothing_is_padded() {
    let network = |pads: i64| {
        let first = Builder::new(&[1, 4, 6, 6]).node("relu", "Relu", &["x"], "r");
        batch_norm(first, "norm", 4, "r", "n")
            .weights("w", &[6, 2, 3, 3], &numbers(108, 9))
            .node("conv", "Conv", &["n", "w"], "y")
            .int("group", 2)
            .ints("pads", &[pads; 4])
            .bytes("y")
    };
    let unpadded = fold_batch_norm(same_as_tract(&network(0), &[1, 4, 6, 6]));
    assert_eq!(kinds(&unpadded), ["Input", "Relu", "Conv"]);
    let padded = fold_batch_norm(same_as_tract(&network(1), &[1, 4, 6, 6]));
    assert_eq!(kinds(&padded), ["Input", "Relu", "BatchNormalization", "Conv"]);
}

#[test]
fn batch_norm_after_flatten_has_its_own_channels() {
    let flat = Builder::new(&[1, 2, 2, 2]).node("flat", "Flatten", &["x"], "f");
    let normed = batch_norm(flat, "norm", 8, "f", "n");
    let model = normed.weights("w", &[8, 3], &numbers(24, 5)).node("fc", "MatMul", &["n", "w"], "y").bytes("y");
    let graph = same_as_tract(&model, &[1, 2, 2, 2]);
    assert_eq!(kinds(&graph), ["Input", "Reshape", "BatchNormalization", "Gemm"]);
    assert_eq!(kinds(&fold_batch_norm(graph)), ["Input", "Reshape", "Gemm"]);
}

#[test]
fn affines_in_a_row_merge_and_the_identity_goes() {
    let model = Builder::new(&[1, 2, 2, 2])
        .weights("two", &[1], &[2.0])
        .weights("half", &[1], &[0.5])
        .node("double", "Mul", &["x", "two"], "a")
        .node("halve", "Mul", &["a", "half"], "b")
        .node("relu", "Relu", &["b"], "y");
    let graph = same_as_tract(&model.bytes("y"), &[1, 2, 2, 2]);
    assert_eq!(kinds(&fold_batch_norm(graph)), ["Input", "Relu"]);
}

#[test]
fn constants_on_either_side() {
    let channels = |builder: Builder| builder.weights("c", &[3, 1, 1], &[0.5, -2.0, 3.0]);
    for (operator, swapped) in
        [("Add", false), ("Add", true), ("Sub", false), ("Sub", true), ("Mul", false), ("Mul", true), ("Div", false)]
    {
        let inputs = if swapped { ["c", "x"] } else { ["x", "c"] };
        let model = channels(Builder::new(&[1, 3, 2, 2])).node("op", operator, &inputs, "y");
        let graph = same_as_tract(&model.bytes("y"), &[1, 3, 2, 2]);
        assert_eq!(kinds(&graph), ["Input", "BatchNormalization"], "{operator}");
    }
}

#[test]
fn clips() {
    let clip = |opset: i64| Builder::new(&[1, 8]).opset(opset);
    let modern = |low: &str, high: &str| {
        clip(13).weights("low", &[], &[-0.25]).weights("high", &[], &[0.5]).node("clip", "Clip", &["x", low, high], "y")
    };
    let op = |graph: &Graph| graph.nodes[graph.output].op.clone();
    let expected = |low, high| Op::Client(ClientOp::Clip { low, high });
    let both = same_as_tract(&modern("low", "high").bytes("y"), &[1, 8]);
    assert_eq!(op(&both), expected(-0.25, 0.5));
    let low_only = same_as_tract(&modern("low", "").bytes("y"), &[1, 8]);
    assert_eq!(op(&low_only), expected(-0.25, f32::MAX));
    let high_only = same_as_tract(&modern("", "high").bytes("y"), &[1, 8]);
    assert_eq!(op(&high_only), expected(f32::MIN, 0.5));
    let old = clip(6).node("clip", "Clip", &["x"], "y").float("min", 0.0).float("max", 6.0);
    assert_eq!(op(&same_as_tract(&old.bytes("y"), &[1, 8])), expected(0.0, 6.0));
    let relu = clip(13).weights("zero", &[], &[0.0]).node("max", "Max", &["x", "zero"], "y");
    assert_eq!(op(&same_as_tract(&relu.bytes("y"), &[1, 8])), Op::Client(ClientOp::Relu));
}

#[test]
fn means_of_channels() {
    let global = Builder::new(&[1, 3, 4, 5]).node("mean", "GlobalAveragePool", &["x"], "y");
    assert_eq!(kinds(&same_as_tract(&global.bytes("y"), &[1, 3, 4, 5])), ["Input", "GlobalAveragePool"]);
    let kept = Builder::new(&[1, 3, 4, 5]).node("mean", "ReduceMean", &["x"], "y").ints("axes", &[2, 3]);
    assert_eq!(kinds(&same_as_tract(&kept.bytes("y"), &[1, 3, 4, 5])), ["Input", "GlobalAveragePool"]);
    let dropped =
        Builder::new(&[1, 3, 4, 5]).node("mean", "ReduceMean", &["x"], "y").ints("axes", &[-1, -2]).int("keepdims", 0);
    let graph = same_as_tract(&dropped.bytes("y"), &[1, 3, 4, 5]);
    assert_eq!(kinds(&graph), ["Input", "GlobalAveragePool", "Reshape"]);
    assert_eq!(graph.nodes[graph.output].shape, [3]);
    let modern =
        Builder::new(&[1, 3, 4, 5]).opset(18).integers("axes", &[2, 3]).node("mean", "ReduceMean", &["x", "axes"], "y");
    assert_eq!(kinds(&same_as_tract(&modern.bytes("y"), &[1, 3, 4, 5])), ["Input", "GlobalAveragePool"]);
    let largest = Builder::new(&[1, 3, 4, 5]).node("max", "GlobalMaxPool", &["x"], "y");
    assert_eq!(kinds(&same_as_tract(&largest.bytes("y"), &[1, 3, 4, 5])), ["Input", "MaxPool"]);
}

#[test]
fn changes_of_shape_are_made_only_where_needed() {
    let model = Builder::new(&[1, 2, 3, 3])
        .integers("shape", &[1, -1])
        .integers("axes", &[2])
        .node("flat", "Flatten", &["x"], "a")
        .node("longer", "Unsqueeze", &["a", "axes"], "b")
        .node("shorter", "Squeeze", &["b", "axes"], "c")
        .node("again", "Reshape", &["c", "shape"], "d")
        .node("relu", "Relu", &["d"], "e")
        .node("same", "Identity", &["e"], "f")
        .node("drop", "Dropout", &["f"], "g")
        .node("cast", "Cast", &["g"], "h")
        .int("to", 1)
        .weights("w", &[18, 2], &numbers(36, 1))
        .node("fc", "Gemm", &["h", "w"], "y");
    let graph = same_as_tract(&model.bytes("y"), &[1, 2, 3, 3]);
    assert_eq!(kinds(&graph), ["Input", "Relu", "Reshape", "Gemm"]);
    let reshape = graph.producers(graph.output)[0];
    assert_eq!(graph.nodes[reshape].shape, [18]);
}

#[test]
fn transposes_that_move_nothing_go() {
    let model = Builder::new(&[1, 1, 4, 5])
        .node("nhwc", "Transpose", &["x"], "a")
        .ints("perm", &[0, 2, 3, 1])
        .node("nchw", "Transpose", &["a"], "b")
        .ints("perm", &[0, 3, 1, 2])
        .weights("w", &[2, 1, 3, 3], &numbers(18, 1))
        .node("conv", "Conv", &["b", "w"], "y");
    assert_eq!(kinds(&same_as_tract(&model.bytes("y"), &[1, 1, 4, 5])), ["Input", "Conv"]);
}

#[test]
fn shapes_computed_by_the_model_are_constants() {
    // Flatten as PyTorch spells it out: shape, gather, concat, reshape.
    let model = Builder::new(&[1, 2, 3, 3])
        .integers("zero", &[0])
        .integers("rest", &[-1])
        .node("shape", "Shape", &["x"], "s")
        .node("gather", "Gather", &["s", "zero"], "n")
        .node("concat", "Concat", &["n", "rest"], "t")
        .int("axis", 0)
        .node("reshape", "Reshape", &["x", "t"], "f")
        .weights("w", &[18, 2], &numbers(36, 1))
        .node("fc", "MatMul", &["f", "w"], "y");
    assert_eq!(kinds(&same_as_tract(&model.bytes("y"), &[1, 2, 3, 3])), ["Input", "Reshape", "Gemm"]);
}

#[test]
fn softmaxes() {
    for (opset, axis) in [(11, 1), (13, -1), (13, 1)] {
        let model = Builder::new(&[1, 7]).opset(opset).node("softmax", "Softmax", &["x"], "y").int("axis", axis);
        let graph = same_as_tract(&model.bytes("y"), &[1, 7]);
        assert_eq!(graph.nodes[graph.output].op, Op::Client(ClientOp::Softmax { axis: 0 }));
    }
    let channels = Builder::new(&[1, 3, 2, 2]).node("softmax", "Softmax", &["x"], "y").int("axis", 1);
    same_as_tract(&channels.bytes("y"), &[1, 3, 2, 2]);
}

#[test]
fn dead_nodes_do_not_matter() {
    let model = Builder::new(&[1, 4]).node("relu", "Relu", &["x"], "y").node("dead", "LSTM", &["x"], "z").node(
        "deader",
        "Add",
        &["z", "nowhere"],
        "v",
    );
    assert_eq!(kinds(&import(&model.bytes("y"))), ["Input", "Relu"]);
}

#[test]
fn long_chains_are_read() {
    let mut model = Builder::new(&[1, 4]);
    let mut last = "x".to_string();
    for step in 0..3000 {
        let next = format!("v{step}");
        model = model.node("", "Relu", &[&last], &next);
        last = next;
    }
    let graph = import(&model.bytes(&last));
    assert_eq!(graph.nodes.node_count(), 3001);
    assert_eq!(graph.nodes[graph.output].name, last);
}

#[test]
fn dense_layers_have_their_weights_in_order() {
    let model = Builder::new(&[1, 2])
        .weights("w", &[2, 3], &[1.0, 2.0, 3.0, 4.0, 5.0, 6.0])
        .node("fc", "MatMul", &["x", "w"], "y")
        .bytes("y");
    let graph = import(&model);
    let Op::Linear { operator: Linear::Dense(dense), weights, bias } = &graph.nodes[graph.output].op else {
        panic!("a dense layer")
    };
    assert_eq!((dense.inputs, dense.outputs), (2, 3));
    assert_eq!(weights[..], [1.0, 4.0, 2.0, 5.0, 3.0, 6.0]);
    assert_eq!(bias[..], [0.0; 3]);
}

#[test]
fn large_weights_with_two_readers() {
    // 5 MB, transposed for two layers at once: more than tract computes twice.
    let side = 1120;
    let model = Builder::new(&[1, side as i64])
        .weights("w", &[side as i64, side as i64], &numbers(side * side, 1))
        .node("transpose", "Transpose", &["w"], "wt")
        .ints("perm", &[1, 0])
        .weights("scale", &[1], &[0.01])
        .node("shrink", "Mul", &["wt", "scale"], "ws")
        .node("first", "MatMul", &["x", "ws"], "a")
        .node("second", "MatMul", &["a", "ws"], "y");
    assert_eq!(kinds(&same_as_tract(&model.bytes("y"), &[1, side])), ["Input", "Gemm", "Gemm"]);
}
