//! Where every number of a stage sits, whichever the family: what client and server both need to know.

use crate::op::Linear;
use crate::packing::misfit::Misfit;
use crate::packing::modulo::Lift;
use crate::packing::row::{Row, Run, join};
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
            Layout::Coefficients(layout) => join(layout.output_rows(output)).into_iter().map(Row::run).collect(),
        }
    }

    /// How many coefficients of an input's c0 travel.
    pub fn sent_count(&self, input: usize) -> usize {
        self.sent_runs(input).iter().map(|run| run.length).sum()
    }

    /// How many coefficients of an output's c0 travel.
    pub fn returned_count(&self, output: usize) -> usize {
        self.returned_runs(output).iter().map(|run| run.length).sum()
    }

    /// What an input holds, and where it comes from.
    pub fn input_rows(&self, input: usize) -> Vec<Row> {
        match self {
            Layout::Slots(layout) => layout.input_rows(input),
            Layout::Coefficients(layout) => layout.input_rows(input),
        }
    }

    /// The results in an output, or parts of them, and where they go; of a packing by coefficients in the order in which
    /// they travel.
    pub fn output_rows(&self, output: usize) -> Vec<Row> {
        match self {
            Layout::Slots(layout) => layout.output_rows(output),
            Layout::Coefficients(layout) => layout.output_rows(output),
        }
    }
}

/// Reads the numbers of a tensor of results modulo t, channels first, as the ones of their channel's range that are
/// congruent to them.
///
/// `ranges` holds one pair (lowest, highest) a channel, none wider than t.
pub fn lift_channels(sums: &mut [i64], plaintext_modulus: u64, ranges: &[(i64, i64)]) {
    let pixels = (sums.len() / ranges.len().max(1)).max(1);
    let channels = sums.chunks_exact_mut(pixels).zip(ranges);
    for (channel, &(low, _)) in channels {
        let lift = Lift::new(plaintext_modulus, low);
        channel.iter_mut().for_each(|sum| *sum = lift.apply(*sum));
    }
}

/// All N coefficients: none is without a part in some slot.
fn all_of(layout: &slots::layout::Layout) -> Run {
    Run { position: 0, step: 1, length: 2 * layout.row_length }
}
