//! Packs codes into coefficients, and reads the sums that come back: all that the client needs of a packing.

use crate::op::Linear;
use crate::packing::CoefficientPacking;
use crate::packing::coefficients::tiles::{PixelRow, Tiles};
use crate::packing::layout::lift_channels;
use crate::packing::misfit::Misfit;
use crate::packing::modulo::reduce_codes;
use crate::packing::rectangle::rectangles;
use crate::packing::row::{Row, Run};
use crate::packing::windows::Windows;

/// Where every number of one stage sits, for one ring degree.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Layout {
    /// What the stage computes.
    pub operator: Linear,
    /// The choice that this layout spells out.
    pub packing: CoefficientPacking,
    /// N.
    pub ring_degree: usize,
    /// What windows read.
    pub windows: Windows,
    /// The cells of a tile.
    pub tiles: Tiles,
    /// Input channels, phases of a strided convolution counted as channels.
    pub channels_in: usize,
    /// Output channels.
    pub channels_out: usize,
}

impl Layout {
    /// Spells out a choice of packing.
    ///
    /// # Errors
    /// [`Misfit`], where the choice does not fit the operator at this ring degree.
    pub fn new(operator: &Linear, packing: CoefficientPacking, ring_degree: usize) -> Result<Layout, Misfit> {
        let CoefficientPacking { tile, tiles_at_once, interleave, stack, merge } = packing;
        let windows = Windows::new(operator);
        let fits = |tile: usize, output: usize| (1..=output).contains(&tile);
        if !fits(tile[0], windows.output[0]) || !fits(tile[1], windows.output[1]) {
            return Err(Misfit::Tile { tile, output: windows.output });
        }
        if !interleave.is_power_of_two() || !merge.is_power_of_two() || merge > interleave || interleave > ring_degree {
            return Err(Misfit::Interleave { interleave, merge });
        }
        let (channels_in, channels_out) = match operator {
            Linear::Conv(conv) => (conv.input[0] * windows.phase_count(), conv.output[0]),
            Linear::Dense(dense) => (dense.inputs, dense.outputs),
        };
        let tiles = Tiles::new(&windows, tile);
        let cells = [interleave, stack, tiles_at_once, tiles.block].into_iter().fold(1, usize::saturating_mul);
        if stack == 0 || tiles_at_once == 0 || cells > ring_degree {
            return Err(Misfit::TooManyCells { cells, ring_degree });
        }
        let layout =
            Layout { operator: operator.clone(), packing, ring_degree, windows, tiles, channels_in, channels_out };
        let products = [layout.outputs(), merge, layout.channel_groups(), layout.ring_degree];
        let pairs = products.into_iter().fold(1, usize::saturating_mul);
        match pairs > LARGEST_PROGRAM {
            true => Err(Misfit::ProgramTooLarge { pairs, most: LARGEST_PROGRAM }),
            false => Ok(layout),
        }
    }

    /// Groups of channels that share a ciphertext.
    pub fn channel_groups(&self) -> usize {
        self.channels_in.div_ceil(self.packing.interleave)
    }

    /// Groups of tiles that share a ciphertext.
    pub fn tile_groups(&self) -> usize {
        self.tiles.tiles().div_ceil(self.packing.tiles_at_once)
    }

    /// Groups of output channels that share a ciphertext.
    pub fn output_groups(&self) -> usize {
        self.channels_out.div_ceil(self.packing.stack * self.packing.merge)
    }

    /// Input ciphertexts: those of the first group of tiles come first, one a group of channels.
    pub fn inputs(&self) -> usize {
        self.tile_groups() * self.channel_groups()
    }

    /// Output ciphertexts: those of the first group of tiles come first, one a group of output channels.
    pub fn outputs(&self) -> usize {
        self.tile_groups() * self.output_groups()
    }

