//! Where every number of a stage sits, whichever the family: what client and server both need to know.

use crate::op::Linear;
use crate::packing::misfit::Misfit;
use crate::packing::{Packing, coefficients, slots};

/// A choice of packing, spelled out for one operator and ring degree.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Layout {
    /// One number a slot.
    Slots(slots::layout::Layout),
    /// One number a coefficient.
    Coefficients(coefficients::layout::Layout),
}

impl Layout {
    /// Spells out a choice of packing.
    ///
    /// # Errors
    /// [`Misfit`], where the choice does not fit the operator at this ring degree.
    pub fn new(operator: &Linear, packing: Packing, ring_degree: usize) -> Result<Layout, Misfit> {
        Ok(match packing {
            Packing::Slots(packing) => Layout::Slots(slots::layout::Layout::new(operator, packing, ring_degree)?),
            Packing::Coefficients(packing) => {
                Layout::Coefficients(coefficients::layout::Layout::new(operator, packing, ring_degree)?)
            }
        })
    }

    /// Input ciphertexts.
    pub fn inputs(&self) -> usize {
        match self {
            Layout::Slots(layout) => layout.placement.inputs,
            Layout::Coefficients(layout) => layout.inputs(),
        }
    }

    /// Output ciphertexts.
    pub fn outputs(&self) -> usize {
        match self {
            Layout::Slots(layout) => layout.placement.outputs,
            Layout::Coefficients(layout) => layout.outputs(),
        }
    }

    /// The coefficients of an input's c0 that travel, in this order.
    pub fn sent(&self, input: usize) -> Vec<usize> {
        match self {
            Layout::Slots(layout) => (0..2 * layout.row_length).collect(),
            Layout::Coefficients(layout) => layout.sent(input),
        }
    }

    /// The coefficients of an output's c0 that travel, in this order.
    pub fn returned(&self, output: usize) -> Vec<usize> {
        match self {
            Layout::Slots(layout) => (0..2 * layout.row_length).collect(),
            Layout::Coefficients(layout) => layout.returned(output),
        }
    }
}
