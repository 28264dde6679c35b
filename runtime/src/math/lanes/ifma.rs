//! Arithmetic for primes below 2^50 with the 52-bit multiply-add instructions (AVX-512 IFMA).
#![expect(unsafe_code, reason = "vector instructions; each needs IFMA, which every maker of an `Ifma` has checked")]

use std::arch::x86_64::*;

use super::avx512::{self, Avx512};
use super::{Lanes, Modulus, Planes, Residues, SumForm, Table, quotients};
use crate::math::kernel::Task;

/// Lazy arithmetic with laziness 2: values lie below 4p < 2^52.
#[derive(Clone, Copy)]
pub(in crate::math) struct Ifma {
    lanes: Avx512,
    modulus: __m512i,
    twice: __m512i,
    /// floor(2^(bits + 51) / p), below 2^52.
    product_ratio: __m512i,
    bits: u32,
    /// 2^52 - 1.
    word: __m512i,
}

/// Says whether the machine has IFMA and the rest of AVX-512 used here.
pub(in crate::math) fn is_available() -> bool {
    avx512::is_available() && is_x86_feature_detected!("avx512ifma")
}

/// Runs a task modulo a prime below 2^50.
pub(in crate::math) fn run(modulus: Modulus, task: impl Task) {
    assert!(is_available(), "this machine lacks AVX-512 IFMA");
    assert!(modulus.bits() <= 50, "4p fits 52 bits");
    // SAFETY: checked above.
    unsafe { expanded(modulus, task) }
}

#[target_feature(enable = "avx512f,avx512dq,avx512ifma")]
fn expanded(modulus: Modulus, task: impl Task) {
    // SAFETY: these instructions are enabled here.
    task.run(unsafe { Ifma::new(modulus) });
}

impl Ifma {
    /// Makes the arithmetic usable.
    ///
    /// # Safety
    /// The machine must have AVX-512 F, DQ and IFMA.
    #[inline(always)]
    pub unsafe fn new(modulus: Modulus) -> Self {
        // SAFETY: the caller's word.
        let lanes = unsafe { Avx512::new() };
        Self {
            lanes,
            modulus: lanes.splat(modulus.value()),
            twice: lanes.splat(2 * modulus.value()),
            // The 64-bit ratio holds the 52-bit one in its top bits.
            product_ratio: lanes.splat(modulus.product_ratio() >> 12),
            bits: modulus.bits(),
            word: lanes.splat((1 << 52) - 1),
        }
    }

    /// Adds bits 0..52 of the product of two 52-bit words.
    #[inline(always)]
    fn add_low(self, sum: __m512i, x: __m512i, y: __m512i) -> __m512i {
        // SAFETY: `self` exists, so the machine has IFMA.
        unsafe { _mm512_madd52lo_epu64(sum, x, y) }
    }

    /// Adds bits 52..104 of the product of two 52-bit words.
    #[inline(always)]
    fn add_high(self, sum: __m512i, x: __m512i, y: __m512i) -> __m512i {
        // SAFETY: `self` exists, so the machine has IFMA.
        unsafe { _mm512_madd52hi_epu64(sum, x, y) }
    }

    /// Returns xy - qp, known to lie in [0, 2^52).
    #[inline(always)]
    fn rest(self, x: __m512i, y: __m512i, multiple: __m512i) -> __m512i {
        let zero = self.lanes.splat(0);
        let difference = self.lanes.sub(self.add_low(zero, x, y), self.add_low(zero, multiple, self.modulus));
        self.lanes.and(difference, self.word)
    }
}

impl Residues for Ifma {
    type Lanes = Avx512;
    /// The residue and its 52-bit quotient.
    type Constant = (__m512i, __m512i);

    #[inline(always)]
    fn lanes(self) -> Avx512 {
        self.lanes
    }

    #[inline(always)]
    fn modulus(self) -> __m512i {
        self.modulus
    }

    #[inline(always)]
    fn lazy_bound(self) -> __m512i {
        self.twice
    }

    fn table(modulus: Modulus, constants: &[u64]) -> Table {
        Table { values: constants.to_vec(), quotients: quotients(modulus, constants, 52) }
    }

    #[inline(always)]
    fn constant(self, table: &Table, index: usize) -> Self::Constant {
        (self.lanes.splat(table.values[index]), self.lanes.splat(table.quotients[index]))
    }

    #[inline(always)]
    fn constants(self, table: &Table, index: usize, stride: usize) -> Self::Constant {
        let count = Avx512::LANES / stride;
        let value = self.lanes.load_spread(&table.values[index..][..count], stride);
        (value, self.lanes.load_spread(&table.quotients[index..][..count], stride))
    }

    /// q = floor(x w' / 2^52) exceeds xw/p - x/2^52 - 1 and x < 2^52, so xw - qp < 2p.
    #[inline(always)]
    fn mul(self, x: __m512i, (value, quotient): Self::Constant) -> __m512i {
        self.rest(x, value, self.add_high(self.lanes.splat(0), x, quotient))
    }

    #[inline(always)]
    fn fold(self, x: __m512i) -> __m512i {
        self.lanes.sub_once(x, self.twice)
    }

    #[inline(always)]
    fn canonical(self, x: __m512i) -> __m512i {
        self.sub_modulus_once(self.fold(x))
    }

    #[inline(always)]
    fn reduce_multiple(self, x: __m512i) -> __m512i {
        self.sub_modulus_once(x)
    }

    #[inline(always)]
    fn sub_modulus_once(self, x: __m512i) -> __m512i {
        self.lanes.sub_once(x, self.modulus)
    }

    /// Barrett on z = xy with b bits: z1 = floor(z / 2^(b-1)) < 2^(b+1) is the high word of (x 2^(52-b)) (2y), and q that
    /// of z1 * floor(2^(b+51)/p); the floors take less than 1, 2^(b+1) / 2^52 <= 1/2 and 1 from z/p: z - qp < 2.5 p.
    #[inline(always)]
    fn product(self, x: __m512i, y: __m512i) -> __m512i {
        let (lanes, zero) = (self.lanes, self.lanes.splat(0));
        let top = self.add_high(zero, lanes.shift_left(x, 52 - self.bits), lanes.add(y, y));
        let multiple = self.add_high(zero, top, self.product_ratio);
        self.canonical(self.rest(x, y, multiple))
    }

    const PLANES: usize = 2;

    /// Low and high words of the products: 2^12 low ones of 52 bits fit 64, and more of the high ones below 2^48.
    fn sum_form(modulus: Modulus) -> SumForm {
        SumForm { weights: vec![1, modulus.reduce(1 << 52)], capacity: 1 << 12, makes_room: false }
    }

    #[inline(always)]
    fn make_room(self, planes: Planes<Self>) -> Planes<Self> {
        planes
    }

    #[inline(always)]
    fn add_product(self, [low, high, _]: Planes<Self>, x: __m512i, y: __m512i) -> Planes<Self> {
        [self.add_low(low, x, y), self.add_high(high, x, y), self.lanes.splat(0)]
    }
}