    /// The tiles in a group, with the cell that each begins at.
    fn group(&self, group: usize) -> impl Iterator<Item = (usize, usize)> + use<> {
        let (at_once, block, tiles) = (self.packing.tiles_at_once, self.tiles.block, self.tiles.tiles());
        (0..at_once).map(move |place| (group * at_once + place, place * block)).filter(move |&(tile, _)| tile < tiles)
    }

    /// Ciphertexts that are merged into an output of a group: one after the other is filled with output channels, so
    /// that few channels make few bases.
    pub fn bases(&self, output_group: usize) -> usize {
        let CoefficientPacking { stack, merge, .. } = self.packing;
        (self.channels_out - output_group * stack * merge).div_ceil(stack).min(merge)
    }

    /// Output channels of one base, each with the cell where its results begin.
    pub(crate) fn stacked(&self, output_group: usize, base: usize) -> impl Iterator<Item = (usize, usize)> + use<> {
        let CoefficientPacking { tiles_at_once, stack, merge, .. } = self.packing;
        let first = (output_group * merge + base) * stack;
        let (channels, distance) = (self.channels_out, tiles_at_once * self.tiles.block);
        (0..stack).map(move |i| (first + i, i * distance)).take_while(move |&(channel, _)| channel < channels)
    }

    /// Channels in a group, each with its number within.
    pub(crate) fn channels(&self, channel_group: usize) -> impl Iterator<Item = (usize, usize)> + use<> {
        let (interleave, channels) = (self.packing.interleave, self.channels_in);
        (0..interleave)
            .map(move |i| (channel_group * interleave + i, i))
            .take_while(move |&(channel, _)| channel < channels)
    }

    /// How many channels there are in a group.
    fn channel_count(&self, channel_group: usize) -> usize {
        self.packing.interleave.min(self.channels_in - channel_group * self.packing.interleave)
    }

    /// Puts the codes of the input tensor into coefficients, as numbers modulo t: N for each ciphertext.
    pub fn pack(&self, codes: &[i32], plaintext_modulus: u64) -> Vec<Vec<u64>> {
        let codes = reduce_codes(codes, plaintext_modulus);
        let packed = (0..self.inputs()).map(|input| {
            let mut coefficients = vec![0; self.ring_degree];
            let rectangles = rectangles(self.input_rows(input));
            rectangles.iter().for_each(|rectangle| rectangle.pack(&codes, plaintext_modulus, &mut coefficients));
            coefficients
        });
        packed.collect()
    }

    /// The pixels of an input, and where they come from.
    pub(crate) fn input_rows(&self, input: usize) -> Vec<Row> {
        let (tile_group, channel_group) = (input / self.channel_groups(), input % self.channel_groups());
        let phases = self.windows.phase_count();
        let [vertical, horizontal] = self.windows.strides;
        let [_, height, width] = self.windows.image;
        let interleave = self.packing.interleave;
        let mut rows = Vec::new();
        if phases == 1 && self.windows.phase(0) == [0, 0] && [height, width] == [1, 1] {
            // As in a dense layer: the channels of a cell stand side by side, and so do they in the tensor.
            for (tile, begin) in self.group(tile_group) {
                rows.extend(self.tiles.pixels(tile).map(|PixelRow { cell, .. }| Row {
                    position: (begin + cell) * interleave,
                    step: 1,
                    element: channel_group * interleave,
                    stride: 1,
                    length: self.channel_count(channel_group),
                }));
            }
            return rows;
        }
        // The same for every channel.
        let mut pixels = Vec::new();
        for (tile, begin) in self.group(tile_group) {
            pixels.extend(self.tiles.pixels(tile).map(|row| PixelRow { cell: begin + row.cell, ..row }));
        }
        for (channel, number) in self.channels(channel_group) {
            let (image, [top, left]) = (channel / phases, self.windows.phase(channel % phases));
            for &PixelRow { cell, y, x, length } in &pixels {
                let (y, x) = (y * vertical + top, x * horizontal + left);
                // The last row or column of a phase may lie beyond the image.
                if y < height && x < width {
                    rows.push(Row {
                        position: cell * interleave + number,
                        step: interleave,
                        element: (image * height + y) * width + x,
                        stride: horizontal,
                        length: length.min((width - x).div_ceil(horizontal)),
                    });
                }
            }
        }
        rows
    }

