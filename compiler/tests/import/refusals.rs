//! What cannot be compiled: the exact words, in snapshots; and input that is no model at all.

use chococ_compiler::error::Error;
use chococ_compiler::onnx::{self, Reason};
use proptest::prelude::*;
use prost::Message;
use tract_onnx::pb::tensor_proto::{DataLocation, DataType};
use tract_onnx::pb::tensor_shape_proto::dimension::Value::{DimParam, DimValue};
use tract_onnx::pb::{AttributeProto, GraphProto, ModelProto, TensorProto};

use chococ_models::builder::{Builder, numbers, value};

/// The refusal of a model.
fn refusal(model: &[u8]) -> String {
    let report = onnx::check(model).map(|report| report.to_string());
    let error = onnx::import(model, &mut Vec::new()).expect_err("the model cannot be compiled").to_string();
    assert_eq!(report.unwrap_or(error.clone()), error, "check and import agree");
    error
}

/// Puts refusals of several models under one another.
fn refusals(models: impl IntoIterator<Item = Builder>) -> String {
    models.into_iter().map(|model| refusal(&model.bytes("y")) + "\n").collect()
}

fn image() -> Builder {
    Builder::new(&[1, 2, 8, 8])
}

fn conv(builder: Builder, dims: [i64; 4]) -> Builder {
    let count = dims.iter().product::<i64>() as usize;
    builder.weights("w", &dims, &numbers(count, 1)).node("conv1", "Conv", &["x", "w"], "y")
}

#[test]
fn all_problems_at_once() {
    let model = Builder::new(&[1, 2, 8, 8])
        .weights("w", &[4, 2, 3, 3], &numbers(72, 1))
        .weights("w2", &[4, 4, 3, 3], &numbers(144, 1))
        .node("conv1", "Conv", &["x", "w"], "a")
        .node("act1", "Cos", &["a"], "b")
        .node("conv2", "Conv", &["b", "w2"], "c")
        .ints("pads", &[1, 1, 1, 1])
        .node("skip", "MatMul", &["b", "c"], "d")
        .node("pool", "MaxPool", &["d"], "e")
        .ints("kernel_shape", &[2, 2])
        .ints("dilations", &[2, 2])
        .node("mix", "Transpose", &["e"], "f")
        .ints("perm", &[0, 2, 3, 1])
        .node("act2", "Asinh", &["f"], "y");
    insta::assert_snapshot!(refusals([model]));
}

#[test]
fn problems_before_an_operator_nobody_knows() {
    let model =
        conv(image(), [4, 2, 9, 9]).node("strange", "Frobnicate", &["y"], "z").node("relu", "Relu", &["z"], "v");
    insta::assert_snapshot!(refusal(&model.bytes("v")));
}

#[test]
fn inputs_and_outputs() {
    let with_dims = |dims| Builder::with_dims(dims).node("relu", "Relu", &["x"], "y");
    let typed = |data_type| {
        let mut builder = with_dims(vec![DimValue(1), DimValue(8)]);
        builder.graph().input[0] = value("x", data_type, vec![DimValue(1), DimValue(8)]);
        builder
    };
    let mut unknown_rank = with_dims(vec![]);
    if let Some(tract_onnx::pb::type_proto::Value::TensorType(tensor)) =
        unknown_rank.graph().input[0].r#type.as_mut().and_then(|kind| kind.value.as_mut())
    {
        tensor.shape = None;
    }
    let mut two_inputs = with_dims(vec![DimValue(1), DimValue(8)]);
    two_inputs.graph().input.push(value("mask", DataType::Float, vec![DimValue(1)]));
    insta::assert_snapshot!(refusals([
        with_dims(vec![DimValue(4), DimValue(8)]),
        with_dims(vec![DimParam("N".into()), DimValue(3), DimParam("height".into()), DimValue(-1)]),
        with_dims(vec![DimValue(8)]),
        unknown_rank,
        typed(DataType::Float16),
        typed(DataType::Double),
        typed(DataType::Uint8),
        two_inputs,
        with_dims(vec![DimValue(1), DimValue(8)]).output("x"),
        Builder::new(&[1, 8]).node("relu", "Relu", &["x"], "z"),
        Builder::new(&[1, 8]).weights("c", &[1, 8], &numbers(8, 1)).node("relu", "Relu", &["c"], "y"),
        Builder::new(&[1, 8]),
    ]));
}

