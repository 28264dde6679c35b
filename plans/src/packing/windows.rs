//! What the windows of a linear operator read, whatever the packing.
//!
//! A convolution with strides (v, h) is one without strides over v * h *phases* of the image, each a channel of its
//! own: phase (i, j) holds the pixels (v y + i, h x + j) at (y, x). A tap of the kernel then reads one phase at a fixed
//! offset. Phases that no tap reads are left out. A dense layer has images of one pixel.

use std::collections::BTreeSet;

use crate::op::Linear;

/// The phases of one operator, and the offsets of its taps. All pairs are (vertical, horizontal).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Windows {
    /// Channels, height and width of what is read.
    pub image: [usize; 3],
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
}

/// Where a tap reads: this far below and to the right of the pixel it writes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Offset {
    /// Rows below.
    pub down: i64,
    /// Columns to the right.
    pub right: i64,
}

impl Windows {
    /// Lists the phases and offsets of `operator`.
    pub fn new(operator: &Linear) -> Windows {
        let conv = match operator {
            Linear::Dense(dense) => {
                return Windows {
                    image: [dense.inputs, 1, 1],
                    strides: [1, 1],
                    phases: [vec![0], vec![0]],
                    input: [1, 1],
                    output: [1, 1],
                    down: vec![0],
                    right: vec![0],
                };
            }
            Linear::Conv(conv) => conv,
        };
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
        Windows {
            image: conv.input,
            strides: conv.strides,
            phases,
            input: [0, 1].map(|axis| conv.input[axis + 1].div_ceil(conv.strides[axis])),
            output: [conv.output[1], conv.output[2]],
            down,
            right,
        }
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

    /// Whether `offset` leads from an output pixel to a pixel within the image.
    pub fn reads_inside(&self, pixel: [usize; 2], offset: Offset) -> bool {
        let inside = |at: usize, by: i64, size: usize| (0..size as i64).contains(&(at as i64 + by));
        inside(pixel[0], offset.down, self.input[0]) && inside(pixel[1], offset.right, self.input[1])
    }

    /// Whether some window reads beyond the image, so that something must keep the rest out.
    pub fn wraps(&self) -> bool {
        let beyond = |offsets: &[i64], input: usize, output: usize| {
            offsets.iter().any(|&by| by < 0 || output as i64 + by > input as i64)
        };
        beyond(&self.down, self.input[0], self.output[0]) || beyond(&self.right, self.input[1], self.output[1])
    }

    /// The tap of the kernel that reads `phase` at `offset`, if there is one: [row, column] of the kernel.
    pub fn tap(&self, operator: &Linear, phase: usize, offset: Offset) -> Option<[usize; 2]> {
        let Linear::Conv(conv) = operator else { return Some([0, 0]) };
        let along = |axis: usize, phase: usize, by: i64| {
            let reach = conv.strides[axis] as i64 * by + (phase + conv.pads_before[axis]) as i64;
            let reach = usize::try_from(reach).ok().filter(|reach| reach.is_multiple_of(conv.dilations[axis]))?;
            Some(reach / conv.dilations[axis]).filter(|&tap| tap < conv.kernel[axis])
        };
        let [row, column] = self.phase(phase);
        Some([along(0, row, offset.down)?, along(1, column, offset.right)?])
    }

    /// Index of the weight with which an output channel multiplies what an input channel holds at `offset`, if any.
    ///
    /// Input channels count the phases of a strided convolution.
    pub fn weight_index(&self, operator: &Linear, to: usize, from: usize, offset: Offset) -> Option<usize> {
        let conv = match operator {
            Linear::Dense(dense) => return Some(to * dense.inputs + from),
            Linear::Conv(conv) => conv,
        };
        let phases = self.phase_count();
        let (image, phase) = (from / phases, from % phases);
        let inputs_per_group = conv.input[0] / conv.groups;
        let outputs_per_group = conv.output[0] / conv.groups;
        if image / inputs_per_group != to / outputs_per_group {
            return None;
        }
        let [down, right] = self.tap(operator, phase, offset)?;
        let filter = to * inputs_per_group + image % inputs_per_group;
        Some((filter * conv.kernel[0] + down) * conv.kernel[1] + right)
    }
}
