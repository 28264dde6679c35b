//! Plans and weights on disk: what is written is read, and damage is noticed.

mod small_plan;

use chococ_plans::file::{FileProblem, from_text, read_plan, read_weights, sha256, to_text, write};
use chococ_plans::weights::Weights;
use proptest::prelude::*;
use small_plan::small_plan;

#[test]
fn what_is_written_is_read() {
    let (plan, weights) = small_plan();
    let folder = tempfile::tempdir().expect("a folder for the test");
    let path = folder.path().join("small.ron");
    write(&path, &plan, &weights.to_bytes()).expect("the folder is writable");
    let read = read_plan(&path).expect("it was just written");
    assert_eq!(read.plan(), &plan);
    assert_eq!(read_weights(&path, &plan).expect("they lie beside it"), weights);
    assert_eq!(std::fs::read_dir(folder.path()).expect("it exists").count(), 2, "nothing half-written stays");
}

#[test]
fn a_plan_reads_well() {
    insta::assert_snapshot!(to_text(&small_plan().0));
}

/// Every digit of the text, changed: each must be noticed.
#[test]
fn a_flipped_digit_is_noticed() {
    let text = to_text(&small_plan().0);
    let digits = text.char_indices().filter(|(_, c)| c.is_ascii_digit());
    for (at, digit) in digits {
        let flipped = if digit == '9' { '8' } else { (digit as u8 + 1) as char };
        let damaged = format!("{}{flipped}{}", &text[..at], &text[at + 1..]);
        assert!(from_text(&damaged).is_err(), "the digit at {at} is {flipped} instead of {digit}");
    }
}

#[test]
fn a_cut_plan_is_noticed() {
    let text = to_text(&small_plan().0);
    for end in (0..text.len() - 1).step_by(7) {
        assert!(from_text(&text[..end]).is_err(), "cut at {end}");
    }
}

/// The text of a plan after a change to its body, with a checksum that fits.
fn resigned(change: impl FnOnce(String) -> String) -> String {
    let text = to_text(&small_plan().0);
    let (body, _) = text.trim_end().rsplit_once('\n').expect("a checksum in the last line");
    let body = change(body.to_owned());
    format!("{body}\n// sha256: {}\n", sha256(body.as_bytes()))
}

#[test]
fn errors_say_what_to_do() {
    let error = |text: &str| from_text(text).expect_err("it is damaged").to_string();
    insta::assert_snapshot!(error(""), @r"
    it does not end in a plan's checksum: it is cut short, or no plan
      try: the .ron file that `chococ compile` wrote, or compile the model again
    ");
    insta::assert_snapshot!(error(&to_text(&small_plan().0).replace("scale: 0.125", "scale: 0.126")), @r"
    the plan's text does not match its checksum: it was changed or damaged
      try: compile the model again
    ");
    insta::assert_snapshot!(error(&resigned(|body| body.replace("format_version: 3", "format_version: 4"))), @r"
    the plan has format version 4, this program reads 3
      try: compile the model again with this version, or run the plan with the one that wrote it
    ");
    insta::assert_snapshot!(error(&resigned(|body| body.replace("input_shape", "input_shapes"))));
}

#[test]
fn weights_must_be_those_of_the_plan() {
    let (plan, weights) = small_plan();
    let folder = tempfile::tempdir().expect("a folder for the test");
    let path = folder.path().join("small.ron");
    let problem = || read_weights(&path, &plan).expect_err("nothing is right yet").problem;
    assert!(matches!(problem(), FileProblem::NoWeights));
    let mut bytes = weights.to_bytes();
    *bytes.last_mut().expect("weights have bytes") ^= 1;
    write(&path, &plan, &bytes).expect("the folder is writable");
    assert!(matches!(problem(), FileProblem::WeightsHash { .. }));

    let wrong = |change: fn(&mut Weights)| {
        let mut weights = weights.clone();
        change(&mut weights);
        Weights::from_bytes(&weights.to_bytes(), &plan).expect_err("the change must be noticed").to_string()
    };
    insta::assert_snapshot!(wrong(|w| w.integers.clear()), @r"
    the weights lack the tensor `conv.weight`
      try: compile the plan again
    ");
    insta::assert_snapshot!(wrong(|w| w.integers.get_mut("conv").expect("conv").weights[3] = 8), @r"
    layer `conv`: weight 8 does not fit 4 bits
      try: compile the plan again
    ");
    insta::assert_snapshot!(wrong(|w| w.integers.get_mut("conv").expect("conv").weights[3] = 1), @r"
    layer `conv`, output channel 0: the weights can reach (-535, 20), the plan says (-625, 5)
      try: compile the plan again
    ");
    insta::assert_snapshot!(wrong(|w| w.integers.get_mut("conv").expect("conv").bias[0] = i64::MIN), @r"
    layer `conv`, output channel 0: the weights can reach (-9223372036854775808, -9223372036854775808), the plan says (-625, 5)
      try: compile the plan again
    ");
    insta::assert_snapshot!(wrong(|w| { w.floats.get_mut("conv").expect("conv").bias.pop(); }), @r"
    tensor `conv.float_bias` should be F32 [2], found F32 [1]
      try: compile the plan again
    ");
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..Default::default() })]

    #[test]
    fn random_bytes_are_no_plan_and_no_weights(bytes in prop::collection::vec(any::<u8>(), 0..300)) {
        let (plan, _) = small_plan();
        prop_assert!(Weights::from_bytes(&bytes, &plan).is_err());
        prop_assert!(from_text(&String::from_utf8_lossy(&bytes)).is_err());
    }
}
