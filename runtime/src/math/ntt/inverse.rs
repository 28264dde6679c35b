//! From values back to coefficients: butterflies (x, y) -> (x + y, (x - y) / w), smallest stride first.
//!
//! The forward transform's mirror image, block by block; the factor 1/N rides on the constants of the last level.

use super::{BLOCK, Lanes, Pairs, Residues, SIDE_BY_SIDE, Table, Task, halves, load, quarters, side_by_side, store};
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
        let length = self.residues.len();
        // The level that joins the two halves of the polynomial, blocks 2 and 3, also divides by N. Where the levels
        // below, two at a time, leave one over, that one is taken with it.
        let joined = if (length / pair).ilog2().is_multiple_of(2) { length / 4 } else { length / 2 };
        let block_length = block_length(pair, joined);
        let blocks = length / block_length;
        for (i, block) in self.residues.chunks_exact_mut(block_length).enumerate() {
            let first = (blocks + i) * (block_length / pair);
            for (j, words) in block.chunks_mut(side_by_side(r) * pair).enumerate() {
                let begin_at = i * block_length + j * side_by_side(r) * pair;
                let factor = self.factor.map(|factor| &factor[begin_at..][..words.len()]);
                let k = first + j * side_by_side(r);
                match words.len() / pair {
                    SIDE_BY_SIDE => begin::<R, SIDE_BY_SIDE>(r, words, factor, self.table, k),
                    _ => {
                        for (i, words) in words.chunks_exact_mut(pair).enumerate() {
                            let factor = factor.map(|factor| &factor[i * pair..][..pair]);
                            begin::<R, 1>(r, words, factor, self.table, k + i);
                        }
                    }
                }
            }
            levels(r, block, self.table, blocks + i, pair);
        }
        for (i, block) in self.residues.chunks_exact_mut(joined).enumerate() {
            levels(r, block, self.table, length / joined + i, block_length);
        }
        match length / joined {
            4 => last_two_levels(r, self.residues, self.table, self.scale),
            _ => last_level(r, self.residues, self.scale),
        }
    }
}

/// The longest block within [`BLOCK`] words, and `most`, that levels reach from `pair` words two at a time.
fn block_length(pair: usize, most: usize) -> usize {
    let mut length = pair;
    while 4 * length <= most.min(BLOCK) {
        length *= 4;
    }
    length
}

/// Brings block `k` together from blocks of `from` words, two levels at a time.
#[inline(always)]
pub fn levels<R: Residues>(r: R, block: &mut [u64], table: &Table, k: usize, from: usize) {
    let mut length = from;
    while length < block.len() {
        length *= 4;
        let first = k * (block.len() / length);
        for (i, part) in block.chunks_exact_mut(length).enumerate() {
            radix_4(r, part, table, first + i);
        }
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

/// Brings blocks of two registers in memory together, from block `k` on, from reduced words or their products with a
/// factor.
#[inline(always)]
fn begin<R: Residues, const B: usize>(r: R, words: &mut [u64], factor: Option<&[u64]>, table: &Table, k: usize) {
    let lanes = r.lanes();
    let mut pairs = load(r, words);
    if let Some(factor) = factor {
        let factors = load::<R, B>(r, factor);
        for i in 0..B {
            let ([x, y], [x_factor, y_factor]) = (pairs[i], factors[i]);
            pairs[i] = [r.product(x, x_factor), r.product(y, y_factor)];
        }
    }
    for i in 0..B {
        let [x, y] = pairs[i];
        let (evens, odds) = lanes.deinterleave(x, y);
        pairs[i] = [evens, odds];
    }
    store(r, words, first_levels::<R, B>(r, pairs, table, k));
}

/// Brings blocks of two registers together, from block `k` on, from the even words of each and its odd ones, reduced.
#[inline(always)]
pub fn first_levels<R: Residues, const B: usize>(r: R, values: Pairs<R, B>, table: &Table, k: usize) -> Pairs<R, B> {
    let lanes = r.lanes();
    let mut pairs = values;
    let mut stride = 1;
    while stride < R::Lanes::LANES {
        for i in 0..B {
            let [x, y] = pairs[i];
            let constants = r.constants(table, (k + i) * (R::Lanes::LANES / stride), stride);
            let (x, y) = butterfly(r, x, y, constants);
            let (x, y) = lanes.exchange(x, y, stride);
            pairs[i] = [x, y];
        }
        stride *= 2;
    }
    for i in 0..B {
        let [x, y] = pairs[i];
        let (x, y) = butterfly(r, x, y, r.constant(table, k + i));
        pairs[i] = [x, y];
    }
    pairs
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

/// Joins the quarters of the polynomial, divides by N and reduces.
#[inline(always)]
fn last_two_levels<R: Residues>(r: R, residues: &mut [u64], table: &Table, scale: &Table) {
    let lanes = r.lanes();
    let (w_lower, w_upper) = (r.constant(table, 2), r.constant(table, 3));
    let (over_n, w_over_n) = (r.constant(scale, 0), r.constant(scale, 1));
    for [a, b, c, d] in quarters(residues, R::Lanes::LANES) {
        let (x0, x1) = butterfly(r, lanes.load(a), lanes.load(b), w_lower);
        let (x2, x3) = butterfly(r, lanes.load(c), lanes.load(d), w_upper);
        for (x, y, sum_to, difference_to) in [(x0, x2, a, c), (x1, x3, b, d)] {
            let sum = r.mul(lanes.add(x, y), over_n);
            let difference = r.mul(lanes.add(x, lanes.sub(r.lazy_bound(), y)), w_over_n);
            lanes.store(sum_to, r.reduce_multiple(sum));
            lanes.store(difference_to, r.reduce_multiple(difference));
        }
    }
}

/// Takes x, y < Lp to x + y, (x - y) w < Lp.
#[inline(always)]
fn butterfly<R: Residues>(r: R, x: Vector<R>, y: Vector<R>, w: R::Constant) -> (Vector<R>, Vector<R>) {
    let lanes = r.lanes();
    let difference = lanes.add(x, lanes.sub(r.lazy_bound(), y));
    (r.fold(lanes.add(x, y)), r.mul(difference, w))
}
