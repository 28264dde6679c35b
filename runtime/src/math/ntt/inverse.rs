//! From values back to coefficients: butterflies (x, y) -> (x + y, (x - y) / w), smallest stride first.
//!
//! The mirror image of the forward transform, block by block; the factor 1/N rides on the constants of the last level.

use super::{BLOCK, Lanes, Residues, Table, Task, halves, quarters};
use crate::math::lanes::Vector;

/// The whole inverse transform, as a task for any kernel.
pub struct Inverse<'a> {
    /// Inverse constants at index k for block k.
    pub table: &'a Table,
    /// 1/N, then constant 1 over N.
    pub scale: &'a Table,
    /// N reduced words to multiply with first, if any.
    pub factor: Option<&'a [u64]>,
    /// N reduced words.
    pub residues: &'a mut [u64],
}

impl Task for Inverse<'_> {
    #[inline(always)]
    fn run<R: Residues>(self, r: R) {
        let pair = 2 * R::Lanes::LANES;
        // The two halves of the polynomial are blocks 2 and 3; joining them is the level that also divides by N.
        let half = self.residues.len() / 2;
        let block_length = BLOCK.min(half);
        let blocks = self.residues.len() / block_length;
        for (i, block) in self.residues.chunks_exact_mut(block_length).enumerate() {
            let first = (blocks + i) * (block_length / pair);
            for (j, words) in block.chunks_exact_mut(pair).enumerate() {
                let factor = self.factor.map(|factor| &factor[i * block_length + j * pair..][..pair]);
                begin(r, words, factor, self.table, first + j);
            }
            levels(r, block, self.table, blocks + i, pair);
        }
        for (i, block) in self.residues.chunks_exact_mut(half).enumerate() {
            levels(r, block, self.table, 2 + i, block_length);
        }
        last_level(r, self.residues, self.scale);
    }
}

/// Brings block `k` together from blocks of `from` words.
#[inline(always)]
pub fn levels<R: Residues>(r: R, block: &mut [u64], table: &Table, k: usize, from: usize) {
    let mut length = from;
    while 2 * length < block.len() {
        length *= 4;
        let first = k * (block.len() / length);
        for (i, part) in block.chunks_exact_mut(length).enumerate() {
            radix_4(r, part, table, first + i);
        }
    }
    if length < block.len() {
        radix_2(r, block, table, k);
    }
}

/// Joins the halves of block `k`.
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

/// Joins the quarters of block `k`.
#[inline(always)]
fn radix_4<R: Residues>(r: R, block: &mut [u64], table: &Table, k: usize) {
    let lanes = r.lanes();
    let (w, w_lower, w_upper) = (r.constant(table, k), r.constant(table, 2 * k), r.constant(table, 2 * k + 1));
    for [a, b, c, d] in quarters(block, R::Lanes::LANES) {
        let (x0, x1) = butterfly(r, lanes.load(a), lanes.load(b), w_lower);
        let (x2, x3) = butterfly(r, lanes.load(c), lanes.load(d), w_upper);
        let (x0, x2) = butterfly(r, x0, x2, w);
        let (x1, x3) = butterfly(r, x1, x3, w);
        lanes.store(a, x0);
        lanes.store(b, x1);
        lanes.store(c, x2);
        lanes.store(d, x3);
    }
}

/// Brings block `k` of two registers in memory together from reduced words, or their products with a factor.
#[inline(always)]
fn begin<R: Residues>(r: R, words: &mut [u64], factor: Option<&[u64]>, table: &Table, k: usize) {
    let lanes = r.lanes();
    let (first, second) = words.split_at_mut(R::Lanes::LANES);
    let (mut x, mut y) = (lanes.load(first), lanes.load(second));
    if let Some(factor) = factor {
        x = r.product(x, lanes.load(factor));
        y = r.product(y, lanes.load(&factor[R::Lanes::LANES..]));
    }
    let (evens, odds) = lanes.deinterleave(x, y);
    let (x, y) = first_levels(r, evens, odds, table, k);
    lanes.store(first, x);
    lanes.store(second, y);
}

/// Brings block `k` of two registers together from its even words and its odd ones, reduced.
#[inline(always)]
pub fn first_levels<R: Residues>(
    r: R,
    evens: Vector<R>,
    odds: Vector<R>,
    table: &Table,
    k: usize,
) -> (Vector<R>, Vector<R>) {
    let lanes = r.lanes();
    let (mut x, mut y) = (evens, odds);
    let mut stride = 1;
    while stride < R::Lanes::LANES {
        let w = r.constants(table, k * (R::Lanes::LANES / stride), stride);
        (x, y) = butterfly(r, x, y, w);
        (x, y) = lanes.exchange(x, y, stride);
        stride *= 2;
    }
    butterfly(r, x, y, r.constant(table, k))
}

/// Joins the halves of the polynomial, divides by N and reduces.
#[inline(always)]
pub fn last_level<R: Residues>(r: R, residues: &mut [u64], scale: &Table) {
    let lanes = r.lanes();
    let (over_n, w_over_n) = (r.constant(scale, 0), r.constant(scale, 1));
    for [a, b] in halves(residues, R::Lanes::LANES) {
        let (x, y) = (lanes.load(a), lanes.load(b));
        let sum = r.mul(lanes.add(x, y), over_n);
        let difference = r.mul(lanes.add(x, lanes.sub(r.lazy_bound(), y)), w_over_n);
        lanes.store(a, r.reduce_multiple(sum));
        lanes.store(b, r.reduce_multiple(difference));
    }
}

/// Takes x, y < Lp to x + y, (x - y) w < Lp.
#[inline(always)]
fn butterfly<R: Residues>(r: R, x: Vector<R>, y: Vector<R>, w: R::Constant) -> (Vector<R>, Vector<R>) {
    let lanes = r.lanes();
    let difference = lanes.add(x, lanes.sub(r.lazy_bound(), y));
    (r.fold(lanes.add(x, y)), r.mul(difference, w))
}
