//! Carries out the products and merges of one stage.
//!
//! Work is spread over outputs and, within one, over the branches of the tree that merges.

use chococ_plans::packing::coefficients::merging::Merging;
use chococ_plans::params::merging_element;
use rayon::prelude::*;

use super::prepare::{PreparedGroup, PreparedStage};
use crate::bfv::ciphertext::Ciphertext;
use crate::bfv::context::Context;
use crate::bfv::evaluate::{add_assign, add_plain_assign, mul_plain_assign, sub_assign};
use crate::bfv::galois::GaloisKeys;
use crate::bfv::inner_product::inner_product;
use crate::bfv::rotate::hoist;
use crate::server::tally::Tally;

/// Computes the output ciphertexts of a stage.
///
/// `keys` holds one Galois key for every level of merging.
pub fn evaluate(
    context: &Context,
    stage: &PreparedStage,
    keys: &GaloisKeys,
    inputs: &[Ciphertext],
    tally: &Tally,
) -> Vec<Ciphertext> {
    let outputs = stage.biases.par_iter().enumerate().map(|(output, bias)| {
        let (tile_group, group) = (output / stage.groups.len(), &stage.groups[output % stage.groups.len()]);
        let inputs = &inputs[tile_group * stage.channel_groups..][..stage.channel_groups];
        let evaluation = Evaluation { context, stage, group, keys, inputs, tally };
        let mut total = evaluation.merged(&group.merging);
        add_plain_assign(context, &mut total, bias);
        total
    });
    outputs.collect()
}

/// What one output is made from.
#[derive(Clone, Copy)]
struct Evaluation<'a> {
    context: &'a Context,
    stage: &'a PreparedStage,
    group: &'a PreparedGroup,
    keys: &'a GaloisKeys,
    /// Those of its group of tiles.
    inputs: &'a [Ciphertext],
    tally: &'a Tally,
}

impl Evaluation<'_> {
    fn merged(self, merging: &Merging) -> Ciphertext {
        let (even, odd, step) = match merging {
            Merging::Base(base) => return self.base(*base),
            Merging::Merge { even, odd, step } => (even, odd.as_ref(), *step),
        };
        let (even, odd) = rayon::join(|| self.merged(even), || odd.map(|odd| self.merged(odd)));
        let (mut sum, mut difference) = (even.clone(), even);
        if let Some(mut odd) = odd {
            mul_plain_assign(self.context, &mut odd, &self.stage.monomials[&step]);
            add_assign(self.context, &mut sum, &odd);
            sub_assign(self.context, &mut difference, &odd);
        }
        let element = merging_element(self.context.ring_degree(), step);
        let key = self.keys.get(element).expect("a checked plan lists every level, and a session holds a key for each");
        self.tally.rotations.add(1);
        add_assign(self.context, &mut sum, &hoist(self.context, &difference).apply(key));
        sum
    }

    fn base(self, base: usize) -> Ciphertext {
        let kernels = &self.group.kernels[base];
        let terms: Vec<_> = kernels.iter().map(|(from, kernel)| (&self.inputs[*from], kernel)).collect();
        self.tally.products.add(terms.len());
        inner_product(self.context, &terms)
    }
}
