//! What `compile` writes and what `inspect` shows.

use crate::Desk;
use chococ_models::builder::{Builder, numbers};

#[test]
fn compile_writes_a_plan_and_its_weights() {
    let desk = Desk::compiled();
    assert_eq!(desk.files(), ["calib.npz", "lenet5_small.onnx", "lenet5_small.ron", "lenet5_small.safetensors"]);
}

/// What stands behind a dot may be all that tells two models apart.
#[test]
fn models_with_dots_in_their_names_have_plans_of_their_own() {
    let desk = Desk::new();
    let model = desk.model("logreg");
    for name in ["net.v1.onnx", "net.v2.onnx"] {
        desk.copy(&model.path(), name);
        desk.succeed(&["compile", name]);
    }
    desk.succeed(&["compile", "logreg.onnx", "-o", "net.v3"]);
    let plans =
        ["net.v1.ron", "net.v1.safetensors", "net.v2.ron", "net.v2.safetensors", "net.v3", "net.v3.safetensors"];
    assert!(plans.iter().all(|name| desk.files().contains(&name.to_string())), "{:?}", desk.files());
}

#[test]
fn the_same_command_writes_the_same_bytes() {
    let (first, second) = (Desk::compiled(), Desk::compiled());
    for name in ["lenet5_small.ron", "lenet5_small.safetensors"] {
        let read = |desk: &Desk| std::fs::read(desk.path(name)).expect("it was written");
        assert!(read(&first) == read(&second), "{name}");
    }
}

#[test]
fn output_and_bits_are_as_asked_for() {
    let desk = Desk::new();
    desk.model("logreg");
    let arguments = ["--activation-bits", "6", "--weight-bits", "5", "--packing", "punctured", "--ring-degree", "8192"];
    desk.succeed(&[&["compile", "logreg.onnx", "-o", "small.ron"], &arguments[..]].concat());
    assert_eq!(desk.files(), ["logreg.onnx", "small.ron", "small.safetensors"]);
    let report: serde_json::Value =
        serde_json::from_str(&desk.succeed(&["inspect", "small.ron", "--json"])).expect("JSON");
    assert_eq!(report["quantization"]["activation_bits"], 6);
    assert_eq!(report["quantization"]["weight_bits"], 5);
    assert_eq!(report["stages"][0]["ring_degree"], 8192);
    assert!(report["stages"][0]["packing"].as_str().expect("text").starts_with("punctured"));
}

/// Client and server on one machine have bytes to spare, but no time.
#[test]
fn objectives_and_bounds_on_keys_are_kept() {
    let desk = Desk::new();
    desk.model("lenet5_small");
    desk.write("here.ron", include_bytes!("../../targets/workstation.ron"));
    let total = |arguments: &[&str]| -> [u64; 2] {
        desk.succeed(&[&["compile", "lenet5_small.onnx"], arguments].concat());
        let report: serde_json::Value =
            serde_json::from_str(&desk.succeed(&["inspect", "lenet5_small.ron", "--json"])).expect("JSON");
        let number = |value: &serde_json::Value| value.as_u64().expect("a number");
        let cost = &report["total"];
        [number(&cost["bytes_up"]) + number(&cost["bytes_down"]), number(&report["galois_bytes"])]
    };
    let [bytes, keys] = total(&[]);
    let [of_quickest, _] = total(&["--objective", "latency", "--target", "here.ron"]);
    assert!(of_quickest > bytes, "{of_quickest} bytes, at least {bytes}");
    let [with_fewer, fewer] = total(&["--max-key-bytes", &(keys * 2 / 3).to_string()]);
    assert!(fewer <= keys * 2 / 3 && with_fewer >= bytes, "{fewer} bytes of keys and {with_fewer} for an inference");
    let memory = |most: &str| {
        let bounded = ["compile", "lenet5_small.onnx", "--packing", "rotational", "--max-server-bytes", most];
        desk.succeed(&bounded);
        let report: serde_json::Value =
            serde_json::from_str(&desk.succeed(&["inspect", "lenet5_small.ron", "--json"])).expect("JSON");
        report["total"]["server_bytes"].as_u64().expect("a number")
    };
    assert!(memory("1") <= memory("1000000000"));
}

#[test]
fn verbose_shows_what_was_rejected() {
    let desk = Desk::new();
    desk.model("cryptonet_small");
    let output = desk.run(&["compile", "cryptonet_small.onnx", "-v"]);
    insta::assert_snapshot!(String::from_utf8(output.stderr).expect("text"));
}

#[test]
fn the_summary_fits_a_screen() {
    let fits = |text: &str, lines: usize, columns: usize| {
        text.lines().count() <= lines && text.lines().all(|line| line.chars().count() <= columns)
    };
    let desk = Desk::new();
    // The one of the paper on the smallest of screens; one with many stages and long names still in width.
    for (name, lines, columns) in [("lenet5_large", 24, 80), ("mobilenet_fashion", 30, 100)] {
        desk.model(name);
        desk.succeed(&["compile", &format!("{name}.onnx")]);
        let text = desk.succeed(&["inspect", &format!("{name}.ron")]);
        assert!(fits(&text, lines, columns), "{text}");
    }
    let text = Desk::compiled().succeed(&["inspect", "lenet5_small.ron"]);
    assert!(fits(&text, 24, 80), "{text}");
    insta::assert_snapshot!(text);
}

/// Between two linear layers in a row the client decrypts and encrypts, though no operator is its own.
#[test]
fn a_graph_shows_every_crossing() {
    let desk = Desk::new();
    let model = Builder::new(&[1, 6])
        .weights("v", &[6, 5], &numbers(30, 1))
        .weights("w", &[5, 3], &numbers(15, 2))
        .node("first", "MatMul", &["x", "v"], "a")
        .node("second", "MatMul", &["a", "w"], "y")
        .bytes("y");
    desk.write("two.onnx", &model);
    desk.succeed(&["compile", "two.onnx"]);
    insta::assert_snapshot!(desk.succeed(&["inspect", "two.ron", "--dot"]));
}

#[test]
fn other_views() {
    let desk = Desk::compiled();
    for view in ["--stages", "--noise", "--dot", "--json"] {
        insta::assert_snapshot!(format!("inspect{view}"), desk.succeed(&["inspect", "lenet5_small.ron", view]));
    }
}

#[test]
fn check_counts_the_nodes() {
    let desk = Desk::new();
    desk.model("lenet5_small_dyn");
    insta::assert_snapshot!(
        desk.succeed(&["check", "lenet5_small_dyn.onnx"]),
        @"lenet5_small_dyn.onnx: all 12 nodes can be compiled"
    );
}
