//! The cells of one channel: rows of an image, one after the other, with room for what a window reads beyond them.
//!
//! An offset (down, right) of a window is a rotation by down * pitch + right.

use std::ops::Deref;

use crate::op::Linear;
use crate::packing::Alignment;
use crate::packing::windows::{Offset, Windows};

/// The cells of one channel of one operator.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Grid {
    /// What is read and written.
    pub windows: Windows,
    /// Cells from one row of the image to the next.
    pub pitch: usize,
    /// Cells of a channel, redundant ones included: a power of two.
    pub block: usize,
}

impl Deref for Grid {
    type Target = Windows;

    fn deref(&self) -> &Windows {
        &self.windows
    }
}

impl Grid {
    /// Lays out the channels of `operator`; a dense layer has channels of one cell.
    pub fn new(operator: &Linear, alignment: Alignment) -> Grid {
        let windows = Windows::new(operator);
        let Windows { input, output, down, right, .. } = &windows;
        let rows = extent(input[0], output[0], down, alignment);
        let pitch = extent(input[1], output[1], right, alignment);
        let block = (rows * pitch).next_power_of_two();
        Grid { windows, pitch, block }
    }

    /// Cells by which a rotation to the left brings what lies at `offset` into place.
    pub fn steps(&self, offset: Offset) -> i64 {
        offset.down * self.pitch as i64 + offset.right
    }

    /// The cell of (row, column).
    pub fn cell(&self, row: usize, column: usize) -> usize {
        row * self.pitch + column
    }

    /// The output pixel in a cell, if it holds one.
    pub fn output_pixel(&self, cell: usize) -> Option<[usize; 2]> {
        let pixel = [cell / self.pitch, cell % self.pitch];
        (pixel[0] < self.output[0] && pixel[1] < self.output[1]).then_some(pixel)
    }
}

/// Cells along one axis.
///
/// With redundancy, a window that reaches `before` cells too far must find zeros, and finds those behind the cells of
/// the row (or block) before: `input + before`. One that reaches `after` cells too far must not come upon the next
/// row: `output + after`. So neighbours share their padding, and a block of next_power_of_two(rows * pitch) serves
/// where one with redundancy on either side of its own, H W + 2 p (W + 1) cells, would do.
fn extent(input: usize, output: usize, offsets: &[i64], alignment: Alignment) -> usize {
    match alignment {
        Alignment::Rotational => {
            let before = offsets.iter().map(|&by| (-by).max(0)).max().unwrap_or(0) as usize;
            let after = offsets.iter().map(|&by| by.max(0)).max().unwrap_or(0) as usize;
            (input + before).max(output + after)
        }
        Alignment::Punctured | Alignment::Masked => input.max(output),
    }
}
