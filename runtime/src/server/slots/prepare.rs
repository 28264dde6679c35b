//! One stage made ready to be evaluated: its program, with rotations as Galois elements and weights as multiplicands.

use std::collections::BTreeMap;

use chococ_plans::check::CheckedStage;
use chococ_plans::network::LayerWeights;
use chococ_plans::packing::Rotation;
use chococ_plans::packing::slots::layout::Layout;
use chococ_plans::packing::slots::program::{Baby, Instruction, Sum};
use chococ_plans::params::rotation_element;
use rayon::prelude::*;

use crate::bfv::context::Context;
use crate::bfv::encode::{Encoder, Plaintext};
use crate::bfv::multiplicand::Multiplicand;

/// A stage ready to be evaluated, for every client.
pub struct PreparedStage {
    /// The rotated inputs that products use, ordered by input ciphertext.
    pub rotated: Vec<RotatedInput>,
    /// One an output ciphertext.
    pub outputs: Vec<PreparedOutput>,
}

/// An input ciphertext, rotated, and masked where the packing needs it.
pub struct RotatedInput {
    /// The input ciphertext.
    pub input: usize,
    /// The automorphism that rotates it; None leaves it as it is.
    pub element: Option<u64>,
    /// Zeros where the rotation brings in anything but pixels.
    pub mask: Option<Multiplicand>,
}

/// The way to one output ciphertext.
pub struct PreparedOutput {
    pub steps: Vec<Step>,
    /// Added at the end.
    pub bias: Plaintext,
}

/// One step towards an output ciphertext, which starts from zero.
pub enum Step {
    /// Adds a sum of products, after an automorphism if there is one.
    Add { products: Vec<PreparedProduct>, element: Option<u64> },
    /// Applies an automorphism to the total.
    Rotate { element: u64 },
}

/// A product of a rotated input with weights.
pub struct PreparedProduct {
    /// Index into [`PreparedStage::rotated`].
    pub rotated: usize,
    pub weights: Multiplicand,
}

impl PreparedStage {
    /// Memory of all multiplicands, in bytes.
    pub fn size_bytes(&self) -> usize {
        let masks = self.rotated.iter().filter_map(|rotated| rotated.mask.as_ref());
        let steps = self.outputs.iter().flat_map(|output| &output.steps);
        let products = steps.flat_map(|step| match step {
            Step::Add { products, .. } => products.as_slice(),
            Step::Rotate { .. } => &[],
        });
        masks.chain(products.map(|product| &product.weights)).map(Multiplicand::size_bytes).sum()
    }
}

/// Prepares a stage.
pub fn prepare(context: &Context, checked: CheckedStage<'_>, layout: &Layout, weights: &LayerWeights) -> PreparedStage {
    let encoder = context.encoder().expect("a checked plan's plaintext modulus has a transform");
    let program = layout.program();
    let rotated: Vec<(usize, Baby)> = program.rotated_inputs().into_iter().collect();
    let places: BTreeMap<(usize, Baby), usize> = rotated.iter().copied().zip(0..).collect();
    let plaintext_modulus = checked.parameters.stage.plaintext_modulus;
    let preparation = Preparation { context, encoder, layout, plaintext_modulus, weights, places };
    let outputs = program.outputs.par_iter().enumerate();
    PreparedStage {
        outputs: outputs.map(|(output, instructions)| preparation.output(output, instructions)).collect(),
        rotated: rotated.into_par_iter().map(|(input, baby)| preparation.rotated(input, baby)).collect(),
    }
}

/// What the parts of a stage are prepared from.
struct Preparation<'a> {
    context: &'a Context,
    encoder: &'a Encoder,
    layout: &'a Layout,
    plaintext_modulus: u64,
    weights: &'a LayerWeights,
    /// Where each rotated input will stand.
    places: BTreeMap<(usize, Baby), usize>,
}

impl Preparation<'_> {
    fn rotated(&self, input: usize, baby: Baby) -> RotatedInput {
        let mask = self.layout.mask(baby.offset).map(|slots| self.multiplicand(&slots));
        RotatedInput { input, element: self.element(baby.rotation), mask }
    }

    fn output(&self, output: usize, instructions: &[Instruction]) -> PreparedOutput {
        let step = |instruction: &Instruction| match instruction {
            Instruction::Add(sum) => {
                Some(Step::Add { products: self.products(sum), element: self.element(sum.rotation) })
            }
            Instruction::Rotate(rotation) => self.element(*rotation).map(|element| Step::Rotate { element }),
        };
        let bias = self.layout.bias(output, &self.weights.bias, self.plaintext_modulus);
        PreparedOutput { steps: instructions.par_iter().filter_map(step).collect(), bias: self.encoder.encode(&bias) }
    }

    fn products(&self, sum: &Sum) -> Vec<PreparedProduct> {
        let layout = self.layout;
        let products = sum.products.par_iter().map(|product| {
            let slots = layout.weights(sum, product, &self.weights.weights, self.plaintext_modulus);
            let rotated = self.places[&(product.input, product.baby)];
            PreparedProduct { rotated, weights: self.multiplicand(&slots) }
        });
        products.collect()
    }

    fn multiplicand(&self, slots: &[u64]) -> Multiplicand {
        Multiplicand::new(self.context, &self.encoder.encode(slots))
    }

    /// The automorphism of a rotation that moves anything.
    fn element(&self, rotation: Rotation) -> Option<u64> {
        (!rotation.is_identity()).then(|| rotation_element(self.context.ring_degree(), rotation))
    }
}
