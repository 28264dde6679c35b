//! A product of polynomials in one go: what leaves the forward transform goes straight into the inverse one.

use super::{BLOCK, Lanes, Residues, Table, Task, forward, inverse};

/// The product with a polynomial whose values are known, as a task for any kernel.
pub struct Product<'a> {
    /// Forward constants, inverse constants, and those of the last level.
    pub tables: [&'a Table; 3],
    /// N reduced values.
    pub factor: &'a [u64],
    /// N reduced coefficients.
    pub residues: &'a mut [u64],
}

impl Task for Product<'_> {
    #[inline(always)]
    fn run<R: Residues>(self, r: R) {
        let Self { tables: [down, up, scale], factor, residues } = self;
        let pair = 2 * R::Lanes::LANES;
        let half = residues.len() / 2;
        let block_length = BLOCK.min(half);
        let blocks = residues.len() / block_length;
        forward::levels(r, residues, down, 1, block_length);
        let parts = residues.chunks_exact_mut(block_length).zip(factor.chunks_exact(block_length));
        for (i, (block, factor)) in parts.enumerate() {
            forward::levels(r, block, down, blocks + i, pair);
            let first = (blocks + i) * (block_length / pair);
            for (j, (words, factor)) in block.chunks_exact_mut(pair).zip(factor.chunks_exact(pair)).enumerate() {
                multiply(r, words, factor, [down, up], first + j);
            }
            inverse::levels(r, block, up, blocks + i, pair);
        }
        for (i, block) in residues.chunks_exact_mut(half).enumerate() {
            inverse::levels(r, block, up, 2 + i, block_length);
        }
        inverse::last_level(r, residues, scale);
    }
}

/// Takes block `k` of two registers down to values, multiplies them, and brings them up again.
#[inline(always)]
fn multiply<R: Residues>(r: R, words: &mut [u64], factor: &[u64], [down, up]: [&Table; 2], k: usize) {
    let lanes = r.lanes();
    let (first, second) = words.split_at_mut(R::Lanes::LANES);
    let (evens, odds) = lanes.deinterleave(lanes.load(factor), lanes.load(&factor[R::Lanes::LANES..]));
    let (x, y) = forward::last_levels(r, lanes.load(first), lanes.load(second), down, k);
    let (x, y) = (r.product(r.canonical(x), evens), r.product(r.canonical(y), odds));
    let (x, y) = inverse::first_levels(r, x, y, up, k);
    lanes.store(first, x);
    lanes.store(second, y);
}
