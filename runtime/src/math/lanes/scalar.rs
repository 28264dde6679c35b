//! One lane: the code that runs everywhere, and what the vector kernels must agree with.

use super::Lanes;

/// Plain 64-bit integers as a register of one lane.
#[derive(Clone, Copy)]
pub(in crate::math) struct Scalar;

impl Lanes for Scalar {
    type Vector = u64;
    const LANES: usize = 1;

    #[inline(always)]
    fn load(self, from: &[u64]) -> u64 {
        from[0]
    }

    #[inline(always)]
    fn store(self, to: &mut [u64], x: u64) {
        to[0] = x;
    }

    #[inline(always)]
    fn splat(self, x: u64) -> u64 {
        x
    }

    #[inline(always)]
    fn load_spread(self, from: &[u64], _stride: usize) -> u64 {
        from[0]
    }

    #[inline(always)]
    fn add(self, x: u64, y: u64) -> u64 {
        x.wrapping_add(y)
    }

    #[inline(always)]
    fn sub(self, x: u64, y: u64) -> u64 {
        x.wrapping_sub(y)
    }

    #[inline(always)]
    fn sub_once(self, x: u64, bound: u64) -> u64 {
        let rest = x.wrapping_sub(bound);
        // The sign says which side of the bound x is on; masking keeps it out of a branch.
        rest.wrapping_add(bound & ((rest as i64 >> 63) as u64))
    }

    #[inline(always)]
    fn sub_once_32(self, x: u64, bound: u64) -> u64 {
        self.sub_once(x, bound)
    }

    #[inline(always)]
    fn and(self, x: u64, y: u64) -> u64 {
        x & y
    }

    #[inline(always)]
    fn shift_left(self, x: u64, bits: u32) -> u64 {
        x << bits
    }

    #[inline(always)]
    fn shift_right(self, x: u64, bits: u32) -> u64 {
        x >> bits
    }

    #[inline(always)]
    fn mul_32(self, x: u64, y: u64) -> u64 {
        (x & 0xffff_ffff) * (y & 0xffff_ffff)
    }

    #[inline(always)]
    fn mul_low(self, x: u64, y: u64) -> u64 {
        x.wrapping_mul(y)
    }

    #[inline(always)]
    fn mul_high_about(self, x: u64, y: u64) -> u64 {
        ((u128::from(x) * u128::from(y)) >> 64) as u64
    }

    #[inline(always)]
    fn exchange(self, _x: u64, _y: u64, stride: usize) -> (u64, u64) {
        unreachable!("one lane has no blocks of {stride} to exchange")
    }

    #[inline(always)]
    fn interleave(self, evens: u64, odds: u64) -> (u64, u64) {
        (evens, odds)
    }

    #[inline(always)]
    fn deinterleave(self, first: u64, second: u64) -> (u64, u64) {
        (first, second)
    }
}
