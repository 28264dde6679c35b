//! One stage made ready, whichever its packing.

use chococ_plans::check::CheckedStage;
use chococ_plans::network::LayerWeights;
use chococ_plans::packing::layout::Layout;
use chococ_plans::weights::Weights;

use super::tally::Tally;
use super::{coefficients, slots};
use crate::bfv::ciphertext::Ciphertext;
use crate::bfv::context::Context;
use crate::bfv::galois::GaloisKeys;
use crate::error::Error;

/// A stage ready to be evaluated, for every client.
pub(super) enum PreparedStage {
    Slots(slots::prepare::PreparedStage),
    Coefficients(coefficients::prepare::PreparedStage),
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
    Ok(match checked.layout {
        Layout::Slots(layout) => PreparedStage::Slots(slots::prepare::prepare(context, checked, layout, weights)),
        Layout::Coefficients(layout) => {
            PreparedStage::Coefficients(coefficients::prepare::prepare(context, checked, layout, weights))
        }
    })
}

impl PreparedStage {
    /// Memory of all multiplicands, in bytes.
    pub fn size_bytes(&self) -> usize {
        match self {
            PreparedStage::Slots(stage) => stage.size_bytes(),
            PreparedStage::Coefficients(stage) => stage.size_bytes(),
        }
    }

    /// Computes the output ciphertexts of the stage. `keys` holds one Galois key for every automorphism it takes.
    pub fn evaluate(
        &self,
        context: &Context,
        keys: &GaloisKeys,
        inputs: &[Ciphertext],
        tally: &Tally,
    ) -> Vec<Ciphertext> {
        match self {
            PreparedStage::Slots(stage) => slots::evaluate::evaluate(context, stage, keys, inputs, tally),
            PreparedStage::Coefficients(stage) => coefficients::evaluate::evaluate(context, stage, keys, inputs, tally),
        }
    }
}
