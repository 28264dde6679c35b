//! Which channel sits in which block of which ciphertext.
//!
//! A row of N/2 slots holds N/2 / block *columns*. Inputs and outputs are periodic in them, and a sum over input
//! channels is a sum over *shifts*: output channel m, in a column a, adds what lies s columns further on, for every
//! shift s. This is the hybrid method for matrix products (Juvekar et al., "GAZELLE", USENIX Security 2018, §4), with
//! blocks in the place of single slots, with copies of the input sharing the shifts, and with the last sums, over
//! copies, left to the client, who adds for nothing what would cost the server rotations, keys and noise.

/// Columns of one stage. Periods are powers of two.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Placement {
    /// Input channels (phases counted as channels).
    pub channels_in: usize,
    /// Output channels.
    pub channels_out: usize,
    /// Blocks in a row of slots.
    pub columns: usize,
    /// Input ciphertexts.
    pub inputs: usize,
    /// Output ciphertexts.
    pub outputs: usize,
    /// Input channels repeat after so many columns, counted through both rows.
    pub period_in: usize,
    /// Output channels repeat after so many columns, counted through both rows.
    pub period_out: usize,
    /// Copies of everything within a row, side by side: neighbouring columns belong to different copies.
    pub interleave: usize,
    /// Copies, in both rows, that share the shifts between them; each starts where the one before ends.
    pub parts: usize,
    /// Shifts that each copy goes through.
    pub shifts: usize,
    /// Whether every shift is also needed with the rows swapped.
    pub swaps: bool,
}

impl Placement {
    /// Places channels in rows of `columns` blocks (a power of two).
    pub fn new(channels_in: usize, channels_out: usize, columns: usize) -> Placement {
        let both_rows = 2 * columns;
        let period_in = channels_in.next_power_of_two().min(both_rows);
        let period_out = channels_out.next_power_of_two().min(both_rows);
        let period = period_in.max(period_out);
        let all_shifts = period_in.min(period_out);
        let fits_a_row = period <= columns;
        let interleave = if fits_a_row { columns / period } else { 1 };
        let parts = if fits_a_row { (2 * interleave).min(all_shifts) } else { 1 };
        let swaps = all_shifts == both_rows;
        let shifts = if swaps { columns } else { all_shifts / parts };
        Placement {
            channels_in,
            channels_out,
            columns,
            inputs: channels_in.div_ceil(both_rows),
            outputs: channels_out.div_ceil(both_rows),
            period_in,
            period_out,
            interleave,
            parts,
            shifts,
            swaps,
        }
    }

    /// The copy that a column belongs to, if any uses it, and its place within the copy.
    fn copy(&self, row: usize, column: usize) -> Option<(usize, usize)> {
        if self.period_in.max(self.period_out) > self.columns {
            return Some((0, column));
        }
        let copy = row * self.interleave + column % self.interleave;
        (copy < self.parts).then_some((copy, column / self.interleave))
    }

    /// The input channel in a column of an input ciphertext.
    pub fn input_channel(&self, ciphertext: usize, row: usize, column: usize) -> Option<usize> {
        let (copy, place) = self.copy(row, column)?;
        let both_rows = 2 * self.columns;
        let channel = if self.period_in == both_rows {
            ciphertext * both_rows + row * self.columns + place
        } else {
            (place + copy * self.shifts) % self.period_in
        };
        (channel < self.channels_in).then_some(channel)
    }

    /// The output channel whose partial sum arrives in a column of an output ciphertext.
    pub fn output_channel(&self, ciphertext: usize, row: usize, column: usize) -> Option<usize> {
        let (_, place) = self.copy(row, column)?;
        let both_rows = 2 * self.columns;
        let channel = if self.period_out == both_rows {
            ciphertext * both_rows + row * self.columns + place
        } else {
            place % self.period_out
        };
        (channel < self.channels_out).then_some(channel)
    }

    /// The column that a shift reads for a sum that arrives in `column`.
    pub fn source_column(&self, column: usize, shift: usize) -> usize {
        (column + shift * self.interleave) % self.columns
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        /// Every output channel adds every input channel exactly once, over its columns, shifts and swaps.
        #[test]
        fn sums_are_complete(channels_in in 1usize..70, channels_out in 1usize..70, log_columns in 0u32..6) {
            let placement = Placement::new(channels_in, channels_out, 1 << log_columns);
            let mut seen = vec![0; channels_in * channels_out];
            for output in 0..placement.outputs {
                for (row, column) in (0..2).flat_map(|row| (0..placement.columns).map(move |column| (row, column))) {
                    let Some(to) = placement.output_channel(output, row, column) else { continue };
                    for swap in 0..=usize::from(placement.swaps) {
                        for shift in 0..placement.shifts {
                            let source = placement.source_column(column, shift);
                            for input in 0..placement.inputs {
                                if let Some(from) = placement.input_channel(input, row ^ swap, source) {
                                    seen[to * channels_in + from] += 1;
                                }
                            }
                        }
                    }
                }
            }
            prop_assert!(seen.iter().all(|&times| times == 1), "{placement:?} {seen:?}");
        }
    }
}
