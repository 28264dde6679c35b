//! What `compile` writes and what `inspect` shows.

use crate::Desk;

#[test]
fn compile_writes_a_plan_and_its_weights() {
    let desk = Desk::compiled();
    assert_eq!(desk.files(), ["calib.npz", "lenet5_small.onnx", "lenet5_small.ron", "lenet5_small.safetensors"]);
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

#[test]
fn verbose_shows_what_was_rejected() {
    let desk = Desk::new();
    desk.model("cryptonet_small");
    let output = desk.run(&["compile", "cryptonet_small.onnx", "-v"]);
    insta::assert_snapshot!(String::from_utf8(output.stderr).expect("text"));
}

#[test]
fn the_summary_fits_a_screen() {
    let text = Desk::compiled().succeed(&["inspect", "lenet5_small.ron"]);
    assert!(text.lines().count() <= 24 && text.lines().all(|line| line.chars().count() <= 100), "{text}");
    insta::assert_snapshot!(text);
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
