//! What the noise of a stage's outputs is made of, whatever the parameters.

use std::collections::BTreeSet;

use super::{Noise, ROUNDING, key_switch_variance};
use crate::network::LinearLayer;
use crate::packing::slots::program::{Baby, Instruction, Program};
use crate::packing::windows::Offset;
use crate::packing::{coefficients, slots};
use crate::params::Parameters;

/// What the noise of a stage's outputs is made of.
#[derive(Clone, Debug, PartialEq)]
pub enum Profile {
    /// Of a stage in slots.
    Slots(SlotProfile),
    /// Of a stage in coefficients.
    Coefficients(CoefficientProfile),
}

/// One entry for each kind of output.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SlotProfile {
    outputs: BTreeSet<Terms>,
}

/// Terms of the noise of one output ciphertext.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
struct Terms {
    /// Products of inputs as they came: without and with a mask.
    still: [usize; 2],
    /// Products of rotated inputs: without and with a mask.
    rotated: [usize; 2],
    /// Rotations of sums and totals.
    switches: usize,
}

impl SlotProfile {
    /// Counts the terms of every output of a program.
    pub fn new(layout: &slots::layout::Layout, program: &Program) -> SlotProfile {
        let masks: BTreeSet<Offset> = layout.grid.offsets().filter(|&offset| layout.mask(offset).is_some()).collect();
        let terms = |instructions: &Vec<Instruction>| {
            let mut terms = Terms::default();
            for instruction in instructions {
                let rotation = match instruction {
                    Instruction::Rotate(rotation) => *rotation,
                    Instruction::Add(sum) => {
                        for Baby { offset, rotation, .. } in sum.products.iter().map(|product| product.baby) {
                            let masked = usize::from(masks.contains(&offset));
                            match rotation.is_identity() {
                                true => terms.still[masked] += 1,
                                false => terms.rotated[masked] += 1,
                            }
                        }
                        sum.rotation
                    }
                };
                terms.switches += usize::from(!rotation.is_identity());
            }
            terms
        };
        SlotProfile { outputs: program.outputs.iter().map(terms).collect() }
    }

    /// Noise of the worst output, from that of an input.
    pub(super) fn evaluate(&self, parameters: &Parameters, fresh: f64) -> Noise {
        let switched = key_switch_variance(&parameters.keys);
        // N coefficients, which behave as uniform modulo t whatever the slots hold, but for a constant vector.
        let product = parameters.keys.ring_degree as f64 * (parameters.stage.plaintext_modulus as f64).powi(2) / 12.0;
        let fresh = fresh + ROUNDING;
        let variance = |terms: &Terms| {
            let [still, rotated] =
                [terms.still, terms.rotated].map(|[plain, masked]| plain as f64 + masked as f64 * product);
            (still * fresh + rotated * (fresh + switched)) * product + terms.switches as f64 * switched + ROUNDING
        };
        Noise { variance: self.outputs.iter().map(variance).fold(0.0, f64::max), shift: 0.0 }
    }
}

/// The kernels' size, and the levels of merging.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct CoefficientProfile {
    /// Sum of the squares of a kernel's weights.
    energy: f64,
    /// Sum of their sizes.
    length: f64,
    /// Ciphertexts merged.
    merge: f64,
}

impl CoefficientProfile {
    /// Takes the profile of a layer: noise reaches a result through every kernel that is stacked with its own.
    pub fn new(layer: &LinearLayer, layout: &coefficients::layout::Layout) -> CoefficientProfile {
        let stacked = layout.packing.stack.min(layout.channels_out) as f64;
        // An accumulator's range is as wide as the sum of its weights' sizes, times the range of codes.
        let codes = f64::from(layer.quantizer.high) - f64::from(layer.quantizer.low);
        CoefficientProfile {
            energy: stacked * layer.weight_energy as f64,
            length: stacked * (layer.width() - 1) as f64 / codes,
            merge: layout.packing.merge as f64,
        }
    }

    /// Noise of a result, from that of an input.
    ///
    /// The message was rounded to a multiple of t/q, and low bits of c0 were cut off: errors that follow from the
    /// message, or have a mean of half a unit. In a product they may all point one way, so that they are bounded, not
    /// estimated. An automorphism's noise doubles at every level of merging behind it, and so does the sum itself,
    /// which was divided by as much.
    pub(super) fn evaluate(&self, parameters: &Parameters, fresh: f64) -> Noise {
        let mean = if parameters.stage.request_dropped_bits == 0 { 0.5 } else { 1.0 };
        let merging = (self.merge.powi(2) - 1.0) / 3.0 * key_switch_variance(&parameters.keys);
        Noise { variance: fresh * self.energy + merging + ROUNDING, shift: mean * self.length }
    }
}
