//! From coefficients to values: butterflies (x, y) -> (x + wy, x - wy), largest stride first.
//!
//! Level by level a block of constants index k splits into blocks 2k and 2k + 1 of half its length; the whole
//! polynomial is block 1. Two levels go through memory together (radix 4), and once a block fits the first-level cache
//! it is worked on to the end. The last levels, of strides below a register, exchange lanes between two registers.

use super::{BLOCK, Lanes, Pairs, Residues, SIDE_BY_SIDE, Table, Task, halves, load, quarters, side_by_side, store};
use crate::math::lanes::Vector;

/// The whole transform, as a task for any kernel.
pub struct Forward<'a> {
    /// Constants at index k for block k.
    pub table: &'a Table,
    /// N reduced words.
    pub residues: &'a mut [u64],
}

impl Task for Forward<'_> {
    #[inline(always)]
    fn run<R: Residues>(self, r: R) {
        let pair = 2 * R::Lanes::LANES;
        let block_length = BLOCK.min(self.residues.len());
        levels(r, self.residues, self.table, 1, block_length);
        let blocks = self.residues.len() / block_length;
        for (i, block) in self.residues.chunks_exact_mut(block_length).enumerate() {
            levels(r, block, self.table, blocks + i, pair);
            let first = (blocks + i) * (block_length / pair);
            for (j, words) in block.chunks_mut(side_by_side(r) * pair).enumerate() {
                let k = first + j * side_by_side(r);
                match words.len() / pair {
                    SIDE_BY_SIDE => finish::<R, SIDE_BY_SIDE>(r, words, self.table, k),
                    _ => {
                        for (i, words) in words.chunks_exact_mut(pair).enumerate() {
                            finish::<R, 1>(r, words, self.table, k + i);
                        }
                    }
                }
            }
        }
    }
}

/// Takes block `k` down to blocks of `until` words.
#[inline(always)]
pub fn levels<R: Residues>(r: R, block: &mut [u64], table: &Table, k: usize, until: usize) {
    let mut length = block.len();
    let mut first = k;
    if (length / until).trailing_zeros() % 2 == 1 {
        radix_2(r, block, table, first);
        length /= 2;
        first *= 2;
    }
    while length > until {
        for (i, part) in block.chunks_exact_mut(length).enumerate() {
            radix_4(r, part, table, first + i);
        }
        length /= 4;
        first *= 4;
    }
}

/// Splits block `k` in two.
#[inline(always)]
fn radix_2<R: Residues>(r: R, block: &mut [u64], table: &Table, k: usize) {
    let lanes = r.lanes();
    let w = r.constant(table, k);
    for [a, b] in halves(block, R::Lanes::LANES) {
        let (x, y) = butterfly(r, lanes.load(a), lanes.load(b), w);
        lanes.store(a, x);
        lanes.store(b, y);
    }
}

/// Splits block `k` in four.
#[inline(always)]
fn radix_4<R: Residues>(r: R, block: &mut [u64], table: &Table, k: usize) {
    let lanes = r.lanes();
    let (w, w_lower, w_upper) = (r.constant(table, k), r.constant(table, 2 * k), r.constant(table, 2 * k + 1));
    for [a, b, c, d] in quarters(block, R::Lanes::LANES) {
        let (x0, x2) = butterfly(r, lanes.load(a), lanes.load(c), w);
        let (x1, x3) = butterfly(r, lanes.load(b), lanes.load(d), w);
        let (x0, x1) = butterfly(r, x0, x1, w_lower);
        let (x2, x3) = butterfly(r, x2, x3, w_upper);
        lanes.store(a, x0);
        lanes.store(b, x1);
        lanes.store(c, x2);
        lanes.store(d, x3);
    }
}

/// Finishes blocks of two registers in memory, from block `k` on, and reduces them.
#[inline(always)]
fn finish<R: Residues, const B: usize>(r: R, words: &mut [u64], table: &Table, k: usize) {
    let lanes = r.lanes();
    let values = last_levels::<R, B>(r, load(r, words), table, k);
    let mut pairs = values;
    for i in 0..B {
        let [x, y] = values[i];
        let (x, y) = lanes.interleave(r.canonical(x), r.canonical(y));
        pairs[i] = [x, y];
    }
    store(r, words, pairs);
}

/// Finishes blocks of two registers, from block `k` on: returns the even words of each, and its odd ones.
#[inline(always)]
pub fn last_levels<R: Residues, const B: usize>(r: R, blocks: Pairs<R, B>, table: &Table, k: usize) -> Pairs<R, B> {
    let lanes = r.lanes();
    let mut pairs = blocks;
    for i in 0..B {
        let [x, y] = pairs[i];
        let (x, y) = butterfly(r, x, y, r.constant(table, k + i));
        pairs[i] = [x, y];
    }
    let mut stride = R::Lanes::LANES;
    while stride > 1 {
        stride /= 2;
        for i in 0..B {
            let [x, y] = pairs[i];
            let (x, y) = lanes.exchange(x, y, stride);
            let constants = r.constants(table, (k + i) * (R::Lanes::LANES / stride), stride);
            let (x, y) = butterfly(r, x, y, constants);
            pairs[i] = [x, y];
        }
    }
    pairs
}

/// Takes x, y < 2Lp to x + wy, x - wy < 2Lp.
#[inline(always)]
fn butterfly<R: Residues>(r: R, x: Vector<R>, y: Vector<R>, w: R::Constant) -> (Vector<R>, Vector<R>) {
    let lanes = r.lanes();
    let (x, y) = (r.fold(x), r.mul(y, w));
    (lanes.add(x, y), lanes.add(x, lanes.sub(r.multiple_bound(), y)))
}
