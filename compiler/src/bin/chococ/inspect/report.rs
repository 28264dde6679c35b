//! A plan as one JSON document. Field names are stable; their endings are units.

use chococ_plans::check::{CheckedPlan, CheckedStage};
use chococ_plans::cost::Cost;
use chococ_plans::noise::Budget;
use chococ_plans::plan::{FileId, Quantization, Security};
use serde::Serialize;

use crate::inspect::summary::computes;

#[derive(Serialize)]
struct Report<'a> {
    format_version: u32,
    model: &'a FileId,
    weights: &'a FileId,
    quantization: &'a Quantization,
    security: &'a Security,
    input_shape: &'a [usize],
    stages: Vec<StageReport<'a>>,
    total: Cost,
    galois_keys: usize,
    galois_bytes: usize,
}

#[derive(Serialize)]
struct StageReport<'a> {
    name: &'a str,
    computes: String,
    macs: usize,
    packing: String,
    ring_degree: usize,
    ciphertext_primes: &'a [u64],
    key_switching_prime: Option<u64>,
    digit_bits: u32,
    plaintext_modulus: u64,
    request_dropped_bits: u32,
    reply_modulus: u64,
    reply_dropped_bits: u32,
    result_values: u64,
    budget: &'a Budget,
    cost: &'a Cost,
    runner_up: Option<RunnerUpReport>,
}

#[derive(Serialize)]
struct RunnerUpReport {
    packing: String,
    ring_degree: usize,
    bytes: usize,
}

impl<'a> StageReport<'a> {
    fn new(checked: CheckedStage<'a>) -> StageReport<'a> {
        let CheckedStage { stage, parameters, .. } = checked;
        StageReport {
            name: &stage.layer.name,
            computes: computes(&stage.layer.operator),
            macs: stage.layer.operator.macs(),
            packing: stage.packing.to_string(),
            ring_degree: parameters.keys.ring_degree,
            ciphertext_primes: &parameters.keys.ciphertext_primes,
            key_switching_prime: parameters.keys.key_switching_prime,
            digit_bits: parameters.keys.digit_bits,
            plaintext_modulus: parameters.stage.plaintext_modulus,
            request_dropped_bits: parameters.stage.request_dropped_bits,
            reply_modulus: parameters.stage.reply_modulus,
            reply_dropped_bits: parameters.stage.reply_dropped_bits,
            result_values: stage.layer.width(),
            budget: &stage.budget,
            cost: &stage.cost,
            runner_up: stage.runner_up.as_ref().map(|second| RunnerUpReport {
                packing: second.packing.to_string(),
                ring_degree: second.ring_degree,
                bytes: second.bytes,
            }),
        }
    }
}

/// The document.
pub fn show(checked: &CheckedPlan) -> String {
    let plan = checked.plan();
    let report = Report {
        format_version: plan.format_version,
        model: &plan.model,
        weights: &plan.weights,
        quantization: &plan.quantization,
        security: &plan.security,
        input_shape: &plan.input_shape,
        stages: checked.server_stages().map(StageReport::new).collect(),
        total: plan.cost(),
        galois_keys: plan.key_sets.iter().map(|set| set.galois.len()).sum(),
        galois_bytes: plan.galois_bytes(),
    };
    serde_json::to_string_pretty(&report).expect("a report is plain data") + "\n"
}
