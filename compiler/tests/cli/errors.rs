//! Bad input: each with its message and its exit code, and nothing half-written.

use chococ_plans::file::{sha256, to_text};

use crate::Desk;
use chococ_models::builder::{Builder, numbers};

#[test]
fn files_that_are_no_model() {
    let desk = Desk::new();
    let model = desk.model("logreg");
    let whole = std::fs::read(model.path()).expect("it is part of this repository");
    desk.write("empty.onnx", b"");
    desk.write("cut.onnx", &whole[..whole.len() / 2]);
    // Not even a field number.
    desk.write(
        "random.onnx",
        &(0..400u32).map(|i| (i.wrapping_mul(2_654_435_761) >> 24) as u8 | 7).collect::<Vec<_>>(),
    );
    for name in ["missing", "empty", "cut", "random"] {
        let file = format!("{name}.onnx");
        insta::assert_snapshot!(format!("compile_{name}"), desk.fail(&["compile", &file]));
        insta::assert_snapshot!(format!("check_{name}"), desk.fail(&["check", &file]));
    }
    assert!(desk.files().iter().all(|file| file.ends_with(".onnx")), "nothing was written");
}

#[test]
fn nodes_that_cannot_be_compiled() {
    let desk = Desk::new();
    let model = Builder::new(&[1, 1, 8, 8])
        .node("sine", "Sin", &["x"], "a")
        .node("sort", "TopK", &["a", "x"], "b")
        .node("", "Erf", &["b"], "y")
        .bytes("y");
    desk.write("odd.onnx", &model);
    insta::assert_snapshot!(desk.fail(&["check", "odd.onnx"]));
    insta::assert_snapshot!(desk.fail(&["compile", "odd.onnx"]));
}

#[test]
fn check_lists_every_node_however_many() {
    let desk = Desk::new();
    let tensors: Vec<String> = (0..=40).map(|index| format!("t{index}")).collect();
    let chain = tensors.windows(2).fold(Builder::new(&[1, 4]).node("start", "Sin", &["x"], "t0"), |chain, pair| {
        chain.node(&format!("to {}", pair[1]), "Sin", &[&pair[0]], &pair[1])
    });
    desk.write("long.onnx", &chain.bytes("t40"));
    let text = desk.fail(&["check", "long.onnx"]);
    assert!(text.starts_with("error: long.onnx: 41 of 41 nodes cannot be compiled\n"), "{text}");
    assert!(tensors[1..].iter().all(|tensor| text.contains(&format!("node `to {tensor}` (Sin)"))), "{text}");
}

#[test]
fn check_counts_what_concerns_the_model_apart() {
    let desk = Desk::new();
    desk.write("batch.onnx", &Builder::new(&[2, 4]).node("sine", "Sin", &["x"], "y").bytes("y"));
    insta::assert_snapshot!(desk.fail(&["check", "batch.onnx"]));
    desk.write("relu.onnx", &Builder::new(&[2, 4]).node("relu", "Relu", &["x"], "y").bytes("y"));
    insta::assert_snapshot!(desk.fail(&["check", "relu.onnx"]));
}

/// A network of supported operators that `compile` refuses is one that `check` refuses too.
#[test]
fn a_kernel_too_large_for_any_ciphertext() {
    let desk = Desk::new();
    let model = Builder::new(&[1, 1, 224, 224])
        .weights("w", &[1, 1, 200, 200], &numbers(200 * 200, 1))
        .node("wide", "Conv", &["x", "w"], "y")
        .bytes("y");
    desk.write("photo.onnx", &model);
    insta::assert_snapshot!(desk.fail(&["check", "photo.onnx"]));
    let text = desk.fail(&["compile", "photo.onnx"]);
    assert!(text.contains("node `wide` (Conv)") && text.ends_with("exit code 4"), "{text}");
}

#[test]
fn more_results_than_the_failure_probability_holds_for() {
    let desk = Desk::new();
    let model = Builder::new(&[1, 1, 1100, 1100])
        .weights("w", &[1, 1, 1, 1], &[0.5])
        .node("half", "Conv", &["x", "w"], "y")
        .bytes("y");
    desk.write("poster.onnx", &model);
    for command in ["check", "compile"] {
        let text = desk.fail(&[command, "poster.onnx"]);
        assert!(text.contains("decrypts 1210000 coefficients") && text.ends_with("exit code 4"), "{text}");
    }
}

/// One pixel at a time, this layer would take more products than a plan can hold; no packing worth it does that.
#[test]
fn a_layer_of_many_products_is_not_refused() {
    let desk = Desk::new();
    let model = Builder::new(&[1, 64, 64, 64])
        .weights("w", &[64, 64, 1, 1], &numbers(64 * 64, 1))
        .node("mix", "Conv", &["x", "w"], "y")
        .bytes("y");
    desk.write("wide.onnx", &model);
    assert!(desk.succeed(&["check", "wide.onnx"]).contains("can be compiled"));
}

#[test]
fn outputs_that_would_do_harm() {
    let desk = Desk::new();
    let model = desk.model("logreg");
    let whole = std::fs::read(model.path()).expect("it is part of this repository");
    desk.write("calib.safetensors", b"no archive");
    std::fs::create_dir(desk.path("folder")).expect("the folder is writable");
    for (name, output) in [
        ("model", "logreg.onnx"),
        ("model_spelled_otherwise", "folder/../logreg.onnx"),
        ("folder", "folder"),
        ("no_folder", "nowhere/plan.ron"),
        ("weights", "plan.safetensors"),
        ("nothing", ".."),
    ] {
        insta::assert_snapshot!(format!("output_{name}"), desk.fail(&["compile", "logreg.onnx", "-o", output]));
    }
    let arguments = ["compile", "logreg.onnx", "--calibrate", "calib.safetensors", "-o", "calib.ron"];
    insta::assert_snapshot!("output_calibration", desk.fail(&arguments));
    assert_eq!(desk.files(), ["calib.safetensors", "folder", "logreg.onnx"], "nothing was written");
    assert!(std::fs::read(desk.path("logreg.onnx")).expect("it is still there") == whole, "the model is as it was");
}