#[test]
fn tensors() {
    let mut external = conv(image(), [4, 2, 3, 3]);
    let weights = &mut external.graph().initializer[0];
    weights.raw_data.clear();
    weights.data_location = Some(DataLocation::External as i32);
    let mut short = conv(image(), [4, 2, 3, 3]);
    short.graph().initializer[0].raw_data.truncate(40);
    let mut negative = conv(image(), [4, 2, 3, 3]);
    negative.graph().initializer[0].dims[0] = -4;
    let mut infinite = conv(image(), [4, 2, 3, 3]);
    infinite.graph().initializer[0].raw_data[..4].copy_from_slice(&f32::INFINITY.to_le_bytes());
    let mut half = conv(image(), [4, 2, 3, 3]);
    let weights = &mut half.graph().initializer[0];
    weights.data_type = DataType::Float16 as i32;
    weights.raw_data.truncate(144);
    insta::assert_snapshot!(refusals([external, short, negative, infinite, half]));
}

#[test]
fn convolutions_and_pools() {
    let pool = |operator: &str| image().node("pool", operator, &["x"], "y");
    insta::assert_snapshot!(refusals([
        Builder::new(&[1, 2, 4, 4, 4]).weights("w", &[4, 2, 1, 1, 1], &numbers(8, 1)).node(
            "conv3d",
            "Conv",
            &["x", "w"],
            "y"
        ),
        conv(image(), [4, 2, 3, 3]).ints("kernel_shape", &[3, 3, 3]),
        conv(image(), [4, 2, 3, 3]).ints("strides", &[0, 1]),
        conv(image(), [4, 2, 3, 3]).ints("pads", &[-1, 0, 0, 0]),
        conv(image(), [4, 2, 3, 3]).string("auto_pad", "SAME"),
        conv(image(), [4, 2, 3, 3]).int("group", 0),
        conv(image(), [3, 1, 3, 3]).int("group", 2),
        conv(image(), [4, 2, 9, 9]),
        conv(image(), [4, 3, 3, 3]),
        pool("MaxPool").ints("kernel_shape", &[2, 2]).ints("dilations", &[2, 1]),
        pool("MaxPool").ints("kernel_shape", &[2, 2]).ints("pads", &[2, 0, 0, 0]),
        pool("AveragePool").ints("kernel_shape", &[3, 3]).ints("pads", &[0, 0, 1, 1]).int("count_include_pad", 1),
        pool("LpPool").ints("kernel_shape", &[2, 2]),
    ]));
}

#[test]
fn arithmetic_and_shapes() {
    insta::assert_snapshot!(refusals([
        Builder::new(&[1, 5, 2, 4]).weights("w", &[5, 4, 3], &numbers(60, 1)).node("fc", "MatMul", &["x", "w"], "y"),
        Builder::new(&[1, 4, 4]).node("attention", "MatMul", &["x", "x"], "y"),
        image().weights("c", &[2, 2, 8, 8], &numbers(256, 1)).node("wider", "Mul", &["x", "c"], "y"),
        image().node("to_rows", "Transpose", &["x"], "y").ints("perm", &[1, 0, 3, 2]),
        image()
            .integers("pads", &[0, 0, 1, 1, 0, 0, 1, 1])
            .node("mirror", "Pad", &["x", "pads"], "y")
            .string("mode", "reflect"),
        image().integers("pads", &[0, 0, 0, 0, 0, 0, 0, -2]).node("crop", "Pad", &["x", "pads"], "y"),
        image()
            .integers("shape", &[1, 2, 2, 4, 2, 4])
            .node("apart", "Reshape", &["x", "shape"], "a")
            .node("act", "Relu", &["a"], "b")
            .node("swap", "Transpose", &["b"], "y")
            .ints("perm", &[0, 1, 2, 4, 3, 5]),
        image().node("batch", "Concat", &["x", "x"], "y").int("axis", 0),
        Builder::new(&[1, 2, 200, 200]).weights("c", &[2, 200, 200], &numbers(80_000, 1)).node(
            "large",
            "Add",
            &["x", "c"],
            "y"
        ),
        image().integers("shape", &[2, 64]).node("split", "Reshape", &["x", "shape"], "y"),
        image().node("softmax", "Softmax", &["x"], "y").opset(11),
        image().node("to_half", "Cast", &["x"], "y").int("to", 10),
    ]));
}

