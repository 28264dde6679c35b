//! The cells of a tile: a rectangle of output pixels, and the window of the image that they read.

use crate::packing::windows::{Offset, Windows};

/// Tiles of an image that all have one shape. All pairs are (vertical, horizontal).
///
/// Pixel (y, x) of a tile's output sits in cell y * pitch + x, and so does the pixel of the window that its first tap
/// reads. A tap (down, right) of the window is then that many rows and columns of cells further on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Tiles {
    /// Rows and columns of output pixels in a tile.
    pub output: [usize; 2],
    /// Rows and columns of the window.
    pub window: [usize; 2],
    /// Tiles of the image.
    pub count: [usize; 2],
    /// Cells from one row to the next.
    pub pitch: usize,
    /// Cells from one tile to the next, and from one stacked output to the next.
    pub block: usize,
    /// Where windows begin, seen from the tile's first output pixel.
    first: Offset,
    /// Rows and columns of a phase of the image.
    image: [usize; 2],
}

impl Tiles {
    /// Cuts the output into tiles of `rows` by `columns` pixels; those at the end may be smaller.
    ///
    /// Neighbouring rows share the zeros around the image where a tile spans its width: those that end one row begin
    /// the next. Tiles lie as close as their junk allows.
    pub fn new(windows: &Windows, [rows, columns]: [usize; 2]) -> Tiles {
        let spread = |offsets: &[i64]| (offsets[0], (offsets[offsets.len() - 1] - offsets[0]) as usize);
        let ((down, tall), (right, wide)) = (spread(&windows.down), spread(&windows.right));
        let window = [rows + tall, columns + wide];
        let count = [windows.output[0].div_ceil(rows), windows.output[1].div_ceil(columns)];
        let before = (-right).max(0);
        let behind = (window[1] as i64 + right - windows.input[1] as i64).max(0);
        let shared = if count[1] == 1 { before.min(behind) as usize } else { 0 };
        let pitch = window[1] - shared.min(window[1] - 1);
        let mut tiles = Tiles {
            output: [rows, columns],
            window,
            count,
            pitch,
            block: 0,
            first: Offset { down, right },
            image: windows.input,
        };
        // Products reach from the first pixel less the last tap to the last pixel; results must stay clear of the
        // products of the blocks before and behind.
        let pixels = (0..tiles.tiles()).flat_map(|tile| tiles.pixels(tile)).map(|(cell, _)| cell);
        let (first, last) = pixels.fold((usize::MAX, 0), |(first, last), cell| (first.min(cell), last.max(cell)));
        let reach = tall * pitch + wide;
        let results = (rows - 1) * pitch + columns;
        // Beyond the reach of a kernel, stacked kernels do not overlap either.
        tiles.block = (last + 1).max((results + reach).saturating_sub(first)).max(results).max(reach + 1);
        tiles
    }

    /// Tiles in all.
    pub fn tiles(&self) -> usize {
        self.count[0] * self.count[1]
    }

    /// The cells of a tile's window, zeros around the image included: each once.
    pub fn window_cells(&self) -> impl Iterator<Item = usize> + use<> {
        let ([rows, columns], pitch) = (self.window, self.pitch);
        // What the next row begins with has been counted there, but behind the last row.
        (0..rows).flat_map(move |row| {
            let columns = if row + 1 < rows { columns.min(pitch) } else { columns };
            (0..columns).map(move |column| row * pitch + column)
        })
    }

    /// The pixels of the image in a tile's window: (cell, [row, column] of the phase).
    pub fn pixels(&self, tile: usize) -> impl Iterator<Item = (usize, [usize; 2])> + use<'_> {
        let [top, left] = self.origin(tile);
        let inside = |at: i64, size: usize| usize::try_from(at).ok().filter(|&at| at < size);
        (0..self.window[0]).flat_map(move |row| {
            (0..self.window[1]).filter_map(move |column| {
                let y = inside((top + row) as i64 + self.first.down, self.image[0])?;
                let x = inside((left + column) as i64 + self.first.right, self.image[1])?;
                Some((row * self.pitch + column, [y, x]))
            })
        })
    }

    /// The output pixels of a tile that there are, of an output of `size`: (cell, [row, column]).
    pub fn results(&self, tile: usize, size: [usize; 2]) -> impl Iterator<Item = (usize, [usize; 2])> + use<'_> {
        let [top, left] = self.origin(tile);
        (0..self.output[0].min(size[0] - top)).flat_map(move |row| {
            (0..self.output[1].min(size[1] - left))
                .map(move |column| (row * self.pitch + column, [top + row, left + column]))
        })
    }

    /// Cells from an output pixel to what a tap at `offset` reads for it.
    pub fn steps(&self, offset: Offset) -> usize {
        (offset.down - self.first.down) as usize * self.pitch + (offset.right - self.first.right) as usize
    }

    /// The first output pixel of a tile.
    fn origin(&self, tile: usize) -> [usize; 2] {
        [tile / self.count[1] * self.output[0], tile % self.count[1] * self.output[1]]
    }
}
