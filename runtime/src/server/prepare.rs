//! One stage made ready to be evaluated: its program, with rotations as Galois elements and weights as multiplicands.

use std::collections::BTreeMap;

use chococ_plans::check::CheckedStage;
use chococ_plans::network::LayerWeights;
use chococ_plans::packing::Rotation;
use chococ_plans::packing::program::{Baby, Instruction, Sum};
use chococ_plans::weights::Weights;
use rayon::prelude::*;

use crate::bfv::context::Context;
use crate::bfv::encode::{Encoder, Plaintext};
use crate::bfv::multiplicand::Multiplicand;
use crate::error::Error;
use crate::wire::galois::element_of;

/// A stage ready to be evaluated, for every client.
pub(super) struct PreparedStage {
    /// The rotated inputs that products use, ordered by input ciphertext.
    pub rotated: Vec<RotatedInput>,
    /// One an output ciphertext.
    pub outputs: Vec<PreparedOutput>,
}

/// An input ciphertext, rotated, and masked where the packing needs it.
pub(super) struct RotatedInput {
    /// The input ciphertext.
    pub input: usize,
    /// The automorphism that rotates it; None leaves it as it is.
    pub element: Option<u64>,
    /// Zeros where the rotation brings in anything but pixels.
    pub mask: Option<Multiplicand>,
}

/// The way to one output ciphertext.
pub(super) struct PreparedOutput {
    pub steps: Vec<Step>,
    /// Added at the end.
    pub bias: Plaintext,
}

/// One step towards an output ciphertext, which starts from zero.
pub(super) enum Step {
    /// Adds a sum of products, after an automorphism if there is one.
    Add { products: Vec<PreparedProduct>, element: Option<u64> },
    /// Applies an automorphism to the total.
    Rotate { element: u64 },
}

/// A product of a rotated input with weights.
pub(super) struct PreparedProduct {
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
pub(super) fn prepare(context: &Context, checked: CheckedStage<'_>, weights: &Weights) -> Result<PreparedStage, Error> {
    let layer = &checked.stage.layer;
    let expected: usize = layer.operator.weight_shape().iter().product();
    let fits = |weights: &&LayerWeights| {
        weights.weights.len() == expected && weights.bias.len() == layer.operator.output_channels()
    };
    let weights = weights.integers.get(&layer.name).filter(fits);
    let weights = weights.ok_or_else(|| Error::Weights { layer: layer.name.clone() })?;
    let encoder = context.encoder().expect("a checked plan's plaintext modulus has a transform");
    let program = checked.layout.program();
    let rotated: Vec<(usize, Baby)> = program.rotated_inputs().into_iter().collect();
    let places: BTreeMap<(usize, Baby), usize> = rotated.iter().copied().zip(0..).collect();
    let preparation = Preparation { context, encoder, checked, weights, places };
    let outputs = program.outputs.par_iter().enumerate();
    Ok(PreparedStage {
        outputs: outputs.map(|(output, instructions)| preparation.output(output, instructions)).collect(),
        rotated: rotated.into_par_iter().map(|(input, baby)| preparation.rotated(input, baby)).collect(),
    })
}

/// What the parts of a stage are prepared from.
struct Preparation<'a> {
    context: &'a Context,
    encoder: &'a Encoder,
    checked: CheckedStage<'a>,
    weights: &'a LayerWeights,
    /// Where each rotated input will stand.
    places: BTreeMap<(usize, Baby), usize>,
}

impl Preparation<'_> {
    fn rotated(&self, input: usize, baby: Baby) -> RotatedInput {
        let mask = self.checked.layout.mask(baby.offset).map(|slots| self.multiplicand(&slots));
        RotatedInput { input, element: self.element(baby.rotation), mask }
    }

    fn output(&self, output: usize, instructions: &[Instruction]) -> PreparedOutput {
        let step = |instruction: &Instruction| match instruction {
            Instruction::Add(sum) => {
                Some(Step::Add { products: self.products(sum), element: self.element(sum.rotation) })
            }
            Instruction::Rotate(rotation) => self.element(*rotation).map(|element| Step::Rotate { element }),
        };
        let bias = self.checked.layout.bias(output, &self.weights.bias, self.plaintext_modulus());
        PreparedOutput { steps: instructions.par_iter().filter_map(step).collect(), bias: self.encoder.encode(&bias) }
    }

    fn products(&self, sum: &Sum) -> Vec<PreparedProduct> {
        let layout = self.checked.layout;
        let products = sum.products.par_iter().map(|product| {
            let slots = layout.weights(sum, product, &self.weights.weights, self.plaintext_modulus());
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
        (!rotation.is_identity()).then(|| element_of(self.context, rotation))
    }

    fn plaintext_modulus(&self) -> u64 {
        self.checked.parameters.plaintext_modulus
    }
}
