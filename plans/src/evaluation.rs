//! What a server does for one stage, listed once: its operations, their automorphisms, and where noise comes from.

use std::collections::BTreeSet;

use crate::network::LinearLayer;
use crate::noise::Profile;
use crate::noise::profile::{CoefficientProfile, SlotProfile};
use crate::packing::coefficients::merging::Merging;
use crate::packing::layout::Layout;
use crate::packing::{coefficients, slots};
use crate::params::{merging_element, rotation_element};

/// What follows from a layer and its layout, whatever the parameters.
#[derive(Clone, Debug, PartialEq)]
pub struct Evaluation {
    /// Rotations of inputs: one key switch each, but one decomposition an input ciphertext.
    pub hoisted_rotations: usize,
    /// Rotations and merges of sums: one decomposition and one key switch each.
    pub rotations: usize,
    /// Products of ciphertexts with weights.
    pub products: usize,
    /// Products of ciphertexts with masks: none but in the masked baseline.
    pub mask_products: usize,
    /// Plaintexts that the server keeps ready to multiply by.
    pub multiplicands: usize,
    /// The g of every automorphism X -> X^g that needs a Galois key.
    pub galois: BTreeSet<u64>,
    /// What the noise of outputs is made of.
    pub noise: Profile,
}

impl Evaluation {
    /// Lists what a layer takes in some layout.
    pub fn new(layer: &LinearLayer, layout: &Layout) -> Evaluation {
        match layout {
            Layout::Slots(layout) => of_slots(layout),
            Layout::Coefficients(layout) => of_coefficients(layer, layout),
        }
    }
}

fn of_slots(layout: &slots::layout::Layout) -> Evaluation {
    let program = layout.program();
    let rotated = program.rotated_inputs();
    let rotations_of_inputs = || rotated.iter().map(|(_, baby)| baby.rotation).filter(|moves| !moves.is_identity());
    let rotations_of_sums = || program.rotations_after_products().filter(|moves| !moves.is_identity());
    let different: BTreeSet<_> = rotations_of_inputs().chain(rotations_of_sums()).collect();
    let ring_degree = 2 * layout.row_length;
    let products = program.products();
    let mask_products = rotated.iter().filter(|(_, baby)| layout.mask(baby.offset).is_some()).count();
    Evaluation {
        hoisted_rotations: rotations_of_inputs().count(),
        rotations: rotations_of_sums().count(),
        products,
        mask_products,
        multiplicands: products + mask_products,
        galois: different.into_iter().map(|rotation| rotation_element(ring_degree, rotation)).collect(),
        noise: Profile::Slots(SlotProfile::new(layout, &program)),
    }
}

fn of_coefficients(layer: &LinearLayer, layout: &coefficients::layout::Layout) -> Evaluation {
    let products = |group| {
        let pairs =
            (0..layout.bases(group)).flat_map(|base| (0..layout.channel_groups()).map(move |from| (base, from)));
        pairs.filter(|&(base, from)| layout.connects(group, base, from)).count()
    };
    let groups = || 0..layout.output_groups();
    let galois: BTreeSet<u64> = Merging::steps(layout.packing.merge, layout.packing.interleave)
        .map(|step| merging_element(layout.ring_degree, step))
        .collect();
    // Every group of tiles meets the same ones.
    let kernels: usize = groups().map(products).sum();
    Evaluation {
        hoisted_rotations: 0,
        rotations: layout.tile_groups() * groups().map(|group| layout.merging(group).automorphisms()).sum::<usize>(),
        products: layout.tile_groups() * kernels,
        mask_products: 0,
        // One monomial for each level of merging.
        multiplicands: kernels + galois.len(),
        galois,
        noise: Profile::Coefficients(CoefficientProfile::new(layer, layout)),
    }
}
