//! One stage made ready to be evaluated: kernels as multiplicands, and the tree that merges.

use std::collections::BTreeMap;

use chococ_plans::check::CheckedStage;
use chococ_plans::network::LayerWeights;
use chococ_plans::packing::coefficients::layout::Layout;
use chococ_plans::packing::coefficients::merging::Merging;
use rayon::prelude::*;

use crate::bfv::context::Context;
use crate::bfv::encode::Plaintext;
use crate::bfv::multiplicand::Multiplicand;

/// A stage ready to be evaluated, for every client.
pub struct PreparedStage {
    /// Ciphertexts that hold one group of tiles, one a group of channels.
    pub channel_groups: usize,
    /// One a group of output channels; every group of tiles uses them.
    pub groups: Vec<PreparedGroup>,
    /// One an output ciphertext: added at the end.
    pub biases: Vec<Plaintext>,
    /// X^h for every h by which bases are merged.
    pub monomials: BTreeMap<usize, Multiplicand>,
}

/// The way to the outputs of one group of channels.
pub struct PreparedGroup {
    /// How bases become one ciphertext.
    pub merging: Merging,
    /// For each base, the kernel for each group of input channels that it is connected with.
    pub kernels: Vec<Vec<(usize, Multiplicand)>>,
}

impl PreparedStage {
    /// Memory of all multiplicands, in bytes.
    pub fn size_bytes(&self) -> usize {
        let kernels = self.groups.iter().flat_map(|group| group.kernels.iter().flatten()).map(|(_, kernel)| kernel);
        kernels.chain(self.monomials.values()).map(Multiplicand::size_bytes).sum()
    }
}

/// Prepares a stage.
pub fn prepare(context: &Context, checked: CheckedStage<'_>, layout: &Layout, weights: &LayerWeights) -> PreparedStage {
    let plaintext_modulus = checked.parameters.stage.plaintext_modulus;
    let merge = layout.packing.merge;
    let kernel = |group: usize, base: usize, from: usize| {
        let kernel = layout.kernel(group, base, from, &weights.weights)?;
        let modulus = plaintext_modulus as i64;
        let residues = kernel.into_iter().map(|weight| i64::from(weight).rem_euclid(modulus) as u64).collect();
        let plaintext = Plaintext::from_coefficients(context, residues);
        // Merging doubles as many times: what it makes of this is the sum itself.
        Some((from, Multiplicand::divided(context, &plaintext, merge as u64)))
    };
    let groups = (0..layout.output_groups()).into_par_iter().map(|group| PreparedGroup {
        merging: layout.merging(group),
        kernels: (0..layout.bases(group))
            .into_par_iter()
            .map(|base| (0..layout.channel_groups()).filter_map(|from| kernel(group, base, from)).collect())
            .collect(),
    });
    let biases = (0..layout.outputs())
        .into_par_iter()
        .map(|output| Plaintext::from_coefficients(context, layout.bias(output, &weights.bias, plaintext_modulus)));
    let monomials = Merging::steps(merge, layout.packing.interleave).map(|step| {
        let mut monomial = vec![0; layout.ring_degree];
        monomial[step] = 1;
        (step, Multiplicand::new(context, &Plaintext::from_coefficients(context, monomial)))
    });
    PreparedStage {
        channel_groups: layout.channel_groups(),
        groups: groups.collect(),
        biases: biases.collect(),
        monomials: monomials.collect(),
    }
}
