//! From coefficients to values: butterflies (x, y) -> (x + wy, x - wy), largest stride first.
//!
//! Level by level a block of constants index k splits into blocks 2k and 2k + 1 of half its length; the whole
//! polynomial is block 1. Two levels go through memory together (radix 4), and once a block fits the first-level cache
//! it is worked on to the end. The last levels, of strides below a register, exchange lanes between two registers.

use super::{BLOCK, Lanes, Residues, Table, Task, halves, quarters};
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
            for (j, words) in block.chunks_exact_mut(pair).enumerate() {
                finish(r, words, self.table, first + j);
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

/// Finishes block `k` of two registers in memory, and reduces it.
#[inline(always)]
fn finish<R: Residues>(r: R, words: &mut [u64], table: &Table, k: usize) {
    let lanes = r.lanes();
    let (first, second) = words.split_at_mut(R::Lanes::LANES);
    let (x, y) = last_levels(r, lanes.load(first), lanes.load(second), table, k);
    let (x, y) = lanes.interleave(r.canonical(x), r.canonical(y));
    lanes.store(first, x);
    lanes.store(second, y);
}

/// Finishes block `k` of two registers: returns its even words, and its odd ones.
#[inline(always)]
pub fn last_levels<R: Residues>(
    r: R,
    first: Vector<R>,
    second: Vector<R>,
    table: &Table,
    k: usize,
) -> (Vector<R>, Vector<R>) {
    let lanes = r.lanes();
    let (mut x, mut y) = butterfly(r, first, second, r.constant(table, k));
    let (mut stride, mut index) = (R::Lanes::LANES, k);
    while stride > 1 {
        stride /= 2;
        index *= 2;
        (x, y) = lanes.exchange(x, y, stride);
        (x, y) = butterfly(r, x, y, r.constants(table, index, stride));
    }
    (x, y)
}

/// Takes x, y < 2Lp to x + wy, x - wy < 2Lp.
#[inline(always)]
fn butterfly<R: Residues>(r: R, x: Vector<R>, y: Vector<R>, w: R::Constant) -> (Vector<R>, Vector<R>) {
    let lanes = r.lanes();
    let (x, y) = (r.fold(x), r.mul(y, w));
    (lanes.add(x, y), lanes.add(x, lanes.sub(r.multiple_bound(), y)))
}
