//! Every way to pack a layer, under encryption: the integers of the reference, the bytes and operations of the cost
//! table, and no less noise budget than estimated.

use std::collections::BTreeMap;
use std::sync::Arc;

use chacha20::ChaCha20Rng;
use chococ_plans::check::{CheckedPlan, check};
use chococ_plans::cost::count;
use chococ_plans::evaluation::Evaluation;
use chococ_plans::network::{LayerWeights, LinearLayer, Quantizer, ValueId};
use chococ_plans::noise::{EncryptionKey, estimate};
use chococ_plans::op::{Conv, Dense, Linear};
use chococ_plans::packing::layout::Layout;
use chococ_plans::packing::{Alignment, CoefficientPacking, Packing, SlotPacking, TapOrder};
use chococ_plans::params::{KeyParameters, Parameters, StageParameters, bits_of};
use chococ_plans::plan::{FORMAT_VERSION, FileId, KeySet, Plan, Quantization, Security, ServerStage, Stage};
use chococ_plans::primes::{ntt_primes_below, ntt_primes_from};
use chococ_plans::weights::{Weights, accumulator_ranges, weight_energy};
use chococ_runtime::client::Watch;
use chococ_runtime::server::Operations;
use chococ_runtime::{Client, Server, Turn, reference};
use proptest::prelude::*;
use rand::SeedableRng;

/// Ring degree, ciphertext primes, special prime and digits, all in bits: smallest first.
const PARAMETERS: [(usize, &[u32], u32, u32); 3] =
    [(2048, &[38], 15, 10), (4096, &[30, 30], 30, 30), (8192, &[30, 30, 30, 30], 50, 15)];

/// Codes of four bits, without a sign.
const CODES: Quantizer = Quantizer { scale: 0.5, low: 0, high: 15 };

/// Convolutions with strides, padding, dilations and groups, on images that need not be square; and dense layers.
fn operators() -> impl Strategy<Value = Linear> {
    let pair = |from: usize, to: usize| [from..to, from..to];
    let conv = (1usize..4, 1usize..4, 1usize..4, pair(3, 9), pair(1, 4), pair(1, 3), pair(0, 3), pair(1, 3))
        .prop_filter_map(
            "the kernel must fit",
            |(groups, inputs, outputs, image, kernel, strides, pads, dilations)| {
                let output = [0, 1].map(|axis| {
                    let reach = dilations[axis] * (kernel[axis] - 1) + 1;
                    let room = (image[axis] + 2 * pads[axis]).checked_sub(reach);
                    room.map_or(0, |room| room / strides[axis] + 1)
                });
                let fits = output.iter().all(|&size| size > 0) && (0..2).all(|axis| pads[axis] < kernel[axis]);
                fits.then_some(Linear::Conv(Conv {
                    input: [groups * inputs, image[0], image[1]],
                    output: [groups * outputs, output[0], output[1]],
                    kernel,
                    strides,
                    pads_before: pads,
                    dilations,
                    groups,
                }))
            },
        );
    let dense = (1usize..60, 1usize..60).prop_map(|(inputs, outputs)| Linear::Dense(Dense { inputs, outputs }));
    prop_oneof![2 => conv, 1 => dense]
}

/// Every alignment and order; masks go with rotated inputs alone.
fn packings() -> impl Strategy<Value = SlotPacking> {
    let orders = prop_oneof![Just(TapOrder::Inputs), Just(TapOrder::Outputs), Just(TapOrder::Mixed)];
    let alignments = prop_oneof![
        3 => (Just(Alignment::Rotational), orders.clone()),
        3 => (Just(Alignment::Punctured), orders),
        1 => (Just(Alignment::Masked), Just(TapOrder::Inputs)),
    ];
    (alignments, 0u32..3).prop_map(|((alignment, taps), log)| SlotPacking { alignment, taps, baby_shifts: 1 << log })
}

/// Tiles, stacks and merges of any kind, whether or not they fit.
fn coefficients() -> impl Strategy<Value = CoefficientPacking> {
    ([1usize..9, 1usize..9], 1usize..5, 0u32..9, 1usize..5, 0u32..9).prop_map(
        |(tile, tiles_at_once, interleave, stack, merge)| CoefficientPacking {
            tile,
            tiles_at_once,
            interleave: 1 << interleave,
            stack,
            merge: 1 << merge.min(interleave),
        },
    )
}

