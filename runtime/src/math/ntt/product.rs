//! A product of polynomials in one go: what leaves the forward transform goes straight into the inverse one.

use super::{BLOCK, Lanes, Modulus, Residues, SIDE_BY_SIDE, Table, Task, forward, inverse, load, side_by_side, store};

/// The product with a polynomial whose values are known, as a task for any kernel.
pub struct Product<'a> {
    /// Forward constants, inverse constants, and those of the last level.
    pub tables: [&'a Table; 3],
    /// N reduced values, prepared.
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
            let length = side_by_side(r) * pair;
            for (j, (words, factor)) in block.chunks_mut(length).zip(factor.chunks(length)).enumerate() {
                let k = first + j * side_by_side(r);
                match words.len() / pair {
                    SIDE_BY_SIDE => multiply::<R, SIDE_BY_SIDE>(r, words, factor, [down, up], k),
                    _ => {
                        let parts = words.chunks_exact_mut(pair).zip(factor.chunks_exact(pair));
                        for (i, (words, factor)) in parts.enumerate() {
                            multiply::<R, 1>(r, words, factor, [down, up], k + i);
                        }
                    }
                }
            }
            inverse::levels(r, block, up, blocks + i, pair);
        }
        for (i, block) in residues.chunks_exact_mut(half).enumerate() {
            inverse::levels(r, block, up, 2 + i, block_length);
        }
        inverse::last_level(r, residues, scale);
    }
}

/// Takes blocks of two registers, from block `k` on, down to values, multiplies them, and brings them up again.
#[inline(always)]
fn multiply<R: Residues, const B: usize>(r: R, words: &mut [u64], factor: &[u64], tables: [&Table; 2], k: usize) {
    let lanes = r.lanes();
    let mut pairs = forward::last_levels::<R, B>(r, load(r, words), tables[0], k);
    let factors = load::<R, B>(r, factor);
    for i in 0..B {
        let ([x, y], [first, second]) = (pairs[i], factors[i]);
        let (evens, odds) = lanes.deinterleave(first, second);
        pairs[i] = [r.multiple(x, evens), r.multiple(y, odds)];
    }
    store(r, words, inverse::first_levels::<R, B>(r, pairs, tables[1], k));
}

/// Prepares values for [`Product`], as a task for any kernel.
pub struct Prepare<'a> {
    /// The prime.
    pub modulus: Modulus,
    /// Reduced values.
    pub values: &'a mut [u64],
}

impl Task for Prepare<'_> {
    #[inline(always)]
    fn run<R: Residues>(self, _residues: R) {
        for value in self.values {
            *value = R::prepared(self.modulus, *value);
        }
    }
}
