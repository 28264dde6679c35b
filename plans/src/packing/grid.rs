//! The cells of one channel: rows of an image, one after the other, with room for what a window reads beyond them.
//!
//! A convolution with strides (v, h) is one without strides over v * h *phases* of the image, each a channel of its
//! own: phase (i, j) holds the pixels (v y + i, h x + j) at (y, x). A tap of the kernel then reads one phase at a fixed
//! offset, and an offset (down, right) is a rotation by down * pitch + right. Phases that no tap reads are left out.

use std::collections::BTreeSet;

use crate::op::Linear;
use crate::packing::Alignment;

/// The cells of one channel of one operator. All pairs are (vertical, horizontal).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Grid {
    /// From one pixel of a phase to the next, in the image.
    pub strides: [usize; 2],
    /// The phases that some tap reads: their first rows, and their first columns; each row with each column is one.
    pub phases: [Vec<usize>; 2],
    /// Height and width of a phase.
    pub input: [usize; 2],
    /// Height and width of an output channel.
    pub output: [usize; 2],
    /// Vertical offsets at which some tap reads, ascending.
    pub down: Vec<i64>,
    /// Horizontal offsets at which some tap reads, ascending.
    pub right: Vec<i64>,
    /// Cells from one row of the image to the next.
    pub pitch: usize,
    /// Cells of a channel, redundant ones included: a power of two.
    pub block: usize,
}

/// Where a tap reads: this far below and to the right of the cell it writes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Offset {
    /// Rows below.
    pub down: i64,
    /// Columns to the right.
    pub right: i64,
}

impl Grid {
    /// Lays out the channels of `operator`; a dense layer has channels of one cell.
    pub fn new(operator: &Linear, alignment: Alignment) -> Grid {
        let Linear::Conv(conv) = operator else {
            let one = [1, 1];
            let phases = [vec![0], vec![0]];
            let (down, right) = (vec![0], vec![0]);
            return Grid { strides: one, phases, input: one, output: one, down, right, pitch: 1, block: 1 };
        };
        let input = [0, 1].map(|axis| conv.input[axis + 1].div_ceil(conv.strides[axis]));
        let output = [conv.output[1], conv.output[2]];
        // Along an axis, a tap reads this far from the window's first pixel: so many whole strides, and a phase.
        let reach = |axis: usize, tap: usize| (tap * conv.dilations[axis]) as i64 - conv.pads_before[axis] as i64;
        let [down, right] = [0, 1].map(|axis| {
            let stride = conv.strides[axis] as i64;
            let mut offsets: Vec<i64> = (0..conv.kernel[axis]).map(|tap| reach(axis, tap).div_euclid(stride)).collect();
            offsets.dedup();
            offsets
        });
        let phases = [0, 1].map(|axis| {
            let stride = conv.strides[axis] as i64;
            let read = (0..conv.kernel[axis]).map(|tap| reach(axis, tap).rem_euclid(stride) as usize);
            read.collect::<BTreeSet<_>>().into_iter().collect()
        });
        let rows = extent(input[0], output[0], &down, alignment);
        let pitch = extent(input[1], output[1], &right, alignment);
        let block = (rows * pitch).next_power_of_two();
        Grid { strides: conv.strides, phases, input, output, down, right, pitch, block }
    }

    /// Phases of one image.
    pub fn phase_count(&self) -> usize {
        self.phases[0].len() * self.phases[1].len()
    }

    /// First row and first column of a phase.
    pub fn phase(&self, index: usize) -> [usize; 2] {
        let across = self.phases[1].len();
        [self.phases[0][index / across], self.phases[1][index % across]]
    }

    /// The offsets at which taps read, row by row.
    pub fn offsets(&self) -> impl Iterator<Item = Offset> + '_ {
        self.down.iter().flat_map(|&down| self.right.iter().map(move |&right| Offset { down, right }))
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

    /// Whether `offset` leads from an output pixel to a cell within the image.
    pub fn reads_inside(&self, pixel: [usize; 2], offset: Offset) -> bool {
        let inside = |at: usize, by: i64, size: usize| (0..size as i64).contains(&(at as i64 + by));
        inside(pixel[0], offset.down, self.input[0]) && inside(pixel[1], offset.right, self.input[1])
    }

    /// Whether some rotation reads beyond the image, so that something must keep the rest out.
    pub fn wraps(&self) -> bool {
        let beyond = |offsets: &[i64], input: usize, output: usize| {
            offsets.iter().any(|&by| by < 0 || output as i64 + by > input as i64)
        };
        beyond(&self.down, self.input[0], self.output[0]) || beyond(&self.right, self.input[1], self.output[1])
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
