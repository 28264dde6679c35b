//! Accuracy of quantised networks on all held-out images.

use chococ_compiler::{CalibrationInputs, Options};
use chococ_models::{Images, Model};
use chococ_plans::check::check;
use chococ_plans::weights::Weights;
use chococ_runtime::reference;
use chococ_tests::{compiled_with, images, model, options};
use rayon::prelude::*;

/// Accuracies in percent, in floats and at each of `bits`.
fn ladder(model: &Model, bits: &[u32]) -> (f64, Vec<f64>) {
    let samples = images(model, true, usize::MAX);
    let labels = samples.labels.expect("held-out images are labelled");
    let accuracy = |classify: &(dyn Fn(&[f32]) -> Vec<f32> + Sync)| {
        let right = |(input, label): (&Vec<f32>, &usize)| largest(&classify(input)) == *label;
        let count = samples.inputs.par_iter().zip(&labels).filter(|&pair| right(pair)).count();
        100.0 * count as f64 / labels.len() as f64
    };
    let mut float = None;
    let quantised = bits.iter().map(|&bits| {
        let inputs = images(model, false, usize::MAX).inputs;
        let calibration = Some(CalibrationInputs { description: "all training images".to_owned(), inputs });
        let compiled = compiled_with(&Options { calibration, ..options(model, bits, None) }, model.name);
        let weights = Weights::from_bytes(&compiled.weights, &compiled.plan).expect("the compiler's own weights");
        let plan = check(compiled.plan).expect("the compiler's own plan");
        float.get_or_insert_with(|| accuracy(&|x| reference::floats(&plan, &weights, x).expect("a whole plan")));
        accuracy(&|x| reference::integers(&plan, &weights, x).expect("a whole plan").output)
    });
    let quantised = quantised.collect();
    (float.expect("at least one width was asked for"), quantised)
}

fn largest(scores: &[f32]) -> usize {
    (0..scores.len()).fold(0, |best, class| if scores[class] > scores[best] { class } else { best })
}

#[test]
fn four_bits_cost_lenet5_large_less_than_a_point() {
    let model = model("lenet5_large");
    let (float, quantised) = ladder(model, &[4]);
    assert!((float - model.float_accuracy).abs() < 0.01, "float {float}, trained to {}", model.float_accuracy);
    assert!(quantised[0] > float - 1.0, "float {float}, 4 bits {}", quantised[0]);
}

/// The table of README.md.
#[test]
#[ignore = "takes minutes"]
fn accuracy_table() {
    let bits = [8, 6, 5, 4];
    println!("| network | float | 8 bits | 6 bits | 5 bits | 4 bits |");
    for model in chococ_models::all().iter().filter(|model| model.name != "lenet5_small_dyn") {
        let (float, quantised) = ladder(model, &bits);
        let cells: Vec<String> = quantised.iter().map(|accuracy| format!("{accuracy:.2}")).collect();
        println!("| {} | {float:.2} | {} |", model.name, cells.join(" | "));
        assert!((float - model.float_accuracy).abs() < 0.06, "{}: float {float}", model.name);
        // One standard error of a thousand Fashion images is 1.1 points.
        let allowed = match model.images {
            _ if model.name.starts_with("mobilenet") => 8.0,
            Images::Fashion => 3.0,
            Images::Mnist => 1.0,
        };
        assert!(quantised[3] > float - allowed, "{}: float {float}, 4 bits {}", model.name, quantised[3]);
    }
}
