//! Eight lanes: AVX-512 with the F and DQ instructions.
#![expect(
    unsafe_code,
    reason = "vector instructions; each needs AVX-512, which every maker of an `Avx512` has checked"
)]

use std::arch::x86_64::*;

use super::{Lanes, Modulus, Narrow, Wide};
use crate::math::kernel::Task;

/// AVX-512 registers.
#[derive(Clone, Copy)]
pub(in crate::math) struct Avx512(());

impl Avx512 {
    /// Makes the registers usable.
    ///
    /// # Safety
    /// The machine must have AVX-512 F and DQ.
    #[inline(always)]
    pub unsafe fn new() -> Self {
        Self(())
    }
}

/// Says whether the machine has AVX-512 F and DQ.
pub(in crate::math) fn is_available() -> bool {
    is_x86_feature_detected!("avx512f") && is_x86_feature_detected!("avx512dq")
}

/// Runs a task with narrow or wide arithmetic.
pub(in crate::math) fn run(modulus: Modulus, narrow: bool, task: impl Task) {
    assert!(is_available(), "this machine lacks AVX-512");
    // SAFETY: checked above.
    unsafe { if narrow { run_narrow(modulus, task) } else { run_wide(modulus, task) } }
}

#[target_feature(enable = "avx512f,avx512dq")]
fn run_narrow(modulus: Modulus, task: impl Task) {
    task.run(Narrow::new(Avx512(()), modulus));
}

#[target_feature(enable = "avx512f,avx512dq")]
fn run_wide(modulus: Modulus, task: impl Task) {
    task.run(Wide::new(Avx512(()), modulus));
}

/// A shift count as the instructions take it.
#[inline(always)]
fn count(bits: u32) -> __m128i {
    // SAFETY: SSE2 belongs to every x86-64 machine.
    unsafe { _mm_cvtsi32_si128(bits as i32) }
}

// SAFETY of every block below: `self` exists, so the machine has AVX-512 F and DQ; loads and stores stay inside slices
// whose length is asserted.
impl Lanes for Avx512 {
    type Vector = __m512i;
    const LANES: usize = 8;

    #[inline(always)]
    fn load(self, from: &[u64]) -> __m512i {
        assert!(from.len() >= 8);
        unsafe { _mm512_loadu_si512(from.as_ptr().cast()) }
    }

    #[inline(always)]
    fn store(self, to: &mut [u64], x: __m512i) {
        assert!(to.len() >= 8);
        unsafe { _mm512_storeu_si512(to.as_mut_ptr().cast(), x) }
    }

    #[inline(always)]
    fn splat(self, x: u64) -> __m512i {
        unsafe { _mm512_set1_epi64(x as i64) }
    }

    #[inline(always)]
    fn load_spread(self, from: &[u64], stride: usize) -> __m512i {
        assert!(from.len() >= 8 / stride);
        match stride {
            1 => self.load(from),
            2 => unsafe {
                let four = _mm512_castsi256_si512(_mm256_loadu_si256(from.as_ptr().cast()));
                _mm512_permutexvar_epi64(_mm512_setr_epi64(0, 0, 1, 1, 2, 2, 3, 3), four)
            },
            4 => unsafe {
                let two = _mm512_castsi128_si512(_mm_loadu_si128(from.as_ptr().cast()));
                _mm512_permutexvar_epi64(_mm512_setr_epi64(0, 0, 0, 0, 1, 1, 1, 1), two)
            },
            _ => unreachable!("strides are powers of two below 8"),
        }
    }

    #[inline(always)]
    fn add(self, x: __m512i, y: __m512i) -> __m512i {
        unsafe { _mm512_add_epi64(x, y) }
    }

    #[inline(always)]
    fn sub(self, x: __m512i, y: __m512i) -> __m512i {
        unsafe { _mm512_sub_epi64(x, y) }
    }

    /// Where x < bound the difference wraps above x, and x is the minimum.
    #[inline(always)]
    fn sub_once(self, x: __m512i, bound: __m512i) -> __m512i {
        unsafe { _mm512_min_epu64(x, _mm512_sub_epi64(x, bound)) }
    }

    /// The 32-bit minimum is the cheaper instruction; in the high half the zero of x is the minimum.
    #[inline(always)]
    fn sub_once_32(self, x: __m512i, bound: __m512i) -> __m512i {
        unsafe { _mm512_min_epu32(x, _mm512_sub_epi64(x, bound)) }
    }

    #[inline(always)]
    fn and(self, x: __m512i, y: __m512i) -> __m512i {
        unsafe { _mm512_and_si512(x, y) }
    }

    #[inline(always)]
    fn shift_left(self, x: __m512i, bits: u32) -> __m512i {
        unsafe { _mm512_sll_epi64(x, count(bits)) }
    }

    #[inline(always)]
    fn shift_right(self, x: __m512i, bits: u32) -> __m512i {
        unsafe { _mm512_srl_epi64(x, count(bits)) }
    }

    #[inline(always)]
    fn mul_32(self, x: __m512i, y: __m512i) -> __m512i {
        unsafe { _mm512_mul_epu32(x, y) }
    }

    #[inline(always)]
    fn mul_low(self, x: __m512i, y: __m512i) -> __m512i {
        unsafe { _mm512_mullo_epi64(x, y) }
    }

    /// Leaves out the product of the low halves and the carries of the rest: three floors, each less than 1 short.
    #[inline(always)]
    fn mul_high_about(self, x: __m512i, y: __m512i) -> __m512i {
        let (x_high, y_high) = (self.shift_right(x, 32), self.shift_right(y, 32));
        let cross =
            self.add(self.shift_right(self.mul_32(x_high, y), 32), self.shift_right(self.mul_32(x, y_high), 32));
        self.add(self.mul_32(x_high, y_high), cross)
    }

    #[inline(always)]
    fn exchange(self, x: __m512i, y: __m512i, stride: usize) -> (__m512i, __m512i) {
        match stride {
            1 => unsafe { (_mm512_unpacklo_epi64(x, y), _mm512_unpackhi_epi64(x, y)) },
            2 => unsafe {
                let even = _mm512_setr_epi64(0, 1, 8, 9, 4, 5, 12, 13);
                let odd = _mm512_setr_epi64(2, 3, 10, 11, 6, 7, 14, 15);
                (_mm512_permutex2var_epi64(x, even, y), _mm512_permutex2var_epi64(x, odd, y))
            },
            4 => unsafe { (_mm512_shuffle_i64x2::<0x44>(x, y), _mm512_shuffle_i64x2::<0xee>(x, y)) },
            _ => unreachable!("strides are powers of two below 8"),
        }
    }

    #[inline(always)]
    fn interleave(self, evens: __m512i, odds: __m512i) -> (__m512i, __m512i) {
        unsafe {
            let first = _mm512_setr_epi64(0, 8, 1, 9, 2, 10, 3, 11);
            let second = _mm512_setr_epi64(4, 12, 5, 13, 6, 14, 7, 15);
            (_mm512_permutex2var_epi64(evens, first, odds), _mm512_permutex2var_epi64(evens, second, odds))
        }
    }

    #[inline(always)]
    fn deinterleave(self, first: __m512i, second: __m512i) -> (__m512i, __m512i) {
        unsafe {
            let evens = _mm512_setr_epi64(0, 2, 4, 6, 8, 10, 12, 14);
            let odds = _mm512_setr_epi64(1, 3, 5, 7, 9, 11, 13, 15);
            (_mm512_permutex2var_epi64(first, evens, second), _mm512_permutex2var_epi64(first, odds, second))
        }
    }
}
