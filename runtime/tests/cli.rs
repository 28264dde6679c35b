//! `choco-run` as a user meets it: what it prints, and how it fails.

#[path = "../../plans/tests/small_plan/mod.rs"]
mod small_plan;

use std::path::PathBuf;
use std::process::{Command, Output};

use chococ_plans::file::{sha256, to_text, write};
use ndarray::{Array1, Array3, Array4, ArrayBase, Dimension, OwnedRepr};
use ndarray_npy::{NpzWriter, WritableElement, write_npy};
use serde_json::Value;
use small_plan::small_plan;

/// A folder with a plan, its weights, and inputs.
struct Desk {
    folder: tempfile::TempDir,
}

impl Desk {
    fn new() -> Desk {
        let desk = Desk { folder: tempfile::tempdir().expect("a folder for the test") };
        let (plan, weights) = small_plan();
        write(&desk.path("small.ron"), &plan, &weights.to_bytes()).expect("the folder is writable");
        let pixels = Array4::from_shape_fn((3, 1, 6, 6), |(n, _, y, x)| ((n * 7 + y * 5 + x * 3) % 11) as f32 / 5.0);
        desk.npy("images.npy", &pixels);
        let mut npz = NpzWriter::new(std::fs::File::create(desk.path("data.npz")).expect("the folder is writable"));
        npz.add_array("images", &pixels).expect("an array");
        npz.add_array("labels", &Array1::from(vec![49u8, 40, 5])).expect("an array");
        npz.finish().expect("the folder is writable");
        desk
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    fn npy<T: WritableElement, D: Dimension>(&self, name: &str, array: &ArrayBase<OwnedRepr<T>, D>) {
        write_npy(self.path(name), array).expect("the folder is writable");
    }

    fn text(&self) -> String {
        std::fs::read_to_string(self.path("small.ron")).expect("it was written")
    }

    fn run(&self, arguments: &[&str]) -> Output {
        let mut command = Command::new(env!("CARGO_BIN_EXE_choco-run"));
        command.current_dir(self.folder.path()).args(arguments).output().expect("the binary runs")
    }

    fn succeed(&self, arguments: &[&str]) -> String {
        let output = self.run(arguments);
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        String::from_utf8(output.stdout).expect("text")
    }

    /// Runs a command that must fail; returns its message and exit code.
    fn fail(&self, arguments: &[&str]) -> String {
        let output = self.run(arguments);
        assert!(output.stdout.is_empty(), "nothing but errors");
        let code = output.status.code().expect("an exit, not a signal");
        format!("{}exit code {code}", String::from_utf8(output.stderr).expect("text"))
    }

    fn report(&self, arguments: &[&str]) -> Value {
        serde_json::from_str(&self.succeed(&[arguments, &["--json"]].concat())).expect("JSON")
    }
}

#[test]
fn both_back_ends_give_one_answer() {
    let desk = Desk::new();
    for index in ["0", "1", "2"] {
        let plain = desk.report(&["small.ron", "--input", "images.npy", "--index", index, "--backend", "plain"]);
        let encrypted = desk.report(&["small.ron", "--input", "data.npz", "--index", index, "--verify"]);
        assert_eq!(plain["scores"], encrypted["scores"]);
        assert_eq!(encrypted["verified"], true);
    }
}

#[test]
fn reports_count_what_the_plan_counts() {
    let desk = Desk::new();
    let (plan, _) = small_plan();
    let report = desk.report(&["small.ron", "--input", "images.npy", "--threads", "1"]);
    assert_eq!(report["bytes_up"], plan.cost().bytes_up);
    assert_eq!(report["bytes_down"], plan.cost().bytes_down);
    assert_eq!(report["galois_keys_bytes"], plan.galois_bytes());
    let stage = &report["stages"][0];
    assert!(stage["measured_budget_bits"].as_f64() >= stage["estimated_budget_bits"].as_f64());
}

#[test]
fn the_same_seed_gives_the_same_run() {
    let desk = Desk::new();
    let run = || {
        let report = desk.report(&["small.ron", "--input", "images.npy", "--seed", "9"]);
        (report["scores"].clone(), report["stages"][0]["measured_budget_bits"].clone())
    };
    assert_eq!(run(), run());
}

#[test]
fn a_report_for_people() {
    let desk = Desk::new();
    let text = desk.succeed(&["small.ron", "--input", "images.npy", "--verify", "--seed", "1"]);
    // Times differ from run to run; all else is as the plan says.
    let steady: Vec<&str> = text.lines().filter(|line| !line.contains(" ms") && !line.starts_with("| conv")).collect();
    insta::assert_snapshot!(steady.join("\n"));
}

#[test]
fn accuracies_side_by_side() {
    let desk = Desk::new();
    insta::assert_snapshot!(desk.succeed(&["evaluate", "small.ron", "--data", "data.npz", "--backend", "bfv"]));
    insta::assert_snapshot!(desk.succeed(&["evaluate", "small.ron", "--data", "data.npz", "--limit", "2"]));
}

#[test]
fn plans_and_weights_that_are_damaged() {
    let desk = Desk::new();
    let run = |name: &str| desk.fail(&[name, "--input", "images.npy"]);
    std::fs::write(desk.path("flipped.ron"), desk.text().replacen("40961", "40971", 1)).expect("writable");
    insta::assert_snapshot!("flipped_digit", run("flipped.ron"));
    let body = desk.text().replace("format_version: 3", "format_version: 4");
    let body = body.trim_end().rsplit_once('\n').expect("a checksum").0.to_owned();
    std::fs::write(desk.path("later.ron"), format!("{body}\n// sha256: {}\n", sha256(body.as_bytes())))
        .expect("writable");
    insta::assert_snapshot!("later_version", run("later.ron"));
    let (mut plan, weights) = small_plan();
    plan.key_sets[0].parameters.key_switching_prime = Some(1_152_921_504_606_830_593);
    plan.key_sets[0].parameters.ring_degree = 2048;
    std::fs::write(desk.path("insecure.ron"), to_text(&plan)).expect("writable");
    insta::assert_snapshot!("insecure", run("insecure.ron"));
    insta::assert_snapshot!("no_plan", run("missing.ron"));

    let mut bytes = weights.to_bytes();
    *bytes.last_mut().expect("weights have bytes") ^= 1;
    std::fs::write(desk.path("small.safetensors"), bytes).expect("writable");
    insta::assert_snapshot!("other_weights", run("small.ron"));
    std::fs::remove_file(desk.path("small.safetensors")).expect("it is there");
    insta::assert_snapshot!("no_weights", run("small.ron"));
}

#[test]
fn inputs_that_do_not_fit() {
    let desk = Desk::new();
    let run = |name: &str| desk.fail(&["small.ron", "--input", name]);
    desk.npy("wide.npy", &Array3::<f32>::zeros((1, 6, 7)));
    insta::assert_snapshot!("wrong_shape", run("wide.npy"));
    desk.npy("integers.npy", &Array3::<i32>::zeros((1, 6, 6)));
    insta::assert_snapshot!("wrong_dtype", run("integers.npy"));
    desk.npy("nan.npy", &Array3::<f32>::from_elem((1, 6, 6), f32::NAN));
    insta::assert_snapshot!("not_finite", run("nan.npy"));
    let whole = std::fs::read(desk.path("images.npy")).expect("it was written");
    // Cut within the first sample.
    std::fs::write(desk.path("cut.npy"), &whole[..200]).expect("writable");
    insta::assert_snapshot!("truncated", run("cut.npy"));
    std::fs::write(desk.path("text.npz"), "no archive").expect("writable");
    insta::assert_snapshot!("no_input", run("text.npz"));
    insta::assert_snapshot!("missing_input", run("missing.npy"));
    insta::assert_snapshot!("no_such_sample", desk.fail(&["small.ron", "--input", "images.npy", "--index", "3"]));
    insta::assert_snapshot!("no_labels", desk.fail(&["evaluate", "small.ron", "--data", "images.npy"]));
}

#[test]
fn arguments_that_make_no_sense() {
    let desk = Desk::new();
    insta::assert_snapshot!("no_arguments", desk.fail(&[]));
    insta::assert_snapshot!("no_threads", desk.fail(&["small.ron", "--input", "images.npy", "--threads", "0"]));
    insta::assert_snapshot!(
        "no_such_backend",
        desk.fail(&["small.ron", "--input", "images.npy", "--backend", "abacus"])
    );
    insta::assert_snapshot!(
        "nothing_to_verify",
        desk.fail(&["small.ron", "--input", "images.npy", "--backend", "plain", "--verify"])
    );
}
