//! Packs codes into slots, and unpacks the sums that come back: all that the client needs of a packing.

use crate::op::Linear;
use crate::packing::layout::lift_channels;
use crate::packing::misfit::Misfit;
use crate::packing::modulo::reduce_codes;
use crate::packing::rectangle::rectangles;
use crate::packing::row::Row;
use crate::packing::slots::grid::Grid;
use crate::packing::slots::placement::Placement;
use crate::packing::{Alignment, SlotPacking, TapOrder};

/// Where every number of one stage sits, for one ring degree.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Layout {
    /// What the stage computes.
    pub operator: Linear,
    /// The choice that this layout spells out.
    pub packing: SlotPacking,
    /// Slots in one of the two rows of a ciphertext.
    pub row_length: usize,
    /// The cells of one channel.
    pub grid: Grid,
    /// The blocks of all channels.
    pub placement: Placement,
}

/// Pairs of an input and an output ciphertext, times shifts, times phases, times slots: what listing a program takes.
const LARGEST_PROGRAM: usize = 1 << 32;

impl Layout {
    /// Spells out a choice of packing.
    ///
    /// # Errors
    /// [`Misfit`], where the choice does not fit the operator at this ring degree.
    pub fn new(operator: &Linear, packing: SlotPacking, ring_degree: usize) -> Result<Layout, Misfit> {
        let row_length = ring_degree / 2;
        let grid = Grid::new(operator, packing.alignment);
        if grid.block > row_length {
            return Err(Misfit::BlockTooLarge { block: grid.block, row_length });
        }
        let (channels_in, channels_out) = match operator {
            Linear::Conv(conv) => (conv.input[0] * grid.phase_count(), conv.output[0]),
            Linear::Dense(dense) => (dense.inputs, dense.outputs),
        };
        let placement = Placement::new(channels_in, channels_out, row_length / grid.block);
        let factors =
            [placement.outputs, placement.inputs, placement.shifts, grid.phase_count(), 2 * placement.columns];
        let pairs = factors.into_iter().fold(1, usize::saturating_mul);
        if pairs > LARGEST_PROGRAM {
            return Err(Misfit::ProgramTooLarge { pairs, most: LARGEST_PROGRAM });
        }
        let (baby_shifts, shifts) = (packing.baby_shifts, placement.shifts);
        if baby_shifts == 0 || !shifts.is_multiple_of(baby_shifts) {
            return Err(Misfit::BabyShifts { baby_shifts, shifts });
        }
        if packing.alignment == Alignment::Masked && packing.taps != TapOrder::Inputs {
            return Err(Misfit::MasksFollowInputs);
        }
        Ok(Layout { operator: operator.clone(), packing, row_length, grid, placement })
    }

    /// Slots by which a shift of channels rotates.
    pub(crate) fn shift_steps(&self, shift: usize) -> i64 {
        (shift * self.placement.interleave * self.grid.block) as i64
    }

    /// Puts the codes of the input tensor into the slots of ciphertexts, as numbers modulo t.
    pub fn pack(&self, codes: &[i32], plaintext_modulus: u64) -> Vec<Vec<u64>> {
        let codes = reduce_codes(codes, plaintext_modulus);
        let packed = (0..self.placement.inputs).map(|ciphertext| {
            let mut slots = vec![0; 2 * self.row_length];
            let rectangles = rectangles(self.input_rows(ciphertext));
            rectangles.iter().for_each(|rectangle| rectangle.pack(&codes, plaintext_modulus, &mut slots));
            slots
        });
        packed.collect()
    }

    /// Adds up what arrived in the slots of the output ciphertexts, and reads each sum as the one number of its
    /// channel's range that is congruent to it modulo t.
    ///
    /// `ranges` holds one pair (lowest, highest) an output channel, none wider than t.
    pub fn unpack(&self, slots: &[Vec<u64>], plaintext_modulus: u64, ranges: &[(i64, i64)]) -> Vec<i64> {
        let pixels = self.grid.output[0] * self.grid.output[1];
        let mut sums = vec![0; self.placement.channels_out * pixels];
        for (ciphertext, slots) in slots.iter().enumerate() {
            let rectangles = rectangles(self.output_rows(ciphertext));
            rectangles.iter().for_each(|rectangle| rectangle.add(slots, plaintext_modulus, &mut sums));
        }
        lift_channels(&mut sums, plaintext_modulus, ranges);
        sums
    }

    /// The pixels in the slots of an input ciphertext, and where they come from.
    pub(crate) fn input_rows(&self, ciphertext: usize) -> Vec<Row> {
        let phases = self.grid.phase_count();
        let [vertical, horizontal] = self.grid.strides;
        let (height, width) = match &self.operator {
            Linear::Conv(conv) => (conv.input[1], conv.input[2]),
            Linear::Dense(_) => (1, 1),
        };
        let mut rows = Vec::new();
        for (row, column) in self.columns() {
            let Some(channel) = self.placement.input_channel(ciphertext, row, column) else { continue };
            let first = row * self.row_length + column * self.grid.block;
            let (image, [top, left]) = (channel / phases, self.grid.phase(channel % phases));
            if left >= width {
                continue;
            }
            for (y, source_y) in (top..height).step_by(vertical).enumerate() {
                rows.push(Row {
                    position: first + self.grid.cell(y, 0),
                    step: 1,
                    element: (image * height + source_y) * width + left,
                    stride: horizontal,
                    length: (width - left).div_ceil(horizontal),
                });
            }
        }
        rows
    }

    /// The slots of an output ciphertext that hold outputs, or parts of them, and where they go.
    pub(crate) fn output_rows(&self, ciphertext: usize) -> Vec<Row> {
        let [height, width] = self.grid.output;
        let mut rows = Vec::new();
        for (row, column) in self.columns() {
            let Some(channel) = self.placement.output_channel(ciphertext, row, column) else { continue };
            let first = row * self.row_length + column * self.grid.block;
            for y in 0..height {
                let position = first + self.grid.cell(y, 0);
                let element = (channel * height + y) * width;
                rows.push(Row { position, step: 1, element, stride: 1, length: width });
            }
        }
        rows
    }

    /// The pixels of an output channel, row by row.
    pub(crate) fn output_pixels(&self) -> impl Iterator<Item = [usize; 2]> + use<> {
        let [height, width] = self.grid.output;
        (0..height).flat_map(move |y| (0..width).map(move |x| [y, x]))
    }

    /// The columns of a ciphertext, row by row.
    pub(crate) fn columns(&self) -> impl Iterator<Item = (usize, usize)> + use<> {
        let columns = self.placement.columns;
        (0..2).flat_map(move |row| (0..columns).map(move |column| (row, column)))
    }
}
