//! Four lanes: AVX2.
#![expect(unsafe_code, reason = "vector instructions; each needs AVX2, which the only maker of an `Avx2` has checked")]

use std::arch::x86_64::*;

use super::{Lanes, Modulus, Narrow, Wide};
use crate::math::kernel::Task;

/// AVX2 registers; made by [`run`] alone.
#[derive(Clone, Copy)]
pub(in crate::math) struct Avx2(());

/// Says whether the machine has AVX2.
pub(in crate::math) fn is_available() -> bool {
    is_x86_feature_detected!("avx2")
}

/// Runs a task with narrow or wide arithmetic.
pub(in crate::math) fn run(modulus: Modulus, narrow: bool, task: impl Task) {
    assert!(is_available(), "this machine lacks AVX2");
    // SAFETY: checked above.
    unsafe { if narrow { run_narrow(modulus, task) } else { run_wide(modulus, task) } }
}

#[target_feature(enable = "avx2")]
fn run_narrow(modulus: Modulus, task: impl Task) {
    task.run(Narrow::new(Avx2(()), modulus));
}

#[target_feature(enable = "avx2")]
fn run_wide(modulus: Modulus, task: impl Task) {
    task.run(Wide::new(Avx2(()), modulus));
}

/// A shift count as the instructions take it.
#[inline(always)]
fn count(bits: u32) -> __m128i {
    // SAFETY: SSE2 belongs to every x86-64 machine.
    unsafe { _mm_cvtsi32_si128(bits as i32) }
}

// SAFETY of every block below: `self` exists, so the machine has AVX2; loads and stores stay inside slices whose length
// is asserted.
impl Lanes for Avx2 {
    type Vector = __m256i;
    const LANES: usize = 4;

    #[inline(always)]
    fn load(self, from: &[u64]) -> __m256i {
        assert!(from.len() >= 4);
        unsafe { _mm256_loadu_si256(from.as_ptr().cast()) }
    }

    #[inline(always)]
    fn store(self, to: &mut [u64], x: __m256i) {
        assert!(to.len() >= 4);
        unsafe { _mm256_storeu_si256(to.as_mut_ptr().cast(), x) }
    }

    #[inline(always)]
    fn splat(self, x: u64) -> __m256i {
        unsafe { _mm256_set1_epi64x(x as i64) }
    }

    #[inline(always)]
    fn load_spread(self, from: &[u64], stride: usize) -> __m256i {
        if stride == 1 {
            return self.load(from);
        }
        assert!(stride == 2 && from.len() >= 2);
        unsafe {
            let two = _mm_loadu_si128(from.as_ptr().cast());
            _mm256_permute4x64_epi64::<0b01_01_00_00>(_mm256_castsi128_si256(two))
        }
    }

    #[inline(always)]
    fn add(self, x: __m256i, y: __m256i) -> __m256i {
        unsafe { _mm256_add_epi64(x, y) }
    }

    #[inline(always)]
    fn sub(self, x: __m256i, y: __m256i) -> __m256i {
        unsafe { _mm256_sub_epi64(x, y) }
    }

    /// There is no minimum of 64-bit lanes: the sign of the difference chooses.
    #[inline(always)]
    fn sub_once(self, x: __m256i, bound: __m256i) -> __m256i {
        unsafe {
            let rest = _mm256_castsi256_pd(_mm256_sub_epi64(x, bound));
            _mm256_castpd_si256(_mm256_blendv_pd(rest, _mm256_castsi256_pd(x), rest))
        }
    }

    /// Where x < bound the difference wraps above x in the low half; in the high half the zero of x is the minimum.
    #[inline(always)]
    fn sub_once_32(self, x: __m256i, bound: __m256i) -> __m256i {
        unsafe { _mm256_min_epu32(x, _mm256_sub_epi64(x, bound)) }
    }

    #[inline(always)]
    fn and(self, x: __m256i, y: __m256i) -> __m256i {
        unsafe { _mm256_and_si256(x, y) }
    }

    #[inline(always)]
    fn shift_left(self, x: __m256i, bits: u32) -> __m256i {
        unsafe { _mm256_sll_epi64(x, count(bits)) }
    }

    #[inline(always)]
    fn shift_right(self, x: __m256i, bits: u32) -> __m256i {
        unsafe { _mm256_srl_epi64(x, count(bits)) }
    }

    #[inline(always)]
    fn mul_32(self, x: __m256i, y: __m256i) -> __m256i {
        unsafe { _mm256_mul_epu32(x, y) }
    }

    /// The high halves meet in bits that are lost: three products of halves are enough.
    #[inline(always)]
    fn mul_low(self, x: __m256i, y: __m256i) -> __m256i {
        let (x_high, y_high) = (self.shift_right(x, 32), self.shift_right(y, 32));
        let cross = self.add(self.mul_32(x_high, y), self.mul_32(x, y_high));
        self.add(self.mul_32(x, y), self.shift_left(cross, 32))
    }

    /// Leaves out the product of the low halves and the carries of the rest: three floors, each less than 1 short.
    #[inline(always)]
    fn mul_high_about(self, x: __m256i, y: __m256i) -> __m256i {
        let (x_high, y_high) = (self.shift_right(x, 32), self.shift_right(y, 32));
        let cross =
            self.add(self.shift_right(self.mul_32(x_high, y), 32), self.shift_right(self.mul_32(x, y_high), 32));
        self.add(self.mul_32(x_high, y_high), cross)
    }

    #[inline(always)]
    fn exchange(self, x: __m256i, y: __m256i, stride: usize) -> (__m256i, __m256i) {
        match stride {
            1 => unsafe { (_mm256_unpacklo_epi64(x, y), _mm256_unpackhi_epi64(x, y)) },
            2 => unsafe { (_mm256_permute2x128_si256::<0x20>(x, y), _mm256_permute2x128_si256::<0x31>(x, y)) },
            _ => unreachable!("strides are powers of two below 4"),
        }
    }

    #[inline(always)]
    fn interleave(self, evens: __m256i, odds: __m256i) -> (__m256i, __m256i) {
        let (x, y) = self.exchange(evens, odds, 1);
        self.exchange(x, y, 2)
    }

    #[inline(always)]
    fn deinterleave(self, first: __m256i, second: __m256i) -> (__m256i, __m256i) {
        let (x, y) = self.exchange(first, second, 2);
        self.exchange(x, y, 1)
    }
}
