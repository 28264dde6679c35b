//! The noise law: what the compiler estimates is a bound on what the secret key measures, and a tight one.

use chococ_plans::check::{CheckedPlan, check};
use chococ_plans::evaluation::Evaluation;
use chococ_plans::network::{LinearLayer, ValueId};
use chococ_plans::packing::PackingKind;
use chococ_plans::plan::{KeySet, Plan, ServerStage, Stage};
use chococ_plans::weights::Weights;
use chococ_tests::{Pair, compiled};

/// A plan of one stage alone, so that it can be given whatever codes one likes.
fn alone(plan: &Plan, stage: &ServerStage) -> CheckedPlan {
    let layer = LinearLayer { input: ValueId(0), output: ValueId(1), ..stage.layer.clone() };
    let parameters = plan.key_sets[stage.key_set].parameters.clone();
    let layouts = check(plan.clone()).expect("a compiled plan");
    let layout =
        layouts.server_stages().find(|checked| checked.stage == stage).expect("it is one of them").layout.clone();
    let galois = Evaluation::new(&layer, &layout).galois.into_iter().collect();
    let single = Plan {
        input_shape: layer.operator.input_shape(),
        output: ValueId(1),
        key_sets: vec![KeySet { parameters, galois }],
        stages: vec![Stage::Server(ServerStage { layer, key_set: 0, ..stage.clone() })],
        ..plan.clone()
    };
    check(single).expect("a stage of a plan is a plan")
}

/// Codes of one input: extremal ones first, then random ones.
fn codes(case: usize, layer: &LinearLayer, state: &mut u64) -> Vec<i32> {
    let (low, high) = (layer.quantizer.low, layer.quantizer.high);
    let count: usize = layer.operator.input_shape().iter().product();
    let mut random = || {
        *state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        low + ((*state >> 33) % (high - low + 1) as u64) as i32
    };
    match case {
        0 => vec![0; count],
        1 => vec![high; count],
        2 => vec![low; count],
        3 => (0..count).map(|i| if i % 2 == 0 { high } else { low }).collect(),
        4 => (0..count).map(|i| if i == count / 2 { high } else { 0 }).collect(),
        _ => (0..count).map(|_| random()).collect(),
    }
}

/// Runs every stage of a network by itself; returns (runs, sum of gaps between measured and estimated budget).
fn measure(name: &str, packing: PackingKind, per_stage: usize) -> (usize, f64) {
    let compiled = compiled(name, 4, Some(packing));
    let weights = Weights::from_bytes(&compiled.weights, &compiled.plan).expect("the compiler's own weights");
    let mut state = 7;
    let (mut runs, mut gaps) = (0, 0.0);
    for stage in compiled.plan.server_stages() {
        let mut pair = Pair::with_weights(alone(&compiled.plan, stage), weights.clone(), 11);
        for case in 0..per_stage {
            let codes = codes(case, &stage.layer, &mut state);
            let input: Vec<f32> = codes.iter().map(|&code| code as f32 * stage.layer.quantizer.scale).collect();
            let run = pair.run(&input);
            assert_eq!(run.records[0].codes, codes, "the input stands for these codes");
            let measured = run.records[0].budget_bits.expect("budgets are watched");
            let estimated = stage.budget.reply_bits;
            let what = format!("{name}, {}, {packing}, case {case}", stage.layer.name);
            assert!(measured >= estimated, "{what}: measured {measured:.2}, estimated {estimated:.2} bits");
            runs += 1;
            gaps += measured - estimated;
        }
    }
    (runs, gaps)
}

#[test]
fn a_thousand_budgets_are_at_least_as_estimated_and_no_more_than_6_bits_off() {
    let mut total = (0, 0.0);
    for packing in PackingKind::ALL {
        for (name, per_stage) in [("lenet5_small", 45), ("mlp", 25), ("cryptonet_small", 15), ("logreg", 15)] {
            let (runs, gaps) = measure(name, packing, per_stage);
            total = (total.0 + runs, total.1 + gaps);
        }
    }
    let mean = total.1 / total.0 as f64;
    println!("{} runs, mean gap {mean:.2} bits", total.0);
    assert!(total.0 >= 1000, "{} runs", total.0);
    assert!(mean < 6.0, "mean gap {mean} bits");
}
