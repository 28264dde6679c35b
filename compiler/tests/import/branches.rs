//! Networks that branch and join, and the client's operators, against tract on random numbers.

use chococ_compiler::passes::fold_batch_norm::fold_batch_norm;
use chococ_compiler::passes::fold_pads::fold_pads;
use chococ_compiler::passes::merge_siblings::merge_siblings;
use chococ_models::builder::{Builder, numbers};

use chococ_compiler::graph::Graph;
use tract_onnx::pb::tensor_shape_proto::dimension::Value::DimValue;
use tract_onnx::pb::type_proto;

use super::{import, kinds, same_as_tract};

/// Compares a model's answer with tract's; `y` is its output.
fn same(mut model: Builder) -> Graph {
    let Some(type_proto::Value::TensorType(tensor)) =
        model.graph().input[0].r#type.as_ref().and_then(|kind| kind.value.clone())
    else {
        unreachable!("the builder's input is a tensor")
    };
    let dims = tensor.shape.into_iter().flat_map(|shape| shape.dim).map(|dim| dim.value);
    let input: Vec<usize> =
        dims.map(|dim| if let Some(DimValue(length)) = dim { length as usize } else { 1 }).collect();
    same_as_tract(&model.bytes("y"), &input)
}

/// The operators of a graph behind its input.
fn operators(graph: &Graph) -> Vec<&'static str> {
    kinds(graph).into_iter().filter(|kind| *kind != "Input").collect()
}

fn image() -> Builder {
    Builder::new(&[1, 3, 6, 6])
}

/// One operator on an image of positive and negative numbers.
fn alone(operator: &str) -> Builder {
    image().node("alone", operator, &["x"], "y")
}

#[test]
fn functions_of_one_number() {
    let plain = [
        "Abs",
        "Ceil",
        "Celu",
        "Elu",
        "Erf",
        "Exp",
        "Floor",
        "HardSigmoid",
        "HardSwish",
        "LeakyRelu",
        "Mish",
        "Neg",
        "Reciprocal",
        "Round",
        "Selu",
        "Sigmoid",
        "Sign",
        "Softplus",
        "Softsign",
        "Tanh",
        "ThresholdedRelu",
    ];
    for operator in plain {
        let model = alone(operator).opset(18);
        assert_eq!(operators(&same(model)), [operator]);
    }
    same(alone("LeakyRelu").float("alpha", 0.3));
    same(alone("Elu").float("alpha", 0.3));
    same(alone("HardSigmoid").float("alpha", 0.3).float("beta", 0.1));
    same(alone("Gelu").opset(20));
    same(alone("Gelu").opset(20).string("approximate", "tanh"));
    let positive = |operator: &str| image().node("size", "Abs", &["x"], "a").node("alone", operator, &["a"], "y");
    same(positive("Sqrt"));
    same(positive("Log"));
}

#[test]
fn slopes_of_channels() {
    for shape in [vec![3, 1, 1], vec![1]] {
        let count = shape.iter().product::<i64>() as usize;
        let model = image().weights("s", &shape, &numbers(count, 3)).node("act", "PRelu", &["x", "s"], "y");
        assert_eq!(operators(&same(model)), ["PRelu"]);
    }
}

#[test]
fn two_tensors_meet() {
    for operator in ["Add", "Sub", "Mul", "Div", "Max", "Min", "Sum", "Mean"] {
        let model = image().node("soft", "Sigmoid", &["x"], "s").node("join", operator, &["x", "s"], "y");
        same(model);
        let three = image().node("soft", "Sigmoid", &["x"], "s").node("hard", "Tanh", &["x"], "h");
        if !["Sub", "Mul", "Div", "Add"].contains(&operator) {
            same(three.node("join", operator, &["x", "s", "h"], "y"));
        }
    }
    // A value may meet itself, and one with a single number a channel.
    same(image().node("square", "Mul", &["x", "x"], "y"));
    let gate = image().node("mean", "GlobalAveragePool", &["x"], "m").node("open", "Sigmoid", &["m"], "s").node(
        "gate",
        "Mul",
        &["x", "s"],
        "y",
    );
    same(gate);
}

#[test]
fn constants_that_differ_inside_a_channel() {
    for (operator, inputs) in [("Add", ["x", "c"]), ("Sub", ["c", "x"]), ("Div", ["c", "x"]), ("Max", ["x", "c"])] {
        let model = image().weights("c", &[6], &numbers(6, 5)).node("with", operator, &inputs, "y");
        same(model);
    }
    let wider =
        Builder::new(&[1, 3, 1, 6]).weights("c", &[3, 4, 1], &numbers(12, 5)).node("outer", "Mul", &["x", "c"], "y");
    same(wider);
}

