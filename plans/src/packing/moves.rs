//! All that moves between a stage's tensors and its ciphertexts: listed once, followed by every inference.

use crate::packing::layout::Layout;
use crate::packing::rectangle::{Rectangle, rectangles};
use crate::packing::row::{Row, Run};

/// What moves in one stage.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Moves {
    inputs: Vec<Moved>,
    outputs: Vec<Moved>,
    /// Whether results are summed from parts in several slots.
    in_parts: bool,
}

/// What moves into or out of one ciphertext.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Moved {
    /// Between its slots or coefficients and a tensor.
    rectangles: Vec<Rectangle>,
    /// The coefficients of c0 that travel.
    runs: Vec<Run>,
}

impl Moves {
    /// Lists what moves in a stage of this layout.
    pub fn new(layout: &Layout) -> Moves {
        let moved = |rows: Vec<Row>, runs| Moved { rectangles: rectangles(rows), runs };
        let outputs =
            (0..layout.outputs()).map(|output| moved(layout.output_rows(output), layout.returned_runs(output)));
        Moves {
            inputs: (0..layout.inputs())
                .map(|input| moved(layout.input_rows(input), layout.sent_runs(input)))
                .collect(),
            outputs: outputs.collect(),
            in_parts: matches!(layout, Layout::Slots(_)),
        }
    }

    /// The coefficients of an input's c0 that travel, in order.
    pub fn sent(&self, input: usize) -> &[Run] {
        &self.inputs[input].runs
    }

    /// The coefficients of an output's c0 that travel, in order.
    pub fn returned(&self, output: usize) -> &[Run] {
        &self.outputs[output].runs
    }

    /// Puts codes of the input tensor, [of size below t](crate::packing::modulo::reduce_codes), into the N places of an
    /// input ciphertext.
    pub fn pack(&self, input: usize, codes: &[i32], plaintext_modulus: u64, numbers: &mut [u64]) {
        numbers.fill(0);
        self.inputs[input].rectangles.iter().for_each(|rectangle| rectangle.pack(codes, plaintext_modulus, numbers));
    }

    /// Brings one output into the tensor of results modulo t, which is zero at first: all its slots, or of a packing by
    /// coefficients those that travel.
    pub fn unpack(&self, output: usize, numbers: &[u64], plaintext_modulus: u64, sums: &mut [i64]) {
        let rectangles = &self.outputs[output].rectangles;
        if self.in_parts {
            rectangles.iter().for_each(|rectangle| rectangle.add(numbers, plaintext_modulus, sums));
        } else {
            let mut rest = numbers;
            rectangles.iter().for_each(|rectangle| rectangle.place(&mut rest, sums));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::op::{Conv, Linear};
    use crate::packing::{CoefficientPacking, Packing};

    /// What a client holds beside its keys must not grow with the pixels of an image.
    #[test]
    fn pixels_that_lie_alone_are_one_rectangle() {
        let conv = Conv {
            input: [8, 16, 16],
            output: [4, 16, 16],
            kernel: [1, 1],
            strides: [1, 1],
            pads_before: [0, 0],
            dilations: [1, 1],
            groups: 1,
        };
        let packing = CoefficientPacking { tile: [1, 1], tiles_at_once: 256, interleave: 4, stack: 1, merge: 4 };
        let layout = Layout::new(&Linear::Conv(conv), Packing::Coefficients(packing), 1024).expect("it fits exactly");
        let moves = Moves::new(&layout);
        for moved in moves.inputs.iter().chain(&moves.outputs) {
            assert_eq!(moved.rectangles.len(), 1);
            assert_eq!(
                moved.rectangles.iter().map(|rectangle| rectangle.row.length * rectangle.rows).sum::<usize>(),
                1024
            );
        }
    }
}
