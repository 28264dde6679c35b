//! Arithmetic for the transforms of primes far below 2^52: 52-bit multiply-add, and nothing reduced on the way.
#![expect(unsafe_code, reason = "vector instructions; each needs IFMA, which the only maker of a `Roomy` has checked")]

use std::arch::x86_64::*;

use super::avx512::Avx512;
use super::ifma::{self, Ifma};
use super::{Lanes, Modulus, Planes, Residues, SumForm, Table};
use crate::math::kernel::Task;

/// Lazy arithmetic whose values are words modulo 2^52, anything above: multiplications read no more of a lane.
///
/// The laziness is the largest that fits. A prime leaves room for a whole transform: forward, a level adds at most 2p;
/// inverse, it doubles the sums, so that N p <= 2^52 is what [`fits`] asks for. Made by [`run`] alone.
#[derive(Clone, Copy)]
pub(in crate::math) struct Roomy {
    reduced: Ifma,
    lanes: Avx512,
    /// The largest even multiple of p below 2^52, halved.
    bound: __m512i,
    twice: __m512i,
    /// 2^52 - p.
    minus_modulus: __m512i,
    /// floor(2^52 / p).
    one_quotient: __m512i,
    /// 2^52 - 1.
    word: __m512i,
}

/// Says whether transforms of a ring degree, at least 32, leave their values modulo a prime below 2^52.
pub(in crate::math) fn fits(ring_degree: usize, modulus: Modulus) -> bool {
    // Forward, (2 log2 N + 1) p <= N p from N = 16 on.
    modulus.bits() + ring_degree.ilog2() <= 52
}

/// Runs a transform for which [`fits`].
pub(in crate::math) fn run(modulus: Modulus, task: impl Task) {
    assert!(ifma::is_available(), "this machine lacks AVX-512 IFMA");
    // SAFETY: checked above.
    unsafe { expanded(modulus, task) }
}

#[target_feature(enable = "avx512f,avx512dq,avx512ifma")]
fn expanded(modulus: Modulus, task: impl Task) {
    // SAFETY: these instructions are enabled here.
    let reduced = unsafe { Ifma::new(modulus) };
    let (lanes, p) = (reduced.lanes(), modulus.value());
    task.run(Roomy {
        reduced,
        lanes,
        bound: lanes.splat((1 << 51) / p * p),
        twice: lanes.splat(2 * p),
        minus_modulus: lanes.splat((1 << 52) - p),
        one_quotient: lanes.splat((1 << 52) / p),
        word: lanes.splat((1 << 52) - 1),
    });
}

impl Residues for Roomy {
    type Lanes = Avx512;
    /// The residue and its 52-bit quotient.
    type Constant = (__m512i, __m512i);

    #[inline(always)]
    fn lanes(self) -> Avx512 {
        self.lanes
    }

    #[inline(always)]
    fn modulus(self) -> __m512i {
        self.reduced.modulus()
    }

    #[inline(always)]
    fn lazy_bound(self) -> __m512i {
        self.bound
    }

    #[inline(always)]
    fn multiple_bound(self) -> __m512i {
        self.twice
    }

    fn table(modulus: Modulus, constants: &[u64]) -> Table {
        Ifma::table(modulus, constants)
    }

    #[inline(always)]
    fn constant(self, table: &Table, index: usize) -> Self::Constant {
        self.reduced.constant(table, index)
    }

    #[inline(always)]
    fn constants(self, table: &Table, index: usize, stride: usize) -> Self::Constant {
        self.reduced.constants(table, index, stride)
    }

    /// q = floor(x w' / 2^52) exceeds xw/p - x/2^52 - 1, so xw - qp < 2p; -qp is q (2^52 - p) modulo 2^52.
    #[inline(always)]
    fn mul(self, x: __m512i, (value, quotient): Self::Constant) -> __m512i {
        let zero = self.lanes.splat(0);
        // SAFETY: `self` exists, so the machine has IFMA.
        unsafe {
            let multiple = _mm512_madd52hi_epu64(zero, x, quotient);
            _mm512_madd52lo_epu64(_mm512_madd52lo_epu64(zero, x, value), multiple, self.minus_modulus)
        }
    }

    /// Nothing: there is room.
    #[inline(always)]
    fn fold(self, x: __m512i) -> __m512i {
        x
    }

    #[inline(always)]
    fn canonical(self, x: __m512i) -> __m512i {
        self.reduce_multiple(self.mul(x, (self.lanes.splat(1), self.one_quotient)))
    }

    #[inline(always)]
    fn reduce_multiple(self, x: __m512i) -> __m512i {
        self.sub_modulus_once(self.lanes.and(x, self.word))
    }

    #[inline(always)]
    fn sub_modulus_once(self, x: __m512i) -> __m512i {
        self.reduced.sub_modulus_once(x)
    }

    #[inline(always)]
    fn product(self, x: __m512i, y: __m512i) -> __m512i {
        self.reduced.product(x, y)
    }

    const PLANES: usize = Ifma::PLANES;

    fn sum_form(modulus: Modulus) -> SumForm {
        Ifma::sum_form(modulus)
    }

    #[inline(always)]
    fn make_room(self, planes: Planes<Self>) -> Planes<Self> {
        planes
    }

    #[inline(always)]
    fn add_product(self, planes: Planes<Self>, x: __m512i, y: __m512i) -> Planes<Self> {
        self.reduced.add_product(planes, x, y)
    }
}