#[test]
fn moves() {
    same(image().node("cat", "Concat", &["x", "x"], "y").int("axis", 1));
    same(image().node("cat", "Concat", &["x", "x"], "y").int("axis", -1));
    let with_constant = image().weights("c", &[1, 2, 6, 6], &numbers(72, 1));
    same(with_constant.node("cat", "Concat", &["x", "c"], "y").int("axis", 1));
    let slice = |starts: i64, ends: i64, axis: i64| {
        let builder = image().integers("s", &[starts]).integers("e", &[ends]).integers("a", &[axis]);
        builder.node("part", "Slice", &["x", "s", "e", "a"], "y")
    };
    same(slice(1, 3, 1));
    same(slice(-4, -1, 3));
    same(image().node("t", "Transpose", &["x"], "y").ints("perm", &[0, 2, 3, 1]));
    same(image().node("t", "Transpose", &["x"], "y").ints("perm", &[0, 3, 1, 2]));
    let pad =
        |pads: &[i64]| image().integers("p", pads).weights("v", &[], &[2.5]).node("pad", "Pad", &["x", "p", "v"], "y");
    same(pad(&[0, 1, 2, 0, 0, 0, 1, 3]));
    let mut split = image().integers("parts", &[1, 2]).node("split", "Split", &["x", "parts"], "a").int("axis", 1);
    split.graph().node[0].output.push("b".into());
    same(split.node("swap", "Concat", &["b", "a"], "y").int("axis", 1));
}

#[test]
fn moves_of_more_axes_than_a_plan_has() {
    let deep = || Builder::new(&[1, 12, 3, 5]);
    for mode in ["DCR", "CRD"] {
        same(deep().node("up", "DepthToSpace", &["x"], "y").int("blocksize", 2).string("mode", mode));
    }
    same(Builder::new(&[1, 3, 4, 6]).node("down", "SpaceToDepth", &["x"], "y").int("blocksize", 2));
    let shuffle = deep()
        .integers("apart", &[1, 2, 2, 3, 3, 5])
        .integers("together", &[1, 12, 3, 5])
        .node("split", "Reshape", &["x", "apart"], "a")
        .node("move", "Transpose", &["a"], "b")
        .ints("perm", &[0, 3, 2, 1, 5, 4])
        .node("join", "Reshape", &["b", "together"], "y");
    same(shuffle);
}

#[test]
fn enlarging_repeats_numbers() {
    let resize = |coordinates: &str, rounding: &str, scales: &[f32]| {
        let model = Builder::new(&[1, 2, 3, 5]).weights("s", &[4], scales);
        let model = model.node("up", "Resize", &["x", "", "s"], "y").string("mode", "nearest");
        model.string("coordinate_transformation_mode", coordinates).string("nearest_mode", rounding)
    };
    for scales in [[1.0, 1.0, 2.0, 2.0], [1.0, 1.0, 1.0, 3.0], [1.0, 1.0, 5.0, 4.0], [1.0, 2.0, 1.0, 2.0]] {
        same(resize("asymmetric", "floor", &scales));
        same(resize("half_pixel", "round_prefer_floor", &scales));
        same(resize("half_pixel", "round_prefer_ceil", &scales));
    }
    let sizes = Builder::new(&[1, 2, 3, 5]).integers("s", &[1, 2, 6, 15]);
    let sizes = sizes.node("up", "Resize", &["x", "", "", "s"], "y").string("mode", "nearest");
    same(sizes.string("coordinate_transformation_mode", "asymmetric").string("nearest_mode", "floor"));
    for (coordinates, rounding, scales) in [
        ("asymmetric", "round_prefer_floor", [1.0, 1.0, 2.0, 2.0]),
        ("half_pixel", "floor", [1.0, 1.0, 2.0, 2.0]),
        ("align_corners", "floor", [1.0, 1.0, 2.0, 2.0]),
        // Enlarges 5 to 10, but not evenly.
        ("asymmetric", "floor", [1.0, 1.0, 1.0, 2.1]),
        ("asymmetric", "floor", [1.0, 1.0, 1.0, 0.5]),
    ] {
        let model = resize(coordinates, rounding, &scales).bytes("y");
        let report = chococ_compiler::onnx::check(&model).expect("it parses");
        assert!(!report.compiles(), "{coordinates} {rounding} {scales:?}");
    }
}

#[test]
fn responses_of_neighbouring_channels() {
    let model = || Builder::new(&[1, 7, 3, 2]).node("lrn", "LRN", &["x"], "y");
    same(model().int("size", 5));
    same(model().int("size", 3).float("alpha", 0.5).float("beta", 1.3).float("bias", 2.0));
    same(model().int("size", 1).float("alpha", 0.1));
    same(model().int("size", 9).float("alpha", 3.0));
    for model in [model().int("size", 4), model().int("size", 3).float("bias", 0.0)] {
        assert!(!chococ_compiler::onnx::check(&model.bytes("y")).expect("it parses").compiles());
    }
}