#[test]
fn operators_and_graphs() {
    let mut foreign = image().node("attention", "FusedAttention", &["x"], "y");
    foreign.graph().node[0].domain = "com.microsoft".into();
    let mut training =
        image().weights("p", &[2], &[1.0, 1.0]).node("norm", "BatchNormalization", &["x", "p", "p", "p", "p"], "y");
    training = training.opset(15).int("training_mode", 1);
    let mut indices = image().node("pool", "MaxPool", &["x"], "z").ints("kernel_shape", &[2, 2]);
    indices.graph().node[0].output.push("y".into());
    let mut branch = image().node("choose", "If", &["x"], "y");
    let body =
        AttributeProto { name: "then_branch".into(), g: Some(GraphProto::default()), ..AttributeProto::default() };
    branch.graph().node[0].attribute.push(body);
    insta::assert_snapshot!(refusals([
        Builder::new(&[1, 5, 4]).weights("w", &[1, 4, 4], &numbers(16, 1)).node(
            "memory",
            "LSTM",
            &["x", "w", "w"],
            "y"
        ),
        foreign,
        training,
        indices,
        branch,
        image().node("", "Asinh", &["x"], "y"),
        image().node("", "QuantizeLinear", &["x"], "y"),
        image().node("relu", "Relu", &["nowhere"], "z").node("add", "Add", &["x", "z"], "y"),
        image().node("early", "Relu", &["z"], "y").node("late", "Relu", &["x"], "z"),
        image().node("one", "Relu", &["x"], "y").node("two", "Relu", &["y"], "y"),
    ]));
}

#[test]
fn many_problems_are_counted() {
    let mut model = image();
    let mut last = "x".to_string();
    for step in 0..25 {
        let next = format!("v{step}");
        model = model.node(&format!("sinh{step}"), "Sinh", &[&last], &next);
        last = next;
    }
    let model = model.bytes(&last);
    assert_eq!(onnx::check(&model).expect("it parses").problems.len(), 25);
    let text = refusal(&model);
    assert!(text.ends_with("... and 5 more problems"), "{text}");
}

#[test]
fn nothing_and_no_model() {
    let no_graph = ModelProto { producer_name: "tests".into(), ..ModelProto::default() };
    insta::assert_snapshot!([refusal(&[]), refusal(b"\x08"), refusal(&no_graph.encode_to_vec())].join("\n"));
}

#[test]
fn a_small_file_cannot_ask_for_much_memory() {
    let ask = |shape: &[i64]| {
        let model = image().integers("shape", shape).node("fill", "ConstantOfShape", &["shape"], "c");
        model.node("add", "Add", &["x", "c"], "y").bytes("y")
    };
    let report = onnx::check(&ask(&[1 << 20, 1 << 20])).expect("it parses");
    assert!(matches!(report.problems[0].reason, Reason::Elements { .. }), "{report}");
    // Doubling a constant forty times.
    let mut model = image().weights("c0", &[2, 1, 1], &[1.0, 2.0]);
    for step in 0..40 {
        let (from, to) = (format!("c{step}"), format!("c{}", step + 1));
        model = model.node(&format!("double{step}"), "Concat", &[&from, &from], &to).int("axis", 0);
    }
    let report = onnx::check(&model.node("add", "Add", &["x", "c40"], "y").bytes("y")).expect("it parses");
    assert!(matches!(report.problems[0].reason, Reason::Elements { .. }), "{report}");
    let huge = Builder::new(&[1, 1 << 20, 1 << 20, 1 << 20]).node("relu", "Relu", &["x"], "y").bytes("y");
    let report = onnx::check(&huge).expect("it parses");
    assert!(matches!(report.problems[0].reason, Reason::Elements { .. }), "{report}");
}

