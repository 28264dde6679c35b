//! Quantised networks against their float originals, on real images that neither training nor calibration saw.

use chococ_compiler::int_graph::IntGraph;
use chococ_compiler::onnx::import;
use chococ_compiler::passes::fold_batch_norm::fold_batch_norm;
use chococ_compiler::passes::quantize::{Bits, Calibration, QuantizationReport, quantize};
use chococ_models::{Model, named};
use chococ_plans::input::{Samples, read_samples};
use rayon::prelude::*;

const FOUR_BITS: Bits = Bits { activation: 4, weight: 4 };
const EIGHT_BITS: Bits = Bits { activation: 8, weight: 8 };

fn quantized(model: &Model, bits: Bits, calibration: Option<usize>) -> (IntGraph, QuantizationReport) {
    let bytes = std::fs::read(model.path()).unwrap();
    let graph = fold_batch_norm(import(&bytes, &mut Vec::new()).unwrap());
    let calibration = match calibration {
        Some(count) => {
            Calibration::new(read_samples(model.calibration_images(), &model.input_shape, Some(count)).unwrap().inputs)
        }
        None => Calibration::uniform(&model.input_shape, 64, 0),
    };
    quantize(&graph, &calibration, bits).unwrap()
}

/// Accuracy in percent on the first `count` test images: (float, quantised).
fn accuracies(model: &Model, network: &IntGraph, count: usize) -> (f64, f64) {
    let Samples { inputs, labels } = read_samples(model.test_images(), &model.input_shape, Some(count)).unwrap();
    let labels = labels.unwrap();
    let percent = |answer: &(dyn Fn(&[f32]) -> Vec<f32> + Sync)| {
        let right = inputs.par_iter().zip(&labels).filter(|(x, label)| largest(&answer(x)) == **label).count();
        100.0 * right as f64 / inputs.len() as f64
    };
    (percent(&|x| network.eval_floats(x)), percent(&|x| network.eval(x).output))
}

fn largest(values: &[f32]) -> usize {
    (0..values.len()).fold(0, |best, next| if values[next] > values[best] { next } else { best })
}

#[track_caller]
fn assert_loses_at_most(points: f64, name: &str, bits: Bits, calibration: Option<usize>, test_images: usize) {
    let model = named(name).unwrap();
    let (network, report) = quantized(model, bits, calibration);
    let (float, integer) = accuracies(model, &network, test_images);
    println!("{name} at {bits:?}: float {float:.2} %, integers {integer:.2} %, agreement {:.3}", report.agreement);
    assert!(integer >= float - points, "{name}: float {float} %, integers {integer} %");
}

#[test]
fn four_bits_cost_the_small_networks_less_than_a_point() {
    for name in ["mlp", "lenet5_small"] {
        assert_loses_at_most(1.0, name, FOUR_BITS, Some(200), 400);
    }
}

#[test]
fn eight_bits_cost_a_depthwise_network_next_to_nothing() {
    assert_loses_at_most(1.0, "mobilenet_fashion_bn", EIGHT_BITS, Some(100), 200);
}

#[test]
fn made_up_inputs_still_give_a_working_network_and_say_so() {
    let model = named("mlp").unwrap();
    let (network, report) = quantized(model, EIGHT_BITS, None);
    let (float, integer) = accuracies(model, &network, 200);
    assert!(integer >= float - 5.0, "float {float} %, integers {integer} %");
    assert!(report.notices[0].contains("--calibrate"), "{:?}", report.notices);
}

#[test]
fn a_report_names_every_layer_and_what_was_tried() {
    let (network, report) = quantized(named("lenet5_small").unwrap(), FOUR_BITS, Some(120));
    assert_eq!(report.layers.len(), 5);
    for (layer, told) in network.layers().zip(&report.layers) {
        assert_eq!((&layer.name, layer.width()), (&told.name, told.width));
        assert!((1..=4).contains(&told.candidates.len()));
        assert!(told.candidates.is_sorted_by(|a, b| a.output_error <= b.output_error));
        assert!(!told.signed_activations);
    }
}

#[test]
#[ignore = "all held-out images of all networks, lenet5_large among them"]
fn all_networks_on_all_held_out_images() {
    for (name, points) in [("logreg", 1.0), ("mlp", 1.0), ("cryptonet_small", 1.0), ("lenet5_small", 1.0)] {
        assert_loses_at_most(points, name, FOUR_BITS, Some(500), 2000);
    }
    assert_loses_at_most(0.5, "lenet5_large", FOUR_BITS, Some(500), 2000);
    assert_loses_at_most(1.0, "mobilenet_fashion", EIGHT_BITS, Some(500), 1000);
    // Depthwise layers are the hard case: a float accuracy of 85.4 % with a standard error of 1.1.
    assert_loses_at_most(6.0, "mobilenet_fashion_bn", FOUR_BITS, Some(500), 1000);
}
