//! What the server multiplies and adds: weights, masks and biases, laid out to match a layout.

use crate::packing::Alignment;
use crate::packing::slots::layout::Layout;
use crate::packing::slots::program::{Product, Sum};
use crate::packing::windows::Offset;

impl Layout {
    /// The weights of one product, slot by slot, as they multiply the (rotated) input.
    pub fn weights(&self, sum: &Sum, product: &Product, weights: &[i32], plaintext_modulus: u64) -> Vec<u64> {
        let offset = Offset {
            down: sum.offset.down + product.baby.offset.down,
            right: sum.offset.right + product.baby.offset.right,
        };
        let shift = sum.shift + product.baby.shift;
        let moved = self.shift_steps(sum.shift) + self.grid.steps(sum.offset);
        let constant = self.packing.alignment != Alignment::Punctured;
        let mut slots = vec![0; 2 * self.row_length];
        for (row, column) in self.columns() {
            let Some(to) = self.placement.output_channel(sum.output, row, column) else { continue };
            let source_row = row ^ usize::from(sum.swap);
            let source_column = self.placement.source_column(column, shift);
            let Some(from) = self.placement.input_channel(product.input, source_row, source_column) else { continue };
            let Some(weight) = self.grid.weight_index(&self.operator, to, from, offset).map(|index| weights[index])
            else {
                continue;
            };
            let weight = i64::from(weight).rem_euclid(plaintext_modulus as i64) as u64;
            for cell in 0..self.grid.block {
                let reads_inside = |pixel| self.grid.reads_inside(pixel, offset);
                if constant || self.grid.output_pixel(cell).is_some_and(reads_inside) {
                    let slot = (column * self.grid.block + cell) as i64 + moved;
                    slots[source_row * self.row_length + slot.rem_euclid(self.row_length as i64) as usize] = weight;
                }
            }
        }
        slots
    }

    /// Ones where a rotation by `offset` brings in a pixel of the image, zeros where it brings in anything else.
    ///
    /// None where every cell that becomes an output reads inside the image: then nothing needs to be masked.
    pub fn mask(&self, offset: Offset) -> Option<Vec<u64>> {
        let masked = self.packing.alignment == Alignment::Masked;
        if !masked || self.output_pixels().all(|pixel| self.grid.reads_inside(pixel, offset)) {
            return None;
        }
        let mut slots = vec![0; 2 * self.row_length];
        for pixel in self.output_pixels().filter(|&pixel| self.grid.reads_inside(pixel, offset)) {
            let cell = self.grid.cell(pixel[0], pixel[1]);
            slots.iter_mut().skip(cell).step_by(self.grid.block).for_each(|slot| *slot = 1);
        }
        Some(slots)
    }

    /// The biases of an output ciphertext, each in one of the slots that the client adds up.
    pub fn bias(&self, ciphertext: usize, bias: &[i64], plaintext_modulus: u64) -> Vec<u64> {
        let pixels = self.grid.output[0] * self.grid.output[1];
        let mut placed = vec![false; self.placement.channels_out * pixels];
        let mut slots = vec![0; 2 * self.row_length];
        for row in self.output_rows(ciphertext) {
            for (slot, element) in row.positions().zip(row.elements()) {
                if !std::mem::replace(&mut placed[element], true) {
                    slots[slot] = bias[element / pixels].rem_euclid(plaintext_modulus as i64) as u64;
                }
            }
        }
        slots
    }
}