#[test]
fn a_kernel_larger_than_the_image_leaves_nothing() {
    let model = Builder::new(&[1, 1, 4, 4]).weights("w", &[2, 1, 7, 7], &[1.0; 98]);
    insta::assert_snapshot!(refusal(&model.node("conv", "Conv", &["x", "w"], "y").bytes("y")));
}

#[test]
fn many_small_requests_for_memory_count_together() {
    let mut model = image().integers("shape", &[2, 1 << 13, 1 << 13]).node("sum0", "Identity", &["x"], "s0");
    for step in 0..30 {
        let (fill, from, to) = (format!("c{step}"), format!("s{step}"), format!("s{}", step + 1));
        model = model.node(&format!("fill{step}"), "ConstantOfShape", &["shape"], &fill);
        model = model.node(&format!("sum{}", step + 1), "Add", &[&from, &fill], &to);
    }
    let report = onnx::check(&model.bytes("s30")).expect("it parses");
    assert!(matches!(report.problems[..], [onnx::Problem { reason: Reason::Elements { .. }, .. }]), "{report}");
}

#[test]
fn constants_of_unknown_size_are_not_made() {
    let model = image()
        .weights("from", &[], &[0.0])
        .weights("to", &[], &[1e10])
        .weights("step", &[], &[1.0])
        .node("range", "Range", &["from", "to", "step"], "r")
        .node("add", "Add", &["x", "r"], "y");
    let report = onnx::check(&model.bytes("y")).expect("it parses");
    assert!(matches!(report.problems[..], [onnx::Problem { reason: Reason::Operator, .. }]), "{report}");
}

#[test]
fn unused_weights_may_be_broken() {
    let mut model = image().node("relu", "Relu", &["x"], "y");
    let data_location = Some(DataLocation::External as i32);
    model.graph().initializer.push(TensorProto { name: "left".into(), data_location, ..TensorProto::default() });
    assert!(onnx::check(&model.bytes("y")).expect("it parses").compiles());
}

#[test]
fn errors_of_bytes_and_of_models_are_told_apart() {
    assert!(matches!(onnx::import(b"hello", &mut Vec::new()), Err(Error::NotOnnx { .. })));
    let sinh = image().node("s", "Sinh", &["x"], "y").bytes("y");
    assert!(matches!(onnx::import(&sinh, &mut Vec::new()), Err(Error::CannotCompile(_))));
}

proptest! {
    #[test]
    fn random_bytes_never_panic(bytes in prop::collection::vec(any::<u8>(), 0..300)) {
        let _ = onnx::import(&bytes, &mut Vec::new());
        prop_assert!(onnx::check(&bytes).map_or(true, |report| !report.compiles()));
    }

    #[test]
    fn any_attributes_are_an_answer_or_a_refusal(
        operator in prop::sample::select(vec!["Conv", "MaxPool", "AveragePool"]),
        kernel in prop::collection::vec(-2i64..12, 0..4), strides in prop::collection::vec(-1i64..1 << 40, 0..3),
        pads in prop::collection::vec(-1i64..70_000, 0..5), group in -1i64..5, dims in prop::array::uniform4(0i64..4),
    ) {
        let count = dims.iter().product::<i64>() as usize;
        let inputs: &[&str] = if operator == "Conv" { &["x", "w"] } else { &["x"] };
        let model = image().weights("w", &dims, &numbers(count, 1)).node("node", operator, inputs, "y");
        let model = model.ints("kernel_shape", &kernel).ints("strides", &strides).ints("pads", &pads).int("group", group);
        let _ = onnx::import(&model.bytes("y"), &mut Vec::new());
    }
}