    /// The coefficients of c0 that some result is summed from, ascending: all of an input that must travel.
    ///
    /// Where kernels are stacked, a result meets them all: those of the others with zeros of the message, but c0 hides
    /// zeros as well as anything else.
    pub fn sent_runs(&self, input: usize) -> Vec<Run> {
        let (tile_group, channel_group) = (input / self.channel_groups(), input % self.channel_groups());
        let CoefficientPacking { tiles_at_once, interleave, stack, .. } = self.packing;
        let channels = self.channel_count(channel_group);
        let cells = self.ring_degree / interleave;
        let distance = tiles_at_once * self.tiles.block;
        let mut met = vec![false; cells];
        for (_, begin) in self.group(tile_group) {
            for shift in 0..2 * stack - 1 {
                // By as many cells further on, or back, as kernels are apart.
                let begin = begin + cells * stack + (stack - 1) * distance - shift * distance;
                // The number of cells is a power of two: the ring degree is one, and so is what it was divided by.
                self.tiles.window_cells().for_each(|cell| met[(begin + cell) & (cells - 1)] = true);
            }
        }
        let mut sent: Vec<Run> = Vec::new();
        for first in (0..cells).filter(|&cell| met[cell]).map(|cell| cell * interleave) {
            match sent.last_mut() {
                Some(last) if last.position + last.length == first => last.length += channels,
                _ => sent.push(Run { position: first, step: 1, length: channels }),
            }
        }
        sent
    }

    /// What [`sent_runs`](Self::sent_runs) lists, one by one.
    pub fn sent(&self, input: usize) -> Vec<usize> {
        self.sent_runs(input).into_iter().flat_map(Run::positions).collect()
    }

    /// The results in an output, and where they go, in the order in which they travel.
    pub fn output_rows(&self, output: usize) -> Vec<Row> {
        let (tile_group, output_group) = (output / self.output_groups(), output % self.output_groups());
        let CoefficientPacking { interleave, merge, .. } = self.packing;
        let [height, width] = self.windows.output;
        let mut rows = Vec::new();
        for base in 0..self.bases(output_group) {
            for (channel, stack) in self.stacked(output_group, base) {
                for (tile, begin) in self.group(tile_group) {
                    rows.extend(self.tiles.results(tile, [height, width]).map(|PixelRow { cell, y, x, length }| Row {
                        position: (stack + begin + cell) * interleave + base * (interleave / merge),
                        step: interleave,
                        element: (channel * height + y) * width + x,
                        stride: 1,
                        length,
                    }));
                }
            }
        }
        rows
    }

    /// The coefficients of an output that are results, in the order in which they travel.
    pub fn returned(&self, output: usize) -> Vec<usize> {
        self.output_rows(output).into_iter().flat_map(Row::positions).collect()
    }

    /// Reads results, listed as [`returned`](Self::returned) lists their positions, each as the one number of its
    /// channel's range that is congruent to it modulo t.
    ///
    /// `ranges` holds one pair (lowest, highest) an output channel, none wider than t.
    pub fn unpack(&self, outputs: &[Vec<u64>], plaintext_modulus: u64, ranges: &[(i64, i64)]) -> Vec<i64> {
        let pixels = self.windows.output[0] * self.windows.output[1];
        let mut sums = vec![0; self.channels_out * pixels];
        for (output, mut values) in outputs.iter().map(Vec::as_slice).enumerate() {
            let rectangles = rectangles(self.output_rows(output));
            rectangles.iter().for_each(|rectangle| rectangle.place(&mut values, &mut sums));
        }
        lift_channels(&mut sums, plaintext_modulus, ranges);
        sums
    }
}

/// Products of a stage, times coefficients: what listing and holding them takes.
const LARGEST_PROGRAM: usize = 1 << 32;
