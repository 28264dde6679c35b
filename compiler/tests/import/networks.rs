//! The trained networks: on real images, the logits that onnxruntime gave.

use std::fs::{self, File};
use std::path::{Path, PathBuf};

use chococ_compiler::graph::{Graph, Op};
use chococ_compiler::onnx;
use chococ_compiler::passes::fold_batch_norm::fold_batch_norm;
use chococ_models::{Model, named};
use chococ_plans::input::read_samples;
use chococ_plans::op::ClientOp;
use ndarray::Array2;
use ndarray_npy::NpzReader;

use super::{assert_close, kinds, oracle};

/// Images that reference logits exist for, in each set.
const IMAGES: usize = 16;
/// How far logits may be off, of those beyond 1 a part.
const TOLERANCE: f32 = 1e-3;

fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../models")
}

fn npz(file: &str) -> NpzReader<File> {
    let path = folder().join("data").join(file);
    NpzReader::new(File::open(&path).expect("the data is there")).expect("the data is an npz file")
}

/// A trained network of that name.
fn model(network: &str) -> &'static Model {
    named(network).expect("one of the models")
}

/// The first test images of a network, pixels in 0 to 1.
fn images(network: &str) -> Vec<Vec<f32>> {
    let model = model(network);
    let samples = read_samples(model.test_images(), &model.input_shape, Some(IMAGES));
    samples.expect("the images are part of this repository").inputs
}

fn read(network: &str) -> Vec<u8> {
    fs::read(folder().join(format!("{network}.onnx"))).expect("the model is there")
}

fn import(network: &str) -> (Graph, Vec<String>) {
    let mut notices = Vec::new();
    match onnx::import(&read(network), &mut notices) {
        Ok(graph) => (graph, notices),
        Err(error) => panic!("{network}: {error}"),
    }
}

fn all() -> Vec<String> {
    let files = fs::read_dir(folder()).expect("the models' folder").map(|entry| entry.expect("a file").path());
    let mut networks: Vec<String> = files
        .filter(|path| path.extension().is_some_and(|extension| extension == "onnx"))
        .map(|path| path.file_stem().expect("a name").to_string_lossy().into_owned())
        .collect();
    networks.sort();
    assert!(networks.len() >= 8, "the networks of this project: {networks:?}");
    networks
}

#[test]
fn logits_are_those_of_the_reference() {
    let mut references = npz("reference_logits.npz");
    for network in all() {
        let reference: Array2<f32> = references.by_name(&network).expect("reference logits");
        let (graph, _) = import(&network);
        let folded = fold_batch_norm(graph.clone());
        for (image, expected) in images(&network).iter().zip(reference.outer_iter()) {
            let expected = expected.to_vec();
            assert_close(&graph.answer(image), &expected, TOLERANCE);
            assert_close(&folded.answer(image), &expected, TOLERANCE);
        }
    }
}

#[test]
fn logits_are_those_of_tract() {
    for network in all() {
        let (graph, _) = import(&network);
        let image = &images(&network)[0];
        let [channels, height, width] = model(&network).input_shape;
        let expected = oracle(&read(&network), &[1, channels, height, width], image);
        assert_close(&graph.answer(image), &expected, TOLERANCE);
    }
}

#[test]
fn a_dynamic_batch_is_bound_with_a_notice() {
    let (graph, notices) = import("lenet5_small_dyn");
    assert_eq!(notices.len(), 1);
    assert!(notices[0].contains("bound to 1"), "{}", notices[0]);
    let (fixed, no_notices) = import("lenet5_small");
    assert!(no_notices.is_empty());
    assert_eq!(kinds(&graph), kinds(&fixed));
}

#[test]
fn every_batch_norm_folds() {
    let (graph, _) = import("mobilenet_fashion_bn");
    let norms = |graph: &Graph| {
        let is_affine = |op: &Op| matches!(op, Op::Client(ClientOp::Affine { .. }));
        graph.nodes.node_weights().filter(|node| is_affine(&node.op)).count()
    };
    assert!(norms(&graph) > 0);
    let folded = fold_batch_norm(graph);
    assert_eq!(norms(&folded), 0);
    assert_eq!(kinds(&folded), kinds(&import("mobilenet_fashion").0));
}

#[test]
fn node_names_are_those_of_the_file() {
    let (graph, _) = import("lenet5_small");
    let names: Vec<&str> = graph.order().into_iter().map(|node| graph.nodes[node].name.as_str()).collect();
    insta::assert_debug_snapshot!(names);
}

#[test]
fn truncated_models_are_refused() {
    let model = read("logreg");
    for length in (0..model.len()).step_by(997).chain(0..64) {
        assert!(onnx::import(&model[..length], &mut Vec::new()).is_err(), "the first {length} bytes");
    }
}

#[test]
fn damaged_models_never_panic() {
    let model = read("lenet5_small_dyn");
    for step in 0..400usize {
        let mut damaged = model.clone();
        // Most of a model is weights; its structure lies at both ends.
        let place = if step % 2 == 0 { step * 5 % 2000 } else { model.len() - 1 - step * 7 % 3000 };
        damaged[place] = damaged[place].wrapping_add(1 + (step % 250) as u8);
        let _ = onnx::import(&damaged, &mut Vec::new());
    }
}
