//! A plan small enough to read: a convolution and a ReLU on a 6 x 6 image.

use std::collections::BTreeMap;

use chococ_plans::cost::count;
use chococ_plans::evaluation::Evaluation;
use chococ_plans::file::sha256;
use chococ_plans::network::{ClientStep, LayerWeights, LinearLayer, Quantizer, ValueId};
use chococ_plans::noise::{EncryptionKey, estimate};
use chococ_plans::op::{ClientOp, Conv, Linear};
use chococ_plans::packing::layout::Layout;
use chococ_plans::packing::{Alignment, Packing, SlotPacking, TapOrder};
use chococ_plans::params::{KeyParameters, Parameters, StageParameters};
use chococ_plans::plan::{FORMAT_VERSION, FileId, KeySet, Plan, Quantization, Security, ServerStage, Stage};
use chococ_plans::weights::{FloatWeights, Weights, accumulator_ranges, weight_energy};

/// The plan and its weights.
pub fn small_plan() -> (Plan, Weights) {
    let operator = Linear::Conv(Conv {
        input: [1, 6, 6],
        output: [2, 6, 6],
        kernel: [3, 3],
        strides: [1, 1],
        pads_before: [1, 1],
        dilations: [1, 1],
        groups: 1,
    });
    let integers = LayerWeights { weights: (-9..9).map(|w| w.clamp(-7, 7)).collect(), bias: vec![5, -40] };
    let floats = FloatWeights { weights: vec![0.25; 18], bias: vec![0.5, -0.5] };
    let packing =
        Packing::Slots(SlotPacking { alignment: Alignment::Rotational, taps: TapOrder::Mixed, baby_shifts: 1 });
    let parameters = Parameters {
        keys: KeyParameters {
            ring_degree: 4096,
            ciphertext_primes: vec![16_760_833, 33_538_049],
            key_switching_prime: Some(1_073_692_673),
            digit_bits: 25,
        },
        stage: StageParameters {
            plaintext_modulus: 40_961,
            request_dropped_bits: 0,
            reply_modulus: 67_084_289,
            reply_dropped_bits: 4,
        },
    };
    let layout = Layout::new(&operator, packing, parameters.keys.ring_degree).expect("it fits");
    let layer = LinearLayer {
        name: "conv".to_owned(),
        operator,
        input: ValueId(0),
        output: ValueId(1),
        quantizer: Quantizer { scale: 0.125, low: 0, high: 15 },
        weight_bits: 4,
        output_scales: vec![0.01, 0.02],
        output_ranges: accumulator_ranges(&integers, 0, 15),
        weight_energy: weight_energy(&integers),
    };
    let evaluation = Evaluation::new(&layer, &layout);
    let stage = ServerStage {
        budget: estimate(&parameters, &evaluation.noise, EncryptionKey::Secret),
        cost: count(&parameters, &layout, &evaluation),
        layer,
        key_set: 0,
        parameters: parameters.stage,
        packing,
        runner_up: None,
    };
    let relu = ClientStep {
        name: "relu".to_owned(),
        op: ClientOp::Relu,
        inputs: vec![ValueId(1)],
        output: ValueId(2),
        shape: vec![2, 6, 6],
    };
    let weights = Weights {
        integers: BTreeMap::from([("conv".to_owned(), integers)]),
        floats: BTreeMap::from([("conv".to_owned(), floats)]),
    };
    let plan = Plan {
        format_version: FORMAT_VERSION,
        model: FileId { file: "small.onnx".to_owned(), sha256: sha256(b"no model") },
        weights: FileId { file: "small.safetensors".to_owned(), sha256: sha256(&weights.to_bytes()) },
        quantization: Quantization { activation_bits: 4, weight_bits: 4, calibration: "none".to_owned() },
        security: Security::stated(),
        input_shape: vec![1, 6, 6],
        output: ValueId(2),
        key_sets: vec![KeySet { parameters: parameters.keys, galois: evaluation.galois.into_iter().collect() }],
        stages: vec![Stage::Server(stage), Stage::Client(vec![relu])],
    };
    (plan, weights)
}
