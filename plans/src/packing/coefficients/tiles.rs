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

/// Pixels side by side, in cells side by side.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PixelRow {
    /// The first pixel's cell.
    pub cell: usize,
    /// Their row.
    pub y: usize,
    /// The first pixel's column.
    pub x: usize,
    /// How many pixels.
    pub length: usize,
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
        let pixels = (0..tiles.tiles()).flat_map(|tile| tiles.pixels(tile));
        let (first, last) = pixels.fold((usize::MAX, 0), |(first, last), PixelRow { cell, length, .. }| {
            (first.min(cell), last.max(cell + length - 1))
        });
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

    /// The pixels of the image in a tile's window, by rows of the phase.
    pub fn pixels(&self, tile: usize) -> impl Iterator<Item = PixelRow> + use<'_> {
        let [top, left] = self.origin(tile);
        // The first row and column of the window that are inside the image, and the first behind.
        let inside = |axis: usize, origin: usize, offset: i64| {
            let start = origin as i64 + offset;
            let end = (self.image[axis] as i64 - start).clamp(0, self.window[axis] as i64);
            ((-start).clamp(0, end) as usize, end as usize, start)
        };
        let ((first_row, end_row, y), (first, end, x)) =
            (inside(0, top, self.first.down), inside(1, left, self.first.right));
        let rows = if first < end { first_row..end_row } else { 0..0 };
        rows.map(move |row| PixelRow {
            cell: row * self.pitch + first,
            y: (y + row as i64) as usize,
            x: (x + first as i64) as usize,
            length: end - first,
        })
    }

    /// The output pixels of a tile that there are, of an output of `size`, row by row.
    pub fn results(&self, tile: usize, size: [usize; 2]) -> impl Iterator<Item = PixelRow> + use<'_> {
        let [top, left] = self.origin(tile);
        let length = self.output[1].min(size[1] - left);
        (0..self.output[0].min(size[0] - top)).map(move |row| PixelRow {
            cell: row * self.pitch,
            y: top + row,
            x: left,
            length,
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