#[test]
fn a_reader_that_has_gone_away_is_no_failure() {
    let desk = Desk::compiled();
    let code = |arguments: &[&str]| {
        let closed = || {
            let (reader, writer) = std::io::pipe().expect("a pipe");
            drop(reader);
            writer
        };
        let mut command = desk.command(arguments);
        command.stdout(closed()).stderr(closed()).status().expect("the binary runs").code()
    };
    assert_eq!(code(&["inspect", "lenet5_small.ron", "--json"]), Some(0));
    assert_eq!(code(&["inspect", "missing.ron"]), Some(3));
    assert_eq!(code(&["compile", "lenet5_small.onnx", "-v"]), Some(0));
}

#[test]
fn arguments_that_make_no_sense() {
    let desk = Desk::new();
    desk.model("lenet5_small");
    insta::assert_snapshot!(desk.fail(&["compile", "lenet5_small.onnx", "--ring-degree", "1000"]));
    insta::assert_snapshot!(desk.fail(&["compile", "lenet5_small.onnx", "--weight-bits", "9"]));
    insta::assert_snapshot!(desk.fail(&["inspect", "x.ron", "--noise", "--json"]));
}

#[test]
fn a_ring_degree_too_small() {
    let desk = Desk::new();
    desk.model("lenet5_large");
    insta::assert_snapshot!(desk.fail(&["compile", "lenet5_large.onnx", "--ring-degree", "1024"]));
    assert_eq!(desk.files(), ["lenet5_large.onnx"]);
}

#[test]
fn targets_that_are_none() {
    let desk = Desk::new();
    desk.model("logreg");
    let watch = include_str!("../../targets/watch.ron");
    desk.write("slow.ron", watch.replace("up_mbit_s: 22.0", "up_mbit_s: 0.0").as_bytes());
    desk.write("other.ron", b"(link: (speed: 3))");
    for name in ["slow", "other", "missing"] {
        let file = format!("{name}.ron");
        insta::assert_snapshot!(format!("target_{name}"), desk.fail(&["compile", "logreg.onnx", "--target", &file]));
    }
    assert!(!desk.files().contains(&"logreg.ron".to_owned()), "nothing was written");
}

#[test]
fn fewer_galois_keys_than_there_can_be() {
    let desk = Desk::new();
    desk.model("cryptonet_small");
    let masked = ["compile", "cryptonet_small.onnx", "--packing", "masked"];
    insta::assert_snapshot!(desk.fail(&[&masked[..], &["--max-key-bytes", "1000"]].concat()));
    assert_eq!(desk.files(), ["cryptonet_small.onnx"]);
}

#[test]
fn calibration_data_that_does_not_fit() {
    let desk = Desk::new();
    desk.model("logreg");
    desk.write("text.npz", b"no archive");
    insta::assert_snapshot!(desk.fail(&["compile", "logreg.onnx", "--calibrate", "text.npz"]));
    insta::assert_snapshot!(desk.fail(&["compile", "logreg.onnx", "--calibrate", "missing.npz"]));
    let numbers = ndarray::Array3::<f32>::zeros((4, 28, 29));
    ndarray_npy::write_npy(desk.path("wide.npy"), &numbers).expect("the folder is writable");
    insta::assert_snapshot!(desk.fail(&["compile", "logreg.onnx", "--calibrate", "wide.npy"]));
    let numbers = ndarray::Array3::<i64>::zeros((4, 28, 28));
    ndarray_npy::write_npy(desk.path("integers.npy"), &numbers).expect("the folder is writable");
    insta::assert_snapshot!(desk.fail(&["compile", "logreg.onnx", "--calibrate", "integers.npy"]));
    assert!(!desk.files().contains(&"logreg.ron".to_owned()), "nothing was written");
}

#[test]
fn plans_that_are_damaged_or_of_another_kind() {
    let desk = Desk::compiled();
    let text = std::fs::read_to_string(desk.path("lenet5_small.ron")).expect("it was written");
    // One digit, somewhere in the middle.
    desk.write("flipped.ron", text.replacen("weight_bits: 4", "weight_bits: 5", 1).as_bytes());
    desk.write("cut.ron", &text.as_bytes()[..text.len() / 2]);
    let (body, _) = text.trim_end().rsplit_once('\n').expect("a checksum in the last line");
    let later = body.replace("format_version: 3", "format_version: 7");
    desk.write("later.ron", format!("{later}\n// sha256: {}\n", sha256(later.as_bytes())).as_bytes());
    let mut plan = chococ_plans::file::from_text(&text).expect("it was just written").plan().clone();
    plan.key_sets[0].parameters.key_switching_prime = Some(1_152_921_504_606_830_593);
    plan.key_sets[0].parameters.ciphertext_primes.push(1_152_921_504_598_720_513);
    desk.write("insecure.ron", to_text(&plan).as_bytes());
    desk.write("bytes.ron", &[0xff, 0xfe, 0, 1, 2]);
    for name in ["flipped", "cut", "later", "insecure", "bytes", "missing"] {
        insta::assert_snapshot!(format!("inspect_{name}"), desk.fail(&["inspect", &format!("{name}.ron")]));
    }
}
