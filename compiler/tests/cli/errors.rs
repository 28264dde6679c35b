//! Bad input: each with its message and its exit code, and nothing half-written.

use chococ_plans::file::{sha256, to_text};

use crate::Desk;
use crate::builder::Builder;

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
    insta::assert_snapshot!(desk.fail(&["compile", "lenet5_large.onnx", "--ring-degree", "2048"]));
    assert_eq!(desk.files(), ["lenet5_large.onnx"]);
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
    // A digit of a prime, somewhere in the middle.
    desk.write("flipped.ron", text.replacen("digit_bits: 2", "digit_bits: 3", 1).as_bytes());
    desk.write("cut.ron", &text.as_bytes()[..text.len() / 2]);
    let (body, _) = text.trim_end().rsplit_once('\n').expect("a checksum in the last line");
    let later = body.replace("format_version: 1", "format_version: 7");
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