#[test]
fn one_matrix_times_many_vectors() {
    let rows = || Builder::new(&[1, 5, 4]).weights("w", &[4, 3], &numbers(12, 1));
    let graph = same(rows().node("fc", "MatMul", &["x", "w"], "y"));
    assert_eq!(operators(&graph).iter().filter(|kind| **kind == "Conv").count(), 1);
    let biased = rows().weights("b", &[3], &numbers(3, 7)).node("fc", "MatMul", &["x", "w"], "a");
    same(biased.node("bias", "Add", &["a", "b"], "b0").node("act", "Relu", &["b0"], "y"));
    same(Builder::new(&[1, 2, 5, 4]).weights("w", &[4, 3], &numbers(12, 1)).node("fc", "MatMul", &["x", "w"], "y"));
    same(Builder::new(&[1, 5, 4]).weights("w", &[3, 5], &numbers(15, 1)).node("fc", "MatMul", &["w", "x"], "y"));
    same(Builder::new(&[1, 2, 5, 4]).weights("w", &[3, 5], &numbers(15, 1)).node("fc", "MatMul", &["w", "x"], "y"));
    same(Builder::new(&[1, 1, 5, 4]).weights("w", &[2, 4, 3], &numbers(24, 1)).node("fc", "MatMul", &["x", "w"], "y"));
}

#[test]
fn constants_of_a_shape_are_float_zeros() {
    let model = image().integers("shape", &[1, 2, 6, 6]).node("zeros", "ConstantOfShape", &["shape"], "z");
    let graph = import(&model.node("cat", "Concat", &["x", "z"], "y").int("axis", 1).bytes("y"));
    let x = numbers(108, 1);
    assert_eq!(graph.answer(&x), [x.clone(), vec![0.0; 72]].concat());
}

#[test]
fn reductions() {
    for operator in ["ReduceMean", "ReduceMax", "ReduceMin", "ReduceProd", "ReduceL2", "ReduceSumSquare"] {
        for (axes, keep) in [(vec![1], 1), (vec![2, 3], 0), (vec![1, 2, 3], 1), (vec![3], 0)] {
            same(alone(operator).ints("axes", &axes).int("keepdims", keep));
        }
    }
    same(alone("LogSoftmax").int("axis", 1));
}

#[test]
fn normalisations_are_arithmetic() {
    let scales = |builder: Builder, count: usize| {
        builder.weights("g", &[count as i64], &numbers(count, 2)).weights("b", &[count as i64], &numbers(count, 4))
    };
    same(scales(image(), 3).node("norm", "InstanceNormalization", &["x", "g", "b"], "y"));
    same(scales(image(), 6).opset(17).node("norm", "LayerNormalization", &["x", "g", "b"], "y"));
}

#[test]
fn signals_are_images_of_height_one() {
    let signal = || Builder::new(&[1, 2, 20]);
    let conv = signal()
        .weights("w", &[4, 2, 5], &numbers(40, 1))
        .node("conv", "Conv", &["x", "w"], "c")
        .ints("strides", &[2])
        .ints("pads", &[2, 1])
        .node("act", "Relu", &["c"], "r")
        .node("pool", "MaxPool", &["r"], "p")
        .ints("kernel_shape", &[2])
        .ints("strides", &[2])
        .node("mean", "GlobalAveragePool", &["p"], "m")
        .node("flat", "Flatten", &["m"], "y");
    same(conv);
    let depthwise =
        signal().weights("w", &[2, 1, 3], &numbers(6, 1)).node("conv", "Conv", &["x", "w"], "y").int("group", 2);
    same(depthwise.ints("dilations", &[2]));
}

/// A fire module and a residual block.
fn module() -> Builder {
    image()
        .weights("w1", &[4, 3, 1, 1], &numbers(12, 1))
        .weights("w3", &[5, 3, 3, 3], &numbers(135, 2))
        .node("one", "Conv", &["x", "w1"], "a")
        .node("three", "Conv", &["x", "w3"], "b")
        .ints("pads", &[1, 1, 1, 1])
        .node("cat", "Concat", &["a", "b"], "c")
        .int("axis", 1)
        .node("act", "Relu", &["c"], "r")
        .weights("w", &[9, 9, 3, 3], &numbers(729, 3))
        .node("conv", "Conv", &["r", "w"], "d")
        .ints("pads", &[1, 1, 1, 1])
        .node("skip", "Add", &["d", "r"], "y")
}

#[test]
fn branches_are_followed_and_siblings_become_one() {
    let graph = same(module());
    assert_eq!(operators(&graph), ["Conv", "Conv", "Concat", "Relu", "Conv", "Add"]);
    let merged = merge_siblings(graph.clone());
    assert_eq!(operators(&merged).iter().filter(|kind| **kind == "Conv").count(), 2);
    let x = numbers(108, 9);
    for (found, expected) in merged.answer(&x).iter().zip(graph.answer(&x)) {
        assert!((found - expected).abs() < 1e-5);
    }
}

#[test]
fn padding_before_a_convolution_is_its_own() {
    let model = image()
        .integers("p", &[0, 0, 1, 2, 0, 0, 0, 1])
        .node("pad", "Pad", &["x", "p"], "a")
        .weights("w", &[2, 3, 3, 3], &numbers(54, 1))
        .node("conv", "Conv", &["a", "w"], "y")
        .ints("pads", &[1, 0, 0, 0]);
    let graph = same(model);
    let folded = fold_pads(fold_batch_norm(graph.clone()));
    assert_eq!(operators(&folded), ["Conv"]);
    let x = numbers(108, 9);
    assert_eq!(folded.answer(&x), graph.answer(&x));
}
