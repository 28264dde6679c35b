//! A plan in the clear: what an encrypted run must agree with, stage by stage and bit for bit.

use chococ_plans::check::CheckedPlan;
use chococ_plans::eval;
use chococ_plans::network::LinearLayer;
use chococ_plans::plan::Stage;
use chococ_plans::weights::Weights;

use crate::client::StageRecord;
use crate::error::Error;
use crate::values::Values;

/// A plan carried out on integers, without encryption.
#[derive(Clone, Debug, PartialEq)]
pub struct Reference {
    /// The integers of each server stage.
    pub stages: Vec<Integers>,
    /// The answer.
    pub output: Vec<f32>,
}

/// The integers on either side of one server stage.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Integers {
    /// What the client would encrypt.
    pub codes: Vec<i32>,
    /// What it would decrypt.
    pub accumulators: Vec<i64>,
}

/// Carries a plan out on integers, in the clear.
///
/// # Errors
/// As [`Client::start`](crate::client::Client::start); and [`Error::Weights`], where the weights lack a layer.
pub fn integers(plan: &CheckedPlan, weights: &Weights, input: &[f32]) -> Result<Reference, Error> {
    let mut stages = Vec::new();
    let output = walk(plan, input, |layer, x| {
        let weights = weights.integers.get(&layer.name).ok_or_else(|| Error::Weights { layer: layer.name.clone() })?;
        let codes = eval::quantize(&layer.quantizer, x);
        let accumulators = eval::linear_integers(&layer.operator, weights, &codes);
        let real = eval::dequantize(layer, &accumulators);
        stages.push(Integers { codes, accumulators });
        Ok(real)
    })?;
    Ok(Reference { stages, output })
}

/// Computes the network before quantisation, in single precision.
///
/// # Errors
/// As for [`integers`].
pub fn floats(plan: &CheckedPlan, weights: &Weights, input: &[f32]) -> Result<Vec<f32>, Error> {
    walk(plan, input, |layer, x| {
        let weights = weights.floats.get(&layer.name).ok_or_else(|| Error::Weights { layer: layer.name.clone() })?;
        Ok(eval::linear_floats(&layer.operator, &weights.weights, &weights.bias, x))
    })
}

/// Goes through the stages of a plan; `linear` computes its server stages.
fn walk(
    plan: &CheckedPlan,
    input: &[f32],
    mut linear: impl FnMut(&LinearLayer, &[f32]) -> Result<Vec<f32>, Error>,
) -> Result<Vec<f32>, Error> {
    let mut values = Values::new(plan.plan(), input)?;
    for stage in &plan.plan().stages {
        match stage {
            Stage::Client(steps) => steps.iter().for_each(|step| values.take_step(step)),
            Stage::Server(server) => {
                let layer = &server.layer;
                let (_, x) = values.read(layer.input);
                values.define(layer.output, layer.operator.output_shape(), linear(layer, &x)?);
            }
        }
    }
    Ok(values.read(plan.plan().output).1)
}

/// Where an encrypted run first differs from the reference.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum Difference {
    /// In what was encrypted.
    #[error("stage `{stage}`: code {index} is {found}, the reference has {expected}")]
    Code {
        /// The layer.
        stage: String,
        /// The element, row-major, counted from 0.
        index: usize,
        /// The encrypted run's.
        found: i32,
        /// The reference's.
        expected: i32,
    },
    /// In what was decrypted.
    #[error("stage `{stage}`: accumulator {index} is {found}, the reference has {expected}")]
    Accumulator {
        /// The layer.
        stage: String,
        /// The element, row-major, counted from 0.
        index: usize,
        /// The encrypted run's.
        found: i64,
        /// The reference's.
        expected: i64,
    },
    /// In the answer.
    #[error("answer {index} is {found}, the reference has {expected}")]
    Output {
        /// The element, row-major, counted from 0.
        index: usize,
        /// The encrypted run's.
        found: f32,
        /// The reference's.
        expected: f32,
    },
}

impl Reference {
    /// Compares an encrypted run, recorded with its integers, with this reference: every code, every accumulator, and
    /// every bit of the answer.
    ///
    /// # Errors
    /// The first [`Difference`].
    pub fn compare(&self, plan: &CheckedPlan, records: &[StageRecord], output: &[f32]) -> Result<(), Difference> {
        assert_eq!(self.stages.len(), records.len(), "both ran the same plan to its end");
        let stages = plan.server_stages().map(|checked| checked.stage.layer.name.clone());
        for ((stage, expected), record) in stages.zip(&self.stages).zip(records) {
            if let Some((index, found, expected)) = first_difference(&record.codes, &expected.codes) {
                return Err(Difference::Code { stage, index, found, expected });
            }
            if let Some((index, found, expected)) = first_difference(&record.accumulators, &expected.accumulators) {
                return Err(Difference::Accumulator { stage, index, found, expected });
            }
        }
        // By their bits: a NaN equals itself, and -0 is not 0.
        let bits = |values: &[f32]| values.iter().map(|value| value.to_bits()).collect::<Vec<_>>();
        match first_difference(&bits(output), &bits(&self.output)) {
            None => Ok(()),
            Some((index, found, expected)) => {
                Err(Difference::Output { index, found: f32::from_bits(found), expected: f32::from_bits(expected) })
            }
        }
    }
}

/// The first place where two lists of one length differ: index, found, expected.
fn first_difference<T: Copy + PartialEq>(found: &[T], expected: &[T]) -> Option<(usize, T, T)> {
    assert_eq!(found.len(), expected.len(), "a checked plan fixes every shape");
    let pairs = found.iter().zip(expected).enumerate();
    pairs.map(|(index, (&found, &expected))| (index, found, expected)).find(|(_, found, expected)| found != expected)
}
