//! Where every number of a stage sits, whichever the family: what client and server both need to know.

use crate::op::Linear;
use crate::packing::misfit::Misfit;
use crate::packing::row::{Row, Run};
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
        self.sent_runs(input).into_iter().flat_map(Run::positions).collect()
    }

    /// The coefficients of an output's c0 that travel, in this order.
    pub fn returned(&self, output: usize) -> Vec<usize> {
        self.returned_runs(output).into_iter().flat_map(Run::positions).collect()
    }

    /// What [`sent`](Self::sent) lists, by runs.
    pub fn sent_runs(&self, input: usize) -> Vec<Run> {
        match self {
            Layout::Slots(layout) => vec![all_of(layout)],
            Layout::Coefficients(layout) => layout.sent_runs(input),
        }
    }

    /// What [`returned`](Self::returned) lists, by runs.
    pub fn returned_runs(&self, output: usize) -> Vec<Run> {
        match self {
            Layout::Slots(layout) => vec![all_of(layout)],
            Layout::Coefficients(layout) => layout.result_rows(output).into_iter().map(Row::run).collect(),
        }
    }

    /// Reads the tensor of results modulo t: of a packing by coefficients from those that travel, in this order, of one
    /// by slots from all slots of each output.
    pub fn unpack(&self, outputs: &[Vec<u64>], plaintext_modulus: u64, ranges: &[(i64, i64)]) -> Vec<i64> {
        match self {
            Layout::Slots(layout) => layout.unpack(outputs, plaintext_modulus, ranges),
            Layout::Coefficients(layout) => layout.unpack(outputs, plaintext_modulus, ranges),
        }
    }

    /// Puts numbers of the input tensor, [lifted](crate::packing::row::lift_codes) modulo t, into the N places of an input ciphertext.
    pub fn pack_input(&self, input: usize, lifted: &[u64], numbers: &mut [u64]) {
        match self {
            Layout::Slots(layout) => layout.pack_input(input, lifted, numbers),
            Layout::Coefficients(layout) => layout.pack_input(input, lifted, numbers),
        }
    }
}

/// All N coefficients: none is without a part in some slot.
fn all_of(layout: &slots::layout::Layout) -> Run {
    Run { position: 0, step: 1, length: 2 * layout.row_length }
}
