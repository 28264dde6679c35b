//! Bytes that pass for one inference, beside those of the CHOCO paper, and every integer of it right.
//!
//! `cargo test --release --workspace --test bytes -- --include-ignored --nocapture --test-threads 1` prints the rows of
//! README.md.

use chococ_compiler::Compiled;
use chococ_models::built_named;
use chococ_tests::{Pair, compare, compiled, compiled_built, images, model};

/// Most bytes of Galois keys.
const MOST_KEYS: usize = 4_000_000;

/// Runs an inference and counts what passes; `most` bytes may, keys apart.
fn measure(name: &str, compiled: &Compiled, input: &[f32], most: usize) {
    let mut pair = Pair::new(compiled, 5);
    let run = pair.run(input);
    compare(compiled, input, &run).unwrap_or_else(|problem| panic!("{name}: {problem}"));
    let sum = |part: fn(&chococ_runtime::client::StageRecord) -> usize| run.records.iter().map(part).sum::<usize>();
    let (up, down, keys) = (sum(|record| record.bytes_up), sum(|record| record.bytes_down), pair.galois_keys.len());
    let kilobytes = |bytes: usize| format!("{:.1}", bytes as f64 / 1e3);
    let cells = [up, down, up + down, keys, up + down + keys].map(kilobytes);
    println!("| {name} | {} |", cells.join(" | "));
    assert!(up + down <= most, "{name}: {} bytes", up + down);
    assert!(keys <= MOST_KEYS, "{name}: {keys} bytes of Galois keys");
}

fn measure_built(name: &str, most: usize) {
    let network = built_named(name).expect("one of those that are built");
    measure(name, &compiled_built(name), &network.inputs(1)[0], most);
}

#[test]
fn lenet5_large_takes_a_tenth() {
    let image = images(model("lenet5_large"), true, 1).inputs.remove(0);
    measure("lenet5_large", &compiled("lenet5_large", 4, None), &image, 260_000);
}

#[test]
fn squeezenet_takes_a_tenth() {
    measure_built("squeezenet", 1_380_000);
}

#[test]
fn a_chain_of_nineteen_convolutions() {
    measure_built("resnet20_chain", 1_900_000);
}

#[test]
fn resnet20_takes_less_than_three_megabytes() {
    measure_built("resnet20", 2_000_000);
}

#[test]
#[ignore = "takes minutes"]
fn vgg16_takes_an_eighth() {
    measure_built("vgg16", 2_800_000);
}
