//! Carries out the rotations and products of one stage.
//!
//! Each input is decomposed once and rotated as often as products need it, then every output runs through its steps.
//! Work is spread over outputs, and within an output over its sums; only the running total is one after the other.

use std::borrow::Cow;

use rayon::prelude::*;

use super::prepare::{PreparedOutput, PreparedProduct, PreparedStage, Step};
use crate::bfv::ciphertext::Ciphertext;
use crate::bfv::context::Context;
use crate::bfv::evaluate::{add_assign, add_plain_assign, mul_plain_assign};
use crate::bfv::galois::{GaloisKey, GaloisKeys};
use crate::bfv::inner_product::inner_product;
use crate::bfv::rotate::{Hoisted, hoist};
use crate::server::tally::Tally;

/// Sums that one thread's share of an output may keep in memory until the total has taken them in.
const SUMS_AT_ONCE: usize = 4;

/// Computes the output ciphertexts of a stage, at the level of its inputs.
///
/// `keys` holds one Galois key for every rotation of the stage.
pub fn evaluate(
    context: &Context,
    stage: &PreparedStage,
    keys: &GaloisKeys,
    inputs: &[Ciphertext],
    tally: &Tally,
) -> Vec<Ciphertext> {
    let rotated = rotate_inputs(context, stage, keys, inputs, tally);
    let evaluation = Evaluation { context, keys, rotated: &rotated, tally };
    stage.outputs.par_iter().map(|output| evaluation.output(output)).collect()
}

/// Rotates and masks the inputs: one result for each of [`PreparedStage::rotated`].
fn rotate_inputs<'a>(
    context: &Context,
    stage: &PreparedStage,
    keys: &GaloisKeys,
    inputs: &'a [Ciphertext],
    tally: &Tally,
) -> Vec<Cow<'a, Ciphertext>> {
    let moves = |input: usize| stage.rotated.iter().any(|rotated| rotated.input == input && rotated.element.is_some());
    let hoisted =
        inputs.par_iter().enumerate().map(|(input, ciphertext)| moves(input).then(|| hoist(context, ciphertext)));
    let hoisted: Vec<Option<Hoisted<'_>>> = hoisted.collect();
    let rotated = stage.rotated.par_iter().map(|rotated| {
        let mut input = match (rotated.element, &hoisted[rotated.input]) {
            (Some(element), Some(hoisted)) => {
                tally.hoisted_rotations.add(1);
                Cow::Owned(hoisted.apply(key(keys, element)))
            }
            _ => Cow::Borrowed(&inputs[rotated.input]),
        };
        if let Some(mask) = &rotated.mask {
            mul_plain_assign(context, input.to_mut(), mask);
            tally.mask_products.add(1);
        }
        input
    });
    rotated.collect()
}

/// What the outputs of a stage have in common.
struct Evaluation<'a> {
    context: &'a Context,
    keys: &'a GaloisKeys,
    rotated: &'a [Cow<'a, Ciphertext>],
    tally: &'a Tally,
}

impl Evaluation<'_> {
    fn output(&self, output: &PreparedOutput) -> Ciphertext {
        let mut total = Ciphertext::zero(self.context, self.context.top_level());
        for steps in output.steps.chunks(SUMS_AT_ONCE * rayon::current_num_threads()) {
            let sums = steps.par_iter().map(|step| match step {
                Step::Add { products, element } => Some(self.sum(products, *element)),
                Step::Rotate { .. } => None,
            });
            let sums: Vec<Option<Ciphertext>> = sums.collect();
            for (step, sum) in steps.iter().zip(sums) {
                match (step, sum) {
                    (Step::Rotate { element }, _) => total = self.rotate(&total, *element),
                    (Step::Add { .. }, Some(sum)) => add_assign(self.context, &mut total, &sum),
                    (Step::Add { .. }, None) => unreachable!("every Add has made a sum"),
                }
            }
        }
        add_plain_assign(self.context, &mut total, &output.bias);
        total
    }

    fn sum(&self, products: &[PreparedProduct], element: Option<u64>) -> Ciphertext {
        let terms: Vec<_> =
            products.iter().map(|product| (self.rotated[product.rotated].as_ref(), &product.weights)).collect();
        self.tally.products.add(terms.len());
        let sum = inner_product(self.context, &terms);
        match element {
            Some(element) => self.rotate(&sum, element),
            None => sum,
        }
    }

    fn rotate(&self, ciphertext: &Ciphertext, element: u64) -> Ciphertext {
        self.tally.rotations.add(1);
        hoist(self.context, ciphertext).apply(key(self.keys, element))
    }
}

fn key(keys: &GaloisKeys, element: u64) -> &GaloisKey {
    keys.get(element).expect("a checked plan lists every rotation, and a session holds a key for each")
}