/// A plan of one stage with this packing, under the smallest parameters that fit it.
fn plan_of(operator: &Linear, packing: Packing, weights: &LayerWeights) -> Option<CheckedPlan> {
    let output_ranges = accumulator_ranges(weights, CODES.low, CODES.high);
    let layer = LinearLayer {
        name: "layer".to_owned(),
        operator: operator.clone(),
        input: ValueId(0),
        output: ValueId(1),
        quantizer: CODES,
        weight_bits: 4,
        output_scales: vec![0.25; operator.output_channels()],
        output_ranges,
        weight_energy: weight_energy(weights),
    };
    PARAMETERS.iter().find_map(|&(ring_degree, widths, special, digit_bits)| {
        let t = match packing {
            Packing::Slots(_) => ntt_primes_from(layer.width(), ring_degree).next().expect("primes do not end"),
            Packing::Coefficients(_) => layer.width(),
        };
        let primes = |bits: u32, nth: usize| ntt_primes_below(bits, ring_degree).filter(|&p| p != t).nth(nth);
        let keys = KeyParameters {
            ring_degree,
            ciphertext_primes: (0..).zip(widths).map(|(nth, &bits)| primes(bits, nth)).collect::<Option<_>>()?,
            // Behind the ciphertext primes, which may have the same width.
            key_switching_prime: Some(primes(special, if special == 30 { widths.len() } else { 0 })?),
            digit_bits,
        };
        let stage = StageParameters {
            plaintext_modulus: t,
            request_dropped_bits: if widths.len() == 1 { 4 } else { 0 },
            // Three bits more than the rounding of c1 and of c0 needs.
            reply_modulus: primes(bits_of(t) + 8 + ring_degree.ilog2() / 2, 0)?,
            reply_dropped_bits: 5,
        };
        let parameters = Parameters { keys, stage };
        let layout = Layout::new(operator, packing, ring_degree).ok()?;
        let evaluation = Evaluation::new(&layer, &layout);
        let stage = ServerStage {
            layer: layer.clone(),
            key_set: 0,
            parameters: parameters.stage,
            packing,
            budget: estimate(&parameters, &evaluation.noise, EncryptionKey::Secret),
            cost: count(&parameters, &layout, &evaluation),
            runner_up: None,
        };
        let file = |name: &str| FileId { file: name.to_owned(), sha256: String::new() };
        check(Plan {
            format_version: FORMAT_VERSION,
            model: file("none.onnx"),
            weights: file("none.safetensors"),
            quantization: Quantization { activation_bits: 4, weight_bits: 4, calibration: "none".to_owned() },
            security: Security::stated(),
            input_shape: operator.input_shape(),
            output: ValueId(1),
            key_sets: vec![KeySet { parameters: parameters.keys, galois: evaluation.galois.into_iter().collect() }],
            stages: vec![Stage::Server(stage)],
        })
        .ok()
    })
}

/// Runs a layer under encryption and compares everything with what is known beforehand.
fn runs_as_planned(operator: &Linear, packing: Packing, seed: u64) -> Result<(), TestCaseError> {
    let mut state = seed;
    let mut draw = |low: i64, high: i64| {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        low + (state >> 33) as i64 % (high - low + 1)
    };
    let weights = LayerWeights {
        weights: (0..operator.weight_shape().iter().product()).map(|_| draw(-7, 7) as i32).collect(),
        bias: (0..operator.output_channels()).map(|_| draw(-99, 99)).collect(),
    };
    let input: Vec<f32> =
        (0..operator.input_shape().iter().product()).map(|_| draw(0, 15) as f32 * CODES.scale).collect();
    let Some(plan) = plan_of(operator, packing, &weights) else {
        return Err(TestCaseError::reject("no parameters fit"));
    };
    let plan = Arc::new(plan);
    let weights = Weights { integers: BTreeMap::from([("layer".to_owned(), weights)]), floats: BTreeMap::new() };

    let mut rng = ChaCha20Rng::seed_from_u64(seed);
    let client = Client::new(plan.clone(), &mut rng).expect("a checked plan's parameters work");
    let client = client.watch(Watch { integers: true, budgets: true });
    let server = Server::new(plan.clone(), &weights, &|_, _| {}).expect("the weights are complete");
    let galois_keys = client.galois_keys(&mut rng);
    prop_assert_eq!(galois_keys.len(), plan.plan().galois_bytes());
    prop_assert_eq!(server.size_bytes(), plan.plan().cost().server_bytes);
    let session = server.session(&galois_keys).expect("the client's own keys");
    let (mut inference, turn) = client.start(&input, &mut rng).expect("an input of the right size");
    let Turn::Send(request) = turn else { panic!("the only stage is the server's") };
    let reply = session.answer(&request).expect("the client's own request");
    let Ok(Turn::Done(output)) = inference.resume(&reply, &mut rng) else { panic!("there is one stage only") };

    let expected = reference::integers(&plan, &weights, &input).expect("the weights are complete");
    let compared = expected.compare(&plan, inference.records(), &output);
    prop_assert!(compared.is_ok(), "{:?}: {:?}", packing, compared);
    let stage = plan.server_stages().next().expect("there is one").stage;
    let record = &inference.records()[0];
    prop_assert_eq!((record.bytes_up, record.bytes_down), (stage.cost.bytes_up, stage.cost.bytes_down));
    let stated = Operations {
        hoisted_rotations: stage.cost.hoisted_rotations,
        rotations: stage.cost.rotations,
        products: stage.cost.products,
        mask_products: stage.cost.mask_products,
    };
    prop_assert_eq!(session.operations(), stated);
    let measured = record.budget_bits.expect("budgets are watched");
    prop_assert!(measured >= stage.budget.reply_bits, "{measured} below {}", stage.budget.reply_bits);
    Ok(())
}

proptest! {
    // A dozen cases for each of the seven alignments and orders.
    #![proptest_config(ProptestConfig { cases: 84, failure_persistence: None, ..Default::default() })]

    #[test]
    fn every_packing_runs_as_planned(operator in operators(), packing in packings(), seed in any::<u64>()) {
        runs_as_planned(&operator, Packing::Slots(packing), seed)?;
    }

    #[test]
    fn coefficients_run_as_planned(operator in operators(), packing in coefficients(), seed in any::<u64>()) {
        let output = operator.output_shape();
        let size = |axis: usize| output.get(axis + 1).copied().unwrap_or(1);
        let tile = [0, 1].map(|axis| packing.tile[axis].min(size(axis)));
        runs_as_planned(&operator, Packing::Coefficients(CoefficientPacking { tile, ..packing }), seed)?;
    }
}
